"""`holecard audit ...`."""
