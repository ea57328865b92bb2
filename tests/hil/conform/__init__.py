"""Conform."""
