"""Power that goes at any moment, restarts, and what hands do to the whole device."""

from __future__ import annotations

import random

import pytest

from firmware_protocol.device import (
    Behaviour,
    CannotDo,
    ControlRequest,
    CutPower,
    Describe,
    Draw,
    Firmware,
    FolderProblem,
    Freeze,
    LineNoise,
    Moment,
    Plug,
    PowerCut,
    RingMemory,
    TamperWith,
)
from firmware_protocol.device.folder import StateStore
from firmware_protocol.device.send_window import Room
from firmware_protocol.messages import (
    DeckKind,
    DeviceState,
    Door,
    Fault,
    FaultCode,
    Info,
    InfoReply,
    Power,
    PowerCause,
    Selftest,
    Start,
    Started,
    Tamper,
    TamperSource,
    Verdict,
)
from tests.support.hil.devices.plain_device import MS, SECOND, Bench, ack

COMMIT_MOMENTS = ("before_commit", "in_commit", "after_commit")


# --- the start ------------------------------------------------------------------------------


@pytest.mark.usefixtures("records_flow")
def test_a_session_does_not_outlive_a_start(bench: Bench) -> None:
    bench.power_on()
    bench.host.came.clear()
    bench.say(bench.host.call(Info()))
    bench.run(2_000)
    assert (bench.host.all(InfoReply), bench.plain.locked) == ([], True)


@pytest.mark.usefixtures("records_flow")
def test_a_restart_keeps_everything(bench: Bench) -> None:
    bench.happen(40)
    bench.ack()
    bench.plain.desk.save("inside", b"cards")
    bench.plain.desk.next_number("shuffle")
    before = bench.device.request(Describe(), bench.now)
    records = bench.ring_records()
    bench.power_on()
    after = bench.device.request(Describe(), bench.now)
    same = ("class", "serial", "label", "key", "fingerprint", "host", "epoch", "oldest")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert after["head"] == before["head"] + 1
    assert (bench.ring_records()[:-1], bench.plain.desk.load("inside")) == (records, b"cards")
    assert bench.plain.desk.next_number("shuffle") == 2
    # The acknowledged position may be older, but never newer.
    assert 41 - 16 < after["acked"] <= 41


def test_of_the_free_slots_32_stay_free_over_a_start(bench: Bench) -> None:
    chance = random.Random(5)
    bench.flowing()
    for _ in range(1_500):
        if chance.random() < 0.52:
            bench.happen()
        elif bench.device.records.room.used:
            bench.ack(min(bench.device.records.room.acked + 1, highest(bench)))
        free = bench.device.records.room.free
        after = Room(bench.device.ring, StateStore(bench.place / "kept", sync=False), Behaviour())
        assert after.free >= min(free, 32)
        assert after.acked <= bench.device.records.room.acked
    assert bench.device.full()  # it has seen all shares


def highest(bench: Bench) -> int:
    session = bench.device.sessions.running
    assert session is not None
    assert session.sending is not None
    return session.sending.sent


# --- power cuts -----------------------------------------------------------------------------


@pytest.mark.usefixtures("records_flow")
@pytest.mark.parametrize("moment", COMMIT_MOMENTS)
def test_a_cut_at_a_commit(bench: Bench, moment: Moment) -> None:
    bench.happen(3)
    bench.ack()
    ring = bench.device.ring
    bench.device.cut_at(moment)
    seen = len(bench.host.records())
    assert bench.cut(events=1).moment == moment
    assert len(bench.host.records()) == seen  # it is not sent before it is whole
    bench.now += SECOND
    bench.power_on()
    expected = {
        "before_commit": [Power(PowerCause.POWER_ON)],
        "in_commit": [Power(PowerCause.POWER_LOSS)],
        "after_commit": [Door(True), Power(PowerCause.POWER_ON)],
    }[moment]
    assert bench.events()[4:] == expected
    last = bench.host.records()[-1]
    bench.connect()
    assert bench.host.last(InfoReply).cause == getattr(bench.events()[-1], "cause", None)
    assert bench.resume(last.seq + 1, last.chain) is Verdict.OK
    assert [one.event for one in bench.host.records()[seen:]] == expected
    assert bench.device.ring.epoch == ring.epoch


def test_the_first_record_of_all_may_be_torn(bench: Bench) -> None:
    bench.device.ring.path.unlink()
    bench.power_on()
    ring = bench.device.ring
    data = bytearray(ring.path.read_bytes())
    data[40 + 30 : 40 + 56] = bytes(26)
    ring.path.write_bytes(data)
    bench.power_on()
    assert (bench.device.ring.epoch, bench.events()) == (ring.epoch, [Power(PowerCause.POWER_LOSS)])


