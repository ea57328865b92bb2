"""HELLO, and the handshake of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.messages.common import Info, InfoReply
from firmware_protocol.messages.enums import AlertCode, DeviceState, FrameKind, PowerCause
from firmware_protocol.messages.frames import Alert
from firmware_protocol.messages.limits import SCHEMA_HASHES
from firmware_protocol.tablelink.framing import Frame
from tests.support.hil.devices.plain_device import Bench
from tests.support.hil.devices.raw_host import STRANGER, RawHost


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def answers(bench: Bench, kind: FrameKind) -> int:
    return len(bench.host.frames(kind))


# --- HELLO ----------------------------------------------------------------------------------


def test_hello_is_answered_under_its_session_each_time_anew(bench: Bench) -> None:
    said = [bench.host.hello() for _ in range(3)]
    bench.say(*said)
    came = bench.host.frames(FrameKind.HELLO_RSP)
    assert [one.session for one in came] == [one.session for one in said]
    assert len({one.payload[32:40] for one in came}) == 3
    assert len({one.payload[:32] + one.payload[40:] for one in came}) == 1
    answer = bench.host.hello_rsp()
    assert (answer.version_min, answer.version_max) == (1, 1)
    assert answer.schema == SCHEMA_HASHES[1]
    assert answer.fingerprint == bench.identity.fingerprint
    assert (answer.maker, answer.model, answer.serial) == ("Holecard", "Sim shuffler", "SIM-1")
    assert answer.state == DeviceState.PAIRED | DeviceState.LOCKED


def test_an_ill_formed_hello_is_ignored_and_counted(bench: Bench) -> None:
    # Reserved bytes, versions 0 and 16, class 4, a frame limit that there is not.
    changes = ((4, 1), (7, 1), (0, 0), (0, 16), (1, 0), (1, 16), (2, 4), (3, 149))
    for at, value in changes:
        payload = bytearray(bench.host.hello().payload)
        payload[at] = value
        bench.say(Frame(FrameKind.HELLO, 9, 0, bytes(payload)))
    assert not bench.host.came
    assert (bench.device.channel.damaged, bench.device.channel.refused) == (0, len(changes))


def test_versions_in_the_wrong_order_are_none_in_common(bench: Bench) -> None:
    bench.say(bench.host.hello(version_min=9, version_max=1))
    bench.say(bench.host.hs1(bench.host.kk()))
    assert answers(bench, FrameKind.HELLO_RSP) == 1
    assert bench.host.last(Alert).code is AlertCode.NO_VERSION


def test_a_device_begins_with_a_zero_byte(bench: Bench) -> None:
    assert bench.device.take() == b"\0"
    bench.device.receive(bench.host.hello().encode(), bench.now)
    bench.device.start(bench.now, PowerCause.WATCHDOG)
    said = bench.device.take()
    assert said.endswith(b"\0\0")
    assert len(said) == 111


def test_without_a_common_version_hello_is_answered_and_hs1_is_not(bench: Bench) -> None:
    bench.say(bench.host.hello(version_min=15, version_max=15))
    assert bench.host.hello_rsp().schema == SCHEMA_HASHES[1]
    bench.say(bench.host.hs1(bench.host.kk()))
    assert answers(bench, FrameKind.HS2) == 0
    assert bench.host.last(Alert).code is AlertCode.NO_VERSION


def test_a_host_that_speaks_more_gets_the_version_that_both_speak(bench: Bench) -> None:
    bench.say(bench.host.hello(version_max=9))
    bench.say(bench.host.hs1(bench.host.kk()))
    assert answers(bench, FrameKind.HS2) == 1


# --- handshake ------------------------------------------------------------------------------


def test_a_session_begins_with_info(bench: Bench) -> None:
    bench.connect()
    info = bench.host.last(InfoReply)
    assert info.firmware == bench.identity.digest
    assert (info.boot, info.capacity) == (1, 128)
    assert info.state == DeviceState.PAIRED | DeviceState.LOCKED
    assert bench.host.came[-1].counter == 0


def test_a_stranger_gets_no_answer_and_the_host_does_right_after(bench: Bench) -> None:
    paired, bench.host = bench.host, RawHost(bench.identity.public, STRANGER)
    assert not bench.shake()
    assert bench.host.last(Alert).code is AlertCode.HANDSHAKE_REFUSED
    bench.host = paired
    assert bench.shake()


def test_without_a_paired_host_nobody_gets_an_answer(tmp_path: Path) -> None:
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


def test_an_hs1_of_another_session_does_not_touch_the_greeting(bench: Bench) -> None:
    bench.say(bench.host.hello())
    hs1 = bench.host.hs1(bench.host.kk())
    bench.say(Frame(FrameKind.HS1, hs1.session + 1, 0, hs1.payload, 1))
    assert answers(bench, FrameKind.HS2) == 0
    bench.say(hs1)
    assert answers(bench, FrameKind.HS2) == 1


@pytest.mark.parametrize("at", [8, 11, 40, 48, 60, 100, 132])
def test_what_was_changed_on_the_way_fails_the_handshake(bench: Bench, at: int) -> None:
    bench.say(bench.host.hello())
    bound = bytearray(bench.host.prologue())
    bound[at] ^= 1
    bench.say(bench.host.hs1(bench.host.kk(bytes(bound))))
    assert answers(bench, FrameKind.HS2) == 0


def test_hello_forgets_an_unfinished_handshake(bench: Bench) -> None:
    assert bench.shake()
    unfinished = bench.host.current
    bench.say(bench.host.hello())
    bench.say(bench.host.call(Info(), unfinished))
    assert not bench.host.all(InfoReply)
    assert bench.host.last(Alert).code is AlertCode.NO_SESSION


def test_a_handshake_without_data_is_forgotten_after_ten_seconds(bench: Bench) -> None:
    assert bench.shake()
    bench.run(9_999.9, beats=False)
    bench.say(bench.host.call(Info()))
    assert len(bench.host.all(InfoReply)) == 1
    assert bench.shake()
    bench.run(10_000, beats=False)
    bench.say(bench.host.call(Info()))
    assert len(bench.host.all(InfoReply)) == 1
