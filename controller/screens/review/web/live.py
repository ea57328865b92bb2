"""The record as it grows: the last lines of it, and then each as it is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import chain, islice
from typing import Final

import msgspec
from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from controller.audit.errors import RecordProblem
from controller.audit.read.follow import Follower
from controller.audit.read.heads import first_head
from controller.audit.read.lookup import LocatedRecord, of_seqs
from controller.audit.text import currency_of, timeline_line, timeline_lines
from controller.errors import UsageProblem
from controller.screens.common.access import Visit
from controller.screens.review.source import ReviewContext, ReviewSource
from controller.screens.review.view.filters import number_of

ROWS: Final = 60
READ: Final = 300
"""Records among which those are found that tell of the table."""
MAX_BEHIND: Final = 1_000
"""Records that a page may have missed; with more it is to be loaded again."""
TOGETHER: Final = 100
MAX_STREAMS: Final = 8
"""Streams at a time."""
_EVERY: Final = 0.5
_STILL: Final = 10.0
"""Seconds after which something is sent, so that whoever has gone is noticed."""


class LiveLine(Struct, frozen=True):
    """What a line tells."""

    seq: int
    time: str
    stamp: str
    clock: str
    round: int
    kind: str
    who: str
    seat: int
    what: str
    facts: tuple[str, ...]
    prompts: tuple[str, ...]
    refused: str
    quiet: bool


def page(visit: Visit[ReviewContext]) -> Response:
    """Out of the record itself: what is written last is in no index yet."""
    house = visit.house
    house.source.look(visit.who, "review live", "the last records")
    record, last = house.source.record, house.source.durable()
    if last is None:
        last = Follower(record).where.seq
    first = first_head(record).record.seq
    found = list(of_seqs(record, max(first, last - READ + 1), last))
    quiet = visit.query.get("all") != "yes"
    money = currency_of(found[-1].opened if found else None)
    lines = timeline_lines([one.record for one in found], money)
    shown = [line for line in lines if not (quiet and line.quiet)][-ROWS:]
    return house.page(visit, "review/live.html", lines=shown, last=last, quiet=quiet)


async def stream(visit: Visit[ReviewContext], request: Request) -> Response:
    """Server-sent events, from the record on that the page has shown."""
    house = visit.house
    said = request.headers.get("last-event-id") or visit.query.get("after")
    after = None if said is None else number_of("after", said)
    if house.streams >= MAX_STREAMS:
        raise UsageProblem("live", f"{MAX_STREAMS} streams run already", "fewer of them")
    await run_in_threadpool(house.source.look, visit.who, "review live", "all that follows")
    following = await run_in_threadpool(Follower, house.source.record)
    known = DurableTail(house.source, following, after)
    last, start = following.where.seq, known.start
    if not last - MAX_BEHIND <= start <= last:
        what = f"record {start} is not the last one, nor near it"
        raise UsageProblem("after", what, f"{max(0, last - MAX_BEHIND)} to {last}")
    return StreamingResponse(
        _events(visit, following, known),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


class DurableTail:
    """What follows, each record once it is known to be on the disk. Where a table writes it the
    file may have more: what its disk may yet lose, and what it has not acted on."""

    def __init__(self, source: ReviewSource, following: Follower, after: int | None) -> None:
        """`following` has come to the end of the file; `after` is the last record that was shown,
        None where all that is known was."""
        last, durable = following.where.seq, source.durable()
        self.start = after if after is not None else last if durable is None else min(last, durable)
        self._source = source
        self._following = following
        self._ahead: LocatedRecord | None = None
        """It has been read, and is not known yet."""
        self._before: Iterator[LocatedRecord] = iter(())
        if self.start < last:
            self._before = of_seqs(source.record, self.start + 1, last)

    def more(self) -> Iterator[LocatedRecord]:
        """Damaged, CannotWrite."""
        unread = chain(self._before, self._following.more())
        while (told := self._ahead or next(unread, None)) is not None:
            durable = self._source.durable()
            self._ahead = told if durable is not None and told.place.seq > durable else None
            if self._ahead is not None:
                return
            yield told


async def _events(
    visit: Visit[ReviewContext], following: Follower, known: DurableTail
) -> AsyncIterator[bytes]:
    house = visit.house
    house.streams += 1
    try:
        for message in await run_in_threadpool(_messages, known.more(), MAX_BEHIND):
            yield message
        yield b"event: here\ndata: {}\n\n"
        waited = 0.0
        while house.sessions.alive(visit.session):
            found = await run_in_threadpool(_messages, known.more(), TOGETHER)
            for message in found:
                yield message
            if found:
                waited = 0.0
                continue
            await run_in_threadpool(following.check_end)
            await asyncio.sleep(_EVERY)
            waited += _EVERY
            if waited >= _STILL:
                waited = 0.0
                yield b": still here\n\n"
        yield _event("over", {"why": house.pages.texts("live.over")})
    except RecordProblem as problem:
        yield _event("over", {"why": str(problem)})
    finally:
        house.streams -= 1


def _messages(told: Iterator[LocatedRecord], most: int) -> list[bytes]:
    return [_message(one) for one in islice(told, most)]


def _message(told: LocatedRecord) -> bytes:
    line = timeline_line(told.record, currency_of(told.opened))
    data = LiveLine(
        line.seq,
        line.time,
        line.stamp,
        line.clock,
        line.round,
        line.kind,
        line.who,
        line.seat,
        line.what,
        line.facts,
        line.prompts,
        line.refused,
        line.quiet,
    )
    return b"event: record\nid: %d\ndata: %s\n\n" % (line.seq, msgspec.json.encode(data))


def _event(name: str, data: dict[str, str]) -> bytes:
    return f"event: {name}\n".encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"
