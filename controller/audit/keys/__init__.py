"""The record's keys: key store, creation, listing, signing."""
