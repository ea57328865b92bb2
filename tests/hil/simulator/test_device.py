"""A device on its stand, in simulated time: power, plug, freeze, noise, whose hands may what."""

from pathlib import Path

import pytest

from firmware_protocol.device import (
    Break,
    CannotDo,
    ControlRequest,
    CutPower,
    Device,
    Firmware,
    Freeze,
    LineNoise,
    Plug,
    ServiceSwitch,
    TamperWith,
)
from firmware_protocol.host import (
    FramesDamaged,
    LinkSessionEnded,
    RingResumed,
    SessionEnding,
)
from firmware_protocol.messages import Info, PowerCause, TamperSource
from firmware_protocol.messages import Power as PowerEvent
from firmware_protocol.messages import Tamper as TamperEvent
from hil.simulator.device import UART_BYTES
from tests.support.hil.devices.meeting import Meeting

NOISE = LineNoise(flip=0.05, drop=0.05, double=0.05, splice=0.05, cut=0.05, delay_ms=3, seed=5)
OPENED = TamperWith(source="case")
OUT, IN = Plug(connected=False), Plug(connected=True)
NEXT, FIRST = Plug(connected=True, other_port=True), Plug(connected=True, port_number=1)


@pytest.fixture
def meeting(tmp_path: Path) -> Meeting:
    meeting = Meeting(tmp_path)
    meeting.open()
    meeting.run(500)
    assert meeting.all(RingResumed)
    return meeting


def seqs(meeting: Meeting) -> list[int]:
    return [record.seq for record in meeting.records]


# --- freeze ---------------------------------------------------------------------------------------


def test_a_frozen_device_sends_nothing_and_its_clock_stops(meeting: Meeting) -> None:
    assert meeting.request(Freeze(on=True)) == {"frozen": True}
    before = len(meeting.wire)
    meeting.run(3_000)
    assert meeting.last(LinkSessionEnded).why is SessionEnding.SILENT
    assert {whence for _, whence, _ in meeting.wire[before:]} == {"host"}
    clock = meeting.stand.firmware.clock(meeting.stand.firmware_time(meeting.now))
    meeting.request(Freeze(on=False))
    assert meeting.stand.firmware.clock(meeting.stand.firmware_time(meeting.now)) == clock
    meeting.run(9_000)
    assert len(meeting.all(RingResumed)) == 2
    meeting.play(OPENED, 100)
    assert meeting.records[-1].t_us < 10_000_000  # 12.6 s have passed, three of them frozen


def test_a_frozen_device_buffers_input_in_its_hardware(meeting: Meeting) -> None:
    meeting.request(Freeze(on=True))
    meeting.stand.receive(bytes(UART_BYTES), meeting.now)
    meeting.stand.receive(bytes(50), meeting.now)
    assert meeting.stand.lost.frozen == 50
    meeting.play(Freeze(on=False), 5_000)
    assert meeting.link.resumed


def test_without_power_nothing_is_frozen(meeting: Meeting) -> None:
    meeting.play(Freeze(on=True), CutPower(off_ms=100))
    assert meeting.look()["frozen"] is False
    assert meeting.play(100).look()["powered"] is True


def test_a_reset_gets_a_device_out_of_its_freeze(meeting: Meeting) -> None:
    meeting.play(Freeze(on=True), 100, CutPower(cause="watchdog"))
    assert meeting.stand.reading
    meeting.run(9_000)
    assert meeting.records[-1].event == PowerEvent(PowerCause.WATCHDOG)


# --- power ----------------------------------------------------------------------------------------


def test_power_returns_after_off_ms_with_its_cause(meeting: Meeting) -> None:
    boot = meeting.stand.firmware.boot
    assert meeting.request(CutPower(cause="brown_out", off_ms=700)) == {"power": "cut", "at": "now"}
    assert meeting.stand.due() == meeting.now + 700_000
    assert [meeting.play(ms).look()["powered"] for ms in (0, 699, 1)] == [False, False, True]
    assert meeting.stand.lost.unpowered > 0
    meeting.run(9_000)
    assert meeting.stand.firmware.boot == boot + 1
    assert meeting.records[-1].event == PowerEvent(PowerCause.BROWN_OUT)


