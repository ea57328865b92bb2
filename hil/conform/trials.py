"""Every item's function by the item's id."""

from __future__ import annotations

from typing import Final

from hil.conform import (
    items_commands,
    items_events,
    items_frame,
    items_handshake,
    items_pairing,
    items_ring,
    items_session,
    items_shoe,
    items_shuffler,
    items_station,
    items_tap,
    items_time,
)
from hil.conform.trial import Trial

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
