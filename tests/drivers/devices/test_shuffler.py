"""The shuffler's driver: what moves cards is sent once, and the event tells whether it was done."""

from __future__ import annotations

import asyncio

import pytest

from drivers.devices import (
    CommandRefusedError,
    CommandUnansweredError,
    Faulted,
    InDoubt,
    LinkState,
    NotReady,
    ResultMissing,
    ShufflerDriver,
)
from drivers.devices.driver import RESULT_TIMEOUT
from drivers.devices.shuffler import (
    CountWrong,
    DoorMoved,
    ShuffleDone,
    ShuffleProgressed,
    ShufflerJammed,
    ShuffleStarted,
)
from firmware_protocol.device import Break, Put, SetJam, ShufflePace
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages import (
    Command,
    DeckKind,
    DeviceClass,
    Door,
    EjectReply,
    Event,
    FaultCode,
    JamCode,
    OutOfRange,
    Power,
    PowerCause,
    Refusal,
    Reply,
    Start,
    Started,
    StartReply,
)
from tests.support.asynchronous import simulated
from tests.support.drivers.fake_line import FakeLine
from tests.support.drivers.simulated import Plugged, Watched, now_us, supervised


@supervised
async def test_a_shuffle_from_start_to_done(
    device: Plugged, watched: Watched, shuffler: ShufflerDriver
) -> None:
    device.request(ShufflePace(shuffle_ms=3000))
    device.request(Put(decks=2))
    started = await shuffler.start(2)
    assert (started.shuffle, started.decks) == (1, 2)
    with pytest.raises(CommandRefusedError, match="START was refused: not_now") as refused:
        await shuffler.start(2)
    assert (refused.value.why, shuffler.in_doubt) == (Refusal.NOT_NOW, False)
    await asyncio.sleep(4)
    events = watched.events()
    assert any(isinstance(one, ShuffleProgressed) for one in events)
    assert [
        (one.shuffle, one.count, one.missing, one.rng_ok)
        for one in events
        if isinstance(one, ShuffleDone)
    ] == [(1, 104, 0, True)]
    assert (await shuffler.eject()).open
    device.request(Put(decks=1, remove=("As",)))
    await shuffler.start(1)
    await asyncio.sleep(4)
    assert [(one.expected, one.got) for one in watched.events() if isinstance(one, CountWrong)] == [
        (52, 51)
    ]


@supervised
async def test_an_abort_ends_it_and_without_a_shuffle_changes_nothing(
    device: Plugged, watched: Watched, shuffler: ShufflerDriver
) -> None:
    device.request(Put(decks=1))
    await shuffler.abort()
    await shuffler.start(1)
    await shuffler.abort()
    await asyncio.sleep(0.5)
    assert [(one.code, one.arg) for one in watched.events() if isinstance(one, Faulted)] == [
        (FaultCode.ABORTED, 1)
    ]
    device.request(SetJam(code="left_inside"))
    await asyncio.sleep(0.5)
    assert [one.code for one in watched.events() if isinstance(one, ShufflerJammed)] == [
        JamCode.LEFT_INSIDE
    ]


@supervised
async def test_when_the_reply_is_lost_the_event_tells_and_nothing_is_sent_again(
    device: Plugged,
    watched: Watched,
    shuffler: ShufflerDriver,
) -> None:
    device.request(Put(decks=1))
    device.request(Break(name="late-replies"))
    started = await shuffler.start(1)
    assert (started.shuffle, shuffler.in_doubt) == (1, False)
    await asyncio.sleep(2)
    assert [one for one in watched.events() if isinstance(one, ShuffleStarted)] == [started]


# --- each way in which it can come ----------------------------------------------------------------


def lost(*, sent: bool = True) -> CommandUnansweredError:
    return CommandUnansweredError(Start(1, 0, DeckKind.FULL_52), sent=sent)


def shuffling(*answers: Reply | Exception) -> tuple[FakeLine, ShufflerDriver]:
    line = FakeLine(DeviceClass.SHUFFLER)
    line.answers = list(answers)
    return line, line.driver


def come_later(line: FakeLine, *events: Event) -> None:
    for at, event in enumerate(events, 1):
        asyncio.get_running_loop().call_later(0.1 * at, line.comes, event)