@pytest.mark.parametrize(
    ("moment", "in_hand", "recorded", "cause"),
    [
        ("before_commit", True, False, PowerCause.POWER_ON),
        ("in_commit", True, False, PowerCause.POWER_LOSS),
        ("after_commit", True, True, PowerCause.POWER_ON),
        ("before_reply", False, True, PowerCause.POWER_ON),
        ("before_ack", False, True, PowerCause.POWER_ON),
    ],
)
@pytest.mark.parametrize("off_ms", [0, 50])
def test_power_cut_at_each_moment_loses_and_changes_nothing(
    meeting: Meeting, moment: str, in_hand: bool, recorded: bool, cause: PowerCause, off_ms: int
) -> None:
    """`in_hand`: the request runs into it; `recorded`: what it made is in the ring."""
    cut = CutPower(at=moment, off_ms=off_ms)  # type: ignore[arg-type]
    assert meeting.request(cut) == {"power": "on", "at": moment}
    boot, head = meeting.stand.firmware.boot, meeting.stand.firmware.ring.head
    answer = meeting.request(OPENED)
    meeting.link.call(Info(), meeting.now)
    meeting.run(10_000)
    assert (answer == {"power": "cut", "at": moment}) == in_hand
    assert (meeting.stand.firmware.boot, meeting.held) == (boot + 1, [])
    assert seqs(meeting) == list(range(1, len(meeting.records) + 1))
    new = [record.event for record in meeting.records[head:]]
    assert (TamperEvent(TamperSource.CASE, True) in new) == recorded
    assert new[-1] == PowerEvent(cause)


def test_bytes_sent_before_a_power_cut_arrive(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path)
    meeting.open()
    meeting.play(500, Break(name="sent-before-commit"), CutPower(at="before_commit"))
    before = len(meeting.records)
    meeting.request(OPENED)
    assert len(meeting.records) == before + 1  # the break shows: the record arrived, and is lost
    meeting.run(10_000)
    assert meeting.held


def test_breaks_and_the_paired_host_outlive_the_power(meeting: Meeting) -> None:
    told = meeting.play(Break(name="no-backoff"), CutPower()).look()
    assert told["breaks"] == ["no-backoff"]
    assert told["host"]


def test_each_start_counts_also_that_of_new_firmware(meeting: Meeting) -> None:
    starts = meeting.stand.starts
    meeting.play(CutPower(), Firmware(version="two"), ServiceSwitch(on=True))
    assert meeting.stand.starts == starts + 2


# --- plug -----------------------------------------------------------------------------------------


def test_with_the_cable_out_nothing_passes_and_nothing_is_lost_for_good(meeting: Meeting) -> None:
    assert meeting.request(OUT) == {"plugged": False, "port_number": 1}
    before = len(meeting.records)
    meeting.play(OPENED, 2_000)
    assert len(meeting.records) == before
    assert meeting.stand.lost.unplugged > 0
    assert meeting.request(IN) == {"plugged": True, "port_number": 1}
    meeting.replug()
    meeting.run(1_000)
    assert len(meeting.records) == before + 1


@pytest.mark.parametrize(
    ("plugs", "port_number"),
    [
        ((OUT, NEXT), 2),
        ((OUT, NEXT, OUT, IN), 2),
        ((OUT, NEXT, OUT, NEXT, OUT, FIRST), 1),
        ((OUT, NEXT, OUT, FIRST, OUT, IN), 1),
        ((OUT, NEXT, OUT, FIRST, OUT, NEXT), 2),
    ],
)
def test_the_cable_is_in_the_port_that_was_named_last(
    meeting: Meeting, plugs: tuple[Plug, ...], port_number: int
) -> None:
    answers = [meeting.request(plug) for plug in plugs]
    assert answers[-1] == {"plugged": True, "port_number": port_number}


