"""The devices of a host, by the command that pairs them."""
