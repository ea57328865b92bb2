"""Firmware_protocol."""
