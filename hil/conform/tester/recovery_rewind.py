"""Records that are on their way, from the cable alone where that can be."""

from __future__ import annotations

from firmware_protocol.messages.enums import ResumeMode
from firmware_protocol.messages.registry import ResumeReply
from firmware_protocol.tablelink.plaintext import NO_CHAIN
from hil.conform.tester.bench import Bench
from hil.conform.tester.findings import Lacking
from hil.conform.tester.heard import Cursor, GotRecord
from hil.conform.tester.session import Session
from hil.conform.tester.stimuli import make, ready, settle_ms


async def on_their_way(bench: Bench, session: Session, count: int) -> list[GotRecord]:
    """At least so many records that the device has sent and that nobody has acknowledged; the
    session holds. A hand makes them; where that is a person's, or where there is none, a RESUME
    from further back brings old ones, if the ring still has them (two people would have to agree,
    were it a real host)."""
    if bench.operator.exact:
        return await _made(bench, session, count)
    ring = await session.learn()
    if ring.head - ring.oldest >= count:
        return await _rewound(bench, session, ring, count)
    if "activity" not in bench.operator.can:
        raise Lacking("activity, for the ring keeps no old records: --control or --ask")
    await session.resume(Cursor(ring.epoch, ring.head, ring.chain))
    return await _made(bench, session, count)


async def _made(bench: Bench, session: Session, count: int) -> list[GotRecord]:
    await ready(bench, session)
    await bench.pause(200)
    session.holding = True
    mark = len(session.records)
    made = await make(bench, count)
    return await arrived(bench, session, mark, made)


async def _rewound(
    bench: Bench, session: Session, ring: ResumeReply, count: int
) -> list[GotRecord]:
    session.holding = True
    mark = len(session.records)
    before = Cursor(ring.epoch, ring.head - count - 1, NO_CHAIN)
    await session.resume(before, ResumeMode.ADOPT)
    # One more than wanted: its chain is what a later RESUME starts from.
    found = await arrived(bench, session, mark, count + 1)
    session.accept(found[0].record)
    session.ack()
    return found[1:]


async def arrived(bench: Bench, session: Session, mark: int, count: int) -> list[GotRecord]:
    """So many different records that came since, each as it came first, in order."""

    def first() -> list[GotRecord] | None:
        found: dict[int, GotRecord] = {}
        for one in session.records[mark:]:
            found.setdefault(one.record.seq, one)
        return list(found.values()) if len(found) >= count else None

    got = await bench.until(first, settle_ms(count))
    if got is None:
        raise bench.finding(f"{count} records")
    return got
