"""Witness."""
