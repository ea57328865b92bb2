"""The running session: counters, tags, and what is ignored."""

from __future__ import annotations

import itertools
from typing import Final

from msgspec import Struct

from firmware_protocol.messages import (
    BEAT_EARLY_MS,
    DEAD_MS,
    HEARTBEAT_MS,
    RESEND_MOST_MS,
    DeviceBeat,
    EvtAck,
    EvtNak,
    FrameKind,
    HostBeat,
    Info,
    NakWhy,
    Refusal,
    TimeAnswer,
    TimeAsk,
)
from firmware_protocol.tablelink import CommandCall, Frame, encode_plaintext
from hil.conform.tester import (
    ConformBench,
    ItemSkipped,
    TesterSession,
    call_bytes,
    flip_bits,
    make_records,
    raw_frame,
    ready_session,
    unacknowledged,
    wait_for_records,
)

_AHEAD: Final = 5000


def _info(session: TesterSession, ident: int) -> bytes:
    return encode_plaintext(CommandCall(ident, session.boot, Info()))


async def sent_twice(bench: ConformBench) -> None:
    """A DATA frame sent twice is taken once."""
    session = await bench.session()
    frame = session.send(CommandCall(700, session.boot, Info()))
    bench.send_frame(frame, "INFO, and the same frame again")
    await bench.pause(bench.quiet_ms)
    bench.require_equal(len(session.replies()), 1, "one INFO_REPLY")
    await session.check_alive()


async def changed(bench: ConformBench) -> None:
    """DATA with a changed header, ciphertext or tag and a correct CRC is ignored, and the session
    continues."""
    session = await bench.session()
    # Far ahead, so that heartbeats do not overtake its counter.
    before, session.sealer.counter = session.sealer.counter, _AHEAD
    frame = session.sealer.seal(_info(session, 701))
    session.sealer.counter = before
    decoded = frame.decoded()
    end = len(decoded)
    changes = [
        (0, 0x20, "another version"),
        (2, 0x01, "another session id"),
        (4, 0x01, "another counter"),
        (5, 0x10, "a far counter"),
        *((at, 0x01, f"byte {at - 8} of its ciphertext") for at in (8, 10, 12, 16, 40, 63)),
        *((at, 0x80, f"byte {at - (end - 16)} of its tag") for at in (end - 16, end - 8, end - 1)),
    ]
    mark = len(session.received)
    for at, bits, text in changes:
        bench.send(raw_frame(flip_bits(decoded, at, bits)), f"DATA with {text} changed, CRC right")
        await bench.pause(max(40, bench.late_ms))
        bench.require_none(session.replies(mark), "no answer")
    await bench.pause(bench.quiet_ms)
    bench.require_none(session.replies(mark), "no answer to any of the changed frames")
    session.sealer.counter = _AHEAD + 1
    bench.send_frame(frame, "the frame unchanged: no changed one may have moved the counter")
    await bench.wait_for(lambda: session.reply_to(701, mark), 500 + bench.late_ms, "INFO_REPLY")
    await session.check_alive()


async def counters_taken(bench: ConformBench) -> None:
    """A counter that skips some is accepted; one that goes back is not."""
    session = await bench.session()
    for skipped in (1000, 70_000):
        session.sealer.counter += skipped
        name = "1000" if skipped == 1000 else "70,000"
        await session.check_alive(f"a counter that skips {name} is accepted")
    for back in (30_000, 500, 1):
        ahead = session.sealer.counter
        session.sealer.counter = ahead - back
        session.send_bytes(
            _info(session, 702), f"INFO under counter {ahead - back}, not above last"
        )
        session.sealer.counter = ahead
        await bench.pause(bench.quiet_ms)
        bench.require_none(session.replies(), "no answer to a counter that goes back")
    await session.check_alive()


async def counters_sent(bench: ConformBench) -> None:
    """The device's counters start at 0 and grow by one."""
    session = await bench.session()
    for _ in range(5):
        await session.check_alive()
        await bench.pause(300)
    frames = bench.frames(FrameKind.DATA, since=0, session=session.ident)
    counters = [one.frame.counter for one in frames]
    if bench.damage and not bench.wire.simulated:
        raise ItemSkipped("a clean line: frames came damaged")
    bench.require_equal(counters, list(range(len(counters))), "counters 0, 1, 2 ...")


