"""The bench page: a simulated table's devices in a browser, and seats for people to take."""
