"""Simulated ports: pty, USB bus, unix sockets."""

from __future__ import annotations

from hil.ports.pty import LinkTaken, PtyPort, set_link
from hil.ports.unix_sockets import Listener, PathTaken
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
    "set_link",
]
