"""Procedure."""
