"""Commands: in which order they are refused, what is remembered, the self-test."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.device import Describe, InjectDefect, RingMemory
from firmware_protocol.device.commands import SELFTEST_US, field_offsets
from firmware_protocol.messages import (
    COMMANDS,
    Abort,
    AbortReply,
    Arm,
    DeckKind,
    DeviceClass,
    DeviceState,
    Eject,
    Fault,
    FaultCode,
    Info,
    InfoReply,
    Power,
    Refusal,
    Refused,
    Reread,
    ResumeMode,
    Selftest,
    SelftestReply,
    Start,
    StartReply,
    Verdict,
)
from firmware_protocol.tablelink import CommandReply
from tests.support.hil.devices.plain_device import BOOT, Bench, ask, raw, replies, resume


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.flowing()
    return bench


# --- the order of refusals ------------------------------------------------------------------


def test_without_id_or_host_boot_nothing_is_answered(bench: Bench) -> None:
    body = b"\6\0\1"
    assert replies(bench, raw(0x60, body, command_id=0), raw(0x60, body, boot=0)) == []
    assert replies(bench, raw(0x99, command_id=0)) == []
    assert (bench.device.channel.damaged, bench.device.channel.refused) == (0, 3)


@pytest.mark.parametrize(
    ("plaintext", "arg"),
    [
        (raw(0x60, b"\0\0\1"), 0),  # no decks
        (raw(0x60, b"\x0d\0\1"), 0),
        (raw(0x60, b"\6\0\0"), 2),  # no kind of deck
        (raw(0x60, b"\6\0\3"), 2),
        (raw(0x60, b"\6\0"), 0),
        (raw(0x60, b"\6\0\1\0"), 0),
        (raw(0x60, b"\6\0\1", flags=1), 0),
        (raw(0x60, b"\6\0\1\1", length=3), 0),
        (raw(0x60, b"\6\0\1", size=120), 0),
        (raw(0x62, b"", length=1), 0),
        (raw(0x41, bytes(16) + b"\2"), 16),  # no such mode
        (raw(0x41, bytes(16)), 0),
    ],
)
def test_malformed_commands_say_where(bench: Bench, plaintext: bytes, arg: int) -> None:
    assert replies(bench, plaintext) == [Refused(plaintext[2], Refusal.MALFORMED, arg)]
    assert not bench.plain.done
    assert (bench.device.channel.damaged, bench.device.channel.refused) == (0, 0)


def test_offsets_of_fields_are_those_of_the_page() -> None:
    assert field_offsets(Arm.SPEC) == {"seat": 0, "mask": 1, "token": 3, "ttl": 5}
    lamps = field_offsets(COMMANDS[0x71].SPEC)
    assert lamps == {"seat": 0, "rgb": 1, "pattern": 4, "period": 5, "lease": 7}
    assert field_offsets(Reread.SPEC) == {"epoch": 0, "seq": 4}
    for command in COMMANDS.values():
        offsets = field_offsets(command.SPEC)
        assert tuple(offsets) == command.SPEC.fields
        assert all(at < command.SPEC.size for at in offsets.values())


def test_the_first_field_that_is_wrong_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path, device_class=DeviceClass.SHOE)
    bench.connect()
    assert replies(bench, raw(0x51, bytes(8))) == [Refused(0x51, Refusal.MALFORMED, 0)]
    assert replies(bench, raw(0x51, b"\1" + bytes(7))) == [Refused(0x51, Refusal.MALFORMED, 4)]
    assert replies(bench, raw(0x50, b"\2")) == [Refused(0x50, Refusal.MALFORMED, 0)]


def test_malformed_goes_before_not_resumed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.connect()
    assert replies(bench, raw(0x60, b"\0\0\1")) == [Refused(0x60, Refusal.MALFORMED, 0)]
    assert replies(bench, raw(0x60, b"\6\0\1")) == [Refused(0x60, Refusal.NOT_RESUMED, 0)]


def test_a_command_that_cannot_be_now_returns_the_state(bench: Bench) -> None:
    bench.device.request(RingMemory("fill"), bench.now)
    assert bench.device.full()
    state = DeviceState.PAIRED | DeviceState.LOCKED | DeviceState.FULL
    assert ask(bench, Start(6, 0, DeckKind.FULL_52)) == Refused(0x60, Refusal.NOT_NOW, int(state))
    assert ask(bench, Eject()) == Refused(0x61, Refusal.FAILED, 2)


# --- what is remembered ---------------------------------------------------------------------


def test_a_repeat_in_a_session_before_resume_is_cached_first(bench: Bench) -> None:
    reply = ask(bench, Start(6, 0, DeckKind.FULL_52))
    ident = bench.host.command_id
    bench.connect()
    assert ask(bench, Start(6, 0, DeckKind.FULL_52), ident) == reply
    assert ask(bench, Start(6, 0, DeckKind.FULL_52), ident - 1) == Refused(0x60, Refusal.STALE, 0)
    assert ask(bench, Start(6, 0, DeckKind.FULL_52)) == Refused(0x60, Refusal.NOT_RESUMED, 0)


def test_refusals_are_cached_but_for_four(bench: Bench) -> None:
    assert ask(bench, Eject()) == Refused(0x61, Refusal.FAILED, 2)
    ident = bench.host.command_id
    assert ask(bench, Eject(), ident) == Refused(0x61, Refusal.FAILED, 2)
    assert bench.plain.done == [Eject()]
    # NOT_RESUMED is not: the same command is carried out once it may be.
    bench.connect()
    assert ask(bench, Start(6, 0, DeckKind.FULL_52)) == Refused(0x60, Refusal.NOT_RESUMED, 0)
    ident = bench.host.command_id
    assert bench.resume() is Verdict.OK
    assert ask(bench, Start(6, 0, DeckKind.FULL_52), ident) == StartReply(1)


def test_eight_are_cached_and_older_ones_are_stale(bench: Bench) -> None:
    first = bench.host.command_id + 1
    assert [ask(bench, Start(6, 0, DeckKind.FULL_52)) for _ in range(9)] == [
        StartReply(n) for n in range(1, 10)
    ]
    assert ask(bench, Start(6, 0, DeckKind.FULL_52), first) == Refused(0x60, Refusal.STALE, 0)
    assert [ask(bench, Start(6, 0, DeckKind.FULL_52), first + n) for n in range(1, 9)] == [
        StartReply(n) for n in range(2, 10)
    ]
    assert len(bench.plain.done) == 9
    # Idempotent commands are neither remembered nor stale.
    assert ask(bench, Abort(), first) == AbortReply()
    assert ask(bench, Abort(), first + 4) == AbortReply()
    assert isinstance(ask(bench, Info(), 1), InfoReply)


def test_a_repeat_is_known_by_boot_and_id_alone(bench: Bench) -> None:
    assert ask(bench, Start(6, 0, DeckKind.FULL_52), 50) == StartReply(1)
    assert ask(bench, Eject(), 50) == StartReply(1)
    assert ask(bench, Abort(), 50) == AbortReply()  # of no concern to one that is idempotent
    assert bench.plain.done == [Start(6, 0, DeckKind.FULL_52), Abort()]


def test_an_id_that_skips_is_a_new_command(bench: Bench) -> None:
    assert ask(bench, Start(6, 0, DeckKind.FULL_52), 1000) == StartReply(1)
    assert ask(bench, Start(6, 0, DeckKind.FULL_52), 0xFFFFFFFF) == StartReply(2)
    assert ask(bench, Start(6, 0, DeckKind.FULL_52), 0xFFFFFFFE) == Refused(0x60, Refusal.STALE, 0)


def selftest(bench: Bench) -> SelftestReply:
    """The reply, which comes later."""
    assert ask(bench, Selftest()) is None
    bench.run(1_000)
    return bench.host.last(SelftestReply)


# --- the self-test --------------------------------------------------------------------------


def test_a_selftest_takes_its_time_and_others_continue_beside_it(bench: Bench) -> None:
    began = bench.now
    assert ask(bench, Selftest()) is None
    ident = bench.host.command_id
    bench.run(100)
    assert ask(bench, Start(6, 0, DeckKind.FULL_52)) == StartReply(1)
    assert ask(bench, Selftest()) == Refused(0x42, Refusal.BUSY, 0)
    assert ask(bench, Selftest(), ident) is None  # it is under way
    for _ in range(9):  # ... also when what is remembered is younger
        ask(bench, Start(6, 0, DeckKind.FULL_52))
    assert ask(bench, Selftest(), ident) is None
    assert bench.device.channel.refused == 0
    bench.run(2_000)
    assert bench.host.timed(SelftestReply) == [
        (began + SELFTEST_US, SelftestReply(FaultCode.NONE, 0))
    ]
    assert bench.host.all(CommandReply)[-1].command_id == ident
    assert ask(bench, Selftest(), ident) == SelftestReply(FaultCode.NONE, 0)
    assert ask(bench, Selftest()) is None


def test_what_a_selftest_finds_is_recorded(bench: Bench) -> None:
    bench.plain.faults = ((FaultCode.MOTOR, 2), (FaultCode.SENSOR, 1))
    bench.device.request(InjectDefect("sensor", arg=1), bench.now)
    bench.device.request(InjectDefect("clock"), bench.now)
    before = len(bench.events())
    assert selftest(bench) == SelftestReply(FaultCode.MOTOR, 2)
    assert bench.events()[before:] == [
        Fault(FaultCode.MOTOR, 2),
        Fault(FaultCode.SENSOR, 1),
        Fault(FaultCode.CLOCK, 0),
    ]


def test_a_selftest_outlives_its_session_but_not_its_host(bench: Bench) -> None:
    assert ask(bench, Selftest()) is None
    ident = bench.host.command_id
    bench.connect()
    bench.run(1_000)
    assert bench.host.last(SelftestReply) == SelftestReply(FaultCode.NONE, 0)
    assert bench.resume() is Verdict.OK
    assert ask(bench, Selftest()) is None
    bench.host.boot = BOOT + 1
    bench.connect()
    count = len(bench.host.all(SelftestReply))
    bench.run(1_000)
    assert len(bench.host.all(SelftestReply)) == count
    assert ask(bench, Selftest(), ident) == SelftestReply(FaultCode.NONE, 0)


def test_a_defect_is_recorded_when_it_starts(bench: Bench) -> None:
    hand = bench.device.request
    assert hand(InjectDefect("temperature", arg=350), bench.now) == {"recorded": True}
    assert hand(InjectDefect("temperature", arg=351), bench.now) == {"recorded": False}
    assert DeviceState.FAULTY in bench.device.state()
    assert hand(InjectDefect("temperature", on=False), bench.now) == {"recorded": False}
    assert bench.events()[-1] == Fault(FaultCode.TEMPERATURE, 350)


def test_faulty_lasts_until_a_selftest_finds_nothing_or_a_start(bench: Bench) -> None:
    hand = bench.device.request
    hand(InjectDefect("motor", arg=3), bench.now)
    assert selftest(bench) == SelftestReply(FaultCode.MOTOR, 3)
    assert DeviceState.FAULTY in bench.device.state()
    hand(InjectDefect("motor", on=False), bench.now)
    assert DeviceState.FAULTY in bench.device.state()
    assert selftest(bench) == SelftestReply(FaultCode.NONE, 0)
    assert DeviceState.FAULTY not in bench.device.state()
    hand(InjectDefect("motor", arg=4), bench.now)
    bench.power_on()
    assert DeviceState.FAULTY not in bench.device.state()


def test_a_fault_at_a_start_is_reported_by_a_selftest_only(bench: Bench) -> None:
    bench.device.request(InjectDefect("motor", arg=3), bench.now)
    bench.power_on()
    assert isinstance(bench.events()[-1], Power)
    assert bench.device.request(Describe(), bench.now)["defects"] == ["motor"]
    bench.flowing()
    assert selftest(bench) == SelftestReply(FaultCode.MOTOR, 3)
    assert bench.events()[-1] == Fault(FaultCode.MOTOR, 3)
    assert DeviceState.FAULTY in bench.device.state()
    bench.device.request(InjectDefect("motor", on=False), bench.now)
    bench.power_on()
    assert bench.device.request(Describe(), bench.now)["defects"] == []


def test_resume_modes_are_checked_like_any_field(bench: Bench) -> None:
    assert bench.resume(mode=ResumeMode.ADOPT) is Verdict.OK
    assert ask(bench, resume(bench.device.ring.epoch)) is not None
