"""Writing a record: append, group commit, checkpoint, opening, quarantine."""
