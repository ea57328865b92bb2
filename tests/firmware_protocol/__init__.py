"""The wire contract: every byte of it, from here and from elsewhere."""
