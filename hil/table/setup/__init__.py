"""A simulated house with its devices and the daemon as a child process."""
