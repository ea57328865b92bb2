"""The record under kills, failing system calls and losses of power: `make torture`."""