@simulated
async def test_the_event_may_come_before_the_reply() -> None:
    line, shuffler = shuffling()
    answered = asyncio.Event()

    async def call(command: Command) -> Reply:
        line.called.append(command)
        await answered.wait()
        return StartReply(7)

    line.call = call  # type: ignore[method-assign]
    task = asyncio.create_task(shuffler.start(1))
    await asyncio.sleep(0)
    line.comes(Started(7, 1))
    answered.set()
    assert (await task).shuffle == 7
    assert line.called == [Start(1, 0, DeckKind.FULL_52)]


@simulated
async def test_only_the_shuffle_that_the_reply_names_counts() -> None:
    line, shuffler = shuffling(StartReply(7))
    come_later(line, Started(6, 1), Door(open=True), Started(7, 1))
    assert (await shuffler.start(1)).shuffle == 7


@simulated
async def test_without_a_reply_the_decks_have_to_fit() -> None:
    line, shuffler = shuffling(lost())
    come_later(line, Started(6, 8), Started(7, 1))
    assert (await shuffler.start(1)).shuffle == 7
    assert len(line.called) == 1


@pytest.mark.parametrize("answer", [lost(), StartReply(7)], ids=["no reply", "reply"])
@simulated
async def test_a_start_without_a_reply_is_in_doubt(answer: Reply | Exception) -> None:
    line, shuffler = shuffling(answer)
    began = now_us()
    with pytest.raises(ResultMissing, match=r"START was .*answered, and no STARTED has come"):
        await shuffler.start(1)
    assert (now_us() - began, shuffler.in_doubt) == (RESULT_TIMEOUT * 1_000_000, True)
    with pytest.raises(InDoubt):
        await shuffler.start(1)
    assert len(line.called) == 1


@pytest.mark.parametrize("event", [Started(7, 1), Power(PowerCause.WATCHDOG)])
@simulated
async def test_the_doubt_ends_with_what_the_shuffler_tells(event: Event) -> None:
    line, shuffler = shuffling(lost())
    with pytest.raises(ResultMissing):
        await shuffler.start(1)
    line.comes(Door(open=True))
    assert shuffler.in_doubt
    line.comes(event)
    assert not shuffler.in_doubt


@simulated
async def test_the_doubt_ends_when_someone_has_looked() -> None:
    line, shuffler = shuffling(lost(), StartReply(8))
    with pytest.raises(ResultMissing):
        await shuffler.start(1)
    shuffler.looked()
    come_later(line, Started(8, 1))
    assert (await shuffler.start(1)).shuffle == 8


@pytest.mark.parametrize(
    "problem",
    [
        CommandRefusedError(Start(1, 0, DeckKind.FULL_52), Refusal.NOT_NOW, 0),
        NotReady(LinkState.LOST, "it has gone"),
        LinkBusy("too many"),
        lost(sent=False),
    ],
    ids=lambda problem: type(problem).__name__,
)
@simulated
async def test_what_was_not_begun_is_not_in_doubt(problem: Exception) -> None:
    _, shuffler = shuffling(problem)
    with pytest.raises(type(problem)):
        await shuffler.start(1)
    assert not shuffler.in_doubt


@pytest.mark.parametrize(("decks", "profile"), [(10_000, 0), (-1, 0), (1, 256)])
@simulated
async def test_what_is_no_command_is_not_in_doubt(decks: int, profile: int) -> None:
    line, shuffler = shuffling()
    with pytest.raises(OutOfRange):
        await shuffler.start(decks, profile)
    assert (shuffler.in_doubt, line.called) == (False, [])


@simulated
async def test_a_caller_that_is_cancelled_before_the_answer_leaves_a_doubt() -> None:
    _, shuffler = shuffling(StartReply(7))
    task = asyncio.create_task(shuffler.start(1))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shuffler.in_doubt


@simulated
async def test_eject_waits_for_the_open_door() -> None:
    line, shuffler = shuffling(EjectReply())
    come_later(line, Door(open=False), Door(open=True))
    moved = await shuffler.eject()
    assert (moved.origin.seq, moved) == (2, DoorMoved(moved.origin, open=True))
    with pytest.raises(ResultMissing, match="EJECT was answered, and no DOOR has come"):
        await shuffler.eject()
    assert not shuffler.in_doubt
