"""`holecard doctor`: checks of a table's installation."""
