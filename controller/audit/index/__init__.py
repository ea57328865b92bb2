"""SQLite index of a record; can be rebuilt at any time."""
