"""Table."""
