"""Simulated ports: pty, USB bus, unix sockets."""
