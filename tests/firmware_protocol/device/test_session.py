"""The session: takeover, heartbeats, its end, and what is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.device import RingMemory, load_identity
from firmware_protocol.device.ring import AckedPosition
from firmware_protocol.messages import (
    MAX_FRAMES,
    Alert,
    AlertCode,
    DeckKind,
    DeviceBeat,
    DeviceState,
    FrameKind,
    Info,
    InfoReply,
    KeysWiped,
    Power,
    PowerCause,
    ResumeMode,
    ResumeReply,
    Start,
    Verdict,
)
from firmware_protocol.tablelink import NO_CHAIN, Frame
from hil.faults import faulty_device
from tests.support.hil.devices.plain_device import MS, Bench, Plain, ack, nak, resume

# --- the session ----------------------------------------------------------------------------


@pytest.mark.usefixtures("records_flow")
def test_the_first_valid_data_replaces_the_session_and_changes_nothing_else(bench: Bench) -> None:
    bench.say(bench.host.call(Start(6, 0, DeckKind.FULL_52)))
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
    assert (bench.plain.made_safe, bench.plain.locked) == ([], False)
    assert bench.resume(2) is Verdict.OK
    assert bench.host.seqs()[3:] == [2, 3, 4]


@pytest.mark.usefixtures("records_flow")
def test_a_pending_session_with_the_id_of_the_running_one(bench: Bench) -> None:
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
    assert (len(bench.host.all(InfoReply)), bench.device.channel.refused) == (3, 0)


@pytest.mark.usefixtures("records_flow")
def test_a_heartbeat_goes_first(bench: Bench) -> None:
    bench.run(249)
    bench.host.came.clear()
    bench.now += 1 * MS
    bench.say(bench.host.call(Info()))
    bench.happen()
    kinds = [type(one.what).__name__ for one in bench.host.came]
    assert kinds == ["DeviceBeat", "CommandReply", "EventRecord"]


@pytest.mark.usefixtures("records_flow")
def test_a_beat_that_was_missed_is_not_sent_later(bench: Bench) -> None:
    began = bench.now
    bench.now += 700 * MS
    bench.device.wake(bench.now)
    bench.collect()
    bench.run(100)
    assert [now - began for now, _ in bench.host.timed(DeviceBeat)] == [700 * MS, 750 * MS]


@pytest.mark.usefixtures("records_flow")
def test_a_silent_host_ends_the_session(bench: Bench) -> None:
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


@pytest.mark.usefixtures("records_flow")
def test_any_valid_data_keeps_it_alive(bench: Bench) -> None:
    bench.plain.made_safe.clear()
    for _ in range(10):
        bench.run(900, beats=False)
        bench.say(bench.host.seal(b"\x09" + bytes(55)))  # of no type: malformed, and yet valid
    assert not bench.plain.made_safe
    assert (bench.device.channel.damaged, bench.device.channel.refused) == (0, 10)


@pytest.mark.usefixtures("records_flow")
def test_a_session_whose_counters_are_used_up_is_over(bench: Bench) -> None:
    session = bench.device.sessions.running
    assert session is not None
    session.sealer.counter = MAX_FRAMES - 1
    bench.plain.made_safe.clear()
    bench.happen(2)
    assert (bench.host.came[-1].counter, bench.device.sessions.running) == (MAX_FRAMES - 1, None)
    assert bench.plain.made_safe == [bench.now]
    bench.connect()
    assert bench.resume() is Verdict.OK


@pytest.mark.usefixtures("records_flow")
def test_every_whole_frame_that_is_ignored_is_counted(bench: Bench) -> None:
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


@pytest.mark.usefixtures("records_flow")
def test_a_device_from_the_same_place_is_the_same_device(bench: Bench) -> None:
    head = bench.device.ring.head
    other = faulty_device(bench.place, Plain(), now=0, sync=True)
    assert (other.boot, other.ring.epoch, other.ring.head) == (2, bench.device.ring.epoch, head + 1)
    assert other.identity == load_identity(bench.place)


def test_the_answer_to_resume_comes_before_any_event(bench: Bench) -> None:
    bench.happen(3)
    bench.connect()
    bench.host.came.clear()
    bench.say(bench.host.call(resume(bench.device.ring.epoch)))
    kinds = [type(one.what).__name__ for one in bench.host.came]
    assert kinds == ["CommandReply"] + ["EventRecord"] * 4
    assert bench.host.last(ResumeReply).verdict is Verdict.OK


def answers(bench: Bench, kind: FrameKind) -> int:
    return len(bench.host.frames(kind))


# --- HELLO ----------------------------------------------------------------------------------


def test_versions_in_the_wrong_order_are_none_in_common(bench: Bench) -> None:
    bench.say(bench.host.hello(version_min=9, version_max=1))
    bench.say(bench.host.hs1(bench.host.kk()))
    assert answers(bench, FrameKind.HELLO_RSP) == 1
    assert bench.host.last(Alert).code is AlertCode.NO_VERSION


def test_a_device_starts_with_a_zero_byte(bench: Bench) -> None:
    assert bench.device.take() == b"\0"
    bench.device.receive(bench.host.hello().encode(), bench.now)
    bench.device.start(bench.now, PowerCause.WATCHDOG)
    said = bench.device.take()
    assert (said.endswith(b"\0\0"), len(said)) == (True, 111)


def test_a_host_that_speaks_more_gets_the_version_that_both_speak(bench: Bench) -> None:
    bench.say(bench.host.hello(version_max=9))
    bench.say(bench.host.hs1(bench.host.kk()))
    assert answers(bench, FrameKind.HS2) == 1


# --- handshake ------------------------------------------------------------------------------


def test_without_a_paired_host_hs1_is_not_answered(tmp_path: Path) -> None:
    bench = Bench(tmp_path, paired=False)
    assert not bench.shake()
    assert bench.host.last(Alert).code is AlertCode.NOT_PAIRED
    assert DeviceState.PAIRED not in bench.host.hello_rsp().state


def test_one_answer_serves_one_hs1(bench: Bench) -> None:
    bench.say(bench.host.hello())
    shake = bench.host.kk()
    hs1 = bench.host.hs1(shake)
    bench.say(hs1, hs1)
    assert answers(bench, FrameKind.HS2) == 1
    bench.say(bench.host.hello(), hs1)
    assert answers(bench, FrameKind.HS2) == 1
    # ... and one that does not open is served by none.
    bench.say(bench.host.hello())
    good = bench.host.hs1(bench.host.kk())
    bad = Frame(FrameKind.HS1, good.session, 0, bytes(48), 1)
    bench.say(bad, good)
    assert answers(bench, FrameKind.HS2) == 1


def test_hello_forgets_an_unfinished_handshake(bench: Bench) -> None:
    assert bench.shake()
    unfinished = bench.host.current
    bench.say(bench.host.hello())
    bench.say(bench.host.call(Info(), unfinished))
    assert (bench.host.all(InfoReply), bench.host.last(Alert).code) == ([], AlertCode.NO_SESSION)


def test_verdicts(bench: Bench) -> None:
    """ADOPT from 1 comes before each, so that nothing is acknowledged."""
    bench.happen(9)
    ring = bench.device.ring
    assert (ring.oldest, ring.head) == (1, 10)
    chains = {seq: ring.record(seq)[48:] for seq in range(1, 11)} | {0: NO_CHAIN}
    bench.connect()
    check, adopt, bad = ResumeMode.CHECK, ResumeMode.ADOPT, b"another!"
    table = [
        (Verdict.NEW_EPOCH, ring.epoch ^ 1, 1, NO_CHAIN, check),
        (Verdict.NEW_EPOCH, 0, 0, NO_CHAIN, check),
        (Verdict.NEW_EPOCH, ring.epoch ^ 1, 1, NO_CHAIN, adopt),
        (Verdict.FORK, ring.epoch, 12, chains[10], check),
        (Verdict.FORK, ring.epoch, 12, chains[10], adopt),
        (Verdict.BEHIND, ring.epoch, 0, NO_CHAIN, check),
        (Verdict.GAP, ring.epoch, 0, NO_CHAIN, adopt),
        (Verdict.OK, ring.epoch, 5, bad, adopt),
        (Verdict.OK, ring.epoch, 11, bad, adopt),
        (Verdict.FORK, ring.epoch, 11, bad, check),
        (Verdict.FORK, ring.epoch, 5, bad, check),
        (Verdict.FORK, ring.epoch, 1, bad, check),
        (Verdict.FORK, ring.epoch, 5, chains[5], check),
        *((Verdict.OK, ring.epoch, seq, chains[seq - 1], check) for seq in range(1, 12)),
    ]
    for verdict, epoch, wanted, chain, mode in table:
        bench.say(bench.host.call(resume(ring.epoch, 1, NO_CHAIN, adopt)))
        bench.plain.made_safe.clear()
        before = len(bench.host.records())
        bench.say(bench.host.call(resume(epoch, wanted, chain, mode)))
        reply = bench.host.last(ResumeReply)
        acked = wanted - 1 if verdict is Verdict.OK else 0
        state = (ring.epoch, 1, 10, chains[10], verdict, acked, chains[acked])
        assert reply == ResumeReply(*state), (epoch, wanted, mode)
        new = bench.host.seqs()[before:]
        if verdict is Verdict.OK:
            assert (new, bench.plain.made_safe) == (list(range(wanted, min(wanted + 8, 11))), [])
        else:
            assert (new, bench.plain.made_safe) == ([], [bench.now])
            bench.happen(0)
            nak(bench, 3)
            bench.say(bench.host.seal(ack(ring.epoch, 3)))
            assert bench.device.records.room.acked == 0
            assert len(bench.host.records()) == before


@pytest.mark.usefixtures("records_flow")
def test_below_the_oldest_there_is_a_gap(bench: Bench) -> None:
    for _ in range(30):
        bench.happen(8)
        bench.ack()
    ring = bench.device.ring
    assert (ring.oldest, ring.head) == (114, 241)
    assert bench.resume(113, b"whatever") is Verdict.BEHIND  # it was acknowledged, too
    assert bench.resume(113, mode=ResumeMode.ADOPT) is Verdict.GAP
    assert bench.resume(114, b"whatever", mode=ResumeMode.ADOPT) is Verdict.OK
    assert bench.device.full()  # so that none of them is overwritten before it has come
    assert bench.resume(242, b"whatever", mode=ResumeMode.ADOPT) is Verdict.OK
    assert not bench.device.full()
    assert bench.resume(120) is Verdict.BEHIND
    assert bench.resume(120, mode=ResumeMode.ADOPT) is Verdict.OK
    lowered = AckedPosition(119, bench.device.ring.record(119)[48:])
    bench.power_on()  # what ADOPT has lowered stays so over a start, without a record in between
    assert bench.device.ring.acked == lowered


@pytest.mark.usefixtures("records_flow")
def test_resume_may_go_back_and_the_records_are_safe_again(bench: Bench) -> None:
    for _ in range(30):
        bench.happen(8)
        bench.ack()
    # The host has lost its own record of the last hundred, and two people want them again.
    assert bench.resume(142) is Verdict.BEHIND
    assert bench.resume(142, mode=ResumeMode.ADOPT) is Verdict.OK
    room = bench.device.records.room
    head = bench.device.ring.head
    assert (room.acked, head, room.free) == (141, 242, 27)  # LOG_PRESSURE is one more
    bench.power_on()  # ... over a start too
    assert (bench.device.records.room.acked, bench.device.ring.head) == (141, head + 1)
    bench.connect()
    assert bench.resume(142) is Verdict.OK
    room = bench.device.records.room
    bench.happen(500)
    assert bench.device.ring.oldest <= 142
    assert (room.full, bench.device.ring.head) == (True, head + 20)
    bench.ack()
    assert max(bench.host.seqs()) == bench.device.ring.head


@pytest.mark.usefixtures("records_flow")
def test_a_replaced_ring_is_a_new_epoch(bench: Bench) -> None:
    bench.happen(3)
    bench.ack()
    before = bench.device.ring.epoch
    answer = bench.device.request(RingMemory("replace"), bench.now)
    assert answer["epoch"] != before
    assert (answer["oldest"], answer["head"]) == (1, 1)
    bench.connect()
    assert bench.resume(5, b"whatever", epoch=before) is Verdict.NEW_EPOCH
    assert bench.resume() is Verdict.OK
    assert bench.host.last(Power) == Power(PowerCause.POWER_ON)
    assert bench.host.records()[-1].boot == 2


@pytest.mark.usefixtures("records_flow")
def test_what_was_acknowledged_of_another_ring_is_ignored(bench: Bench) -> None:
    bench.happen(40)
    bench.ack()
    bench.device.request(RingMemory("replace"), bench.now)
    bench.happen(5)
    bench.power_on()
    assert bench.device.records.room.acked == 0
