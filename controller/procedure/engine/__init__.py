"""The row table and the two engines that step through it."""
