"""The running table."""