async def falls_silent(bench: ConformBench) -> None:
    """Without DATA from the host for DEAD the device falls silent, and ignores the session from
    then on."""
    session = await bench.session()
    session.beating = False
    await session.check_alive()
    await bench.pause(DEAD_MS - 150 - bench.late_ms)
    await session.check_alive(f"a session lives until {DEAD_MS} ms without DATA")
    last = bench.wire.now()
    await bench.pause_until(last + (DEAD_MS + 60 + bench.late_ms) * 1000)
    mark = len(bench.log)
    await bench.pause(1500)
    bench.require(
        not bench.frames(FrameKind.DATA, since=mark),
        f"silence from {DEAD_MS} ms after the last DATA on",
        sent="nothing for 2.5 s",
    )
    session.call(Info())
    await bench.unanswered(FrameKind.DATA, since=mark, expected="nothing in a session that is over")
    await bench.session()


async def malformed(bench: ConformBench) -> None:
    """A malformed plaintext changes nothing; a malformed command is refused."""
    session = await bench.session()
    mark = len(session.received)
    for data, text in _malformed(session):
        session.send_bytes(data, text)
        await bench.pause(20)
    await bench.pause(bench.quiet_ms)
    bench.require_none(session.replies(mark), "no answer to a malformed plaintext")
    await session.check_alive()
    padded = flip_bits(call_bytes(Info.ID, 704, session.boot), 55)
    reply = await session.ask_bytes(padded, "INFO with padding that is not zero", 704)
    if reply is None:
        raise bench.finding("REFUSED MALFORMED")
    session.check_refused(reply, Refusal.MALFORMED)
    await _padded_ack(bench, session)


def _malformed(session: TesterSession) -> list[tuple[bytes, str]]:
    ack = encode_plaintext(EvtAck(session.cursor.epoch or 1, session.cursor.seq, 8))
    info = _info(session, 703)
    return [
        (bytes(56), "56 zeros, which have no type"),
        (b"\x05" + info[1:], "a plaintext of type 5"),
        (b"\x03" + info[1:], "a REPLY from the host"),
        (b"\x01" + info[1:], "an EVENT from the host"),
        (ack[:2] + b"\x8f" + ack[3:], "CONTROL 0x8F, which there is not"),
        (ack[:2] + b"\x81" + ack[3:], "DEVICE_BEAT from the host"),
        (flip_bits(ack, 1), "EVT_ACK with a flag set"),
        (flip_bits(ack, 3), "EVT_ACK with a wrong len"),
        (flip_bits(ack, 12, 0x1F), "EVT_ACK with a window beyond 8"),
        (flip_bits(ack, 55), "EVT_ACK with padding that is not zero"),
        (ack.ljust(120, b"\0"), "EVT_ACK in a plaintext of 120 bytes"),
        (info[:4] + bytes(4) + info[8:], "INFO with command id 0"),
        (info[:8] + bytes(8) + info[16:], "INFO with host boot 0"),
    ]


async def _padded_ack(bench: ConformBench, session: TesterSession) -> None:
    """An EVT_ACK that is malformed acknowledges nothing: the record comes again."""
    try:
        records = await unacknowledged(bench, session, 1)
    except ItemSkipped:
        return  # not possible without an operator
    last = records[-1].record
    ack = encode_plaintext(EvtAck(last.epoch, last.seq, 8))
    mark = len(session.records)
    session.send_bytes(flip_bits(ack, 30), "EVT_ACK with padding that is not zero")
    await bench.wait_for(
        lambda: session.records[mark:],
        2 * RESEND_MOST_MS + bench.late_ms,
        f"record {last.seq} again, for it was not acknowledged",
    )


async def counts(bench: ConformBench) -> None:
    """DEVICE_BEAT counts damaged and refused frames, each once and as what it is."""
    session = await bench.session()
    await session.next_beat()
    before = await session.next_beat()
    damaged = _damaged(bench)
    refused = _refused(bench, session)
    malformed = _malformed(session)
    for data, text in damaged + refused:
        bench.send(data, text)
        await bench.pause(25)
    for plaintext, text in (*malformed, *_uncounted(session)):
        session.send_bytes(plaintext, text)
        await bench.pause(25)
    await session.next_beat()
    after = await session.next_beat()
    _check_count(bench, "damaged", len(damaged), after.damaged - before.damaged)
    _check_count(bench, "refused", len(refused) + len(malformed), after.refused - before.refused)


