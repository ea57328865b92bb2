"""Tests of the bench and of what stands in for hardware."""
