"""A record as sentences for people."""
