"""`holecard devices`: list, pair and forget devices."""
