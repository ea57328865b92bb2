"""The items of PROTOCOL.md, tried on a device one by one."""
