"""`holecard bench`: speed as ratios in one run."""
