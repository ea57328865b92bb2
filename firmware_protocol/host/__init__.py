"""The host side of TableLink, without I/O."""

from __future__ import annotations

from firmware_protocol.host.commands import LinkBusy
from firmware_protocol.host.cursor import NO_CURSOR, ReceivedRecords, RecordCursor
from firmware_protocol.host.events import SessionEnding
from firmware_protocol.host.link import HostLink
from firmware_protocol.host.pairing import (
    DeviceIntroduced,
    HostPairing,
    Introduction,
    PairingAlert,
    PairingDone,
    PairingEvent,
    PairingFailed,
    PairingFailure,
    PairingNoise,
)

__all__ = [
    "NO_CURSOR",
    "DeviceIntroduced",
    "HostLink",
    "HostPairing",
    "Introduction",
    "LinkBusy",
    "PairingAlert",
    "PairingDone",
    "PairingEvent",
    "PairingFailed",
    "PairingFailure",
    "PairingNoise",
    "ReceivedRecords",
    "RecordCursor",
    "SessionEnding",
]
