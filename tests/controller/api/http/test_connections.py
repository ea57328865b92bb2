"""Which connection is closed for a new one, and how that is counted and logged."""

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest
import structlog

from controller.api.http import connections
from controller.api.http.connections import (
    CloseReason,
    ConnectionLimits,
    ConnectionTable,
    OpenConnection,
    SessionRank,
    subscriber_address,
)
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import until

SMALL = ConnectionLimits(total=8, per_address=4)


class Watched:
    """A table of connections, and what it closed, by the order of arrival."""

    def __init__(self, limits: ConnectionLimits = SMALL) -> None:
        self.reasons: list[CloseReason] = []
        self.closed: list[int] = []
        self.table = ConnectionTable("pages", limits, self.reasons.append)
        self._numbers: Iterator[int] = count(1)

    def arrive(
        self, address: str = "a", rank: SessionRank = SessionRank.NONE
    ) -> OpenConnection | None:
        made = self.table.admit(address)
        number = next(self._numbers)
        if made is not None:
            made.rank = lambda: rank
            made.close = lambda: self.closed.append(number)
        return made


@asynchronous
async def test_the_oldest_of_the_address_is_closed_for_a_new_one() -> None:
    at = Watched()
    at.arrive("b")
    for _ in range(6):
        assert at.arrive("a") is not None
    assert (at.closed, len(at.table), at.reasons) == ([2, 3], 5, ["shed", "shed"])
    at.table.close_all()


@asynchronous
async def test_at_the_total_limit_the_oldest_of_all_is() -> None:
    at = Watched()
    for number in range(10):
        assert at.arrive(f"10.0.0.{number}") is not None
    assert (at.closed, len(at.table)) == ([1, 2], 8)
    at.table.close_all()


@asynchronous
async def test_a_sign_in_is_never_closed_and_a_new_one_is_refused_only_then() -> None:
    at = Watched()
    for _ in range(4):
        at.arrive("a", SessionRank.SIGNED_IN)
    assert at.arrive("a") is None
    assert (at.closed, at.reasons, len(at.table)) == ([], ["refused"], 4)
    assert at.arrive("b") is not None
    at.table.close_all()


@asynchronous
async def test_a_person_may_sign_in_over_another_connection() -> None:
    """What counts is the rank when a connection is to be closed."""
    at = Watched()
    first = at.arrive("a", SessionRank.BROWSER)
    assert first is not None
    first.rank = lambda: SessionRank.SIGNED_IN
    for _ in range(8):
        at.arrive("a")
    assert at.closed == [2, 3, 4, 5, 6]
    at.table.close_all()


@asynchronous
async def test_sessions_without_a_sign_in_have_half_of_the_limit() -> None:
    """They cost a flood nothing but a request."""
    at = Watched()
    for _ in range(2):
        at.arrive("a", SessionRank.BROWSER)
    for _ in range(4):
        at.arrive("a")
    assert at.closed == [3, 4]
    for _ in range(3):
        at.arrive("a", SessionRank.BROWSER)
    assert at.closed == [3, 4, 5, 1, 2]
    at.table.close_all()


@asynchronous
async def test_what_has_ended_does_not_count() -> None:
    at = Watched()
    every = [at.arrive("a") for _ in range(4)]
    assert every[1] is not None
    at.table.release(every[1])
    at.table.release(every[1])
    assert at.arrive("a") is not None
    assert (at.closed, len(at.table)) == ([], 4)
    at.table.close_all()
    assert (at.closed, len(at.table), at.reasons) == ([1, 3, 4, 5], 0, [])


@asynchronous
async def test_a_flood_is_a_line_at_once_and_then_one_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "LOG_INTERVAL", 0.05)
    at = Watched()
    with structlog.testing.capture_logs() as lines:
        for _ in range(104):
            at.arrive("10.0.0.9")
        assert lines == [
            {
                "event": "connections_limited",
                "log_level": "warning",
                "server": "pages",
                "last_address": "10.0.0.9",
                "shed": 1,
            }
        ]
        await until(lambda: len(lines) == 2)
        assert lines[1]["shed"] == 99
        await asyncio.sleep(0.15)
        assert len(lines) == 2
        at.arrive("10.0.0.9")
        assert lines[2]["shed"] == 1
    at.table.close_all()


def test_an_address_is_what_one_subscriber_has() -> None:
    assert subscriber_address("10.0.0.7") == "10.0.0.7"
    assert subscriber_address("::ffff:10.0.0.7") == "10.0.0.7"
    assert subscriber_address("2001:db8::1") == subscriber_address("2001:db8::ffff:1")
    assert subscriber_address("2001:db8::1") != subscriber_address("2001:db8:0:1::1")
    assert subscriber_address("user 1000") == "user 1000"
