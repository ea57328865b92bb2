"""Every item's function by the item's id."""

from __future__ import annotations

from typing import Final

from hil.conform.items import (
    commands,
    events,
    frames,
    handshake,
    pairing,
    ring,
    session,
    shoe,
    shuffler,
    station,
    tap,
)
from hil.conform.tester.bench import Trial

_MODULES: Final = (
    frames,
    handshake,
    pairing,
    session,
    events,
    ring,
    commands,
    shoe,
    shuffler,
    station,
    tap,
)
TRIALS: Final[dict[str, Trial]] = {
    name: trial for module in _MODULES for name, trial in module.TRIALS.items()
}
WITHOUT_SESSION: Final[frozenset[str]] = frozenset((*frames.TRIALS, "PA-1"))
"""Tried also while the device is not paired. HE-3 then ends where it would need keys."""
