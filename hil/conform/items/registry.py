"""Every item's function by the item's id."""

from __future__ import annotations

from typing import Final

from hil.conform.items import commands as items_commands
from hil.conform.items import events as items_events
from hil.conform.items import frames as items_frame
from hil.conform.items import handshake as items_handshake
from hil.conform.items import pairing as items_pairing
from hil.conform.items import ring as items_ring
from hil.conform.items import session as items_session
from hil.conform.items import session_items_time as items_time
from hil.conform.items import shoe as items_shoe
from hil.conform.items import shuffler as items_shuffler
from hil.conform.items import station as items_station
from hil.conform.items import tap as items_tap
from hil.conform.tester.bench_trial import Trial

_MODULES: Final = (
    items_frame,
    items_handshake,
    items_pairing,
    items_session,
    items_time,
    items_events,
    items_ring,
    items_commands,
    items_shoe,
    items_shuffler,
    items_station,
    items_tap,
)
TRIALS: Final[dict[str, Trial]] = {
    name: trial for module in _MODULES for name, trial in module.TRIALS.items()
}
WITHOUT_SESSION: Final[frozenset[str]] = frozenset((*items_frame.TRIALS, "PA-1"))
"""Tried also while the device is not paired. HE-3 then ends where it would need keys."""
