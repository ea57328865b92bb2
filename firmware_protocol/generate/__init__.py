"""Messages.toml -> Python, C header, PROTOCOL.md."""
