"""Daemon, devices and pages together."""
