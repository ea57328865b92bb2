"""A device that finds its keys damaged: ALERT DEFECT and nothing else, and no new keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.device import InjectDefect, ServiceSwitch, load_identity
from firmware_protocol.messages import (
    ALERT_GAP_MS,
    Alert,
    AlertCode,
    DeviceState,
    Fault,
    FaultCode,
    FrameKind,
    InfoReply,
    Selftest,
    SelftestReply,
)
from firmware_protocol.tablelink import Frame
from tests.support.hil.devices.plain_device import Bench

DAMAGED = InjectDefect("memory")
WHOLE = InjectDefect("memory", on=False)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def kinds(bench: Bench) -> set[FrameKind]:
    clear = {FrameKind.ALERT} if bench.host.all(Alert) else set()
    return clear | {one.kind for one in bench.host.all(Frame)}


def test_hello_is_answered_with_alert_defect_alone(bench: Bench) -> None:
    assert bench.device.request(DAMAGED, bench.now) == {"recorded": True}
    refused = bench.device.channel.refused
    hello = bench.host.hello()
    bench.say(hello, Frame(FrameKind.HS1, hello.session, 0, bytes(48)))
    assert kinds(bench) == {FrameKind.ALERT}
    alert = bench.host.last(Alert)
    assert (alert.code, alert.arg) == (AlertCode.DEFECT, FaultCode.MEMORY)
    assert bench.device.channel.refused == refused + 2
    assert DeviceState.FAULTY in bench.device.state()
    assert bench.events()[-1] == Fault(FaultCode.MEMORY, 0)


def test_a_malformed_hello_is_not_answered_even_so(bench: Bench) -> None:
    bench.device.request(DAMAGED, bench.now)
    payload = bytearray(bench.host.hello().payload)
    payload[4] = 1
    bench.say(Frame(FrameKind.HELLO, 9, 0, bytes(payload)))
    assert not bench.host.came


def test_a_handshake_that_had_started_fails(bench: Bench) -> None:
    bench.say(bench.host.hello())
    bench.device.request(DAMAGED, bench.now)
    bench.say(bench.host.hs1(bench.host.kk()))
    assert kinds(bench) == {FrameKind.HELLO_RSP, FrameKind.ALERT}
    assert bench.host.last(Alert).code is AlertCode.DEFECT


def test_no_host_is_paired(bench: Bench) -> None:
    bench.device.request(ServiceSwitch(True), bench.now)
    hello = bench.host.hello()
    bench.say(hello)
    bench.device.request(DAMAGED, bench.now)
    bench.say(Frame(FrameKind.PAIR1, hello.session, 0, bytes(48)))
    assert FrameKind.PAIR2 not in kinds(bench)
    assert bench.host.last(Alert).code is AlertCode.DEFECT


def test_alerts_keep_their_gap_and_the_keys_stay_what_they_were(bench: Bench) -> None:
    before = load_identity(bench.place)
    bench.device.request(DAMAGED, bench.now)
    for _ in range(5):
        bench.say(bench.host.hello())
    assert len(bench.host.all(Alert)) == 1
    bench.run(ALERT_GAP_MS, beats=False)
    bench.say(bench.host.hello())
    assert len(bench.host.all(Alert)) == 2
    after = load_identity(bench.place)
    assert (after.public, after.label) == (before.public, before.label)


def test_it_outlasts_a_start_and_ends_when_it_is_repaired(bench: Bench) -> None:
    bench.device.request(DAMAGED, bench.now)
    bench.power_on()
    bench.say(bench.host.hello())
    assert kinds(bench) == {FrameKind.ALERT}
    assert bench.device.request(WHOLE, bench.now) == {"recorded": False}
    bench.connect()
    bench.host.last(InfoReply)


def test_a_running_session_continues_and_a_self_test_finds_it(bench: Bench) -> None:
    bench.flowing()
    bench.device.request(DAMAGED, bench.now)
    answered = len(bench.host.frames(FrameKind.HELLO_RSP))
    bench.say(bench.host.hello())
    bench.say(bench.host.call(Selftest()))
    bench.run(1_000)
    assert bench.host.last(SelftestReply).code is FaultCode.MEMORY
    assert len(bench.host.frames(FrameKind.HELLO_RSP)) == answered
