"""Loop."""
