"""A host that stood still reads first what has arrived; its own silence is not the device's."""

from __future__ import annotations

import pytest

from firmware_protocol.host import (
    HandshakeFailed,
    LinkSessionEnded,
    LinkSessionStarted,
    RecordCursor,
    RingResumed,
    SessionEnding,
)
from firmware_protocol.messages import DEAD_MS, HANDSHAKE_WAIT_MS, FrameKind, HostBeat, Info
from firmware_protocol.tablelink import NO_CHAIN
from tests.long.fuzz.scripted import EPOCH, MS, Wired, lock


def endings(wired: Wired) -> list[SessionEnding]:
    return [one.why for one in wired.of(LinkSessionEnded)]


@pytest.mark.parametrize("stall", [300, 500, 749])
def test_a_short_stall_ends_no_session(wired: Wired, stall: int) -> None:
    wired.pass_ms(250)
    wired.now += stall * MS
    wired.take(wired.link.wake(wired.now))
    wired.settle()
    wired.pass_ms(5000)
    assert (endings(wired), wired.link.running) == ([], True)


@pytest.mark.parametrize("first", ["wake", "receive", "call", "stored"])
@pytest.mark.parametrize("stall", [1000, 2000, 5000])
def test_after_a_longer_one_the_next_session_starts_at_once(stall: int, first: str) -> None:
    wired = Wired.running(1)
    wired.send(1)
    wired.forget()
    wired.now += stall * MS
    if first == "receive":
        wired.beat()
    elif first == "call":
        wired.link.call(lock(), wired.now)
    elif first == "stored":
        wired.link.stored(1, wired.now)
    wired.take(wired.link.wake(wired.now))
    wired.settle()
    assert endings(wired) == [SessionEnding.STALLED]
    assert [one.rekeyed for one in wired.of(LinkSessionStarted)] == [False]
    assert len(wired.of(RingResumed)) == 1
    assert not wired.of(HandshakeFailed)
    assert wired.device.frames[0].kind is FrameKind.HELLO, "nothing is said in the old session"


def test_what_arrived_during_the_stall_is_read_before_it_is_judged() -> None:
    wired = Wired.running(3)
    wired.forget()
    wired.now += 1500 * MS
    wired.send(1, 2)
    assert wired.seqs == [1, 2]
    assert endings(wired) == [SessionEnding.STALLED]
    wired.stored(2)
    wired.send(3)
    assert (wired.seqs, wired.link.resumed) == ([1, 2, 3], True)


def test_a_silent_device_is_noticed_by_a_host_that_stood_still(wired: Wired) -> None:
    """The time in which the host did not run does not count, all other time does."""
    wired.cut = True
    wired.pass_ms(500)
    wired.now += 700 * MS  # a heartbeat of the host was due 250 ms after the last
    wired.take(wired.link.wake(wired.now))
    assert endings(wired) == []
    wired.pass_ms(249)
    assert endings(wired) == []
    wired.pass_ms(251)
    assert endings(wired) == [SessionEnding.SILENT]


def test_a_host_that_is_always_late_notices_it_too(wired: Wired) -> None:
    wired.cut = True
    for _ in range(20):
        wired.now += 600 * MS
        wired.take(wired.link.wake(wired.now))
    assert endings(wired)[0] is SessionEnding.SILENT


def test_a_stall_within_a_handshake_begins_another_one() -> None:
    wired = Wired.running()
    wired.device.mute = {Info}
    wired.take(wired.link.lost(wired.now))
    wired.open()
    wired.forget()
    assert not wired.link.running
    wired.device.mute = set()
    wired.now += (DEAD_MS + 500) * MS
    wired.take(wired.link.wake(wired.now))
    wired.settle()
    assert wired.link.resumed
    assert not wired.of(HandshakeFailed), "nothing has failed, and nothing is delayed"


def test_a_stall_longer_than_the_handshake_is_no_failure_of_it() -> None:
    """HS2 has waited for the host: the device is given its time from then on."""
    wired = Wired(cursor=RecordCursor(EPOCH, 0, NO_CHAIN))
    wired.take(wired.link.open(wired.now))
    for _ in ("HELLO", "HS1"):
        wired.device.receive(wired.link.take())
        answer = wired.device.take()
        wired.now += (HANDSHAKE_WAIT_MS + 1000) * MS
        wired.take(wired.link.receive(answer, wired.now))
    wired.settle()
    assert wired.link.resumed
    assert not wired.of(HandshakeFailed)


def test_heartbeats_are_sent_again_at_their_times(wired: Wired) -> None:
    wired.pass_ms(250)
    wired.forget()
    wired.now += 600 * MS
    wired.take(wired.link.wake(wired.now))
    wired.settle()
    assert len(wired.device.received(HostBeat)) == 1, "those that were missed are not sent"
    wired.pass_ms(150)
    assert len(wired.device.received(HostBeat)) == 2