@pytest.mark.usefixtures("records_flow")
def test_a_cut_before_the_reply(bench: Bench) -> None:
    bench.device.cut_at("before_reply")
    bench.cut([bench.host.call(Start(6, 0, DeckKind.FULL_52))])
    bench.power_on()
    assert bench.events()[1:] == [Started(1, 6), Power(PowerCause.POWER_ON)]
    assert bench.device.boot == 2


@pytest.mark.usefixtures("records_flow")
def test_a_cut_before_the_acknowledgement_is_taken(bench: Bench) -> None:
    bench.happen(3)
    epoch = bench.device.ring.epoch
    bench.device.cut_at("before_ack")
    bench.say(bench.host.seal(ack(epoch, 1)))  # moves nothing
    bench.cut([bench.host.seal(ack(epoch, 4))])
    bench.power_on()
    assert bench.device.records.room.acked <= 1


@pytest.mark.usefixtures("records_flow")
def test_a_device_without_power_does_nothing(bench: Bench) -> None:
    bench.device.cut_at("before_commit")
    bench.cut(events=1)
    dead = bench.device
    bench.now += 2 * SECOND
    bench.say(bench.host.hello())
    dead.wake(bench.now)
    assert (dead.take(), dead.due()) == (b"", None)
    with pytest.raises(CannotDo, match="the power is off"):
        dead.request(Describe(), bench.now)


def test_a_cut_comes_out_of_wake_and_hand_too(bench: Bench) -> None:
    bench.device.cut_at("before_commit")
    with pytest.raises(PowerCut):
        bench.device.request(TamperWith("case"), bench.now)
    bench.power_on()
    bench.device.defects[FaultCode.CLOCK] = 0
    bench.flowing()
    bench.say(bench.host.call(Selftest()))
    bench.device.cut_at("after_commit")
    bench.now += SECOND
    with pytest.raises(PowerCut):
        bench.device.wake(bench.now - 1 * MS)


# --- hands ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("records_flow")
def test_new_firmware_starts_at_once(bench: Bench) -> None:
    before = bench.host.last(InfoReply).firmware
    answer = bench.device.request(Firmware("2.0"), bench.now)
    assert (answer["boot"], bench.events()[-1]) == (2, Power(PowerCause.SOFTWARE))
    bench.connect()
    info = bench.host.last(InfoReply)
    assert info.firmware.hex() == answer["firmware"]
    assert info.firmware != before
    bench.power_on()
    bench.connect()
    assert bench.host.last(InfoReply).firmware == info.firmware


def test_what_had_left_before_new_firmware_started_arrives(bench: Bench) -> None:
    bench.device.receive(bench.host.hello().encode(), bench.now)
    bench.device.request(Firmware("2.0"), bench.now)
    bench.collect()
    assert bench.host.hello_rsp().serial == "SIM-1"


def test_tampering_is_recorded(bench: Bench) -> None:
    hand = bench.device.request
    assert hand(TamperWith("magnet"), bench.now) == {"recorded": True}
    assert hand(TamperWith("magnet", active=False), bench.now) == {"recorded": True}
    assert bench.events()[1:] == [
        Tamper(TamperSource.MAGNET, True),
        Tamper(TamperSource.MAGNET, False),
    ]


@pytest.mark.parametrize(
    "hand",
    [
        CutPower(),
        Plug(True),
        Freeze(True),
        LineNoise(),
        Draw(),
    ],
)
def test_other_hands_are_not_the_cores(bench: Bench, hand: ControlRequest) -> None:
    with pytest.raises(CannotDo):
        bench.device.request(hand, bench.now)


def test_a_copy_of_the_ring_must_be_made_first(bench: Bench) -> None:
    with pytest.raises(CannotDo, match="no copy of the ring"):
        bench.device.request(RingMemory("restore"), bench.now)


def test_a_damaged_record_is_a_fault(bench: Bench) -> None:
    bench.happen(20)
    ring = bench.device.ring
    data = bytearray(ring.path.read_bytes())
    data[24 + 72 * 9 + 16 + 30] ^= 1  # record 10
    ring.path.write_bytes(data)
    bench.power_on()
    assert bench.device.ring.oldest == 11
    assert bench.events()[-2:] == [Power(PowerCause.POWER_ON), Fault(FaultCode.RING, 10)]
    assert DeviceState.FAULTY in bench.device.state()
    bench.connect()
    assert bench.resume(5, b"whatever") is Verdict.GAP


def test_a_corrupt_place_is_named_at_the_start(bench: Bench) -> None:
    bench.device.ring.path.write_bytes(b"nothing of ours")
    with pytest.raises(FolderProblem, match="is not a ring"):
        bench.power_on()


@pytest.mark.usefixtures("records_flow")
def test_all_is_private(bench: Bench) -> None:
    bench.happen(60)
    bench.ack()
    bench.device.request(RingMemory("save"), bench.now)
    bench.plain.desk.save("inside", b"cards")
    for one in bench.place.rglob("*"):
        assert one.stat().st_mode & 0o777 == (0o700 if one.is_dir() else 0o600), one
