"""A supervisor that cannot know any more how its device stands ends, with the first cause."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from transitions import MachineError

from drivers import events as told
from drivers.devices import (
    CommandUnansweredError,
    DeviceEvent,
    LinkState,
    ResultMissing,
    ShoeDriver,
    ShufflerDriver,
)
from drivers.devices.driver import RESULT_TIMEOUT
from drivers.session import StoreFailed
from firmware_protocol.device import ControlRequest, CutPower, Draw, Freeze, LineNoise, Load, Plug
from firmware_protocol.host import SessionEnding
from firmware_protocol.host import events as said
from firmware_protocol.messages import DeviceClass
from tests.support.asynchronous import simulated
from tests.support.drivers.holding import ending
from tests.support.drivers.simulated import Watched, running, table, until

S = LinkState
PULLED, FROZEN = (Plug(connected=False),), (Freeze(on=True),)

TOLD: list[tuple[type, tuple[ControlRequest, ...]]] = [
    (told.PortOpened, ()),
    (told.StateChanged, ()),
    (told.Introduced, ()),
    (told.SessionBegan, ()),
    (told.Informed, ()),
    (told.Held, ()),
    (told.Resumed, ()),
    (told.ClockRead, ()),
    (told.PortGone, PULLED),
    (told.SessionEnded, PULLED),
    (told.SessionEnded, FROZEN),
    (told.Damage, (LineNoise(flip=0.5, seed=1), Load(decks=1))),
    (told.Restarted, (CutPower(),)),
]


@pytest.mark.parametrize(("kind", "hands"), TOLD, ids=[kind.__name__ for kind, _ in TOLD])
@simulated
async def test_a_listener_that_raises_ends_the_supervisor(
    tmp_path: Path, kind: type, hands: tuple[ControlRequest, ...]
) -> None:
    async def act() -> None:
        await watched.ready()
        for hand in hands:
            device.request(hand)

    async with table(tmp_path) as (_, device, watched):
        async with ending(watched, device) as causes:
            watched.unable = kind
            acting = asyncio.create_task(act())
            await until(lambda: bool(watched.of(kind)), 20)
            acting.cancel()
            await asyncio.gather(acting, return_exceptions=True)
        assert {type(one) for one in causes} == {BrokenPipeError}
        assert "nobody reads the log" in watched.supervisor.why
        # It was told once, and nobody after it.
        assert isinstance(watched.happenings[-1], kind)


@pytest.mark.parametrize("kind", [told.Adopted, told.KeepFailed, told.KeepMended])
@simulated
async def test_a_listener_that_raises_on_an_act_of_people_ends_it_too(
    tmp_path: Path, kind: type
) -> None:
    """Also in the task of those people, who hear of it as well."""
    async with table(tmp_path) as (_, device, watched):
        async with ending(watched, device) as causes:
            watched.unable = kind
            await until(lambda: watched.supervisor.held is not None)
            watched.store.failing = None if kind is told.Adopted else OSError("no room")
            with pytest.raises(StoreFailed if kind is told.KeepMended else BrokenPipeError):
                await watched.supervisor.adopt(("Ann", "Bob"))
            if kind is told.KeepMended:
                with pytest.raises(BrokenPipeError):
                    watched.supervisor.recovered()
        assert {type(one) for one in causes} == {BrokenPipeError}


@pytest.mark.parametrize(
    ("at", "events"),
    [
        (S.IDENTIFYING, [said.RingResumed(1, 1, 1)]),
        (
            S.READY,
            [said.LinkSessionStarted(5, 1, False), said.LinkSessionEnded(SessionEnding.SILENT)],
        ),
    ],
    ids=["resumed without a session", "two sessions"],
)
@pytest.mark.parametrize("way", ["receive", "wake"])
@simulated
async def test_what_no_link_says_ends_it(
    tmp_path: Path, at: LinkState, events: list[said.LinkEvent], way: str
) -> None:
    """Half of what happened is not gone on with, and the state does not stay as it was."""
    async with table(tmp_path) as (_, device, watched):
        async with ending(watched, device) as causes:
            device.request(Freeze(on=at is not S.READY))
            await (watched.ready() if at is S.READY else watched.until(at))
            link = watched.supervisor.link
            assert link is not None
            setattr(link, way, lambda *_: events)
            if way == "receive":
                device.request(Freeze(on=False))
                device.request(Load(decks=1))
        assert MachineError in {type(one) for one in causes}
        assert "MachineError" in watched.supervisor.why
        assert not [one for one in watched.of(told.SessionEnded) if one.why is SessionEnding.SILENT]


@simulated
async def test_a_command_under_way_has_an_end(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        async with ending(watched, device):
            shoe: ShoeDriver = watched.driver
            await watched.ready()
            device.request(Freeze(on=True))
            asked = [asyncio.create_task(shoe.info()) for _ in range(3)]
            await asyncio.sleep(0.01)
            watched.unable = told.PortGone
            with pytest.raises(BrokenPipeError):
                device.hang_up("pulled")
        for one in asked:
            with pytest.raises(CommandUnansweredError):
                await one


@pytest.mark.parametrize("kind", [told.SessionEnded, told.CommandOverdue])
@simulated
async def test_a_command_ends_although_its_result_was_not_reported(
    tmp_path: Path, kind: type
) -> None:
    """That it was not answered comes with the session's end: in one breath with what cannot be
    told."""
    async with table(tmp_path, DeviceClass.SHUFFLER, "SF-1") as (_, device, watched):
        async with ending(watched, device):
            shuffler: ShufflerDriver = watched.driver
            await watched.ready()
            device.request(Freeze(on=True))
            await asyncio.sleep(0.7 if kind is told.SessionEnded else 0.1)
            starting = asyncio.create_task(shuffler.start(6))
            await asyncio.sleep(0.01)
            watched.unable = kind
        # It was sent, so nobody knows; and nobody waits for ever.
        with pytest.raises(ResultMissing):
            await asyncio.wait_for(starting, RESULT_TIMEOUT + 1)
        assert shuffler.in_doubt


@simulated
async def test_a_command_that_cannot_be_flushed_leaves_nothing(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        async with ending(watched, device) as causes:
            shoe: ShoeDriver = watched.driver
            await watched.ready()

            def write(_: bytes) -> None:
                raise BrokenPipeError("what no port does")

            port = watched.supervisor.port
            assert port is not None
            port.write = write
            with pytest.raises(BrokenPipeError):
                await shoe.info()
        assert {type(one) for one in causes} == {BrokenPipeError}


@simulated
async def test_a_driver_that_fails_ends_it(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        shoe: ShoeDriver = watched.driver
        async with ending(watched, device) as causes:
            await watched.ready()

            def broken(_: DeviceEvent) -> None:
                if len(watched.store.records) > 2:
                    raise KeyError("a bug")

            shoe.notify = broken  # type: ignore[method-assign, assignment]
            device.request(Load(decks=1))
            await shoe.open_gate()
            device.request(Draw(count=5))
        assert {type(one) for one in causes} == {KeyError}
        assert watched.supervisor.why == "KeyError: 'a bug'"
        assert watched.of(told.StateChanged)[-1].why == "KeyError: 'a bug'"


@simulated
async def test_the_next_one_continues_where_it_ended(tmp_path: Path) -> None:
    async with table(tmp_path) as (desk, device, watched):
        async with ending(watched, device):
            await watched.ready()
            watched.unable = told.PortGone
            device.request(Load(decks=1))
            await asyncio.sleep(0.5)
            with pytest.raises(BrokenPipeError):
                device.hang_up("pulled")
        again = Watched(desk, device.wanted, watched.store)
        async with running(again):
            await again.until(S.READY)
            device.request(Load(decks=1))
            await asyncio.sleep(2)
        assert watched.store.seqs == list(range(1, device.stand.firmware.ring.head + 1))
