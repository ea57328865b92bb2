"""One supervisor per device: find, open, handshake, resume, acknowledge, retry."""

from __future__ import annotations

from drivers.session.acknowledge import RECENT, AdoptedRing, NothingHeld, RecordStore, StoreFailed
from drivers.session.lookup import Backoff, OpenPort, PortSearch, WantedDevice
from drivers.session.opening import HANDSHAKE_TIMEOUT
from drivers.session.supervisor import Supervisor

__all__ = [
    "HANDSHAKE_TIMEOUT",
    "RECENT",
    "AdoptedRing",
    "Backoff",
    "NothingHeld",
    "OpenPort",
    "PortSearch",
    "RecordStore",
    "StoreFailed",
    "Supervisor",
    "WantedDevice",
]
