"""HELLO, and the handshake of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.messages import (
    Alert,
    AlertCode,
    DeviceState,
    FrameKind,
    Info,
    InfoReply,
    PowerCause,
)
from firmware_protocol.tablelink import Frame
from tests.support.hil.devices.plain_device import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


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
    assert said.endswith(b"\0\0")
    assert len(said) == 111


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
    assert not bench.host.all(InfoReply)
    assert bench.host.last(Alert).code is AlertCode.NO_SESSION
