"""The review of a record, round by round; read-only."""
