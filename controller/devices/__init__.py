"""The devices of this host: pairing them, and looking at those that are paired."""
