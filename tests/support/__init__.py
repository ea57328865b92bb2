"""Helpers that several test packages use."""
