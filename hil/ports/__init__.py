"""Simulated ports: pseudo terminals, a USB bus, and Unix sockets."""

from __future__ import annotations

from hil.ports.pty import LinkTaken, PtyPort, check_link, set_link
from hil.ports.unix_sockets import Listener, PathTaken, check_path, connect
from hil.ports.usb_bus import BusFull, UsbDevice
from hil.ports.usb_messages import UsbStatus

__all__ = [
    "BusFull",
    "LinkTaken",
    "Listener",
    "PathTaken",
    "PtyPort",
    "UsbDevice",
    "UsbStatus",
    "check_link",
    "check_path",
    "connect",
    "set_link",
]
