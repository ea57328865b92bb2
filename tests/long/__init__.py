"""Long campaigns, outside of `make test`."""
