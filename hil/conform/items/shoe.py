"""The shoe: positions, salts, REREAD, the lock and the gate."""

from __future__ import annotations

from typing import Final, get_args

from firmware_protocol.device import DeckName, Draw, InjectDefect, Load, Moment
from firmware_protocol.messages import (
    REREAD_DEPTH,
    Capabilities,
    CardFlags,
    CardRead,
    CutCard,
    DeckKind,
    DeviceState,
    Fault,
    FaultCode,
    Lock,
    LockReply,
    LockState,
    ReadFail,
    Refusal,
    Reread,
    RereadReply,
)
from firmware_protocol.tablelink import EventRecord
from hil.conform.items.ring import cut_during
from hil.conform.tester import (
    ConformBench,
    NotApplicable,
    TesterSession,
    count_for_operator,
    described,
    load_cards,
    make_ready,
    make_records,
    message_text,
    settle_ms,
    unlock,
)

CARD_EVENTS: Final = (CardRead, ReadFail, CutCard)


def out(session: TesterSession, since: int = 0) -> list[EventRecord]:
    """The records of cards that have left the shoe."""
    return [one for one in session.accepted[since:] if isinstance(one.event, CARD_EVENTS)]


async def drawn(
    bench: ConformBench, session: TesterSession, count: int, *, since: int, made: int
) -> list[EventRecord]:
    await bench.until(lambda: len(out(session, since)) >= count, settle_ms(made))
    found = out(session, since)
    expected = f"{count} of CARD_READ, READ_FAIL, CUT_CARD"
    bench.require(len(found) >= count, expected, f"{len(found)}")
    return found


async def salts(bench: ConformBench) -> None:
    """Salts differ from record to record."""
    session = await bench.session()
    await make_ready(bench, session)
    mark = len(session.accepted)
    made = await make_records(bench, count_for_operator(bench, 20))
    cards = await drawn(bench, session, made, since=mark, made=made)
    seen = [one.event.salt for one in cards if isinstance(one.event, CardRead)]
    bench.require(len(seen) >= 2, "CARD_READ twice at least", f"{len(seen)} times")
    bench.require_equal(len(set(seen)), len(seen), "another salt in each CARD_READ")


async def positions(bench: ConformBench) -> None:
    """Each card that leaves takes the next position, read or not; LOADED starts again."""
    session = await bench.session()
    first = await load_cards(bench, session, Load(decks=6))
    await _count(bench, session, first.shoe)
    second = await load_cards(bench, session, Load(decks=6))
    bench.require_equal(second.shoe, first.shoe + 1, f"LOADED {first.shoe + 1}")
    await _count(bench, session, second.shoe)


async def _count(bench: ConformBench, session: TesterSession, shoe: int) -> None:
    pulls: list[Draw] = [Draw(count=2), Draw(read="no_index"), Draw(), Draw(read="unreadable")]
    if bench.operator.exact:
        pulls += [
            Draw(double=True),
            Draw(read="too_fast"),
            Draw(),
            Draw(double=True, read="no_index"),
        ]
    pulls.append(Draw())
    await unlock(bench, session)
    mark, wanted = len(session.accepted), 0
    for pull in pulls:
        await bench.request(pull)
        wanted += pull.count * (2 if pull.double else 1)
        await drawn(bench, session, wanted, since=mark, made=2)
    await bench.pause(500)
    events = [one.event for one in out(session, mark)]
    found = [event.pos for event in events if isinstance(event, CARD_EVENTS)]
    positions = list(range(1, wanted + 1))
    bench.require_equal(found, positions, f"positions 1 to {wanted}, each once")
    shoes = {event.shoe for event in events if isinstance(event, CardRead)}
    bench.require_none(shoes - {shoe}, f"CARD_READ of shoe {shoe}")


async def rereads(bench: ConformBench) -> None:
    """REREAD returns any of the last REREAD_DEPTH records byte for byte, before RESUME too; others
    are refused NOT_KEPT."""
    session = await bench.session()
    await make_ready(bench, session)
    start = session.cursor.seq
    made = await make_records(bench, count_for_operator(bench, REREAD_DEPTH + 6))
    await bench.until(lambda: session.cursor.seq >= start + made, settle_ms(made))
    came = session.cursor.seq - start
    bench.require(came >= made, f"{made} records", f"{came}")
    await bench.pause(300)
    records = {one.seq: one.encode() for one in session.accepted}
    head = session.cursor.seq
    await _reread_all(bench, session, records, head)
    await _not_kept(session, head)
    new = await bench.session(resume=False)
    last = dict(list(records.items())[-3:])
    await _reread_all(bench, new, last, head)
    await _not_kept(new, head, epoch=session.cursor.epoch)


async def _reread_all(
    bench: ConformBench, session: TesterSession, records: dict[int, bytes], head: int
) -> None:
    epoch = int.from_bytes(next(iter(records.values()))[2:6], "little")
    for seq, data in records.items():
        if seq <= head - REREAD_DEPTH:
            continue
        reply = await session.demand(Reread(epoch, seq), RereadReply)
        bench.require(reply.record == data, f"record {seq} byte for byte", "another record")


async def _not_kept(session: TesterSession, head: int, epoch: int = 0) -> None:
    epoch = epoch or session.cursor.epoch
    await session.refused(Reread(epoch, head + 1), Refusal.NOT_KEPT)
    await session.refused(Reread(epoch ^ 1 or 2, head), Refusal.NOT_KEPT)
    if head > REREAD_DEPTH:
        await session.refused(Reread(epoch, head - REREAD_DEPTH), Refusal.NOT_KEPT)


