"""Ports, keys and devices."""
