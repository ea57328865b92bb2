"""Records on their way: order, repeats, windows, acknowledgements."""

from __future__ import annotations

import itertools
from typing import Final

from firmware_protocol.messages import (
    RESEND_FIRST_MS,
    RESEND_MOST_MS,
    WINDOW,
    EvtAck,
    EvtNak,
    NakWhy,
)
from hil.conform.tester import (
    ConformBench,
    NoisyCable,
    ReceivedRecord,
    TesterSession,
    count_for_operator,
    make_ready,
    make_records,
    ready_session,
    settle_ms,
    unacknowledged,
    wait_for_records,
)

_EARLY_MS: Final = {True: 1, False: 25}
"""Tolerance for a repeat that arrives early."""
_ROUNDS: Final = 6
_NOISY_RECORDS: Final = 40
_NOISY_MS: Final = 90_000
_STILL_MS: Final = 8_000
"""Timeout for a record that may be lost several times in a row."""


async def none_before_resume(bench: ConformBench) -> None:
    """No event is sent before RESUME was answered with OK."""
    session = await bench.session()
    await unacknowledged(bench, session, 1)
    cursor = session.cursor
    session = await bench.session(resume=False)
    await bench.pause(1500)
    bench.require_none(session.records, "no event before RESUME")
    await session.learn()
    await bench.pause(1500)
    bench.require_none(session.records, "no event after RESUME was answered NEW_EPOCH")
    if cursor.epoch:
        await session.resume(cursor)
        await wait_for_records(bench, session, 0, 1)


async def in_order(bench: ConformBench) -> None:
    """Records come in order, seq growing by one, each chained to the one before."""
    session = await ready_session(bench)
    start, mark = session.cursor.seq, len(session.records)
    made = await make_records(bench, count_for_operator(bench, 12))
    await bench.until(lambda: session.cursor.seq >= start + made, settle_ms(made))
    await bench.pause(bench.late_ms)
    # The first arrivals: a repeat may be sent before the acknowledgement arrives.
    first = {one.record.seq: one.record for one in session.records[mark:]}
    seqs = list(first)
    bench.require(len(seqs) >= made, f"{made} records", f"{len(seqs)}: {seqs}")
    bench.require_equal(seqs, sorted(seqs), "records in the order of their seq")
    boots, boot = {one.record.boot for one in session.records}, session.info.boot
    bench.require_equal(boots, {boot}, f"records of boot {boot}")
    times = [one.t_us for one in first.values()]
    bench.require_equal(times, sorted(times), "times that do not go back")


async def repeats(bench: ConformBench) -> None:
    """A record without acknowledgement is sent again after RESEND_FIRST, doubling to RESEND_MOST,
    with the same plaintext under new counters."""
    session = await bench.session()
    records = await unacknowledged(bench, session, 1)
    # No more events are recorded, so that the waits are those of the oldest record.
    oldest = records[0].record
    await bench.pause(500)
    session.ack()
    deadline = RESEND_FIRST_MS * 7 + RESEND_MOST_MS * _ROUNDS
    await bench.until(lambda: len(_times(session, oldest.seq)) >= _ROUNDS, deadline)
    times = _times(session, oldest.seq)
    bench.require(
        len(times) >= _ROUNDS,
        f"record {oldest.seq} again and again, at least each {RESEND_MOST_MS} ms",
        f"{len(times)} times in {deadline} ms",
    )
    _check_waits(bench, times)
    plaintexts = {one.data for one in session.records if one.record.seq == oldest.seq}
    bench.require(len(plaintexts) == 1, "the same plaintext each time")


def _times(session: TesterSession, seq: int) -> list[int]:
    return [one.at for one in session.records if one.record.seq == seq]


def _check_waits(bench: ConformBench, times: list[int]) -> None:
    """Compare the times with the schedule, with a tolerance for delays of the line. A late arrival
    makes the wait before it longer and the next one shorter."""
    due, at, late = RESEND_FIRST_MS, 0, []
    for time in times:
        late.append((time - times[0]) / 1000 - at)
        at += due
        due = min(due * 2, RESEND_MOST_MS)
    waits = [(after - before) / 1000 for before, after in itertools.pairwise(times)]
    bench.require(
        max(late) - min(late) <= bench.late_ms,
        f"repeats after {RESEND_FIRST_MS} ms, then twice as long each time up to "
        f"{RESEND_MOST_MS} ms",
        "after " + ", ".join(f"{one:.0f}" for one in waits) + " ms",
        "no acknowledgement",
    )


