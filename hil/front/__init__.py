"""What stands between a simulated device and the world: a pty, a USB bus, a control socket."""
