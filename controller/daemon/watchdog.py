"""The pulse of a served table: a tick of the loop, and a watchdog that is fed while all gets on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

import structlog
from msgspec import Struct

from controller.daemon.systemd import Notify, status
from controller.table.running import RunningTable
from drivers.devices import State

MAX_LAG: Final = 5.0
"""Seconds for which the loop may stand still."""
MAX_APPEND: Final = 30.0
"""Seconds for which the record may not answer."""
MAX_QUIET: Final = 60.0
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
    if lag > MAX_LAG:
        yield f"the loop stood still for {lag:.1f} s"
    if vitals.append > MAX_APPEND:
        yield f"the record has not answered for {vitals.append:.0f} s"
    for link in vitals.links:
        # Nothing is done for one whose records cannot be kept, until they can: it says so itself.
        if link.state is not State.UNKEPT and link.quiet > MAX_QUIET:
            yield f"nothing was done for {link.serial} ({link.state.value}) for {link.quiet:.0f} s"


def links_of(table: RunningTable, now: int) -> tuple[LinkVitals, ...]:
    """How the links stand at this time of the devices' clock, in microseconds."""
    return tuple(
        LinkVitals(
            serial, one.supervisor.state, (now - one.supervisor.connection.last_active_us) / 1e6
        )
        for serial, one in table.fittings.served.items()
    )


TICK_INTERVAL: Final = 0.25
"""Seconds between two ticks."""
FEEDS_PER_TIMEOUT: Final = 3
"""So often within its time the watchdog is fed: one word that is lost starts nothing anew."""

_log: Final = structlog.get_logger("daemon.watchdog")


class LoopMonitor:
    """How late the loop is."""

    def __init__(self, told: Callable[[float], None] = lambda lag: None) -> None:
        self.lag = 0.0
        self._told = told
        self._at: float | None = None

    @property
    def late(self) -> float:
        """Seconds by which the next tick is late."""
        now = asyncio.get_running_loop().time()
        return 0.0 if self._at is None else max(0.0, now - self._at)

    async def run(self) -> None:
        """Until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = self._at = loop.time() + TICK_INTERVAL
            await asyncio.sleep(TICK_INTERVAL)
            self.lag = max(0.0, loop.time() - due)
            self._told(self.lag)


class Watchdog:
    """Feeds the service manager's watchdog, and says how things stand."""

    def __init__(
        self, notify: Notify, look: Callable[[], Vitals], stands: Callable[[], str]
    ) -> None:
        """`stands`: how the table stands, in a line for `systemctl status`."""
        self._notify = notify
        self._look = look
        self._stands = stands
        self._said = ""
        self._hangs = False

    @property
    def pause(self) -> float:
        """Seconds between two looks."""
        within = self._notify.watchdog
        return 1.0 if within is None else min(1.0, within / FEEDS_PER_TIMEOUT)

    def look(self) -> bool:
        """Once: whether all gets on."""
        hangs = judge(self._look())
        if bool(hangs) is not self._hangs:
            self._hangs = bool(hangs)
            _log.error("hangs", what=hangs) if hangs else _log.info("gets on again")
        words = [] if hangs or self._notify.watchdog is None else ["WATCHDOG=1"]
        said = status("; ".join(hangs) or self._stands())
        if said != self._said:
            self._said = said
            words.append(said)
        if words:
            self._notify.tell(*words)
        return not hangs

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self.look()
            await asyncio.sleep(self.pause)
