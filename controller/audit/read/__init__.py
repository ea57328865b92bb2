"""Reading a record: segments, lookup, follow, selection."""
