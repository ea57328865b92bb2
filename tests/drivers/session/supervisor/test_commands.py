"""Commands: each ends with a reply, a refusal, or a plain "nobody knows", and in time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from drivers import events
from drivers.devices import (
    CommandRefusedError,
    CommandUnansweredError,
    LinkState,
    NotReady,
    ShoeDriver,
    ShufflerDriver,
)
from drivers.keys import KeyProblem
from firmware_protocol.device import Break, Freeze, Plug, Put
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages import (
    DeckKind,
    Lock,
    LockReply,
    LockState,
    OutOfRange,
    Refusal,
    Reread,
    Resume,
    ResumeMode,
    Selftest,
    Start,
    Started,
)
from tests.support.asynchronous import simulated
from tests.support.drivers.dealing import raises, store_fails
from tests.support.drivers.holding import ending
from tests.support.drivers.simulated import (
    OWN,
    Plugged,
    Watched,
    now_us,
    running,
    stopped,
    supervised,
    table,
    until,
    when_ready,
)

S = LinkState
LOCK = Lock(LockState.LOCKED)


@when_ready
async def test_a_missing_reply_is_reported(device: Plugged, watched: Watched) -> None:
    device.request(Break(name="late-replies"))
    began = now_us()
    with pytest.raises(CommandUnansweredError, match="LOCK was not answered") as problem:
        await watched.supervisor.call(LOCK)
    assert now_us() - began == LOCK.DEADLINE_MS * 1000
    assert (problem.value.sent, problem.value.result) == (True, None)
    assert [(one.command, one.sent, one.result) for one in watched.of(events.CommandOverdue)] == [
        ("LOCK", True, None)
    ]
    assert watched.state is S.READY


@supervised
async def test_a_lost_start_names_the_event_that_tells(
    device: Plugged, watched: Watched, shuffler: ShufflerDriver
) -> None:
    device.request(Put(decks=1))
    device.request(Break(name="late-replies"))
    with pytest.raises(CommandUnansweredError, match="look for STARTED") as problem:
        await watched.supervisor.call(Start(1, 0, DeckKind.FULL_52))
    assert problem.value.result is Started
    assert [(one.command, one.result) for one in watched.of(events.CommandOverdue)] == [
        ("START", "STARTED")
    ]


@when_ready
async def test_a_refusal_says_why(watched: Watched) -> None:
    with pytest.raises(CommandRefusedError, match="REREAD was refused: not_kept") as problem:
        await watched.supervisor.call(Reread(1, 1))
    assert problem.value.why is Refusal.NOT_KEPT
    assert [(one.command, one.why) for one in watched.of(events.CommandRefused)] == [
        ("REREAD", "not_kept")
    ]


@when_ready
async def test_what_is_no_command_is_said_at_once(watched: Watched) -> None:
    for command in (
        Start(1, 0, DeckKind.FULL_52),
        Resume(1, 1, bytes(8), ResumeMode.ADOPT),
    ):
        with pytest.raises(ValueError, match=command.NAME):
            await watched.supervisor.call(command)
    with pytest.raises(OutOfRange):
        await watched.supervisor.call(Reread(0, 1))
    assert isinstance(await watched.supervisor.call(LOCK), LockReply)


@when_ready
async def test_many_at_once_are_answered_one_by_one_and_too_many_are_not_taken(
    watched: Watched,
) -> None:
    states = [LockState(at % 2) for at in range(40)]
    answers = await asyncio.gather(
        *(watched.supervisor.call(Lock(state)) for state in states),
        return_exceptions=True,
    )
    assert [one.state for one in answers if isinstance(one, LockReply)] == states[:32]
    assert sum(isinstance(one, LinkBusy) for one in answers) == 40 - 32


@pytest.mark.parametrize("state", [S.ABSENT, S.LOST, S.REFUSED])
@simulated
async def test_without_the_device_nothing_is_asked(tmp_path: Path, state: LinkState) -> None:
    async with table(tmp_path) as (_, device, watched):
        if state is S.ABSENT:
            device.request(Plug(connected=False))
        if state is S.REFUSED:
            device.request(Break(name="schema-wrong"))
        async with running(watched):
            if state is S.LOST:
                await watched.ready()
                device.request(Plug(connected=False))
            await watched.until(state)
            began = now_us()
            with pytest.raises(NotReady, match=f"the device is {state.value}: ") as problem:
                await watched.supervisor.call(LOCK)
            assert problem.value.state is state
            assert (problem.value.why, now_us()) == (watched.supervisor.why, began)


@when_ready
async def test_a_command_that_may_be_repeated_outlives_a_short_loss(
    device: Plugged, watched: Watched
) -> None:
    await asyncio.sleep(2)
    device.request(Freeze(on=True))
    call = asyncio.create_task(watched.supervisor.call(LOCK))
    await asyncio.sleep(0.1)
    device.request(Plug(connected=False))
    device.request(Freeze(on=False))
    device.request(Plug(connected=True))
    assert isinstance(await call, LockReply)


@pytest.mark.parametrize("away", [0.05, 3.0])
@supervised
async def test_one_that_may_not_is_given_up_with_the_port(
    device: Plugged, watched: Watched, shuffler: ShufflerDriver, away: float
) -> None:
    device.request(Put(decks=1))
    await asyncio.sleep(2)
    device.request(Freeze(on=True))
    call = asyncio.create_task(watched.supervisor.call(Start(1, 0, DeckKind.FULL_52)))
    await asyncio.sleep(0.1)
    began = now_us()
    device.request(Plug(connected=False))
    with pytest.raises(CommandUnansweredError):
        await call
    assert now_us() == began
    await asyncio.sleep(away)
    device.request(Freeze(on=False))
    device.request(Plug(connected=True))
    await watched.until(S.READY)
    await asyncio.sleep(1)
    # The frozen firmware found it in its buffer and did it; it was not sent again.
    assert [one.event.ID for one in watched.store.records].count(0x20) <= 1


@when_ready
async def test_a_command_for_a_lost_device_ends_with_its_deadline(
    device: Plugged, watched: Watched
) -> None:
    """Also while no port is open."""
    began = now_us()
    call = asyncio.create_task(watched.supervisor.call(LOCK))
    device.request(Freeze(on=True))
    await asyncio.sleep(0)
    device.request(Plug(connected=False))
    with pytest.raises(CommandUnansweredError):
        await call
    assert now_us() - began <= LOCK.DEADLINE_MS * 1000


@supervised
async def test_a_caller_that_does_not_wait_for_the_reply_affects_no_other(shoe: ShoeDriver) -> None:
    call = asyncio.create_task(shoe.open_gate())
    await asyncio.sleep(0)
    await stopped(call)
    assert await shoe.lock() is LockState.LOCKED


@simulated
async def test_when_the_host_stops_no_caller_waits_on(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        async with running(watched):
            await watched.ready()
            device.request(Freeze(on=True))
            calls = [
                asyncio.create_task(watched.supervisor.call(command))
                for command in (LOCK, Selftest(), Lock(LockState.OPEN))
            ]
            await asyncio.sleep(0.01)
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [one.sent for one in answers if isinstance(one, CommandUnansweredError)] == [
            True,
            True,
            False,
        ]


BY = ("Ann", "Bob")


@simulated
async def test_it_returns_when_the_device_is_ready_and_at_once_when_it_is(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, _, watched):
        waiting = [asyncio.create_task(watched.supervisor.ready()) for _ in range(3)]
        await asyncio.sleep(1)  # run() has not begun
        async with running(watched):
            # A device that nobody knows is held for two people: that is waited for too.
            await asyncio.sleep(5)
            assert watched.supervisor.held is not None
            assert not any(one.done() for one in waiting)
            await watched.supervisor.adopt(BY)
            await asyncio.wait_for(asyncio.gather(*waiting), 1)
            assert watched.state is S.READY
            before = now_us()
            await watched.supervisor.ready()
            assert now_us() == before


@simulated
async def test_it_waits_through_all_that_is_in_the_way(tmp_path: Path) -> None:
    async with table(tmp_path) as (desk, device, watched):
        supervisor = watched.supervisor

        async def is_ready_again() -> None:
            await asyncio.sleep(3)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(supervisor.ready(), 3)

        async with running(watched):
            await watched.ready()
            device.request(Plug(connected=False))
            await is_ready_again()
            desk.refusal = "in use by another program"
            device.request(Plug(connected=True))
            await is_ready_again()
            watched.own = raises(KeyProblem("host.json", "has mode 0644", "mode 0600"))
            await is_ready_again()
            assert watched.state is S.REFUSED
            watched.own, desk.refusal = (lambda: OWN), None
            await asyncio.wait_for(supervisor.ready(), 10)
            await store_fails(device, watched)
            await is_ready_again()
            assert watched.states[-1] is S.UNKEPT
            supervisor.recovered()
            await asyncio.wait_for(supervisor.ready(), 10)


@when_ready
async def test_a_moment_that_is_over_already_does_not_count(
    device: Plugged, watched: Watched
) -> None:
    """The device is ready and gone before whoever waits has its turn."""
    device.request(Plug(connected=False))
    await watched.until(S.ABSENT)

    def loose(happening: events.AnyHappening) -> None:
        if isinstance(happening, events.StateChanged) and happening.state is S.READY:
            asyncio.get_running_loop().call_soon(device.hang_up, "a loose contact")

    watched.also = loose
    waiting = asyncio.create_task(watched.supervisor.ready())
    device.request(Plug(connected=True))
    await until(lambda: watched.states.count(S.READY) == 2)
    await asyncio.sleep(0)
    assert (watched.states[-1], waiting.done()) == (S.LOST, False)
    watched.also = None
    await asyncio.wait_for(waiting, 5)
    assert watched.state is S.READY


@pytest.mark.parametrize("at", [S.ABSENT, S.RESUMING, S.IDENTIFYING])
@simulated
async def test_it_does_not_outlast_the_host(tmp_path: Path, at: LinkState) -> None:
    async with table(tmp_path) as (_, device, watched):
        device.request(Plug(connected=at is not S.ABSENT))
        if at is S.IDENTIFYING:
            device.request(Freeze(on=True))
        task = asyncio.create_task(watched.supervisor.run())
        waiting = asyncio.create_task(watched.supervisor.ready())
        await asyncio.sleep(1)
        assert watched.state is at
        await stopped(task)
        with pytest.raises(NotReady):
            await asyncio.wait_for(waiting, 1)
        with pytest.raises(NotReady):
            await watched.supervisor.ready()


@simulated
async def test_it_says_why_the_host_has_ended(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        async with ending(watched, device):
            waiting = asyncio.create_task(watched.supervisor.ready())
            watched.unable = events.Resumed
            await until(lambda: watched.supervisor.held is not None)
            await watched.supervisor.adopt(BY)
        with pytest.raises(NotReady, match="BrokenPipeError: nobody reads the log"):
            await waiting


@simulated
async def test_a_supervisor_runs_once(tmp_path: Path) -> None:
    """What its keeper was doing when it ended only the keeper knows."""
    async with table(tmp_path) as (desk, device, watched):
        async with running(watched):
            await watched.ready()
            with pytest.raises(ValueError, match="has been run already"):
                await watched.supervisor.run()
            assert watched.state is S.READY
        with pytest.raises(ValueError, match="has been run already"):
            await watched.supervisor.run()
        again = Watched(desk, device.wanted, watched.store)
        async with running(again):
            await again.until(S.READY)
