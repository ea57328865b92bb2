"""A running table put together, started and stopped in order."""
