"""The session: takeover, heartbeats, its end, and what is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.device import identity
from firmware_protocol.messages.common import Info, InfoReply, ResumeReply
from firmware_protocol.messages.control import DeviceBeat, EvtNak, HostBeat, TimeAnswer, TimeAsk
from firmware_protocol.messages.enums import AlertCode, FrameKind, NakWhy, Verdict
from firmware_protocol.messages.errors import KeysWiped
from firmware_protocol.messages.frames import Alert
from firmware_protocol.messages.limits import MAX_FRAMES
from firmware_protocol.messages.shuffler import Start
from firmware_protocol.tablelink.framing import Frame
from hil.faults import faulty_device
from tests.support.hil.devices.plain_device import MS, SECOND, Bench, Plain
from tests.support.hil.devices.raw_host import ack, resume


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def answers(bench: Bench, kind: FrameKind) -> int:
    return len(bench.host.frames(kind))


# --- the session ----------------------------------------------------------------------------


def test_hello_hs1_and_garbage_do_not_touch_a_session(bench: Bench) -> None:
    bench.flowing()
    bench.host.came.clear()
    bench.say(
        bench.host.hello(),
        Frame(FrameKind.HS1, 7, 0, bytes(48), 1),
        Frame(FrameKind.PAIR1, 7, 0, bytes(48), 1),
        Frame(FrameKind.PAIR3, 7, 0, bytes(64), 1),
        Frame(FrameKind.HELLO_RSP, 7, 0, bytes(96)),
        Frame(FrameKind.HS2, 7, 0, bytes(48), 1),
        b"\1garbage\0" * 9 + b"x" * 9999 + b"\0",
    )
    bench.say(bench.host.call(Info()))
    assert len(bench.host.all(InfoReply)) == 1
    bench.happen()
    assert len(bench.host.records()) == 1
    assert bench.plain.made_safe == [bench.now]  # at the start only


def test_the_first_valid_data_takes_over_and_changes_nothing_else(bench: Bench) -> None:
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


def test_frames_are_taken_once_and_only_when_authentic(bench: Bench) -> None:
    bench.flowing()
    before = len(bench.host.all(InfoReply))
    first, second, third = (bench.host.call(Info()) for _ in range(3))
    bench.say(third)
    assert len(bench.host.all(InfoReply)) == before + 1
    for stale in (third, second, first):
        bench.say(stale)
    good = bench.host.call(Info())
    payload = good.payload[:-1] + bytes((good.payload[-1] ^ 1,))
    for changed in (
        Frame(FrameKind.DATA, good.session, good.counter, payload, 1),
        Frame(FrameKind.DATA, good.session, good.counter + 1, good.payload, 1),
        Frame(FrameKind.DATA, good.session + 1, good.counter, good.payload, 1),
        Frame(FrameKind.DATA, good.session, 0x80000000, good.payload, 1),
    ):
        bench.say(changed)
    assert len(bench.host.all(InfoReply)) == before + 1
    assert bench.device.channel.refused == 7
    bench.say(good)
    assert len(bench.host.all(InfoReply)) == before + 2
    bench.run(250)
    assert bench.host.last(DeviceBeat).refused == 7


def test_the_devices_counters_grow_by_one(bench: Bench) -> None:
    bench.flowing()
    bench.happen(5)
    bench.run(3_000)
    assert bench.host.current is not None
    counters = [one.counter for one in bench.host.came if one.session == bench.host.current.id]
    data = counters[2:]  # after HELLO_RSP and HS2
    assert data == list(range(len(data)))
    assert len(data) > 20


def test_heartbeats_are_on_schedule_whatever_else_is_sent(bench: Bench) -> None:
    bench.connect()
    began = bench.now
    bench.resume()
    for _ in range(40):
        bench.run(93)
        bench.happen()
        bench.say(bench.host.seal(TimeAsk(bench.now)))
    beats = [now - began for now, _ in bench.host.timed(DeviceBeat)]
    assert beats == [250 * MS * number for number in range(1, len(beats) + 1)]
    assert len(beats) == 3720 // 250
    beat = bench.host.last(DeviceBeat)
    assert (beat.epoch, beat.boot) == (bench.device.ring.epoch, 1)
    assert beat.t_us == began - 5 * SECOND + beats[-1]


def test_a_heartbeat_goes_first(bench: Bench) -> None:
    bench.flowing()
    bench.run(249)
    bench.host.came.clear()
    bench.now += 1 * MS
    bench.say(bench.host.call(Info()))
    bench.happen()
    kinds = [type(one.what).__name__ for one in bench.host.came]
    assert kinds == ["DeviceBeat", "CommandReply", "EventRecord"]


def test_a_beat_that_was_missed_is_not_made_up_for(bench: Bench) -> None:
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


def test_damage_is_counted_by_frames(bench: Bench) -> None:
    bench.connect()
    bench.say(b"\3ab\0", b"\2a\0", b"\0\0\0", b"z" * 600 + b"\0", b"\5ab\0")
    bench.run(250)
    assert bench.host.last(DeviceBeat).damaged == 4


def test_malformed_plaintexts_change_nothing(bench: Bench) -> None:
    bench.flowing()
    bench.host.came.clear()
    size = 56
    for head in (
        b"\x01",  # an event
        b"\x03\0\xc0\x28" + bytes([1] + [0] * 11),  # a reply
        b"\x04\0\x80\x09" + bytes(8) + b"\x09",  # a window of 9
        b"\x04\1\x80\x09",  # flags
        b"\x04\0\x81\x1e",  # what the device sends
        b"\x04\0\x8f\x00",  # no control
        b"\x07",
    ):
        bench.say(bench.host.seal(head.ljust(size, b"\0")))
    bench.say(bench.host.seal(b"\x04\0\x84\x08".ljust(120, b"\0")))  # of another size
    assert not bench.host.came
    assert (bench.device.channel.damaged, bench.device.channel.refused) == (0, 8)
    # What is well-formed and means nothing is not counted.
    bench.say(bench.host.seal(HostBeat(0, 0, 0)), bench.host.seal(ack(77, 1)))
    bench.say(bench.host.seal(EvtNak(77, 1, NakWhy.GAP)))
    assert bench.device.channel.refused == 8


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


def test_time_is_answered_with_the_devices_clock(bench: Bench) -> None:
    bench.connect()
    bench.now += 1234
    bench.say(bench.host.seal(TimeAsk(777)))
    answer = bench.host.last(TimeAnswer)
    assert answer == TimeAnswer(777, 1234, 1234)


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
    assert other.identity == identity.load(bench.place)


def test_the_answer_to_resume_comes_before_any_event(bench: Bench) -> None:
    bench.happen(3)
    bench.connect()
    bench.host.came.clear()
    bench.say(bench.host.call(resume(bench.device.ring.epoch)))
    kinds = [type(one.what).__name__ for one in bench.host.came]
    assert kinds == ["CommandReply"] + ["EventRecord"] * 4
    assert bench.host.last(ResumeReply).verdict is Verdict.OK
