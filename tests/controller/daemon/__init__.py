"""Daemon."""