def test_pulling_the_cable_drops_bytes_in_transit(meeting: Meeting) -> None:
    meeting.play(LineNoise(delay_ms=100), OPENED, OUT, IN)
    before = len(meeting.records)
    meeting.run(120)
    assert len(meeting.records) == before


# --- noise ----------------------------------------------------------------------------------------


def noisy(folder: Path, line: LineNoise) -> Meeting:
    meeting = Meeting(folder)
    meeting.open()
    meeting.play(500, line)
    for number in range(60):
        meeting.play(TamperWith(source="seal", active=bool(number % 2)), 37)
    meeting.play(LineNoise(), 10_000)
    return meeting


def test_through_noise_each_record_arrives_once_and_in_order(tmp_path: Path) -> None:
    meeting = noisy(tmp_path, NOISE)
    assert seqs(meeting) == list(range(1, 62))
    assert meeting.all(FramesDamaged)


def test_the_same_seed_plays_the_same_bytes_again(tmp_path: Path) -> None:
    first = noisy(tmp_path / "a", NOISE)
    assert noisy(tmp_path / "b", NOISE).wire == first.wire
    other = LineNoise(flip=0.05, drop=0.05, double=0.05, splice=0.05, cut=0.05, delay_ms=3, seed=6)
    assert noisy(tmp_path / "c", other).wire != first.wire


def test_a_delay_is_one_of_simulated_time(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path)
    meeting.play(LineNoise(delay_ms=40), 0)
    meeting.wire.clear()  # the 0x00 with which a device begins
    begun = meeting.now
    meeting.open()
    meeting.run(79)
    assert [whence for _, whence, _ in meeting.wire] == ["host"]
    meeting.run(1)
    assert (begun + 80_000, "device") in [(when, whence) for when, whence, _ in meeting.wire]


def test_describe_counts_what_the_noise_did(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path)
    meeting.request(LineNoise(drop=1, seed=9))
    meeting.open()
    meeting.run(100)
    line = meeting.look()["line"]
    told = (line["drop"], line["seed"], line["to_device"]["dropped"], line["to_host"]["frames"])
    assert told == (1.0, 9, 1, 0)


# --- what cannot be done --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "then", "what"),
    [
        (Freeze(on=True), OPENED, "the firmware hangs"),
        (Freeze(on=True), Break(name="no-backoff"), "the firmware hangs"),
        (Freeze(on=True), CutPower(at="in_commit"), "reaches no such moment"),
        (CutPower(off_ms=1000), OPENED, "there is no power"),
        (CutPower(off_ms=1000), CutPower(), "the power is off already"),
        (CutPower(off_ms=1000), Freeze(on=True), "there is no power"),
        (IN, NEXT, "the cable is in"),
        (OUT, Plug(connected=False, other_port=True), "without plugging it in"),
        (OUT, Plug(connected=False, port_number=1), "without plugging it in"),
        (IN, Plug(connected=True, port_number=1), "the cable is in"),
        (
            OUT,
            Plug(connected=True, other_port=True, port_number=2),
            "two ports are given",
        ),
    ],
)
def test_an_impossible_request_changes_nothing(
    meeting: Meeting, first: ControlRequest, then: ControlRequest, what: str
) -> None:
    meeting.request(first)
    before = meeting.look()
    with pytest.raises(CannotDo, match=what):
        meeting.request(then)
    assert meeting.look() == before


def test_a_device_without_power_is_described_and_not_given_out(meeting: Meeting) -> None:
    meeting.stand.facts["port"] = "somewhere"
    assert isinstance(meeting.stand.firmware, Device)
    meeting.request(CutPower(off_ms=1000))
    told = meeting.look()
    assert (told["powered"], told["plugged"], told["port"]) == (False, True, "somewhere")
    with pytest.raises(CannotDo):
        _ = meeting.stand.firmware
