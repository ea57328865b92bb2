"""Restart."""
