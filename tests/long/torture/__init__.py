"""The record under kills, failing calls, broken disks and losses of power: `make torture`."""
