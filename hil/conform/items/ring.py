"""The ring: RESUME's verdicts, power cuts, roll-backs and what happens when it is full."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Literal, TypeAlias, get_args

from firmware_protocol.device import CutPower, Draw, Moment, RingMemory, TamperWith
from firmware_protocol.messages import (
    PRESSURE_PERCENT,
    RESEND_MOST_MS,
    Capabilities,
    Cover,
    DeckKind,
    DeviceState,
    Door,
    EvtAck,
    Info,
    Lock,
    LockState,
    LogPressure,
    Power,
    Refusal,
    Resume,
    ResumeMode,
    ResumeReply,
    Start,
    Verdict,
)
from firmware_protocol.tablelink import NO_CHAIN
from hil.conform.tester import (
    ACTIONS,
    ConformBench,
    RequestDenied,
    RingCursor,
    TesterSession,
    WireLost,
    flip_bits,
    make_ready,
    make_records,
    message_text,
    ready_session,
    settle_ms,
    wait_for_records,
)

CutMoment: TypeAlias = Literal["now"] | Moment
_MOMENTS: Final[tuple[CutMoment, ...]] = ("now", *get_args(Moment))
_OFF_MS: Final = 200
_DOING_MS: Final = 1000
"""Timeout for the records of a power cut."""
_TAMPERS: Final = 12
"""More than the ring has spare slots."""
_LATER_MS: Final = 3000


# --- power ----------------------------------------------------------------------------------


async def power_cuts(bench: ConformBench) -> None:
    """When power is cut at any moment, no record is lost or changed, POWER is sent first, boot
    grows and seq continues."""
    for moment in _MOMENTS if bench.operator.exact else ("now",):
        for holding in (False, True):
            await _one_cut(bench, moment, holding=holding)


async def _one_cut(bench: ConformBench, moment: CutMoment, *, holding: bool) -> None:
    session = await ready_session(bench)
    boot = session.info.boot
    session.holding = holding
    await cut_during(bench, session, moment, 2)
    seen = {one.record.seq: one.data for one in session.records if one.record.seq}
    cursor = session.cursor
    new = await bench.session(cursor)
    first = await new.until_accepted(
        lambda one: one.boot > boot, 2000, f"POWER, after a power cut {moment}: boot beyond {boot}"
    )
    bench.require_type(first.event, Power, "POWER first after the start")
    bench.require_equal(first.boot, new.info.boot, f"records of boot {new.info.boot}")
    for record in new.accepted:
        bench.require(
            seen.get(record.seq, record.encode()) == record.encode(),
            f"record {record.seq} as it came before the cut",
            message_text(record.event),
        )
    lost = [
        seq for seq in seen if cursor.seq < seq and seq not in {one.seq for one in new.accepted}
    ]
    bench.require(not lost, "every record that came before the cut", f"without {lost}")


async def cut_during(
    bench: ConformBench, session: TesterSession, moment: CutMoment, count: int
) -> None:
    """Cut the power at this moment of an activity, and wait until the device is there again."""
    cut = CutPower(at=moment, off_ms=_OFF_MS)
    if moment == "now":
        await make_records(bench, count)
        await bench.pause(100)
        await bench.request(cut)
    else:
        await bench.request(cut)
        with suppress(RequestDenied, WireLost):  # the cut may come during the request
            await make_records(bench, count)
        await bench.pause_lossy(_DOING_MS)
        _cause_moment(session, moment)
    await bench.pause_lossy(_OFF_MS + 300)
    await bench.wait_for_restart()


def _cause_moment(session: TesterSession, moment: CutMoment) -> None:
    """Cause the moment of the cut, if it has not come yet. A device without power, or after a
    restart, ignores it."""
    if moment == "before_reply":
        session.call(Info())
    elif moment == "before_ack" and session.holding and session.records:
        last = session.records[-1].record
        session.send(EvtAck(last.epoch, last.seq, session.window))


# --- RESUME ---------------------------------------------------------------------------------


async def verdicts(bench: ConformBench) -> None:
    """RESUME is answered NEW_EPOCH for another epoch, FORK for a chain that does not fit and for
    `next` beyond head + 1; after these no event is sent, also when one before was OK."""
    session = await bench.session(resume=False)
    ring = await session.learn()
    bench.require_equal(ring.verdict, Verdict.NEW_EPOCH, "NEW_EPOCH for epoch 0")
    epoch, after = ring.epoch, ring.head + 1
    wrong = flip_bits(ring.chain, 3)
    for resume, verdict in (
        (Resume(epoch ^ 1 or 2, after, ring.chain, ResumeMode.CHECK), Verdict.NEW_EPOCH),
        (Resume(epoch ^ 1 or 2, after, NO_CHAIN, ResumeMode.ADOPT), Verdict.NEW_EPOCH),
        (Resume(epoch, after, wrong, ResumeMode.CHECK), Verdict.FORK),
        (Resume(epoch, after + 1, ring.chain, ResumeMode.CHECK), Verdict.FORK),
        (Resume(epoch, after + 1, NO_CHAIN, ResumeMode.ADOPT), Verdict.FORK),
        (Resume(epoch, 0xFFFFFFFF, ring.chain, ResumeMode.CHECK), Verdict.FORK),
        *_inside(ring),
    ):
        await verdict_of(bench, session, resume, verdict)
        await bench.pause(500)
        bench.require_none(session.records, "no event")
    await _last_counts(bench, session, ring)


async def _last_counts(bench: ConformBench, session: TesterSession, ring: ResumeReply) -> None:
    """A verdict other than OK also stops the events after an earlier OK."""
    resume = Resume(ring.epoch, ring.head + 2, ring.chain, ResumeMode.CHECK)
    if ring.oldest <= ring.head:
        session.holding = True
        await session.resume(RingCursor(ring.epoch, ring.head - 1, NO_CHAIN), ResumeMode.ADOPT)
        await wait_for_records(bench, session, 0, 1)
        await verdict_of(bench, session, resume, Verdict.FORK)
        await bench.pause(bench.late_ms)
        mark = len(session.records)
        await bench.pause(2 * RESEND_MOST_MS)
        expected = "no event: the last RESUME was answered FORK"
        bench.require_none(session.records[mark:], expected)
        session.holding = False
    await session.resume(RingCursor(ring.epoch, ring.head, ring.chain))


def _inside(ring: ResumeReply) -> list[tuple[Resume, Verdict]]:
    """RESUME commands for a ring that has or had records."""
    epoch, before = ring.epoch, ring.oldest - 1
    wrong = flip_bits(ring.chain, 7, 0x80)
    found = []
    if ring.oldest <= ring.head:
        verdict = Verdict.BEHIND if ring.head <= ring.acked_seq else Verdict.FORK
        found.append((Resume(epoch, ring.head, wrong, ResumeMode.CHECK), verdict))
    if before > 0:
        verdict = Verdict.BEHIND if before <= ring.acked_seq else Verdict.GAP
        found += [
            (Resume(epoch, before, NO_CHAIN, ResumeMode.CHECK), verdict),
            (Resume(epoch, before, NO_CHAIN, ResumeMode.ADOPT), Verdict.GAP),
        ]
    return found


async def verdict_of(
    bench: ConformBench, session: TesterSession, resume: Resume, verdict: Verdict
) -> None:
    reply = await session.demand(resume, ResumeReply)
    bench.require_equal(reply.verdict, verdict)


async def rolled_back(bench: ConformBench) -> None:
    """A ring that was rolled back is answered FORK."""
    session = await ready_session(bench)
    await bench.request(RingMemory(what="save"))
    start = session.cursor.seq
    await session.until_head(start + await make_records(bench, 2))
    cursor = session.cursor
    await bench.request(RingMemory(what="restore"))
    await bench.wait_for_restart()
    new = await bench.session(resume=False)
    resume = Resume(cursor.epoch, cursor.seq + 1, cursor.chain, ResumeMode.CHECK)
    await verdict_of(bench, new, resume, Verdict.FORK)
    await bench.pause(1000)
    bench.require_none(new.records, "no event after FORK")
    await new.catch_up()
    # The same position again, after a different history.
    await make_ready(bench, new)
    while new.cursor.seq < cursor.seq + 1:
        await new.until_head(new.cursor.seq + await make_records(bench, 2))
    again = await bench.session(resume=False)
    again.holding = True
    await again.resume(RingCursor(cursor.epoch, cursor.seq, NO_CHAIN), ResumeMode.ADOPT)
    await verdict_of(bench, again, resume, Verdict.FORK)
    again.holding = False
    await again.catch_up()


async def adopts(bench: ConformBench) -> None:
    """RESUME with ADOPT from `oldest` or head + 1 is answered OK."""
    session = await bench.session()
    ring = await session.learn()
    for after in (ring.oldest, ring.head + 1):
        resume = Resume(ring.epoch, after, NO_CHAIN, ResumeMode.ADOPT)
        session.holding = True
        await verdict_of(bench, session, resume, Verdict.OK)
        await bench.pause(500)
        came = [one.record.seq for one in session.records]
        bench.require(
            not (after <= ring.head and came[:1] != [after]), f"record {after} first", f"{came}"
        )
        session.records.clear()


# --- a full ring ----------------------------------------------------------------------------


async def fills_up(bench: ConformBench) -> None:
    """Without acknowledgements LOG_PRESSURE is recorded at PRESSURE_PERCENT, a full ring locks the
    device, no record is overwritten, and what happens then is recorded later."""
    session = await ready_session(bench)
    cursor = session.cursor
    session.holding = True
    session.ack(window=0, in_report=True)
    await bench.pause(bench.late_ms)
    await bench.request(RingMemory(what="fill"))
    await bench.pause(300)
    await session.next_beat()
    await _locked(bench, session)
    moved = await _past_full(bench)
    new = await bench.session(cursor)
    beat = await new.next_beat()
    await new.until_head(beat.head, settle_ms(beat.head - cursor.seq))
    _pressure(bench, new)
    await new.next_beat()
    after = await new.next_beat()
    if moved:
        await _recorded_later(bench, new)
    bench.require(
        DeviceState.FULL not in after.state, "not FULL any more once all is acknowledged", "FULL"
    )
    await make_ready(bench, new)


async def _locked(bench: ConformBench, session: TesterSession) -> None:
    beat = await session.next_beat()
    wanted = DeviceState.FULL | DeviceState.LOCKED
    bench.require(
        beat.state & wanted == wanted,
        "state FULL and LOCKED",
        str(beat.state),
        "a ring filled by its maker",
    )
    if bench.profile == "shoe" and bench.has(Capabilities.LOCK):
        await session.refused(Lock(LockState.OPEN), Refusal.NOT_NOW)
    if bench.profile == "shuffler":
        await session.refused(Start(6, 0, DeckKind.FULL_52), Refusal.NOT_NOW)


async def _past_full(bench: ConformBench) -> bool:
    """Cause more events than the ring can store. Returns whether a door or cover was moved."""
    if not bench.operator.exact:
        return False
    moved = [await bench.try_request(request) for request in ACTIONS[bench.profile].moves]
    for turn in range(_TAMPERS):
        await bench.try_request(TamperWith(source="case", active=turn % 2 == 0))
    if bench.profile == "shoe":
        await bench.try_request(Draw(count=1, force=True))
    await bench.pause(500)
    return bool(moved) and all(moved)


async def _recorded_later(bench: ConformBench, session: TesterSession) -> None:
    """Events at a full ring are recorded later, in order."""

    def moves() -> list[bool]:
        return [one.event.open for one in session.accepted if isinstance(one.event, Cover | Door)]

    await bench.until(lambda: moves()[-2:] == [True, False], _LATER_MS)
    bench.require(
        moves()[-2:] == [True, False],
        "a record of the opening and one of the closing while the ring was full",
        f"{len(moves())} records of cover or door, the last ones {moves()[-4:]}",
        "room in the ring again",
    )


def _pressure(bench: ConformBench, session: TesterSession) -> None:
    """LOG_PRESSURE is recorded at the threshold, and again when the ring is full."""
    found = [
        (number, one.event.used)
        for number, one in enumerate(session.accepted, 1)
        if isinstance(one.event, LogPressure)
    ]
    first = session.info.capacity * PRESSURE_PERCENT / 100
    bench.require(
        found and abs(found[0][0] - first) <= 2 and 74 <= found[0][1] <= 77,
        f"LOG_PRESSURE as about the {first:.0f}th record that is not acknowledged, used 75",
        f"{found} (number, used)",
    )
    bench.require(len(found) == 2, "LOG_PRESSURE twice: at 75 percent and when full", f"{found}")
