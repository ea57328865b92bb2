"""The host side of TableLink, without I/O."""

from __future__ import annotations

from firmware_protocol.host.commands import LinkBusy
from firmware_protocol.host.cursor import NO_CURSOR, Cursor, Records
from firmware_protocol.host.events import Ending
from firmware_protocol.host.link import Link
from firmware_protocol.host.pairing import (
    Hinted,
    Introduced,
    Introduction,
    Noise,
    Pairing,
    PairingDone,
    PairingEvent,
    PairingFailed,
    Why,
)

__all__ = [
    "NO_CURSOR",
    "Cursor",
    "Ending",
    "Hinted",
    "Introduced",
    "Introduction",
    "Link",
    "LinkBusy",
    "Noise",
    "Pairing",
    "PairingDone",
    "PairingEvent",
    "PairingFailed",
    "Records",
    "Why",
]
