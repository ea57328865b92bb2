"""Key files and the key store of the host."""
