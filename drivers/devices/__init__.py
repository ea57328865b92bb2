"""Device classes: typed events and commands."""
