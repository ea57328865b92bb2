"""The record's format: what records contain and how they are encoded. Pure; see FORMAT.md."""
