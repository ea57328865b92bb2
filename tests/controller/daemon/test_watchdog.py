"""The watchdog is fed while all makes progress, and starves when something hangs; the service
manager is notified."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.config import load_table
from controller.daemon.watchdog import (
    MAX_APPEND,
    MAX_LAG,
    MAX_QUIET,
    NO_MANAGER,
    LinkVitals,
    Notify,
    Vitals,
    Watchdog,
    judge,
    links_of,
    status,
)
from controller.table.loop import TableEnvironment, parts_of
from controller.table.running import RunningTable
from drivers.devices import LinkState
from drivers.ports import Address, monotonic_us
from drivers.session import PortSearch, WantedDevice
from drivers.session.lookup import CLOSE_TIMEOUT, OPEN_TIMEOUT
from drivers.session.opening import ANSWER_TIMEOUT, HANDSHAKE_TIMEOUT
from drivers.session.supervisor import RETRY_MAX, RETRY_REFUSED
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import furnished, until

WELL = Vitals(0.0, 0.0)
STUCK = Vitals(0.0, 45.0)


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


@pytest.mark.parametrize("abstract", [False, True], ids=["a path", "an abstract name"])
def test_it_is_told_in_one_datagram(abstract: bool, tmp_path: Path) -> None:
    name = f"holecard-notify-{os.getpid()}" if abstract else str(tmp_path / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}" if abstract else name)
        manager.settimeout(5)
        notify = Notify({"NOTIFY_SOCKET": f"@{name}" if abstract else name})
        notify.tell("READY=1", "STATUS=wagering")
        assert manager.recv(4096) == b"READY=1\nSTATUS=wagering"


def test_nobody_is_told_where_nobody_asked(tmp_path: Path) -> None:
    NO_MANAGER.tell("READY=1")
    assert NO_MANAGER.watchdog is None
    Notify({"NOTIFY_SOCKET": ""}).tell("READY=1")


def test_a_manager_that_is_gone_or_does_not_listen_holds_nobody_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = str(tmp_path / "n")
    notify = Notify({"NOTIFY_SOCKET": name})
    notify.tell("READY=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name)
        for _ in range(10_000):
            notify.tell("WATCHDOG=1")
        manager.settimeout(5)
        assert manager.recv(4096) == b"WATCHDOG=1"
    assert capsys.readouterr().out.count("does not listen") == 2  # once each time


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "20000000"}, 20.0),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": str(os.getpid())}, 0.5),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_how_soon_the_watchdog_wants_a_word(environ: dict[str, str], seconds: float | None) -> None:
    assert Notify(environ).watchdog == seconds


def test_a_status_is_one_line() -> None:
    assert status("held:\n no room\tleft ") == "STATUS=held: no room left"


UNHURRIED = Vitals(0.001, 0.002, (LinkVitals("SH-1", LinkState.READY, 0.4),))
KEPT = tuple(state for state in LinkState if state is not LinkState.UNKEPT)


def links(state: LinkState, quiet: float) -> tuple[LinkVitals, ...]:
    return (LinkVitals("SF-1", LinkState.READY, 0.4), LinkVitals("SH-1", state, quiet))


def test_all_is_well() -> None:
    assert judge(UNHURRIED) == ()
    assert judge(Vitals(0.0, 0.0)) == ()


@pytest.mark.parametrize(
    ("vitals", "words"),
    [
        (Vitals(5.5, 0.0), "the loop was busy for 5.5 s"),
        (Vitals(0.0, 31.0), "the record has not answered for 31 s"),
        (
            Vitals(0.0, 0.0, links(LinkState.OPENING, 61.0)),
            "nothing was done for SH-1 (opening) for 61 s",
        ),
    ],
)
def test_what_hangs_is_named(vitals: Vitals, words: str) -> None:
    assert judge(vitals) == (words,)


@pytest.mark.parametrize("state", LinkState)
def test_a_device_that_is_away_is_no_reason_but_one_that_nobody_looks_for_is(
    state: LinkState,
) -> None:
    assert judge(Vitals(0.0, 0.0, links(state, MAX_QUIET))) == ()
    found = judge(Vitals(0.0, 0.0, links(state, MAX_QUIET + 1)))
    assert len(found) == (state is not LinkState.UNKEPT)


def test_what_a_supervisor_does_takes_less_than_that() -> None:
    answer = max(ANSWER_TIMEOUT, HANDSHAKE_TIMEOUT)
    assert OPEN_TIMEOUT + CLOSE_TIMEOUT + answer + max(RETRY_MAX, RETRY_REFUSED) < MAX_QUIET


bad = st.one_of(
    st.floats(MAX_LAG + 0.1, 1e6).map(lambda lag: Vitals(lag, 0.0)),
    st.floats(MAX_APPEND + 0.1, 1e6).map(lambda waits: Vitals(0.0, waits)),
    st.builds(
        lambda state, quiet: Vitals(0.0, 0.0, links(state, quiet)),
        st.sampled_from(KEPT),
        st.floats(MAX_QUIET + 0.1, 1e6),
    ),
)
good = st.builds(
    Vitals,
    st.floats(0, MAX_LAG),
    st.floats(0, MAX_APPEND),
    st.builds(links, st.sampled_from(LinkState), st.floats(0, MAX_QUIET)),
)


@given(vitals=bad)
def test_anything_that_hangs_is_enough(vitals: Vitals) -> None:
    assert judge(vitals)


@given(vitals=good)
def test_nothing_is_blamed_that_gets_on(vitals: Vitals) -> None:
    assert judge(vitals) == ()


def linked(table: RunningTable, later: float = 0.0) -> Vitals:
    return Vitals(0.0, 0.0, links_of(table, monotonic_us() + round(later * 1e6)))


@asynchronous
async def test_devices_that_are_looked_for_in_vain_get_on(tmp_path: Path) -> None:
    async with RunningTable(parts_of(load_table(furnished(tmp_path)))) as table:
        await until(lambda: judge(linked(table)) == ())
        at = [one.quiet for one in linked(table, 30).links]
        await until(lambda: [one.quiet for one in linked(table, 30).links] < at)
        assert [one.state for one in linked(table).links] == [LinkState.ABSENT] * 3
        assert len(judge(linked(table, MAX_QUIET + 5))) == 3


@asynchronous
async def test_a_supervisor_that_hangs_is_detected(tmp_path: Path) -> None:
    """By the time of its last activity, since a task that hangs reports nothing."""
    search = PortSearch()

    async def find(wanted: WantedDevice) -> Address:
        if wanted.serial == "SF-1":
            await asyncio.Event().wait()
        return await search(wanted)

    parts = parts_of(load_table(furnished(tmp_path)))
    async with RunningTable(parts, TableEnvironment(find=lambda: find)) as table:
        shuffler = table.supervisor("SF-1")
        await until(lambda: shuffler.last_active_us > 0)
        at, others = shuffler.last_active_us, table.supervisor("SH-1")
        turned = others.last_active_us
        await until(lambda: others.last_active_us > turned + 500_000)
        assert shuffler.last_active_us == at
        later = at + round((MAX_QUIET + 0.2) * 1e6)
        (found,) = judge(Vitals(0.0, 0.0, links_of(table, later)))
        assert found.startswith("nothing was done for SF-1")
