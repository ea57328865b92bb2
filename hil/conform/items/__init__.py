"""The items of PROTOCOL.md, each a function."""
