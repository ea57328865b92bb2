"""What hangs is told from what only does not go well."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.config import load_table
from controller.daemon.watchdog import (
    MAX_APPEND,
    MAX_LAG,
    MAX_QUIET,
    LinkVitals,
    Vitals,
    judge,
    links_of,
)
from controller.table.loop import TableEnvironment, parts_of
from controller.table.running import RunningTable
from drivers.devices import LinkState
from drivers.ports import Address, monotonic_us
from drivers.session import PortSearch, WantedDevice
from drivers.session.lookup import CLOSE_TIMEOUT, OPEN_TIMEOUT
from drivers.session.supervisor import ANSWER_TIMEOUT, RETRY_MAX, RETRY_REFUSED
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import furnished, until

WELL = Vitals(0.001, 0.0, 0.002, (LinkVitals("SH-1", LinkState.READY, 0.4),))
KEPT = tuple(state for state in LinkState if state is not LinkState.UNKEPT)


def links(state: LinkState, quiet: float) -> tuple[LinkVitals, ...]:
    return (LinkVitals("SF-1", LinkState.READY, 0.4), LinkVitals("SH-1", state, quiet))


def test_all_is_well() -> None:
    assert judge(WELL) == ()
    assert judge(Vitals(0.0, 0.0, 0.0)) == ()


@pytest.mark.parametrize(
    ("vitals", "words"),
    [
        (Vitals(5.5, 0.0, 0.0), "the loop stood still for 5.5 s"),
        (Vitals(0.0, 9.0, 0.0), "the loop stood still for 9.0 s"),
        (Vitals(0.0, 0.0, 31.0), "the record has not answered for 31 s"),
        (
            Vitals(0.0, 0.0, 0.0, links(LinkState.OPENING, 61.0)),
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
    assert judge(Vitals(0.0, 0.0, 0.0, links(state, MAX_QUIET))) == ()
    found = judge(Vitals(0.0, 0.0, 0.0, links(state, MAX_QUIET + 1)))
    assert len(found) == (state is not LinkState.UNKEPT)


def test_what_a_supervisor_does_takes_less_than_that() -> None:
    rests = max(RETRY_MAX, RETRY_REFUSED)
    assert OPEN_TIMEOUT + CLOSE_TIMEOUT + ANSWER_TIMEOUT + rests < MAX_QUIET


bad = st.one_of(
    st.floats(MAX_LAG + 0.1, 1e6).map(lambda lag: Vitals(lag, 0.0, 0.0)),
    st.floats(MAX_LAG + 0.1, 1e6).map(lambda late: Vitals(0.0, late, 0.0)),
    st.floats(MAX_APPEND + 0.1, 1e6).map(lambda waits: Vitals(0.0, 0.0, waits)),
    st.builds(
        lambda state, quiet: Vitals(0.0, 0.0, 0.0, links(state, quiet)),
        st.sampled_from(KEPT),
        st.floats(MAX_QUIET + 0.1, 1e6),
    ),
)
good = st.builds(
    Vitals,
    st.floats(0, MAX_LAG),
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
    return Vitals(0.0, 0.0, 0.0, links_of(table, monotonic_us() + round(later * 1e6)))


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
        (found,) = judge(Vitals(0.0, 0.0, 0.0, links_of(table, later)))
        assert found.startswith("nothing was done for SF-1")
