"""One supervisor per device: find, open, handshake, resume, acknowledge, retry."""

from __future__ import annotations

from drivers.session.acknowledge import Come, NotKept
from drivers.session.adoption import NothingHeld
from drivers.session.events import AnyHappening, Happening, Held
from drivers.session.lookup import Search, Wanted
from drivers.session.progress import monotonic_us
from drivers.session.record_store import RECENT, Adoption, Keeper
from drivers.session.supervisor import Open, Supervisor

__all__ = [
    "RECENT",
    "Adoption",
    "AnyHappening",
    "Come",
    "Happening",
    "Held",
    "Keeper",
    "NotKept",
    "NothingHeld",
    "Open",
    "Search",
    "Supervisor",
    "Wanted",
    "monotonic_us",
]