async def window(bench: ConformBench) -> None:
    """No more than `window` records are on their way, new ones and repeats; window 0 stops
    them."""
    session = await ready_session(bench)
    session.holding = True
    session.ack(window=2, in_report=True)
    await bench.pause(bench.late_ms)
    mark, first = len(session.records), session.cursor.seq + 1
    made = await make_records(bench, count_for_operator(bench, 10))
    got = await wait_for_records(bench, session, mark, 2)
    await session.until_recorded(first + made - 1, settle_ms(made))
    await bench.pause(500)
    _beyond(bench, session, mark, first + 1, "window 2")
    session.accept(got[0].record)
    session.ack(in_report=True)
    await wait_for_records(bench, session, mark, 3)
    await bench.pause(1500)
    _beyond(bench, session, mark, first + 2, "window 2 and one more acknowledged")
    await _narrower(bench, session)
    session.ack(window=0, in_report=True)
    await bench.pause(bench.late_ms)
    mark = len(session.records)
    await bench.pause(2500)
    bench.require_none(session.records[mark:], "no record while the window is 0")
    session.holding = False
    session.ack(window=8, in_report=True)
    await session.until_accepted(
        lambda one: one.seq == first + made - 1, settle_ms(made), "all records once the window is 8"
    )
    await _most(bench, session)


async def _narrower(bench: ConformBench, session: TesterSession) -> None:
    """A smaller window stops repeats too; an older acknowledgement sets it as well."""
    last = session.cursor.seq
    session.ack(window=1, in_report=True)
    await bench.pause(bench.late_ms)
    mark = len(session.records)
    await bench.pause(2 * RESEND_MOST_MS)
    _beyond(bench, session, mark, last + 1, "window 1, for repeats too")
    bench.require(
        len(session.records) != mark, f"record {last + 1} again, which is not acknowledged"
    )
    if not last:
        return
    # Heartbeats continue with window 1: only this acknowledgement allows more records.
    session.send(EvtAck(session.cursor.epoch, last - 1, 4))
    new = last + 3
    await bench.wait_for(
        lambda: _times(session, new),
        50 + bench.late_ms,
        f"record {new}: an older acknowledgement opens the window to 4",
    )
    await bench.pause(bench.late_ms)


async def _most(bench: ConformBench, session: TesterSession) -> None:
    """The largest window, 8."""
    if not bench.operator.exact:
        return
    await make_ready(bench, session)
    await bench.pause(200)
    session.holding = True
    mark, last = len(session.records), session.cursor.seq
    made = await make_records(bench, 12)
    await wait_for_records(bench, session, mark, 8)
    await session.until_recorded(last + made, settle_ms(made))
    await bench.pause(500)
    _beyond(bench, session, mark, last + 8, "window 8")


def _beyond(bench: ConformBench, session: TesterSession, mark: int, last: int, why: str) -> None:
    late = [one for one in session.records[mark:] if one.record.seq > last]
    bench.require_none(late, f"no record beyond {last}: {why}")


async def asked_again(bench: ConformBench) -> None:
    """EVT_NAK makes the device send records again from `next` on, and restarts the timeout; one of
    another epoch or beyond what was sent is ignored; an acknowledged record is never sent again in
    the session."""
    session = await bench.session()
    records = await unacknowledged(bench, session, 4)
    first = records[0].record
    await _patient(bench, session, first.seq)
    await _ignored_naks(bench, session, records)
    mark = len(session.records)
    wanted = first.seq + 2
    asked = bench.wire.now()
    session.send(EvtNak(first.epoch, wanted, NakWhy.AGAIN))
    await bench.until(lambda: session.records[mark:], bench.late_ms + 50)
    await bench.pause(bench.late_ms)
    seqs = [one.record.seq for one in session.records[mark:]]
    again = [wanted, wanted + 1]
    bench.require_equal(seqs[:2], again, f"records {wanted}, {wanted + 1} ... again, at once")
    await _wait_restarts(bench, session, first.seq, asked)
    # The next regular repeat is most of a second away: the line is empty now.
    mark = len(session.records)
    session.accept(records[1].record)
    session.ack(in_report=True)
    await bench.pause(bench.late_ms)
    session.send(EvtNak(first.epoch, first.seq, NakWhy.AGAIN))
    await bench.pause(2500)
    last = records[1].record.seq
    late = [one for one in session.records[mark:] if one.record.seq <= last]
    bench.require_none(late, f"no record up to {last} any more")
    bench.require(
        session.records[mark:], f"records from {wanted} on again, which are not acknowledged"
    )


