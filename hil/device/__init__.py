"""Simulated devices: what a real one does with bytes, cards and buttons, time passed in."""
