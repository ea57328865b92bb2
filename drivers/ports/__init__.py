"""Serial and USB ports: find, open, read, write."""
