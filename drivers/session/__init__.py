"""One supervisor per device: find, open, handshake, resume, acknowledge, retry."""

from __future__ import annotations

from drivers.session.acknowledge import NothingHeld, StoreFailed
from drivers.session.backoff import Backoff
from drivers.session.lookup import OpenPort, PortSearch, WantedDevice
from drivers.session.record_store import RECENT, AdoptedRing, RecordStore
from drivers.session.supervisor import Supervisor

__all__ = [
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