def _damaged(bench: ConformBench) -> list[tuple[bytes, str]]:
    hello = bench.hello_frame().encode()
    return [
        (flip_bits(hello, 20, 0x40), "a HELLO with a flipped bit"),
        (hello[:30] + b"\0", "a HELLO cut after 30 bytes"),
        (b"\x05\x11\x22\x33\x44\0", "four bytes"),
        (bytes((0xFE,)) * 100 + b"\0", "a COBS code beyond the end"),
        (bytes((0xAA,)) * 300 + b"\0", "300 bytes without 0x00"),
    ]


def _refused(bench: ConformBench, session: TesterSession) -> list[tuple[bytes, str]]:
    frame = session.send(CommandCall(705, session.boot, Info()))
    hello = bench.hello_frame()
    bad = Frame(FrameKind.DATA, frame.session, frame.counter + 900, bytes(72))
    strays = (
        (FrameKind.HELLO, flip_bits(hello.payload, 5), "a HELLO that is ill-formed"),
        (FrameKind.HS1, bytes(48), "HS1 without a HELLO"),
        (FrameKind.HS2, bytes(48), "HS2 from the host"),
        (FrameKind.PAIR3, bytes(64), "PAIR3 without a pairing"),
        (FrameKind.DATA, bytes(72), "DATA of no session"),
    )
    return [
        (frame.encode(), "a replayed frame"),
        (frame.encode(), "a replayed frame"),
        (bad.encode(), "DATA that is not authentic"),
        *((Frame(kind, hello.session, 0, data).encode(), text) for kind, data, text in strays),
    ]


def _uncounted(session: TesterSession) -> list[tuple[bytes, str]]:
    """Messages that are answered, and valid ones without effect."""
    epoch = (session.cursor.epoch ^ 1) or 2
    return [
        (flip_bits(_info(session, 706), 55), "INFO with padding that is not zero"),
        (call_bytes(0x43, 707, session.boot), "COMMAND 0x43, which there is not"),
        (encode_plaintext(EvtAck(epoch, 1, 8)), "EVT_ACK of another epoch"),
        (encode_plaintext(EvtNak(epoch, 1, NakWhy.GAP)), "EVT_NAK of another epoch"),
    ]


def _check_count(bench: ConformBench, name: str, sent: int, counted: int) -> None:
    # Noise on a real line damages some.
    most = 2 * sent if name == "damaged" and not bench.wire.simulated else sent
    bench.require(
        sent <= counted <= most,
        f"DEVICE_BEAT.{name} grown by {sent}",
        f"grown by {counted}",
        f"{sent} {name} frames",
    )


_BEAT_US: Final = HEARTBEAT_MS * 1000
_BEATS: Final = 16
_BUSY_MS: Final = 90
"""Not a divisor of HEARTBEAT, so that replies come at every offset from the beats."""
_SPREAD_US: Final = {True: 2_000, False: 130_000}
"""Tolerance for a heartbeat: in simulated time, and with a line, a driver and a busy machine."""
_DRIFT_US: Final = {True: 2_000, False: 40_000}
_PARTS: Final = 500
"""Tolerance of a clock, in parts per million."""
_ASKS: Final = 8
_EARLY_GAPS_MS: Final = (HEARTBEAT_MS, HEARTBEAT_MS + BEAT_EARLY_MS, HEARTBEAT_MS - BEAT_EARLY_MS)
"""The second heartbeat is sent late, the third one early."""
_SPAN_MS: Final = 10_000


async def beats(bench: ConformBench) -> None:
    """DEVICE_BEAT is sent each HEARTBEAT, on its schedule, independent of other frames."""
    session = await bench.session()
    mark = len(session.received)
    number = 0
    end = bench.wire.now() + (_BEATS + 1) * _BEAT_US
    while bench.wire.now() < end:
        number += 1
        session.send(CommandCall(1000 + number, session.boot, Info()))
        await bench.pause(_BUSY_MS)
    times = [at for at, _ in session.controls(DeviceBeat, mark)]
    bench.require(
        abs(len(times) - (_BEATS + 1)) <= 1,
        f"{_BEATS + 1} heartbeats in {(_BEATS + 1) * HEARTBEAT_MS} ms",
        f"{len(times)}",
    )
    _check_schedule(bench, times)


