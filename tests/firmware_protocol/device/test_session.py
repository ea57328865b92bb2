"""The session: takeover, heartbeats, its end, and what is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.device import load_identity
from firmware_protocol.messages import (
    MAX_FRAMES,
    Alert,
    AlertCode,
    DeviceBeat,
    FrameKind,
    Info,
    InfoReply,
    KeysWiped,
    ResumeReply,
    Start,
    Verdict,
)
from firmware_protocol.tablelink import Frame
from hil.faults import faulty_device
from tests.support.hil.devices.plain_device import MS, Bench, Plain
from tests.support.hil.devices.raw_host import resume


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# --- the session ----------------------------------------------------------------------------


def test_the_first_valid_data_replaces_the_session_and_changes_nothing_else(bench: Bench) -> None:
    bench.flowing()
    bench.say(bench.host.call(Start(6, 0)))
    former, theirs = bench.host.current, bench.device.sessions.running
    assert former is not None
    assert theirs is not None
    bench.plain.made_safe.clear()
    assert bench.shake()
    bench.happen()
    assert len(bench.host.records()) == 3  # the former session goes on
    bench.say(bench.host.call(Info()))
    bench.happen()
    assert len(bench.host.records()) == 3  # the new one waits for RESUME
    bench.say(bench.host.call(Info(), former))
    assert bench.host.last(Alert).code is AlertCode.NO_SESSION
    with pytest.raises(KeysWiped):
        theirs.sealer.seal(bytes(56))
    assert not bench.plain.made_safe
    assert not bench.plain.locked
    assert bench.resume(2) is Verdict.OK
    assert bench.host.seqs()[3:] == [2, 3, 4]


def test_a_pending_session_with_the_id_of_the_running_one(bench: Bench) -> None:
    bench.flowing()
    former = bench.host.current
    assert former is not None
    bench.host._picked = former.id - 1
    bench.say(bench.host.hello())
    shake = bench.host.kk()
    bench.say(bench.host.hs1(shake))
    bench.say(bench.host.call(Info(), former))
    assert len(bench.host.all(InfoReply)) == 2
    bench.host.begin(shake)
    bench.say(bench.host.call(Info()))
    assert len(bench.host.all(InfoReply)) == 3
    assert bench.device.channel.refused == 0


def test_a_heartbeat_goes_first(bench: Bench) -> None:
    bench.flowing()
    bench.run(249)
    bench.host.came.clear()
    bench.now += 1 * MS
    bench.say(bench.host.call(Info()))
    bench.happen()
    kinds = [type(one.what).__name__ for one in bench.host.came]
    assert kinds == ["DeviceBeat", "CommandReply", "EventRecord"]


def test_a_beat_that_was_missed_is_not_sent_later(bench: Bench) -> None:
    bench.flowing()
    began = bench.now
    bench.now += 700 * MS
    bench.device.wake(bench.now)
    bench.collect()
    bench.run(100)
    assert [now - began for now, _ in bench.host.timed(DeviceBeat)] == [700 * MS, 750 * MS]


def test_a_silent_host_ends_the_session(bench: Bench) -> None:
    bench.flowing()
    bench.plain.made_safe.clear()
    bench.run(999.9, beats=False)
    assert not bench.plain.made_safe
    bench.happen()
    bench.run(0.1, beats=False)
    assert bench.plain.made_safe == [bench.now]
    bench.host.came.clear()
    bench.happen()
    bench.say(bench.host.call(Info()))
    bench.run(5_000, beats=False)
    assert [type(one.what) for one in bench.host.came] == [Alert]
    assert bench.plain.made_safe == [bench.now - 5_000 * MS]
    bench.connect()
    assert bench.resume() is Verdict.OK


def test_any_valid_data_keeps_it_alive(bench: Bench) -> None:
    bench.flowing()
    bench.plain.made_safe.clear()
    for _ in range(10):
        bench.run(900, beats=False)
        bench.say(bench.host.seal(b"\x09" + bytes(55)))  # of no type: malformed, and yet valid
    assert not bench.plain.made_safe
    assert (bench.device.channel.damaged, bench.device.channel.refused) == (0, 10)


def test_a_session_whose_counters_are_used_up_is_over(bench: Bench) -> None:
    bench.flowing()
    session = bench.device.sessions.running
    assert session is not None
    session.sealer.counter = MAX_FRAMES - 1
    bench.plain.made_safe.clear()
    bench.happen(2)
    assert bench.host.came[-1].counter == MAX_FRAMES - 1
    assert bench.device.sessions.running is None
    assert bench.plain.made_safe == [bench.now]
    bench.connect()
    assert bench.resume() is Verdict.OK


def test_every_whole_frame_that_is_ignored_is_counted(bench: Bench) -> None:
    bench.flowing()
    former = bench.host.call(Info())
    bench.say(former)
    strays = (
        former,
        Frame(FrameKind.HELLO_RSP, 7, 0, bytes(96)),
        Frame(FrameKind.HS2, 7, 0, bytes(48), 1),
        Frame(FrameKind.PAIR2, 7, 0, bytes(96), 1),
        Frame(FrameKind.ALERT, 0, 0, bytes(8)),
        Frame(FrameKind.HS1, 7, 0, bytes(48), 1),
        Frame(FrameKind.PAIR1, 7, 0, bytes(48), 1),
        Frame(FrameKind.PAIR3, 7, 0, bytes(64), 1),
        Frame(FrameKind.DATA, 7, 0, bytes(72), 1),
    )
    bench.say(*strays)
    assert (bench.device.channel.damaged, bench.device.channel.refused) == (0, len(strays))


# --- ALERT ----------------------------------------------------------------------------------


def test_alerts_are_rare(bench: Bench) -> None:
    stray = Frame(FrameKind.DATA, 77, 0, bytes(72), 1)
    for _ in range(100):
        bench.say(stray)
        bench.run(100, beats=False)
    assert len(bench.host.all(Alert)) == 10
    assert {alert.code for alert in bench.host.all(Alert)} == {AlertCode.NO_SESSION}


# --- RESUME in the session ------------------------------------------------------------------


def test_the_same_random_bytes_give_the_same_session(tmp_path: Path) -> None:
    said = []
    for name in ("one", "two"):
        bench = Bench(tmp_path / name)
        frames = []
        bench.say(bench.host.hello())
        frames.append(bench.host.answer().payload)
        said.append(frames)
    assert said[0] == said[1]


def test_a_device_from_the_same_place_is_the_same_device(bench: Bench) -> None:
    bench.flowing()
    head = bench.device.ring.head
    other = faulty_device(bench.place, Plain(), now=0, sync=True)
    assert other.boot == 2
    assert other.ring.epoch == bench.device.ring.epoch
    assert other.ring.head == head + 1
    assert other.identity == load_identity(bench.place)


def test_the_answer_to_resume_comes_before_any_event(bench: Bench) -> None:
    bench.happen(3)
    bench.connect()
    bench.host.came.clear()
    bench.say(bench.host.call(resume(bench.device.ring.epoch)))
    kinds = [type(one.what).__name__ for one in bench.host.came]
    assert kinds == ["CommandReply"] + ["EventRecord"] * 4
    assert bench.host.last(ResumeReply).verdict is Verdict.OK
