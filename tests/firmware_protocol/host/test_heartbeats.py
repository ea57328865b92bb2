"""Heartbeats on their schedule, and the device's clock."""

from __future__ import annotations

import itertools

from firmware_protocol.host import (
    NO_CURSOR,
    ClockMeasured,
    ProtocolViolated,
)
from firmware_protocol.messages import HostBeat, OutOfRange, Resume, TimeAnswer, TimeAsk
from tests.long.fuzz.scripted import MS, START, Scripted, Wired, lock


def test_beats_are_sent_at_each_multiple_of_the_heartbeat(wired: Wired) -> None:
    times = []
    for _ in range(300):
        before = len(wired.device.received(HostBeat))
        wired.call(lock())
        wired.pass_ms(7)
        if len(wired.device.received(HostBeat)) > before:
            times.append((wired.now - START) // MS)
    assert [time // 250 for time in times] == list(range(1, len(times) + 1))
    assert all(time % 250 < 7 for time in times)


def test_the_beat_goes_before_what_is_due_at_once(wired: Wired) -> None:
    wired.pass_ms(100)
    wired.device.said.clear()
    wired.now = START + 250 * MS
    wired.call(lock())
    assert [type(one).__name__ for one in wired.device.said] == ["HostBeat", "CommandCall"]


def test_beats_that_were_missed_are_not_sent_later(wired: Wired) -> None:
    wired.device.said.clear()
    wired.now = START + 630 * MS
    wired.take(wired.link.wake(wired.now))
    wired.settle()
    assert len(wired.device.received(HostBeat)) == 1
    assert wired.link.due() == START + 750 * MS


def test_a_beat_acknowledges_nothing_before_resume() -> None:
    wired = Wired(Scripted(3))
    wired.device.mute = {Resume}
    wired.open()
    wired.pass_ms(600)
    assert set(wired.device.received(HostBeat)) == {HostBeat(0, 0, 0)}


def test_the_clock_is_read_after_resume_and_each_ten_seconds(wired: Wired) -> None:
    (first,) = wired.of(ClockMeasured)
    assert (first.offset_us, first.uncertainty_us) == (1_000_005, 5)
    wired.pass_ms(60_000)
    asked = [one.t1 for one in wired.device.received(TimeAsk)]
    assert len(asked) == 7
    assert all(b - a == 10_000_000 for a, b in itertools.pairwise(asked))


def test_a_lost_answer_is_asked_for_again_soon() -> None:
    wired = Wired(Scripted(), cursor=NO_CURSOR)
    wired.device.mute = {TimeAsk}
    wired.open()
    wired.pass_ms(2500)
    assert len(wired.device.received(TimeAsk)) == 3
    assert not wired.of(ClockMeasured)


def test_the_clock_by_the_formula(wired: Wired) -> None:
    wired.device.mute = {TimeAsk}
    wired.pass_ms(10_000)
    ask = wired.device.received(TimeAsk)[-1]
    asked_at = ask.t1
    wired.now = asked_at + 800
    told = wired.say(TimeAnswer(asked_at, 777_000, 777_100))
    (read,) = [one for one in told if isinstance(one, ClockMeasured)]
    t1, t2, t3, t4 = asked_at, 777_000, 777_100, asked_at + 800
    assert read.offset_us == ((t2 - t1) + (t3 - t4)) // 2
    assert read.uncertainty_us == ((t4 - t1) - (t3 - t2)) // 2 == 350
    assert not [one for one in wired.say(TimeAnswer(t1, 1, 2)) if isinstance(one, ClockMeasured)]


def test_a_clock_that_cannot_be_is_a_defect(wired: Wired) -> None:
    wired.device.mute = {TimeAsk}
    wired.pass_ms(10_000)
    ask = wired.device.received(TimeAsk)[-1]
    (defect,) = wired.say(TimeAnswer(ask.t1, 100, 99))
    assert isinstance(defect, ProtocolViolated)
    assert type(defect.error) is OutOfRange
