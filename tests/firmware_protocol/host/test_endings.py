"""Every way in which a session ends, and how new keys take over."""

from __future__ import annotations

import pytest

from firmware_protocol.host import (
    CommandTimedOut,
    FrameRejected,
    FramesDamaged,
    HandshakeFailed,
    LinkSessionEnded,
    LinkSessionStarted,
    ProtocolViolated,
    RingResumed,
    SessionEnding,
)
from firmware_protocol.messages import (
    MAX_FRAMES,
    REKEY_FRAMES,
    FrameKind,
    Info,
    KeysWiped,
    LockState,
    WrongSession,
)
from firmware_protocol.tablelink import Frame
from tests.long.fuzz.scripted import MS, Scripted, Wired, lock

# --- how a session ends ---------------------------------------------------------------------


def test_a_second_of_silence_ends_the_session_and_hello_follows_at_once(wired: Wired) -> None:
    wired.cut = True
    wired.pass_ms(999)
    assert wired.link.running
    wired.cut = False
    wired.device.mute = {FrameKind.HELLO}
    wired.forget()
    wired.pass_ms(1, beats=False)
    assert wired.events == [LinkSessionEnded(SessionEnding.SILENT)]
    assert (wired.device.frames[-1].kind, wired.link.session) == (FrameKind.HELLO, None)


def test_any_valid_data_is_a_sign_of_life(wired: Wired) -> None:
    for _ in range(5):
        wired.pass_ms(900, beats=False)
        assert wired.say(bytes(56))  # malformed, and yet authentic
    assert (wired.link.running, len(wired.of(ProtocolViolated))) == (True, 5)


def test_nothing_is_said_in_a_session_that_is_over(wired: Wired) -> None:
    wired.now += 1000 * MS
    wired.link.call(lock(), wired.now)
    wired.link.pause(wired.now)
    assert wired.link.take() == b""


def test_a_port_that_disconnects_ends_the_session_and_wipes_its_keys(wired: Wired) -> None:
    old = wired.device.session
    assert wired.link.lost(wired.now) == [LinkSessionEnded(SessionEnding.CLOSED)]
    assert (wired.link.session, wired.link.take(), wired.link.due()) == (None, b"", None)
    wired.device.beat()
    assert wired.link.receive(wired.device.take(), wired.now) == []
    wired.pass_ms(3000)
    wired.forget()
    wired.open()
    assert wired.link.running
    assert wired.link.session != old


@pytest.mark.parametrize("end", ["lost", "close", "open", "silent", "taken over"])
def test_keys_are_wiped_at_every_end(end: str) -> None:
    wired = Wired.running(rekey_frames=12 if end == "taken over" else MAX_FRAMES)
    session = wired.link.sessions.running
    assert session is not None
    if end == "silent":
        wired.pass_ms(1000, beats=False)
    elif end == "taken over":
        wired.pass_ms(3000)
    else:
        getattr(wired.link, end)(wired.now)
    frame = Frame(FrameKind.DATA, session.id, session.opener.last + 1, bytes(72), session.version)
    with pytest.raises(KeysWiped):
        session.sealer.seal(bytes(56))
    with pytest.raises(KeysWiped):
        session.opener.open(frame)


def test_the_keys_of_a_session_that_had_no_data_are_wiped() -> None:
    wired = Wired.opened(Scripted(mute={Info}))
    pending = wired.link.sessions.pending
    assert pending is not None
    wired.pass_ms(1000, beats=False)
    assert wired.of(HandshakeFailed)
    with pytest.raises(KeysWiped):
        pending.sealer.seal(bytes(56))


def test_opening_the_port_again_ends_the_old_session(wired: Wired) -> None:
    wired.hear(b"\x05half")
    wired.open()
    assert wired.of(LinkSessionEnded) == [LinkSessionEnded(SessionEnding.CLOSED)]
    assert (wired.of(FramesDamaged), wired.link.running) == ([], True)


def test_after_close_nothing_continues(wired: Wired) -> None:
    wired.device.replies.clear()
    ident, waiting = wired.call(lock()), wired.call(lock(LockState.LOCKED))
    assert wired.link.close(wired.now) == [
        LinkSessionEnded(SessionEnding.CLOSED),
        CommandTimedOut(ident, lock(), sent=True),
        CommandTimedOut(waiting, lock(LockState.LOCKED), sent=False),
    ]
    assert wired.link.due() is None
    for again in (
        lambda: wired.link.open(wired.now),
        lambda: wired.link.call(lock(), wired.now),
    ):
        with pytest.raises(ValueError, match="was closed"):
            again()


