"""A whole table to play at: simulated devices, the daemon, and robots who see what people see."""
