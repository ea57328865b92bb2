"""Reading a record: segments, lookup, follow, retirements, signatures, access log."""
