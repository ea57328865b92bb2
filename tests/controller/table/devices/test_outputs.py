"""Wishes carried out on lines that fail: absolute, each until it holds; and no shuffle twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controller.audit.format.records import RecordEntry
from controller.procedure.model.effects import ShoeLock, Stations
from controller.procedure.model.state import State
from controller.table.devices.lamps import LAMPS
from controller.table.devices.outputs import (
    NONE_RUNS,
    REARM_INTERVAL,
    RETRY_DELAY,
    DeviceOutputs,
    ShuffleStarter,
)
from controller.table.memory import ButtonTokens, TableDisplay
from controller.table.memory.display import SeatButtons
from drivers.devices import (
    CommandRefusedError,
    CommandUnansweredError,
    InDoubt,
    LinkState,
    NotReady,
    ResultMissing,
)
from drivers.devices.station import LampSetting
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages import ButtonMask, Lock, LockState, Refusal, Start
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import stopped

AWAY = NotReady(LinkState.ABSENT, "not plugged in")
REFUSED = CommandRefusedError(Lock(LockState.OPEN), Refusal.NOT_NOW, 0)
HOPELESS = CommandRefusedError(Lock(LockState.OPEN), Refusal.UNSUPPORTED, 0)
UNANSWERED = CommandUnansweredError(Lock(LockState.OPEN), sent=True)
BUSY = LinkBusy("too much on its way")
HIT = ButtonMask.HIT | ButtonMask.STAND


class Device:
    """A shoe, a station and a shuffler with a line that fails as it is told to."""

    def __init__(self, *problems: Exception) -> None:
        self.problems = list(problems)
        self.tried = 0
        self.done: list[tuple[object, ...]] = []
        self.looks = 0

    async def _do(self, *what: object) -> None:
        await asyncio.sleep(0.002)
        self.tried += 1
        if self.problems:
            raise self.problems.pop(0)
        self.done.append(what)

    async def lock(self) -> None:
        await self._do("lock")

    async def open_gate(self) -> None:
        await self._do("open")

    async def arm(self, seat: int, buttons: ButtonMask, token: int, ttl_ms: int) -> None:
        await self._do("arm", seat, buttons, token)

    async def disarm(self, seat: int) -> None:
        await self._do("disarm", seat)

    async def lamps(self, seat: int, wish: LampSetting) -> None:
        await self._do("lamps", seat, wish)

    async def start(self, decks: int, profile: int = 0) -> None:
        await self._do("start", decks)

    def looked(self) -> None:
        self.looks += 1


@asynccontextmanager
async def fitted(shoe: Device, station: Device | None = None) -> AsyncIterator[DeviceOutputs]:
    stations = {} if station is None else dict.fromkeys((1, 2), ("ST-1", station))
    outlets = DeviceOutputs(("SH-1", shoe), stations)
    task = asyncio.create_task(outlets.run())
    try:
        yield outlets
        assert not task.done()
    finally:
        await stopped(task)


def shown(*effects: object, arms: ButtonTokens | None = None, stopped: str = "") -> TableDisplay:
    return TableDisplay(1, State(), effects, arms or ButtonTokens(), stopped=stopped)  # type: ignore[arg-type]


OPEN, LOCKED = shown(ShoeLock(False)), shown(ShoeLock(True))


@simulated
async def test_the_last_wish_is_what_is_done() -> None:
    shoe = Device()
    async with fitted(shoe) as outlets:
        await asyncio.sleep(0.01)
        for one in (OPEN, LOCKED, OPEN):
            outlets.show(one)
        await asyncio.sleep(0.01)
        outlets.show(OPEN)  # absolute: it is so already
        await asyncio.sleep(10)
        assert shoe.done == [("lock",), ("open",)]


@pytest.mark.parametrize("problem", [REFUSED, UNANSWERED, BUSY], ids=lambda one: type(one).__name__)
@simulated
async def test_what_was_not_taken_is_wanted_again(problem: Exception) -> None:
    shoe = Device(problem, problem)
    async with fitted(shoe) as outlets:
        outlets.show(OPEN)
        await asyncio.sleep(1.5 * RETRY_DELAY)
        assert (shoe.tried, shoe.done) == (2, [])
        await asyncio.sleep(RETRY_DELAY)
        assert shoe.done == [("open",)]
        await asyncio.sleep(10)
        assert shoe.tried == 3


@simulated
async def test_a_device_that_is_away_is_asked_when_it_is_back() -> None:
    shoe = Device(AWAY, AWAY)
    async with fitted(shoe) as outlets:
        outlets.show(OPEN)
        await asyncio.sleep(30)
        assert shoe.tried == 1  # nobody knocks at a door where nobody is
        outlets.back("ST-1")
        await asyncio.sleep(1)
        assert shoe.tried == 1
        outlets.back("SH-1")
        await asyncio.sleep(1)
        outlets.back("SH-1")
        await asyncio.sleep(1)
        assert shoe.done == [("open",)]


@simulated
async def test_what_a_device_cannot_do_is_not_asked_again() -> None:
    shoe = Device(HOPELESS)
    async with fitted(shoe) as outlets:
        await asyncio.sleep(30)
        assert shoe.tried == 1
        outlets.show(OPEN)
        await asyncio.sleep(1)
        assert shoe.done == [("open",)]


@simulated
async def test_a_wish_that_changes_while_it_is_carried_out_is_carried_out_anew() -> None:
    shoe = Device()
    async with fitted(shoe) as outlets:
        await asyncio.sleep(0.001)
        outlets.show(OPEN)  # the lock of the beginning is on its way
        await asyncio.sleep(1)
        assert shoe.done == [("lock",), ("open",)]
        async with asyncio.timeout(1):
            await outlets.settled(frozenset({"SH-1"}))


@simulated
async def test_seats_are_armed_lit_and_disarmed() -> None:
    shoe, station = Device(), Device()
    async with fitted(shoe, station) as outlets:
        await asyncio.sleep(0.1)
        assert station.done == [
            ("disarm", 1),
            ("disarm", 2),
            ("lamps", 1, LAMPS["dark"]),
            ("lamps", 2, LAMPS["dark"]),
        ]
        station.done.clear()
        arms = ButtonTokens(7, (SeatButtons(1, HIT, 8, ()),))
        outlets.show(shown(Stations((), ((1, "turn"),)), ShoeLock(True), arms=arms))
        await asyncio.sleep(0.1)
        assert station.done == [("arm", 1, HIT, 8), ("lamps", 1, LAMPS["turn"])]
        await asyncio.sleep(REARM_INTERVAL)
        assert ("arm", 1, HIT, 8) in station.done[2:]  # anew, before it runs out


@simulated
async def test_when_nothing_can_be_recorded_all_is_safe() -> None:
    shoe, station = Device(), Device()
    async with fitted(shoe, station) as outlets:
        arms = ButtonTokens(7, (SeatButtons(1, HIT, 8, ()),))
        outlets.show(shown(ShoeLock(False), Stations(), arms=arms))
        await asyncio.sleep(1)
        shoe.done.clear()
        station.done.clear()
        outlets.show(shown(ShoeLock(False), Stations(), arms=arms, stopped="no room"))
        await asyncio.sleep(1)
        assert shoe.done == [("lock",)]
        assert sorted(map(str, station.done)) == sorted(
            map(
                str,
                [
                    *(("disarm", seat) for seat in (1, 2)),
                    *(("lamps", seat, LAMPS["fault"]) for seat in (1, 2)),
                ],
            )
        )


# --- shuffles ---------------------------------------------------------------------------------


@asynccontextmanager
async def starting(shuffler: Device) -> AsyncIterator[tuple[ShuffleStarter, list[RecordEntry]]]:
    recorded: list[RecordEntry] = []
    made = ShuffleStarter(shuffler, recorded.append)
    task = asyncio.create_task(made.run())
    try:
        yield made, recorded
        assert not task.done()
    finally:
        await stopped(task)


@simulated
async def test_a_shuffle_is_started_once() -> None:
    shuffler = Device()
    async with starting(shuffler) as (made, recorded):
        made.want(6)
        await asyncio.sleep(60)
        assert shuffler.done == [("start", 6)]
        assert (recorded, made.problem) == ([], "")


@pytest.mark.parametrize(
    "problem",
    [
        AWAY,
        BUSY,
        CommandRefusedError(Start(6, 0), Refusal.NOT_NOW, 0),
        CommandUnansweredError(Start(6, 0), sent=False),
        ResultMissing(Start(6, 0), answered=False),
        InDoubt("someone has to look"),
    ],
    ids=lambda one: type(one).__name__,
)
@simulated
async def test_a_start_that_failed_is_people_s_to_ask_for_again(problem: Exception) -> None:
    shuffler = Device(problem)
    async with starting(shuffler) as (made, recorded):
        made.want(6)
        await asyncio.sleep(600)
        assert shuffler.tried == 1
        assert "ask for the shuffle again" in made.problem
        assert [one.kind for one in recorded] == ["fault"]
        made.want_again(6)
        await asyncio.sleep(1)
        assert (shuffler.tried, shuffler.looks, shuffler.done) == (2, 1, [("start", 6)])
        assert made.problem == ""


@simulated
async def test_a_start_that_fails_when_it_is_over_is_in_nobody_s_way() -> None:
    """It stands in the record, and not before the dealer."""

    shuffler = Device(AWAY)
    async with starting(shuffler) as (made, recorded):
        made.want(6)
        await asyncio.sleep(0)
        made.over()
        await asyncio.sleep(60)
        assert (shuffler.tried, [one.kind for one in recorded]) == (1, ["fault"])
        assert (made.problem, made.problem_now(shuffling=True)) == ("", "")
        assert made.problem_now(shuffling=False) == NONE_RUNS
        made.want(6)
        assert made.problem_now(shuffling=False) == ""


@simulated
async def test_a_shuffle_that_is_not_wanted_any_more_is_not_started() -> None:
    shuffler = Device()
    async with starting(shuffler) as (made, _):
        made.want(6)
        made.over()
        await asyncio.sleep(60)
        assert shuffler.tried == 0
