"""The shuffler: each shuffle begins once and ends once, with a host or without."""

from __future__ import annotations

from typing import Final

from firmware_protocol.device.control import Put, ShufflePace
from firmware_protocol.messages import (
    Abort,
    AbortReply,
    CountError,
    DeviceState,
    Done,
    Fault,
    FaultCode,
    Refusal,
    Start,
    Started,
    StartReply,
)
from firmware_protocol.tablelink.plaintext import EventRecord
from hil.conform.tester import text
from hil.conform.tester.bench import ConformBench, Trial
from hil.conform.tester.findings import ItemSkipped
from hil.conform.tester.session import TesterSession

_DECKS: Final = 6
_PACE_MS: Final = 3000
_BEGIN_MS: Final = 5000
_SHUFFLE_MS: Final = 900_000
"""Timeout of a shuffle."""
_AFTER_MS: Final = 1500


async def _prepared(bench: ConformBench) -> TesterSession:
    """A session without a running shuffle; with a batch, if the operator can load one."""
    session = await bench.session()
    if DeviceState.RUNNING in (await session.check_alive()).state:
        await session.demand(Abort(), AbortReply)
    await bench.pause(500)
    if "activity" in bench.operator.can:
        if bench.operator.exact:
            await bench.try_request(ShufflePace(shuffle_ms=_PACE_MS))
        await bench.request(Put(decks=_DECKS))
        await bench.pause(300)
    return session


async def _start(bench: ConformBench, session: TesterSession) -> int:
    """Start a shuffle and wait for STARTED. Returns its number."""
    reply = await session.ask(Start(_DECKS, 0))
    if not isinstance(reply, StartReply):
        bench.require(not bench.operator.can, "START_REPLY", text.of_message(reply))
        raise ItemSkipped(f"a shuffler that takes START: door closed, {_DECKS} decks in it")
    started = await session.until_kept(
        lambda one: isinstance(one.event, Started), _BEGIN_MS, "STARTED", _mark(session)
    )
    bench.require(
        started.event == Started(reply.shuffle, _DECKS),
        text.of_message(Started(reply.shuffle, _DECKS)),
        text.of_message(started.event),
    )
    return reply.shuffle


def _mark(session: TesterSession) -> int:
    """The position after the end of the last shuffle."""
    ends = [number for number, one in enumerate(session.kept, 1) if _ends(one)]
    return ends[-1] if ends else 0


def _ends(record: EventRecord) -> bool:
    event = record.event
    aborted = isinstance(event, Fault) and event.code is FaultCode.ABORTED
    return aborted or isinstance(event, Done | CountError)


async def _end(
    bench: ConformBench, session: TesterSession, number: int, since: int = 0
) -> EventRecord:
    """Wait for the record that ends the shuffle; there must be exactly one."""
    end = await session.until_kept(_ends, _SHUFFLE_MS, "DONE, COUNT_ERROR or FAULT ABORTED", since)
    await bench.pause(_AFTER_MS)
    ends = [one for one in session.kept[since:] if _ends(one)]
    bench.require(
        len(ends) <= 1,
        "one of DONE, COUNT_ERROR and FAULT ABORTED, once",
        ", ".join(text.of_message(one.event) for one in ends),
    )
    if isinstance(end.event, Done) and end.event.shuffle != number:
        raise bench.finding(f"DONE of shuffle {number}", text.of_message(end.event))
    if isinstance(end.event, Fault) and end.event.arg != number:
        raise bench.finding(f"FAULT ABORTED with arg {number}", text.of_message(end.event))
    return end


async def starts_and_ends(bench: ConformBench) -> None:
    """START is answered with the number that STARTED carries; DONE, COUNT_ERROR or FAULT ABORTED
    ends it, once."""
    session = await _prepared(bench)
    mark = len(session.kept)
    number = await _start(bench, session)
    bench.require(
        DeviceState.RUNNING in (await session.check_alive()).state,
        "state RUNNING while a shuffle runs",
    )
    await _end(bench, session, number, mark)
    bench.require(
        DeviceState.RUNNING not in (await session.check_alive()).state,
        "not RUNNING once the shuffle is over",
    )
    if not bench.operator.exact:
        return
    mark = len(session.kept)
    again = await _start(bench, session)
    bench.require(again == number + 1, f"shuffle {number + 1}", f"shuffle {again}")
    await _end(bench, session, again, mark)


async def one_at_a_time(bench: ConformBench) -> None:
    """START during a shuffle is refused NOT_NOW; a repeated START does not start twice."""
    session = await _prepared(bench)
    mark = len(session.kept)
    first = session.next_id
    number = await _start(bench, session)
    again = await session.ask(Start(_DECKS, 0), ident=first)
    bench.require(
        again == StartReply(number), text.of_message(StartReply(number)), text.of_message(again)
    )
    await session.refused(Start(_DECKS, 0), Refusal.NOT_NOW)
    again = await session.ask(Start(_DECKS, 0), ident=first)
    bench.require(
        again == StartReply(number), text.of_message(StartReply(number)), text.of_message(again)
    )
    await bench.pause(500)
    await session.demand(Abort(), AbortReply)
    await _end(bench, session, number, mark)
    began = [one for one in session.kept[mark:] if isinstance(one.event, Started)]
    bench.require(len(began) == 1, "STARTED once", f"{len(began)} times")
    again = await session.ask(Start(_DECKS, 0), ident=first)
    await bench.pause(_AFTER_MS)
    bench.require(
        again == StartReply(number)
        and len([one for one in session.kept[mark:] if isinstance(one.event, Started)]) == 1,
        "the reply from memory, and no second shuffle",
        text.of_message(again),
    )


async def aborts(bench: ConformBench) -> None:
    """ABORT ends a shuffle with FAULT ABORTED and its number; without one it is answered and
    changes nothing."""
    session = await _prepared(bench)
    mark = len(session.kept)
    number = await _start(bench, session)
    await bench.pause(300)
    await session.demand(Abort(), AbortReply)
    record = await session.until_kept(
        _ends, _BEGIN_MS, f"FAULT ABORTED with arg {number} after ABORT", mark
    )
    bench.require(
        record.event == Fault(FaultCode.ABORTED, number),
        f"FAULT ABORTED with arg {number}",
        text.of_message(record.event),
    )
    await _end(bench, session, number, mark)
    mark = len(session.kept)
    await session.demand(Abort(), AbortReply)
    await bench.pause(_AFTER_MS)
    if session.kept[mark:]:
        raise bench.finding(
            "no record of an ABORT without a shuffle", text.of_message(session.kept[mark].event)
        )
    bench.require(
        DeviceState.RUNNING not in (await session.check_alive()).state, "not RUNNING after ABORT"
    )


async def goes_on_alone(bench: ConformBench) -> None:
    """A shuffle continues while the host is away, and its events arrive afterwards."""
    session = await _prepared(bench)
    number = await _start(bench, session)
    cursor = session.cursor
    await bench.fall_silent()
    if bench.operator.exact:
        await bench.pause(_PACE_MS)
    new = await bench.session(cursor)
    end = await _end(bench, new, number)
    if isinstance(end.event, Fault):
        raise bench.finding(
            "DONE or COUNT_ERROR: a shuffle goes on without a host", text.of_message(end.event)
        )


TRIALS: Final[dict[str, Trial]] = {
    "SF-1": starts_and_ends,
    "SF-2": one_at_a_time,
    "SF-3": aborts,
    "SF-4": goes_on_alone,
}
