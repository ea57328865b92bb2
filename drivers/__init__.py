"""Ports and devices: typed device events out, typed commands in. Imports firmware_protocol only."""
