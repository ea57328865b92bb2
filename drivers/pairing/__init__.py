"""Pairing at a real port."""
