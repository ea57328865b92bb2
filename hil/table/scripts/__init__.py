"""Scripted rounds dealt at a whole table."""