async def _ignored_naks(
    bench: ConformBench, session: TesterSession, records: list[ReceivedRecord]
) -> None:
    """An EVT_NAK of another epoch, or beyond what was sent, brings nothing."""
    first = records[0].record
    mark = len(session.records)
    beyond = max(one.record.seq for one in session.records) + 1
    session.send(EvtNak((first.epoch ^ 1) or 2, first.seq, NakWhy.AGAIN))
    session.send(EvtNak(first.epoch, beyond + 7, NakWhy.AGAIN))
    await bench.pause(RESEND_MOST_MS // 4 + bench.late_ms)
    bench.require_none(session.records[mark:], "no record for an EVT_NAK to be ignored")


async def _wait_restarts(bench: ConformBench, session: TesterSession, seq: int, asked: int) -> None:
    """The wait of the oldest record keeps its length and restarts at the EVT_NAK."""
    count = len(_times(session, seq))
    most = RESEND_MOST_MS + 2 * bench.late_ms
    again = f"record {seq} again {RESEND_MOST_MS} ms after the EVT_NAK"
    times = await bench.wait_for(
        lambda: _times(session, seq)[count:], most, again, f"not within {most} ms"
    )
    waited = (times[0] - asked) / 1000
    least = RESEND_MOST_MS - _EARLY_MS[bench.wire.simulated]
    on_time = least <= waited <= RESEND_MOST_MS + bench.late_ms
    bench.require(on_time, again, f"after {waited:.0f} ms")
    await bench.pause(bench.late_ms)


async def _patient(bench: ConformBench, session: TesterSession, seq: int) -> None:
    """Wait until the next regular repeat is most of a second away."""
    count = len(_times(session, seq)) + 4
    await bench.wait_for(
        lambda: len(_times(session, seq)) >= count,
        6000,
        f"record {seq} again and again without an acknowledgement",
    )
    await bench.pause(bench.late_ms)


async def bad_line(bench: ConformBench) -> None:
    """Through a line that flips, drops, doubles and splices, every record arrives exactly once and
    in order."""
    session = await ready_session(bench)
    start = session.cursor.seq
    # Made on a clean line: the loss of the session would lock or disarm the device.
    session.ack(window=0)
    made = await make_records(bench, count_for_operator(bench, _NOISY_RECORDS))
    await session.until_recorded(start + made, settle_ms(made))
    session.forgiving = True
    bench.noise = noise = NoisyCable(bench.rng)
    session.window = WINDOW
    deadline = bench.wire.now() + _NOISY_MS * 1000
    stand, since, began = session.cursor.seq, bench.wire.now(), session
    while session.cursor.seq < start + made:
        session = await _kept_alive(bench, session)
        await bench.pause(250)
        now = bench.wire.now()
        if session.cursor.seq > stand or session is not began:
            stand, since, began = session.cursor.seq, now, session
        bench.require(
            now <= deadline and now - since <= _STILL_MS * 1000,
            f"record {stand + 1} of {start + made}: it comes again at least each "
            f"{RESEND_MOST_MS} ms until it is acknowledged",
            f"nothing beyond {stand} for {(now - since) // 1000} ms",
            f"a line that hit {noise.hits} frames",
        )


async def _kept_alive(bench: ConformBench, session: TesterSession) -> TesterSession:
    """The session, or a new one from the same record if all frames were lost for a second. The
    handshake uses a clean line, since its repeats are up to the host."""
    last = session.received[-1].at if session.received else 0
    if bench.wire.now() - last < 1_200_000:
        return session
    noise = bench.mend_line()
    new = await bench.session(session.cursor)
    new.forgiving = True
    bench.noise = noise
    return new


async def host_killed(bench: ConformBench) -> None:
    """When the host is killed before it acknowledged, the record is sent again in the next session,
    unchanged."""
    for gone in (False, True):
        session = await bench.session()
        records = await unacknowledged(bench, session, 2)
        if gone:
            await bench.fall_silent()
        new = await bench.session(session.cursor)
        for was in records:
            await _sent_again(bench, new, was)


async def _sent_again(bench: ConformBench, session: TesterSession, was: ReceivedRecord) -> None:
    seq = was.record.seq
    now = await session.until_accepted(
        lambda one: one.seq == seq,
        2000,
        f"record {seq} in the next session, for it was not acknowledged",
    )
    bench.require_equal(now.encode(), was.data, f"record {seq} unchanged")
