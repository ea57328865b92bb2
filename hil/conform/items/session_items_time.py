"""Heartbeat and clock."""

from __future__ import annotations

import itertools
from typing import Final

from msgspec import Struct

from firmware_protocol.messages.limits import HEARTBEAT_MS
from firmware_protocol.messages.registry import DeviceBeat, Info, TimeAnswer, TimeAsk
from firmware_protocol.tablelink.plaintext import CommandCall
from hil.conform.tester.bench import Bench
from hil.conform.tester.bench_trial import Trial
from hil.conform.tester.session import Session

_BEAT_US: Final = HEARTBEAT_MS * 1000
_BEATS: Final = 16
_BUSY_MS: Final = 90
"""Not a part of HEARTBEAT, so that replies fall before, between and upon the beats."""
_SPREAD_US: Final = {True: 2_000, False: 130_000}
"""How far apart from its schedule a beat may come: in simulated time, and where a line, a port's
driver and a busy machine lie between."""
_DRIFT_US: Final = {True: 2_000, False: 40_000}
_PARTS: Final = 500
"""In a million: how much a clock may be off."""
_ASKS: Final = 8
_SPAN_MS: Final = 10_000


async def beats(bench: Bench) -> None:
    """DEVICE_BEAT comes each HEARTBEAT, on its schedule, whatever else is sent."""
    session = await bench.session()
    mark = len(session.got)
    number = 0
    end = bench.wire.now() + (_BEATS + 1) * _BEAT_US
    while bench.wire.now() < end:
        number += 1
        session.say(CommandCall(1000 + number, session.boot, Info()))
        await bench.pause(_BUSY_MS)
    times = [got.at for got in session.controls(DeviceBeat, mark)]
    if abs(len(times) - (_BEATS + 1)) > 1:
        raise bench.finding(
            f"{_BEATS + 1} heartbeats in {(_BEATS + 1) * HEARTBEAT_MS} ms", f"{len(times)}"
        )
    _check_schedule(bench, times)


def _check_schedule(bench: Bench, times: list[int]) -> None:
    """Late is the line's fault, early is nobody's: the schedule is that of the earliest beats."""
    late = [at - times[0] - number * _BEAT_US for number, at in enumerate(times)]
    simulated = bench.wire.simulated
    shown = f"off by {[one // 1000 for one in late]} ms"
    if max(late) - min(late) > _SPREAD_US[simulated]:
        raise bench.finding("each heartbeat at its multiple of 250 ms", shown)
    half = len(late) // 2
    if abs(min(late[half:]) - min(late[:half])) > _DRIFT_US[simulated]:
        raise bench.finding("a schedule that does not drift", shown)


class _Sample(Struct, frozen=True):
    """One reading: the host's clock in the middle, the offset, and how sure."""

    at: int
    offset: float
    unsure: float


async def clock(bench: Bench) -> None:
    """TIME_ANSWER returns t1; t2 <= t3; the clock never goes back and keeps pace within 500 parts
    in a million."""
    session = await bench.session()
    seen: list[int] = []
    first = await _best(bench, session, seen)
    await bench.pause(_SPAN_MS)
    last = await _best(bench, session, seen)
    for before, after in itertools.pairwise(seen):
        if after < before:
            raise bench.finding("a clock that never goes back", f"{after} after {before}")
    span = last.at - first.at
    unsure = (first.unsure + last.unsure) / span * 1e6
    off = (last.offset - first.offset) / span * 1e6
    if abs(off) - unsure > _PARTS:
        raise bench.finding(
            f"a clock within {_PARTS} parts in a million of the tester's",
            f"{off:+.0f} parts in a million, give or take {unsure:.0f}",
            f"TIME_ASK over {span / 1e6:.1f} s",
        )


async def _best(bench: Bench, session: Session, seen: list[int]) -> _Sample:
    """The reading of several that took the shortest."""
    samples = []
    for _ in range(_ASKS):
        samples.append(await _ask(bench, session, seen))
        await bench.pause(30)
    return min(samples, key=lambda one: one.unsure)


async def _ask(bench: Bench, session: Session, seen: list[int]) -> _Sample:
    t1 = bench.wire.now()
    mark = len(session.got)
    session.say(TimeAsk(t1))
    got = await bench.until(
        lambda: next(iter(session.controls(TimeAnswer, mark)), None), 500 + bench.late_ms
    )
    if got is None or not isinstance(got.what, TimeAnswer):
        raise bench.finding("TIME_ANSWER")
    answer = got.what
    if answer.t1 != t1:
        raise bench.finding(f"t1 {t1} as asked", f"t1 {answer.t1}")
    if answer.t2 > answer.t3:
        raise bench.finding("t2 <= t3", f"t2 {answer.t2}, t3 {answer.t3}")
    seen.extend((answer.t2, answer.t3))
    offset = ((answer.t2 - t1) + (answer.t3 - got.at)) / 2
    unsure = ((got.at - t1) - (answer.t3 - answer.t2)) / 2
    if unsure < 0 and -unsure > 0.02 * (got.at - t1) + 1000:
        raise bench.finding(
            "t3 - t2 not longer than question and answer took",
            f"{answer.t3 - answer.t2} us of {got.at - t1} us",
        )
    return _Sample((t1 + got.at) // 2, offset, abs(unsure))


TRIALS: Final[dict[str, Trial]] = {"SE-5": beats, "TI-1": clock}
