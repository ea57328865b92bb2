"""The shuffler: each shuffle begins once and ends once, with a host or without."""

from __future__ import annotations

from typing import Final

from firmware_protocol.device import Put, ShufflePace
from firmware_protocol.messages import (
    CARDS,
    Abort,
    AbortReply,
    Capabilities,
    CountError,
    DeckKind,
    DeviceState,
    Done,
    Fault,
    FaultCode,
    Refusal,
    Start,
    Started,
    StartReply,
)
from firmware_protocol.tablelink import EventRecord
from hil.conform.tester import (
    ConformBench,
    ItemSkipped,
    NotApplicable,
    TesterSession,
    message_text,
)

_DECKS: Final = 6
_PACE_MS: Final = 3000
_BEGIN_MS: Final = 5000
_SHUFFLE_MS: Final = 900_000
"""Timeout of a shuffle."""
_AFTER_MS: Final = 1500


async def _prepared(bench: ConformBench) -> TesterSession:
    """A session without a running shuffle; with a batch, if the operator can load one."""
    session = await bench.session()
    if await _runs(session):
        await session.demand(Abort(), AbortReply)
    await bench.pause(500)
    if "activity" in bench.operator.can:
        if bench.operator.exact:
            await bench.try_request(ShufflePace(shuffle_ms=_PACE_MS))
        await bench.request(Put(decks=_DECKS))
        await bench.pause(300)
    return session


async def _runs(session: TesterSession) -> bool:
    return DeviceState.RUNNING in (await session.check_alive()).state


async def _start(
    bench: ConformBench, session: TesterSession, kind: DeckKind = DeckKind.FULL_52
) -> int:
    """Start a shuffle and wait for STARTED. Returns its number."""
    reply = await session.ask(Start(_DECKS, 0, kind))
    if not isinstance(reply, StartReply):
        bench.require(not bench.operator.can, "START_REPLY", message_text(reply))
        needs = f"a shuffler that takes START: door closed, {_DECKS} decks in it"
        raise ItemSkipped(f"{needs}: --control or --ask")
    last_end = max(
        (number for number, one in enumerate(session.accepted, 1) if _ends(one)), default=0
    )
    started = await session.until_event(Started, _BEGIN_MS, "STARTED", last_end)
    bench.require_equal(started, Started(reply.shuffle, _DECKS))
    return reply.shuffle


def _ends(record: EventRecord) -> bool:
    event = record.event
    aborted = isinstance(event, Fault) and event.code is FaultCode.ABORTED
    return aborted or isinstance(event, Done | CountError)


async def _end(
    bench: ConformBench, session: TesterSession, number: int, since: int = 0
) -> EventRecord:
    """Wait for the record that ends the shuffle; there must be exactly one."""
    end = await session.until_accepted(
        _ends, _SHUFFLE_MS, "DONE, COUNT_ERROR or FAULT ABORTED", since
    )
    await bench.pause(_AFTER_MS)
    ends = [one for one in session.accepted[since:] if _ends(one)]
    bench.require_none(ends[1:], "one of DONE, COUNT_ERROR and FAULT ABORTED, once")
    if isinstance(end.event, Done):
        bench.require_equal(end.event.shuffle, number, f"DONE of shuffle {number}")
    if isinstance(end.event, Fault):
        bench.require_equal(end.event.arg, number, f"FAULT ABORTED with arg {number}")
    return end


async def starts_and_ends(bench: ConformBench) -> None:
    """START is answered with the number that STARTED carries; DONE, COUNT_ERROR or FAULT ABORTED
    ends it, once."""
    session = await _prepared(bench)
    mark = len(session.accepted)
    number = await _start(bench, session)
    bench.require(await _runs(session), "state RUNNING while a shuffle runs")
    await _end(bench, session, number, mark)
    bench.require(not await _runs(session), "not RUNNING once the shuffle is over")
    if not bench.operator.exact:
        return
    mark = len(session.accepted)
    again = await _start(bench, session)
    bench.require_equal(again, number + 1, f"shuffle {number + 1}")
    await _end(bench, session, again, mark)


