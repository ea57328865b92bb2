"""The live review: the last records, then each record as soon as it is durable."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from controller.api.http import EventStream
from controller.audit.errors import RecordProblem
from controller.audit.read.follow import Follower
from controller.audit.read.lookup import LocatedRecord, first_head, of_seqs
from controller.audit.text import currency_of, timeline_line, timeline_lines
from controller.errors import UsageProblem
from controller.screens.common.access import Visit
from controller.screens.review.source import FileSource, ReviewContext
from controller.screens.review.view.rounds import number_of

ROWS: Final = 60
READ: Final = 300
"""Records that are searched for the ROWS that the page shows."""
MAX_BEHIND: Final = 1_000
"""Records that a page may have missed; with more it must be reloaded."""
BATCH: Final = 100
"""Records that are read at once."""
POLL_INTERVAL: Final = 0.5
"""Seconds between two reads of the record."""
_FIELDS: Final = (
    "seq",
    "time",
    "stamp",
    "clock",
    "round",
    "kind",
    "who",
    "seat",
    "what",
    "facts",
    "prompts",
    "refused",
    "quiet",
)
"""What the page's script reads of a line."""


def page(visit: Visit[ReviewContext]) -> Response:
    """Read from the record itself: the last records are in no index yet."""
    house = visit.house
    house.source.look(visit.who, "review live", "the last records")
    record, last = house.source.record, house.source.durable()
    if last is None:
        last = Follower(record).where.seq
    found = list(of_seqs(record, max(first_head(record).record.seq, last - READ + 1), last))
    quiet = visit.query.get("all") != "yes"
    money = currency_of(found[-1].opened if found else None)
    lines = timeline_lines([one.record for one in found], money)
    shown = [line for line in lines if not (quiet and line.quiet)][-ROWS:]
    return house.page(visit, "review/live.html", lines=shown, last=last, quiet=quiet)


async def stream(visit: Visit[ReviewContext], request: Request) -> EventStream:
    """The stream of records after the one that the page has shown last."""
    house = visit.house
    said = request.headers.get("last-event-id") or visit.query.get("after")
    after = None if said is None else number_of("after", said)
    if house.streams.full:
        limit = house.streams.limit
        raise UsageProblem("live", f"{limit} streams run already", "fewer of them")
    await run_in_threadpool(house.source.look, visit.who, "review live", "all that follows")
    follower = await run_in_threadpool(Follower, house.source.record)
    tail = DurableTail(house.source, follower, after)
    last, start = follower.where.seq, tail.start
    if not last - MAX_BEHIND <= start <= last:
        raise UsageProblem(
            "after",
            f"record {start} is not the last one, nor near it",
            f"{max(0, last - MAX_BEHIND)} to {last}",
        )
    events = _Events(visit, tail)
    return EventStream(
        "live review",
        house.streams,
        events.pending,
        alive=lambda: not events.over,
        interval=POLL_INTERVAL,
        batched=True,
    )


class DurableTail:
    """The records that follow, each as soon as it is known to be durable.

    The file of a running table may contain more: records that its disk may lose, and that the
    table has not acted on."""

    def __init__(self, source: FileSource, follower: Follower, after: int | None) -> None:
        """`follower` is at the end of the file. `after`: the last record that was shown; None: the
        last durable one."""
        last, durable = follower.where.seq, source.durable()
        self.start = after if after is not None else last if durable is None else min(last, durable)
        self._source = source
        self._follower = follower
        self._ahead: LocatedRecord | None = None
        """Read, and not known to be durable yet."""
        self._before: Iterator[LocatedRecord] = iter(())
        if self.start < last:
            self._before = of_seqs(source.record, self.start + 1, last)

    def more(self) -> Iterator[LocatedRecord]:
        """Raises RecordDamaged, CannotWrite."""
        unread = chain(self._before, self._follower.more())
        while (read := self._ahead or next(unread, None)) is not None:
            durable = self._source.durable()
            self._ahead = read if durable is not None and read.place.seq > durable else None
            if self._ahead is not None:
                return
            yield read

    def check_end(self) -> None:
        """Raises RecordDamaged if the end of the file is not what a write in progress leaves."""
        self._follower.check_end()


class _Events:
    """The events of one stream: every record in order, then why the stream ends."""

    def __init__(self, visit: Visit[ReviewContext], tail: DurableTail) -> None:
        self._visit = visit
        self._tail = tail
        self._caught_up = False
        self.over = False

    async def pending(self) -> bytes:
        house = self._visit.house
        try:
            if not self._caught_up:
                self._caught_up = True
                found = await run_in_threadpool(self._read, MAX_BEHIND)
                return found + b"event: here\ndata: {}\n\n"
            if house.sessions.alive(self._visit.session):
                return await run_in_threadpool(self._read, BATCH)
            why = house.pages.texts("live.over")
        except RecordProblem as problem:
            why = str(problem)
        self.over = True
        return b"event: over\ndata: " + msgspec.json.encode({"why": why}) + b"\n\n"

    def _read(self, limit: int) -> bytes:
        found = b"".join(map(_event, islice(self._tail.more(), limit)))
        if not found:
            self._tail.check_end()
        return found


def _event(read: LocatedRecord) -> bytes:
    line = timeline_line(read.record, currency_of(read.opened))
    data = {name: getattr(line, name) for name in _FIELDS}
    return b"event: record\nid: %d\ndata: %s\n\n" % (line.seq, msgspec.json.encode(data))