def _check_schedule(bench: ConformBench, times: list[int]) -> None:
    """The earliest heartbeats define the schedule, since the line can only delay."""
    late = [at - times[0] - number * _BEAT_US for number, at in enumerate(times)]
    simulated = bench.wire.simulated
    shown = f"off by {[one // 1000 for one in late]} ms"
    bench.require(
        max(late) - min(late) <= _SPREAD_US[simulated],
        "each heartbeat at its multiple of 250 ms",
        shown,
    )
    half = len(late) // 2
    bench.require(
        abs(min(late[half:]) - min(late[:half])) <= _DRIFT_US[simulated],
        "a schedule that does not drift",
        shown,
    )


async def early_beats(bench: ConformBench) -> None:
    """HOST_BEAT counts and acknowledges also if it is sent BEAT_EARLY before its time."""
    session = await ready_session(bench)
    session.holding = True
    session.beating = False
    mark = len(session.records)
    found = await wait_for_records(bench, session, mark, await make_records(bench, 1))
    last = found[-1].record
    at = bench.wire.now()
    for gap in _EARLY_GAPS_MS:
        session.send(HostBeat(session.cursor.epoch, session.cursor.seq, session.window))
        at += gap * 1000
        await bench.pause_until(at)
    session.send(HostBeat(last.epoch, last.seq, session.window))
    await bench.pause(100 + bench.late_ms)
    ring = await session.learn()
    expected = f"acked_seq {last.seq}, by a HOST_BEAT {BEAT_EARLY_MS} ms before its time"
    bench.require_equal(ring.acked_seq, last.seq, expected)
    session.beating, session.holding = True, False
    await session.catch_up()


class _Sample(Struct, frozen=True):
    """One clock reading: the tester's time, the offset, and its uncertainty."""

    at: int
    offset: float
    uncertainty: float


async def clock(bench: ConformBench) -> None:
    """TIME_ANSWER returns t1; t2 <= t3; the clock never goes back and keeps pace within 500 parts
    in a million."""
    session = await bench.session()
    seen: list[int] = []
    first = await _best(bench, session, seen)
    await bench.pause(_SPAN_MS)
    last = await _best(bench, session, seen)
    for before, after in itertools.pairwise(seen):
        bench.require(after >= before, "a clock that never goes back", f"{after} after {before}")
    span = last.at - first.at
    uncertainty = (first.uncertainty + last.uncertainty) / span * 1e6
    off = (last.offset - first.offset) / span * 1e6
    bench.require(
        abs(off) - uncertainty <= _PARTS,
        f"a clock within {_PARTS} parts in a million of the tester's",
        f"{off:+.0f} parts in a million, give or take {uncertainty:.0f}",
        f"TIME_ASK over {span / 1e6:.1f} s",
    )


async def _best(bench: ConformBench, session: TesterSession, seen: list[int]) -> _Sample:
    """The reading with the smallest uncertainty of several."""
    samples = []
    for _ in range(_ASKS):
        samples.append(await _ask(bench, session, seen))
        await bench.pause(30)
    return min(samples, key=lambda one: one.uncertainty)


async def _ask(bench: ConformBench, session: TesterSession, seen: list[int]) -> _Sample:
    t1 = bench.wire.now()
    session.send(TimeAsk(t1))
    answers = await bench.wait_for(
        lambda: session.controls(TimeAnswer), 500 + bench.late_ms, "TIME_ANSWER"
    )
    at, answer = answers[0]
    bench.require_equal(answer.t1, t1, f"t1 {t1} as asked")
    bench.require(answer.t2 <= answer.t3, "t2 <= t3", f"t2 {answer.t2}, t3 {answer.t3}")
    seen.extend((answer.t2, answer.t3))
    offset = ((answer.t2 - t1) + (answer.t3 - at)) / 2
    uncertainty = ((at - t1) - (answer.t3 - answer.t2)) / 2
    bench.require(
        not (uncertainty < 0 and -uncertainty > 0.02 * (at - t1) + 1000),
        "t3 - t2 not longer than question and answer took",
        f"{answer.t3 - answer.t2} us of {at - t1} us",
    )
    return _Sample((t1 + at) // 2, offset, abs(uncertainty))
