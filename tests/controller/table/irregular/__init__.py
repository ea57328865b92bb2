"""Irregular."""