async def one_at_a_time(bench: ConformBench) -> None:
    """START during a shuffle is refused NOT_NOW; a repeated START does not start twice."""
    session = await _prepared(bench)
    mark = len(session.accepted)
    first = session.next_id
    number = await _start(bench, session)
    start = Start(_DECKS, 0, DeckKind.FULL_52)
    bench.require_equal(await session.ask(start, ident=first), StartReply(number))
    await session.refused(start, Refusal.NOT_NOW)
    bench.require_equal(await session.ask(start, ident=first), StartReply(number))
    await bench.pause(500)
    await session.demand(Abort(), AbortReply)
    await _end(bench, session, number, mark)

    def starts() -> int:
        return sum(isinstance(one.event, Started) for one in session.accepted[mark:])

    bench.require_equal(starts(), 1, "STARTED once")
    again = await session.ask(start, ident=first)
    await bench.pause(_AFTER_MS)
    bench.require(
        again == StartReply(number) and starts() == 1,
        "the reply from memory, and no second shuffle",
        message_text(again),
    )


async def aborts(bench: ConformBench) -> None:
    """ABORT ends a shuffle with FAULT ABORTED and its number; without one it is answered and
    changes nothing."""
    session = await _prepared(bench)
    mark = len(session.accepted)
    number = await _start(bench, session)
    await bench.pause(300)
    await session.demand(Abort(), AbortReply)
    record = await session.until_accepted(
        _ends, _BEGIN_MS, f"FAULT ABORTED with arg {number} after ABORT", mark
    )
    aborted = Fault(FaultCode.ABORTED, number)
    bench.require_equal(record.event, aborted, f"FAULT ABORTED with arg {number}")
    await _end(bench, session, number, mark)
    mark = len(session.accepted)
    await session.demand(Abort(), AbortReply)
    await bench.pause(_AFTER_MS)
    bench.require_none(session.accepted[mark:], "no record of an ABORT without a shuffle")
    bench.require(not await _runs(session), "not RUNNING after ABORT")


async def continues_alone(bench: ConformBench) -> None:
    """A shuffle continues while the host is away, and its events arrive afterwards."""
    session = await _prepared(bench)
    number = await _start(bench, session)
    cursor = session.cursor
    await bench.fall_silent()
    if bench.operator.exact:
        await bench.pause(_PACE_MS)
    new = await bench.session(cursor)
    end = await _end(bench, new, number)
    expected = "DONE or COUNT_ERROR: a shuffle goes on without a host"
    bench.require(not isinstance(end.event, Fault), expected, message_text(end.event))


async def needs_cards(bench: ConformBench) -> None:
    """With CARD_SENSOR, START without cards is refused EMPTY, and state CARDS is set while cards
    are inside."""
    session = await _prepared(bench)
    if not bench.has(Capabilities.CARD_SENSOR):
        raise NotApplicable("CARD_SENSOR, which this shuffler does not have")
    state = (await session.check_alive()).state
    bench.require(DeviceState.CARDS in state, "state CARDS with cards inside", str(state))
    await bench.request(Put(decks=0))
    await bench.pause(300)
    state = (await session.check_alive()).state
    bench.require(DeviceState.CARDS not in state, "no state CARDS without cards", str(state))
    mark = len(session.accepted)
    await session.refused(Start(_DECKS, 0, DeckKind.FULL_52), Refusal.EMPTY)
    await bench.pause(_AFTER_MS)
    started = [one for one in session.accepted[mark:] if isinstance(one.event, Started)]
    bench.require_none(started, "no STARTED after EMPTY")
    await bench.request(Put(decks=_DECKS))


async def counts_by_kind(bench: ConformBench) -> None:
    """A shuffle counts by the decks and the kind that START names."""
    session = await _prepared(bench)
    await bench.request(Put(decks=_DECKS, kind="spanish_48"))
    await bench.pause(300)
    for kind, expected, end in (
        (DeckKind.SPANISH_48, 48 * _DECKS, Done),
        (DeckKind.FULL_52, CARDS * _DECKS, CountError),
    ):
        mark = len(session.accepted)
        number = await _start(bench, session, kind)
        last = (await _end(bench, session, number, mark)).event
        bench.require_type(last, end, f"{end.NAME} of {48 * _DECKS} cards as {kind.name}")
        count = last.count if isinstance(last, Done) else getattr(last, "expected", None)
        bench.require_equal(count, expected, f"{end.NAME} with {expected} cards")
    await bench.request(Put(decks=_DECKS))
