"""A whole table: the daemon as a child process, devices behind real ports, robots at its API."""
