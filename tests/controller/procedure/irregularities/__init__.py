"""Irregularities."""