def test_a_session_whose_counters_are_used_up_is_spent(wired: Wired) -> None:
    running = wired.link.sessions.running
    assert running is not None
    running.sealer.counter = MAX_FRAMES - 1
    wired.link.pause(wired.now)
    wired.link.unpause(wired.now)
    assert (wired.link.due() or 0) <= wired.now
    wired.take(wired.link.wake(wired.now))
    assert wired.of(LinkSessionEnded) == [LinkSessionEnded(SessionEnding.SPENT)]
    wired.settle()
    assert wired.link.running  # a new one


# --- new keys -------------------------------------------------------------------------------


def test_after_so_many_frames_a_new_session_starts_with_its_first_data() -> None:
    wired = Wired.running(rekey_frames=12)
    first = wired.link.session
    wired.forget()
    wired.pass_ms(3000)
    began = wired.of(LinkSessionStarted)
    assert {one.rekeyed for one in began} == {True}
    assert wired.link.session != first
    assert (wired.of(LinkSessionEnded), wired.of(HandshakeFailed)) == ([], [])
    assert len(wired.of(RingResumed)) == len(began)


def test_the_device_does_not_choose_how_often_new_keys_are_made(wired: Wired) -> None:
    """It picks its counters: one that begins at the last of them makes every session old."""

    def leap() -> None:
        sealer = wired.device.sealers[-1]
        sealer.counter = max(sealer.counter, REKEY_FRAMES)
        wired.device.beat()

    hs1 = wired.device._hs1

    def leaping(frame: Frame) -> None:
        hs1(frame)
        leap()

    wired.forget()
    wired.device._hs1 = leaping  # type: ignore[method-assign]
    leap()
    wired.settle()
    for _ in range(300):
        wired.pass_ms(10)
    began = wired.of(LinkSessionStarted)
    assert 2 <= len(began) <= 3 * 2  # in three seconds
    assert wired.link.running
    # No device can send so many frames between two heartbeats.
    odd = [str(one.error) for one in wired.of(ProtocolViolated)]
    assert len(odd) == len(began) + 1
    assert "DATA: counter" in odd[0]


def test_frames_that_were_lost_are_no_leap(wired: Wired) -> None:
    wired.forget()
    wired.device.sealers[-1].counter += 100_000
    wired.beat()
    assert not wired.of(ProtocolViolated)


def test_a_session_that_is_too_old_is_replaced() -> None:
    wired = Wired.running(session_life_us=20_000_000)
    wired.pass_ms(19_900)
    assert len(wired.of(LinkSessionStarted)) == 1
    wired.pass_ms(200)
    assert len(wired.of(LinkSessionStarted)) == 2


def test_the_old_session_stays_in_use_until_data_of_the_new_one() -> None:
    wired = Wired.running(1, rekey_frames=14)
    old = wired.device.sealers[-1]
    wired.device.mute = {Info}
    for _ in range(80):
        wired.pass_ms(10, beats=False)
        wired.hear(old.seal(bytes(56)))  # a sign of life, if a malformed one
        if len(wired.device.sealers) > 1:
            break
    assert (len(wired.device.sealers), wired.link.session) == (2, old.session)
    wired.hear(old.seal(wired.device.records[0].encode()))
    assert wired.seqs == [1]
    wired.forget()
    for _ in range(5):  # beats go out in both
        wired.pass_ms(100, beats=False)
        wired.hear(old.seal(bytes(56)))
    sessions = {frame.session for frame in wired.device.frames if frame.kind is FrameKind.DATA}
    assert sessions == {old.session, wired.device.session}
    wired.beat()
    assert wired.link.session == wired.device.session
    assert [one.rekeyed for one in wired.of(LinkSessionStarted)] == [True]
    # Late frames of the former session mean nothing for a while, and later they are reported.
    wired.forget()
    wired.hear(old.seal(bytes(56)))
    assert not wired.of(FrameRejected)
    wired.pass_ms(1000)
    wired.hear(old.seal(bytes(56)))
    assert wired.errors(FrameRejected) == [WrongSession]


def test_a_failed_rekey_keeps_the_old_session() -> None:
    wired = Wired.running(rekey_frames=12)
    first = wired.link.session
    old = wired.device.sealers[-1]
    wired.device.mute = {FrameKind.HELLO}
    for _ in range(40):
        wired.pass_ms(200, beats=False)
        wired.hear(old.seal(bytes(56)))
    assert wired.link.session == first
    assert wired.of(HandshakeFailed)
    assert not wired.of(LinkSessionEnded)
