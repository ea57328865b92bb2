"""`holecard demo`."""
