"""Health check and watchdog of a served table, and notifications to systemd.

Reported failures are not a reason to restart: a lost device is searched for, a full disk is
retried. A component that hangs is one: the loop, an append, or a device link past its limit. A
process that was stopped, or got no processor time, does not hang.
Notifications are those of sd_notify(3); without NOTIFY_SOCKET nothing is sent.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import structlog
from msgspec import Struct

from controller.table.running import RunningTable
from drivers.devices import LinkState

SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG: Final = "WATCHDOG_USEC"
WATCHDOG_PID: Final = "WATCHDOG_PID"

_notify_log: Final = structlog.get_logger("daemon.notify")


class Notify:
    """The connection to the service manager, if there is one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        place = environ.get(SOCKET, "")
        # @ represents a zero byte: an abstract socket.
        self._place = "\0" + place[1:] if place.startswith("@") else place
        self.watchdog = _watchdog(environ)
        """The watchdog timeout in seconds; None without a watchdog."""
        self._deaf = False

    def tell(self, *messages: str) -> None:
        """Send messages such as READY=1. Does not block; dropped if the manager does not read."""
        if not self._place:
            return
        data = "\n".join(messages).encode()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.sendto(data, self._place)
        except OSError as problem:
            if not self._deaf:  # logged once
                _notify_log.warning("the service manager does not listen", why=str(problem))
            self._deaf = True
        else:
            self._deaf = False


def status(text: str) -> str:
    """A message for `systemctl status`, as one line."""
    return f"STATUS={' '.join(text.split())}"


def _watchdog(environ: Mapping[str, str]) -> float | None:
    """The watchdog timeout, if it is meant for this process."""
    usec, pid = environ.get(WATCHDOG, ""), environ.get(WATCHDOG_PID, "")
    if pid not in ("", str(os.getpid())):
        return None
    if not (usec.isascii() and usec.isdigit()) or int(usec) == 0:
        return None
    return int(usec) / 1e6


NO_MANAGER: Final = Notify({})


MAX_LAG: Final = 5.0
"""Maximum seconds for which the loop may be busy with one thing."""
MAX_APPEND: Final = 30.0
"""Maximum seconds for an append."""
MAX_QUIET: Final = 60.0
"""Maximum seconds without any activity of a device link. Searching and opening a port and getting a
session take less; a ready device has a heartbeat each second."""


class LinkVitals(Struct, frozen=True):
    """The health of a device link."""

    serial: str
    state: LinkState
    quiet: float
    """Seconds since the last activity."""


class Vitals(Struct, frozen=True):
    """The health of a table."""

    lag: float
    """Delay of the loop by its own work, in seconds."""
    append: float
    """Seconds for which the current append has been running."""
    links: tuple[LinkVitals, ...] = ()


def judge(vitals: Vitals) -> tuple[str, ...]:
    """What hangs, as texts; empty if nothing does."""
    return tuple(_hanging(vitals))


def _hanging(vitals: Vitals) -> Iterator[str]:
    if vitals.lag > MAX_LAG:
        yield f"the loop was busy for {vitals.lag:.1f} s"
    if vitals.append > MAX_APPEND:
        yield f"the record has not answered for {vitals.append:.0f} s"
    for link in vitals.links:
        # A link whose records cannot be stored is paused; that is reported otherwise.
        if link.state is not LinkState.UNKEPT and link.quiet > MAX_QUIET:
            yield f"nothing was done for {link.serial} ({link.state.value}) for {link.quiet:.0f} s"


def links_of(table: RunningTable, now: int) -> tuple[LinkVitals, ...]:
    """The health of all links at the time `now` of the devices' clock, in microseconds."""
    return tuple(
        LinkVitals(serial, one.supervisor.state, (now - one.supervisor.last_active_us) / 1e6)
        for serial, one in table.devices.supervised.items()
    )


FEEDS_PER_TIMEOUT: Final = 3
"""Notifications per watchdog timeout, so that a lost one does not cause a restart."""

_log: Final = structlog.get_logger("daemon.watchdog")


class Watchdog:
    """Feeds the service manager's watchdog while the table is healthy, and reports the status."""

    def __init__(
        self, notify: Notify, vitals: Callable[[], Vitals], status_line: Callable[[], str]
    ) -> None:
        """`vitals` returns the health, `status_line` a line for `systemctl status`."""
        self._notify = notify
        self._vitals = vitals
        self._status_line = status_line
        self._status = ""
        self._hangs = False

    @property
    def pause(self) -> float:
        """Seconds between two checks."""
        within = self._notify.watchdog
        return 1.0 if within is None else min(1.0, within / FEEDS_PER_TIMEOUT)

    def check(self) -> bool:
        """Check once. Returns whether the table is healthy."""
        hangs = judge(self._vitals())
        if bool(hangs) is not self._hangs:
            self._hangs = bool(hangs)
            _log.error("hangs", what=hangs) if hangs else _log.info("gets on again")
        messages = [] if hangs or self._notify.watchdog is None else ["WATCHDOG=1"]
        line = status("; ".join(hangs) or self._status_line())
        if line != self._status:
            self._status = line
            messages.append(line)
        if messages:
            self._notify.tell(*messages)
        return not hangs

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self.check()
            await asyncio.sleep(self.pause)
