"""Typed."""
