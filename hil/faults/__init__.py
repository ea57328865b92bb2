"""Deliberate defects of a simulated device, line noise, wire taps."""
