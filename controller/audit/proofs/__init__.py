"""Stand-alone proofs of records."""
