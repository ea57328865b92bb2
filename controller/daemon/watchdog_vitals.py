"""Whether a served table gets on: judged from a few figures, for the watchdog.

What does not go well but says so is no reason to begin anew: a device that is lost is looked for, a
disk without room is tried again. What hangs is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from controller.table.running.table import RunningTable
from drivers.devices.state import State

MOST_LAG: Final = 5.0
"""Seconds for which the loop may stand still."""
MOST_APPEND: Final = 30.0
"""Seconds for which the record may not answer."""
MOST_QUIET: Final = 60.0
"""Seconds in which something is done for a device, whatever it is. To find a port, open it, and get
a session takes less; a device that is ready has a heartbeat each second."""


class LinkVitals(Struct, frozen=True):
    """One device's link."""

    serial: str
    state: State
    quiet: float
    """Seconds since anything was done for it."""


class Vitals(Struct, frozen=True):
    """One table's."""

    lag: float
    """Seconds by which the loop was late when it was last looked at."""
    overdue: float
    """Seconds by which it is late now."""
    append: float
    """Seconds for which the record has not answered."""
    links: tuple[LinkVitals, ...] = ()


def judge(vitals: Vitals) -> tuple[str, ...]:
    """What hangs, in words; nothing where all gets on."""
    return tuple(_hanging(vitals))


def _hanging(vitals: Vitals) -> Iterator[str]:
    lag = max(vitals.lag, vitals.overdue)
    if lag > MOST_LAG:
        yield f"the loop stood still for {lag:.1f} s"
    if vitals.append > MOST_APPEND:
        yield f"the record has not answered for {vitals.append:.0f} s"
    for link in vitals.links:
        # Nothing is done for one whose records cannot be kept, until they can: it says so itself.
        if link.state is not State.UNKEPT and link.quiet > MOST_QUIET:
            yield f"nothing was done for {link.serial} ({link.state.value}) for {link.quiet:.0f} s"


def links_of(table: RunningTable, now: int) -> tuple[LinkVitals, ...]:
    """How the links stand at this time of the devices' clock, in microseconds."""
    return tuple(
        LinkVitals(serial, one.supervisor.state, (now - one.supervisor.progress.turned_at) / 1e6)
        for serial, one in table.fittings.served.items()
    )
