"""The record: what is written, read back, signed, sealed and verified."""
