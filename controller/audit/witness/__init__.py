"""External witnesses: countersigning, archive, monitoring."""
