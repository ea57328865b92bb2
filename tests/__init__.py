"""Tests, in rooms that mirror the code's."""
