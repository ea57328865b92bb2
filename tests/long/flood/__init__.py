"""Floods of connections, measured at a dealer's browser."""
