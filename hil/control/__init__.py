"""The control socket of a simulated device."""
