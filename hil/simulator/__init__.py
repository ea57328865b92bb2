"""One simulated device as a process: power, clock, port, control."""
