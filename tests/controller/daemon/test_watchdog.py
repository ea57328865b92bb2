"""The watchdog is fed while all gets on, and starves when something hangs."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.daemon.watchdog import TICK_INTERVAL, LoopMonitor, Notify, Vitals, Watchdog
from tests.support.asynchronous import asynchronous

WELL = Vitals(0.0, 0.0, 0.0)
STUCK = Vitals(0.0, 0.0, 45.0)


class Manager:
    """A service manager, and the table that it looks after."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.vitals = WELL
        self.stands = "wagering, round 3"

    def told(self) -> list[str]:
        """Since the last time."""
        found: list[str] = []
        while True:
            try:
                found += self._sock.recv(4096).decode().split("\n")
            except BlockingIOError:
                return found


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "n"))
        sock.setblocking(False)
        yield Manager(sock)


def watchdog(manager: Manager, place: Path, usec: str = "600000") -> Watchdog:
    notify = Notify({"NOTIFY_SOCKET": str(place / "n"), "WATCHDOG_USEC": usec})
    return Watchdog(notify, lambda: manager.vitals, lambda: manager.stands)


def test_it_is_fed_and_a_status_is_told_when_it_is_another(
    manager: Manager, tmp_path: Path
) -> None:
    dog = watchdog(manager, tmp_path)
    assert dog.check()
    assert manager.told() == ["WATCHDOG=1", "STATUS=wagering, round 3"]
    assert dog.check()
    assert manager.told() == ["WATCHDOG=1"]
    manager.stands = "dealing, round 4"
    dog.check()
    assert manager.told() == ["WATCHDOG=1", "STATUS=dealing, round 4"]


def test_what_hangs_starves_it_and_is_told_once(manager: Manager, tmp_path: Path) -> None:
    dog = watchdog(manager, tmp_path)
    manager.vitals = STUCK
    assert not dog.check()
    assert manager.told() == ["STATUS=the record has not answered for 45 s"]
    assert not dog.check()
    assert manager.told() == []
    manager.vitals = WELL
    assert dog.check()
    assert manager.told() == ["WATCHDOG=1", "STATUS=wagering, round 3"]


def test_where_none_is_there_a_status_is_told_all_the_same(
    manager: Manager, tmp_path: Path
) -> None:
    dog = watchdog(manager, tmp_path, usec="0")
    dog.check()
    assert manager.told() == ["STATUS=wagering, round 3"]
    assert dog.pause == 1.0


@asynchronous
async def test_it_is_fed_several_times_within_its_time(manager: Manager, tmp_path: Path) -> None:
    dog = watchdog(manager, tmp_path)
    assert dog.pause == pytest.approx(0.2)
    task = asyncio.create_task(dog.run())
    async with asyncio.timeout(30):
        fed = 0
        while fed < 3:
            await asyncio.sleep(0.01)
            fed += manager.told().count("WATCHDOG=1")
    task.cancel()
    await asyncio.wait((task,))


@asynchronous
async def test_a_loop_that_stands_still_is_seen_by_its_pulse() -> None:
    lags: list[float] = []
    pulse = LoopMonitor(lags.append)
    assert pulse.late == 0
    task = asyncio.create_task(pulse.run())
    await asyncio.sleep(0)
    time.sleep(TICK_INTERVAL + 0.3)
    assert pulse.late >= 0.3
    async with asyncio.timeout(30):
        while not lags:
            await asyncio.sleep(0.01)
    assert pulse.lag == lags[-1]
    assert lags[0] >= 0.3
    task.cancel()
    await asyncio.wait((task,))
