"""Open connections of one server: counted, limited, and closed for new ones at a limit.

A limit never refuses a new connection while one without a sign-in can be closed for it. So a flood
from the dealer's own address closes its own connections, and not the dealer's way in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from enum import IntEnum
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, Literal, TypeAlias

import structlog
from msgspec import Struct

LOG_INTERVAL: Final = 10.0
"""Seconds between two log lines of one server about closed connections."""
_PREFIX_BITS: Final = 64
"""Bits of an IPv6 address that its owner does not choose."""

_log: Final = structlog.get_logger("http")


class SessionRank(IntEnum):
    """What a connection carries, as far as its last request says."""

    NONE = 0
    BROWSER = 1
    """A session in which no person is signed in."""
    SIGNED_IN = 2


Rank: TypeAlias = Callable[[], SessionRank]
"""Returns the rank at this moment: a person may sign in or out over a different connection."""
CloseReason: TypeAlias = Literal["shed", "refused", "slow", "invalid"]
"""`shed`: closed for a new one. `refused`: new, while all others carry sign-ins. `slow`: exceeded a
timeout of handshake, request or response. `invalid`: sent no TLS or no HTTP."""


class ConnectionLimits(Struct, frozen=True):
    """Maximum numbers of open connections of one server."""

    total: int
    per_address: int


def no_session() -> SessionRank:
    return SessionRank.NONE


class OpenConnection:
    """One accepted connection."""

    __slots__ = ("address", "close", "rank")

    def __init__(self, address: str) -> None:
        self.address = address
        self.rank: Rank = no_session
        self.close: Callable[[], None] = _nothing
        """Closes it at once; replaced when the TLS handshake is done."""


def _nothing() -> None:
    pass


class ConnectionTable:
    """All open connections of one server, the oldest first. Event loop only."""

    def __init__(
        self,
        name: str,
        limits: ConnectionLimits,
        closed: Callable[[CloseReason], None] = lambda reason: None,
    ) -> None:
        """`name`: of the server, for log lines. `closed` is called for each connection that the
        server closes before its client does."""
        self.name = name
        self.limits = limits
        self._closed = closed
        self._open: dict[OpenConnection, None] = {}
        self._by_address: dict[str, dict[OpenConnection, None]] = {}
        self._report = _LimitReport(name)

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, address: str) -> OpenConnection | None:
        """Count a new connection, and shed a different one at a limit. None: it is refused."""
        at = self._by_address.get(address, {})
        if len(at) >= self.limits.per_address and not self._shed(at, self.limits.per_address):
            self._refuse(address)
            return None
        if len(self._open) >= self.limits.total and not self._shed(self._open, self.limits.total):
            self._refuse(address)
            return None
        made = OpenConnection(address)
        self._open[made] = None
        self._by_address.setdefault(address, {})[made] = None
        return made

    def release(self, one: OpenConnection) -> None:
        """Forget a connection that has ended. Idempotent."""
        if self._open.pop(one, self) is self:
            return
        at = self._by_address[one.address]
        del at[one]
        if not at:
            del self._by_address[one.address]

    def shed_one(self) -> bool:
        """Close the connection that a limit would close. Returns whether there is one."""
        return self._shed(self._open, self.limits.total)

    def close_slow(self, one: OpenConnection) -> None:
        """Close a connection that exceeded a timeout."""
        self._closed("slow")
        self._end(one)

    def count_invalid(self, one: OpenConnection) -> None:
        """Count a connection that is being closed with an error."""
        self._closed("invalid")
        self._report.add(one.address, "invalid")

    def close_all(self) -> None:
        self._report.cancel()
        for one in list(self._open):
            self._end(one)

    def _shed(self, found: Iterable[OpenConnection], limit: int) -> bool:
        one = oldest_to_shed(found, limit)
        if one is None:
            return False
        self._closed("shed")
        self._report.add(one.address, "shed")
        self._end(one)
        return True

    def _refuse(self, address: str) -> None:
        self._closed("refused")
        self._report.add(address, "refused")

    def _end(self, one: OpenConnection) -> None:
        self.release(one)
        one.close()


def oldest_to_shed(found: Iterable[OpenConnection], limit: int) -> OpenConnection | None:
    """Returns the connection to close for a new one: the oldest one without a session.

    Any client can open sessions without a sign-in, so they are protected only while they have
    at most half of the limit. Sign-ins are never closed. `found`: the oldest first.
    """
    oldest: dict[SessionRank, OpenConnection] = {}
    browsers = 0
    for one in found:
        rank = one.rank()
        browsers += rank is SessionRank.BROWSER
        oldest.setdefault(rank, one)
    watching = oldest.get(SessionRank.BROWSER)
    if 2 * browsers > limit:
        return watching
    return oldest.get(SessionRank.NONE, watching)


class _LimitReport:
    """Log lines about closed connections: the first at once, then one each LOG_INTERVAL."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts: dict[str, int] = {}
        self._address = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, address: str, reason: CloseReason) -> None:
        self._counts[reason] = self._counts.get(reason, 0) + 1
        self._address = address
        if self._timer is None:
            self._write()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _write(self) -> None:
        """Write what was counted, if anything was, and wait before the next line."""
        self._timer = None
        if not self._counts:
            return
        _log.warning(
            "connections_limited", server=self._name, last_address=self._address, **self._counts
        )
        self._counts.clear()
        self._timer = asyncio.get_running_loop().call_later(LOG_INTERVAL, self._write)


def subscriber_address(host: str) -> str:
    """Returns what one subscriber of a network has: an IPv4 address, or an IPv6 network."""
    try:
        found = ip_address(host)
    except ValueError:
        return host
    if isinstance(found, IPv6Address):
        found = (
            found.ipv4_mapped
            or ip_network((int(found), _PREFIX_BITS), strict=False).network_address
        )
    return str(found)
