"""Simulated ports: pty, USB bus, unix sockets."""

from __future__ import annotations

from hil.ports.pty import LinkTaken, PtyPort, point
from hil.ports.unix_sockets import Listener, PathTaken
from hil.ports.usb_bus import BusFull, UsbDevice
from hil.ports.usb_messages import Status

__all__ = [
    "BusFull",
    "LinkTaken",
    "Listener",
    "PathTaken",
    "PtyPort",
    "Status",
    "UsbDevice",
    "point",
]
