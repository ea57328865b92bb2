"""Tests, in packages that mirror those of the code."""