async def locks(bench: ConformBench) -> None:
    """LOCK sets and reports its state; after the end of a session the shoe is locked; a session
    that takes over changes nothing."""
    session = await bench.session()
    if not bench.has(Capabilities.LOCK):
        await session.refused(Lock(LockState.LOCKED), Refusal.UNSUPPORTED)
        return
    for state in (LockState.LOCKED, LockState.OPEN, LockState.OPEN, LockState.LOCKED):
        await _lock(bench, session, state)
    for state in (LockState.OPEN, LockState.LOCKED):
        await _lock(bench, session, state)
        session = await bench.session(session.cursor)
        await _is(bench, session, state, "a session that takes over changes no lock")
    await _lock(bench, session, LockState.OPEN)
    await bench.fall_silent()
    hello_rsp = (await bench.greet()).hello_rsp
    bench.require(
        DeviceState.LOCKED in hello_rsp.state,
        "LOCKED after the end of the session",
        str(hello_rsp.state),
    )
    last = await bench.session(session.cursor)
    await _is(bench, last, LockState.LOCKED, "the shoe is locked after the end of a session")


async def _lock(bench: ConformBench, session: TesterSession, state: LockState) -> None:
    reply = await session.demand(Lock(state), LockReply)
    bench.require_equal(reply, LockReply(state), f"LOCK_REPLY {state.name}")
    await _is(bench, session, state, f"after LOCK {state.name}")


async def _is(bench: ConformBench, session: TesterSession, state: LockState, why: str) -> None:
    info = await session.check_alive()
    found = LockState.LOCKED if DeviceState.LOCKED in info.state else LockState.OPEN
    bench.require_equal(found, state, f"INFO_REPLY of a shoe that is {state.name}: {why}")


async def pulled_together(bench: ConformBench) -> None:
    """Two cards pulled together both have DOUBLE_FEED; CAME_FIRST comes first, CAME_SECOND second;
    without them the card that was read is the first."""
    bench.need_exact("two cards pulled together")
    session = await bench.session()
    await make_ready(bench, session)
    for second_read in (False, True):
        mark = len(session.accepted)
        await bench.request(Draw(double=True, second_read=second_read))
        bench.stock -= 2
        pair = [one.event for one in await drawn(bench, session, 2, since=mark, made=2)]
        flags = [one.flags for one in pair if isinstance(one, CardRead | ReadFail)]
        bench.require(
            len(flags) == 2 and all(CardFlags.DOUBLE_FEED in one for one in flags),
            "DOUBLE_FEED on both cards",
            ", ".join(map(message_text, pair)),
        )
        ordered = (CardFlags.CAME_FIRST, CardFlags.CAME_SECOND)
        found = tuple(one & (CardFlags.CAME_FIRST | CardFlags.CAME_SECOND) for one in flags)
        unordered = found == (0, 0) and isinstance(pair[0], CardRead)
        bench.require(
            found == ordered or unordered,
            "CAME_FIRST, then CAME_SECOND; or neither, and the card that was read first",
            ", ".join(map(message_text, pair)),
        )
        if found == ordered:
            read = [one.pos for one in pair if isinstance(one, CardRead)]
            first = min(one.pos for one in pair if isinstance(one, CARD_EVENTS))
            bench.require_equal(
                read, [first + second_read], "CARD_READ of the card that was read, in its place"
            )


async def kind_of_deck(bench: ConformBench) -> None:
    """LOADED names the kind of decks as set at the shoe, or UNKNOWN."""
    session = await bench.session()
    for kind in (DeckKind.SPANISH_48, DeckKind.FULL_52):
        loaded = await load_cards(bench, session, Load(decks=6, kind=_NAMES[kind]))
        bench.require(
            loaded.kind in (kind, DeckKind.UNKNOWN),
            f"LOADED with {kind.name}, or UNKNOWN",
            loaded.kind.name,
        )


_NAMES: Final[dict[DeckKind, DeckName]] = {
    DeckKind.FULL_52: "full_52",
    DeckKind.SPANISH_48: "spanish_48",
}


async def dirty_reader(bench: ConformBench) -> None:
    """A dirty reader is reported as FAULT READER_DIRTY, and cards are still read."""
    bench.need_exact("a dirty reader")
    session = await bench.session()
    await make_ready(bench, session)
    mark = len(session.accepted)
    await bench.request(InjectDefect(code="reader_dirty"))
    fault = await session.until_event(Fault, 2000, "FAULT READER_DIRTY", mark)
    bench.require_equal(fault.code, FaultCode.READER_DIRTY)
    mark = len(session.accepted)
    await make_records(bench, 2)
    cards = await drawn(bench, session, 2, since=mark, made=2)
    read = [one for one in cards if isinstance(one.event, CardRead)]
    bench.require_equal(len(read), 2, "CARD_READ twice")
    await bench.request(InjectDefect(code="reader_dirty", on=False))


async def gate(bench: ConformBench) -> None:
    """With GATE, no card is out whose record is not there after a power cut."""
    hello_rsp = (await bench.greet()).hello_rsp
    if Capabilities.GATE not in hello_rsp.capabilities:
        raise NotApplicable("GATE, which this shoe does not have")
    bench.need_exact("to count the cards that are out")
    session = await bench.session()
    await load_cards(bench, session, Load(decks=6))
    recorded = 0
    for moment in ("now", *get_args(Moment)):
        session = await bench.session(session.cursor)
        await unlock(bench, session)
        await cut_during(bench, session, moment, 2)
        new = await bench.session(session.cursor)
        await new.until_head((await new.next_beat()).head)
        recorded += len(out(session)) + len(out(new))
        there = len(await described(bench, "mechanism.out", list))
        bench.require(
            there <= recorded,
            f"at most {recorded} cards out, as recorded",
            f"{there}",
            f"power cut '{moment}'",
        )
        session = new
