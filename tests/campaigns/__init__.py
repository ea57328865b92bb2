"""Long runs with a target of their own: `make campaign`."""
