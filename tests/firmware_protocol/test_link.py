"""The link's life: HELLO, handshake, beats, new keys, and every way in which a session ends."""

from __future__ import annotations

import itertools

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol import errors
from firmware_protocol.enums import AlertCode, DeviceClass, FrameKind, LockState
from firmware_protocol.framing import Frame
from firmware_protocol.limits import MAX_FRAMES
from firmware_protocol.link import MOST_OUT, NO_CURSOR, Link
from firmware_protocol.link_events import (
    Alerted,
    Beat,
    ClockRead,
    Damaged,
    Defective,
    Ending,
    Greeted,
    Informed,
    Resumed,
    SessionBegan,
    SessionEnded,
    Suspicious,
    TurnedAway,
    Unanswered,
)
from firmware_protocol.messages_all import Info, Resume
from firmware_protocol.messages_control import HostBeat, PairDone, TimeAnswer, TimeAsk
from firmware_protocol.messages_frames import Alert
from firmware_protocol.plaintext import CommandCall
from firmware_protocol.sealing import Sealer
from tests.fuzz.scripted import BOOT, DEVICE, DEVICE_KEY, OWN, Scripted, lock
from tests.fuzz.wired import MS, START, Wired

# --- how a session comes about --------------------------------------------------------------


def test_a_session_begins_with_info_and_resume() -> None:
    wired = Wired.running()
    kinds = [type(event) for event in wired.events]
    assert kinds == [Greeted, SessionBegan, Informed, Resumed, ClockRead]
    assert [type(what.command) for what in wired.device.said if isinstance(what, CommandCall)] == [
        Info,
        Resume,
    ]
    first = wired.device.said[0]
    assert isinstance(first, CommandCall)
    assert (first.command_id, first.host_boot) == (1, BOOT)
    assert wired.link.running
    assert wired.link.session == wired.device.session
    (began,) = wired.of(SessionBegan)
    assert (began.session, began.version, began.rekeyed) == (wired.device.session, 1, False)


def test_the_first_bytes_are_a_zero_and_hello() -> None:
    wired = Wired()
    wired.link.open(START)
    data = wired.link.take()
    assert data[0] == 0
    wired.device.receive(data)
    (frame,) = wired.device.frames
    assert frame.kind is FrameKind.HELLO


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"serial": "SN-2"}, errors.WrongDevice),
        ({"device_class": DeviceClass.STATION}, errors.WrongDevice),
        ({"fingerprint": bytes(16)}, errors.WrongDevice),
        ({"schema": bytes(8)}, errors.SchemaDiffers),
        ({"version_min": 2, "version_max": 3}, errors.NoCommonVersion),
    ],
)
def test_a_wrong_answer_to_hello_is_turned_away_before_any_key(
    answer: dict[str, object], error: type[errors.ProtocolError]
) -> None:
    wired = Wired()
    wired.device.answer = answer
    wired.open()
    (away,) = wired.of(TurnedAway)
    assert type(away.error) is error
    assert [frame.kind for frame in wired.device.frames] == [FrameKind.HELLO]
    assert not wired.link.running
    wired.device.answer = {}
    wired.pass_ms(500)
    assert wired.link.running


def test_a_device_that_copies_serial_and_fingerprint_fails_the_handshake() -> None:
    wired = Wired()
    honest = wired.device.hello_rsp()
    wired.device.key = X25519PrivateKey.generate()
    wired.device.answer = {"fingerprint": honest.fingerprint}
    # It cannot open HS1, so it makes up an HS2.
    wired.device.mute = {FrameKind.HS1}
    wired.open()
    hs1 = wired.device.frames[-1]
    assert hs1.kind is FrameKind.HS1
    forged = Frame(FrameKind.HS2, hs1.session, 0, bytes(range(48)))
    wired.device.out += forged.encode()
    wired.settle()
    (away,) = wired.of(TurnedAway)
    assert type(away.error) is errors.HandshakeNotAuthentic
    assert not wired.of(SessionBegan)


def test_another_class_is_taken_where_any_will_do() -> None:
    wired = Wired(device_class=DeviceClass.ANY, serial=None)
    wired.device.answer = {"device_class": DeviceClass.STATION, "serial": "OTHER"}
    wired.open()
    assert wired.link.running


def test_a_key_of_low_order_is_an_error_and_no_crash() -> None:
    device = Scripted()
    wired = Wired(device, key=bytes(32))
    from firmware_protocol.keys import fingerprint

    device.answer = {"fingerprint": fingerprint(bytes(32))}
    wired.open()
    (away,) = wired.of(TurnedAway)
    assert type(away.error) is errors.WeakKey


def test_without_an_answer_hello_comes_again_under_another_id() -> None:
    wired = Wired()
    wired.device.mute = {FrameKind.HELLO}
    wired.open()
    wired.pass_ms(2100)
    ids = [frame.session for frame in wired.device.frames]
    assert len(ids) == 5
    assert all(one != other for one, other in itertools.pairwise(ids))
    assert [away.error.name for away in wired.of(TurnedAway)] == ["handshake-error"] * 4


def test_a_malformed_answer_is_ignored_and_told_when_no_better_one_comes() -> None:
    wired = Wired()
    wired.device.mute = {FrameKind.HELLO}
    wired.open()
    payload = bytearray(wired.device.hello_rsp().encode())
    payload[95] = 1
    session = wired.device.frames[-1].session
    wired.device.out += Frame(FrameKind.HELLO_RSP, session, 0, bytes(payload)).encode()
    wired.settle()
    assert not wired.events
    wired.pass_ms(500)
    (away,) = wired.of(TurnedAway)
    assert type(away.error) is errors.BadPadding


def test_what_belongs_to_another_attempt_is_ignored() -> None:
    wired = Wired()
    wired.device.mute = {FrameKind.HELLO}
    wired.open()
    session = wired.device.frames[-1].session
    answer = wired.device.hello_rsp().encode()
    for other in (Frame(FrameKind.HELLO_RSP, session ^ 1 or 2, 0, answer),):
        wired.device.out += other.encode()
    wired.device.out += Frame(FrameKind.HS2, session, 0, bytes(48)).encode()
    wired.settle()
    assert not wired.events


def test_attempts_that_fail_come_ever_more_slowly_and_fast_again_after_a_session() -> None:
    wired = Wired()
    wired.device.mute = {FrameKind.HS1}
    wired.open()
    times = []
    for _ in range(7):
        wired.device.frames.clear()
        while not wired.device.frames:
            wired.pass_ms(50)
        times.append(wired.now)
    gaps = [round((b - a) / 1_000_000, 1) for a, b in itertools.pairwise(times)]
    assert gaps == [4.0, 5.0, 7.0, 11.0, 11.0, 11.0]  # HANDSHAKE_WAIT and 1, 2, 4, 8, 8, 8 s
    wired.device.mute = set()
    wired.pass_ms(12_000)
    assert wired.link.running
    wired.device.mute = {FrameKind.HS1}
    wired.forget()
    wired.pass_ms(1100, beats=False)  # silent: HELLO at once
    wired.pass_ms(3500, beats=False)  # no HS2: 500 ms later again
    hellos = [frame for frame in wired.device.frames if frame.kind is FrameKind.HELLO]
    assert len(hellos) == 2


def test_no_data_under_the_new_keys_is_an_error() -> None:
    wired = Wired()
    wired.device.mute = {Info}
    wired.open()
    wired.pass_ms(1000, beats=False)
    (away,) = wired.of(TurnedAway)
    assert str(away.error) == "no DATA came under the new keys"
    # INFO is sent again each 200 ms, and the beat goes on its schedule all the same.
    assert len(wired.device.heard(Info)) == 6
    assert len(wired.device.heard(HostBeat)) == 3
    assert not wired.of(SessionBegan)
    assert not wired.of(Unanswered)


def test_an_unanswered_info_is_told_and_asked_anew() -> None:
    wired = Wired()
    wired.device.mute = {Info}
    wired.open()
    wired.device.beat()
    wired.settle()
    wired.pass_ms(1300)
    told = wired.of(Unanswered)
    assert [type(one.command) for one in told] == [Info, Info]
    assert len({one.command_id for one in told}) == 2
    wired.device.mute = set()
    wired.pass_ms(250)
    assert wired.of(Informed)


# --- beats and the clock --------------------------------------------------------------------


def test_beats_come_at_each_multiple_of_the_heartbeat_whatever_else_is_sent() -> None:
    wired = Wired.running()
    times = []
    for _ in range(300):
        before = len(wired.device.heard(HostBeat))
        wired.call(lock())
        wired.pass_ms(7)
        if len(wired.device.heard(HostBeat)) > before:
            times.append((wired.now - START) // MS)
    assert [time // 250 for time in times] == list(range(1, len(times) + 1))
    assert all(time % 250 < 7 for time in times)


def test_the_beat_goes_before_what_is_due_at_once() -> None:
    wired = Wired.running()
    wired.pass_ms(100)
    wired.device.said.clear()
    wired.now = START + 250 * MS
    wired.call(lock())
    assert [type(one).__name__ for one in wired.device.said] == ["HostBeat", "CommandCall"]


def test_beats_that_were_missed_are_not_made_up_for() -> None:
    wired = Wired.running()
    wired.device.said.clear()
    wired.now = START + 830 * MS
    wired.take(wired.link.wake(wired.now))
    wired.settle()
    assert len(wired.device.heard(HostBeat)) == 1
    assert wired.link.due() == START + 1000 * MS


def test_a_beat_acknowledges_nothing_before_resume() -> None:
    wired = Wired(Scripted(3))
    wired.device.mute = {Resume}
    wired.open()
    wired.pass_ms(600)
    assert set(wired.device.heard(HostBeat)) == {HostBeat(0, 0, 0)}


def test_the_clock_is_read_after_resume_and_each_ten_seconds() -> None:
    wired = Wired.running()
    (first,) = wired.of(ClockRead)
    assert (first.offset_us, first.uncertainty_us) == (1_000_005, 5)
    wired.pass_ms(60_000)
    asked = [one.t1 for one in wired.device.heard(TimeAsk)]
    assert len(asked) == 7
    assert all(b - a == 10_000_000 for a, b in itertools.pairwise(asked))


def test_a_lost_answer_is_asked_for_again_soon() -> None:
    wired = Wired(Scripted(), cursor=NO_CURSOR)
    wired.device.mute = {TimeAsk}
    wired.open()
    wired.pass_ms(2500)
    assert len(wired.device.heard(TimeAsk)) == 3
    assert not wired.of(ClockRead)


def test_the_clock_by_the_formula() -> None:
    wired = Wired.running()
    wired.device.mute = {TimeAsk}
    wired.pass_ms(10_000)
    ask = wired.device.heard(TimeAsk)[-1]
    asked_at = ask.t1
    wired.now = asked_at + 800
    told = wired.say(TimeAnswer(asked_at, 777_000, 777_100))
    (read,) = [one for one in told if isinstance(one, ClockRead)]
    t1, t2, t3, t4 = asked_at, 777_000, 777_100, asked_at + 800
    assert read.offset_us == ((t2 - t1) + (t3 - t4)) // 2
    assert read.uncertainty_us == ((t4 - t1) - (t3 - t2)) // 2 == 350
    assert not [one for one in wired.say(TimeAnswer(t1, 1, 2)) if isinstance(one, ClockRead)]


def test_a_clock_that_cannot_be_is_a_defect() -> None:
    wired = Wired.running()
    wired.device.mute = {TimeAsk}
    wired.pass_ms(10_000)
    ask = wired.device.heard(TimeAsk)[-1]
    (defect,) = wired.say(TimeAnswer(ask.t1, 100, 99))
    assert isinstance(defect, Defective)
    assert type(defect.error) is errors.OutOfRange


# --- how a session ends ---------------------------------------------------------------------


def test_a_second_of_silence_ends_the_session_and_hello_follows_at_once() -> None:
    wired = Wired.running()
    wired.cut = True
    wired.pass_ms(999)
    assert wired.link.running
    wired.cut = False
    wired.device.mute = {FrameKind.HELLO}
    wired.forget()
    wired.pass_ms(1, beats=False)
    assert wired.events == [SessionEnded(Ending.SILENT)]
    assert wired.device.frames[-1].kind is FrameKind.HELLO
    assert wired.link.session is None


def test_any_valid_data_is_a_sign_of_life() -> None:
    wired = Wired.running()
    for _ in range(5):
        wired.pass_ms(900, beats=False)
        assert wired.say(bytes(56))  # malformed, and yet authentic
    assert wired.link.running
    assert len(wired.of(Defective)) == 5


def test_nothing_is_said_in_a_session_that_is_over() -> None:
    wired = Wired.running()
    wired.now += 1000 * MS
    wired.link.call(lock(), wired.now)
    wired.link.pause(wired.now)
    assert wired.link.take() == b""


def test_a_port_that_goes_ends_the_session_and_wipes_its_keys() -> None:
    wired = Wired.running()
    old = wired.device.session
    assert wired.link.lost(wired.now) == [SessionEnded(Ending.CLOSED)]
    assert not wired.link.running
    assert wired.link.take() == b""
    assert wired.link.due() is None
    wired.device.beat()
    assert wired.link.receive(wired.device.take(), wired.now) == []
    wired.pass_ms(3000)
    wired.forget()
    wired.open()
    assert wired.link.running
    assert wired.link.session != old


def test_opened_anew_without_a_word_the_old_session_is_over() -> None:
    wired = Wired.running()
    wired.device.out += b"\x05half"
    wired.settle()
    wired.open()
    assert wired.of(SessionEnded) == [SessionEnded(Ending.CLOSED)]
    assert not wired.of(Damaged)
    assert wired.link.running


def test_after_close_nothing_goes_on() -> None:
    wired = Wired.running()
    wired.device.replies.clear()
    ident = wired.call(lock())
    waiting = wired.call(lock(LockState.LOCKED))
    told = wired.link.close(wired.now)
    assert told == [
        SessionEnded(Ending.CLOSED),
        Unanswered(ident, lock(), sent=True),
        Unanswered(waiting, lock(LockState.LOCKED), sent=False),
    ]
    assert wired.link.due() is None
    for again in (
        lambda: wired.link.open(wired.now),
        lambda: wired.link.call(lock(), wired.now),
    ):
        with pytest.raises(ValueError, match="was closed"):
            again()


def test_a_session_whose_counters_are_used_up_is_spent() -> None:
    wired = Wired.running()
    running = wired.link._sessions.running
    assert running is not None
    running.sealer.counter = MAX_FRAMES - 1
    wired.link.pause(wired.now)
    wired.link.go_on(wired.now)
    assert wired.link.due() is not None
    assert wired.link.due() <= wired.now  # type: ignore[operator]
    wired.take(wired.link.wake(wired.now))
    assert wired.of(SessionEnded) == [SessionEnded(Ending.SPENT)]
    wired.settle()
    assert wired.link.running  # a new one


# --- new keys -------------------------------------------------------------------------------


def test_after_so_many_frames_a_new_session_takes_over_with_its_first_data() -> None:
    wired = Wired.running(rekey_frames=12)
    first = wired.link.session
    wired.forget()
    wired.pass_ms(3000)
    began = wired.of(SessionBegan)
    assert began
    assert all(one.rekeyed for one in began)
    assert wired.link.session != first
    assert not wired.of(SessionEnded)
    assert not wired.of(TurnedAway)
    assert len(wired.of(Resumed)) == len(began)


def test_a_session_that_is_too_old_is_replaced() -> None:
    wired = Wired.running(session_life_us=20_000_000)
    wired.pass_ms(19_900)
    assert len(wired.of(SessionBegan)) == 1
    wired.pass_ms(200)
    assert len(wired.of(SessionBegan)) == 2


def test_the_old_session_stays_in_use_until_the_new_one_has_spoken() -> None:
    wired = Wired.running(1, rekey_frames=14)
    old = wired.device.sealers[-1]
    wired.device.mute = {Info}
    for _ in range(40):
        wired.pass_ms(10, beats=False)
        wired.device.out += old.seal(bytes(56)).encode()  # a sign of life, if a malformed one
        wired.settle()
        if len(wired.device.sealers) > 1:
            break
    assert len(wired.device.sealers) == 2
    assert wired.link.session == old.session
    wired.device.out += old.seal(wired.device.records[0].encode()).encode()
    wired.settle()
    assert [record.seq for record in wired.arrived] == [1]
    wired.forget()
    for _ in range(5):  # beats go out in both
        wired.pass_ms(100, beats=False)
        wired.device.out += old.seal(bytes(56)).encode()
        wired.settle()
    sessions = {frame.session for frame in wired.device.frames if frame.kind is FrameKind.DATA}
    assert sessions == {old.session, wired.device.session}
    wired.device.beat()
    wired.settle()
    assert wired.link.session == wired.device.session
    (began,) = wired.of(SessionBegan)
    assert began.rekeyed
    # Late frames of the former session mean nothing for a while, and later they are reported.
    wired.forget()
    wired.device.out += old.seal(bytes(56)).encode()
    wired.settle()
    assert not wired.of(Suspicious)
    wired.pass_ms(1000)
    wired.device.out += old.seal(bytes(56)).encode()
    wired.settle()
    (odd,) = wired.of(Suspicious)
    assert type(odd.error) is errors.WrongSession


def test_new_keys_that_do_not_come_about_leave_the_old_session_alone() -> None:
    wired = Wired.running(rekey_frames=12)
    first = wired.link.session
    old = wired.device.sealers[-1]
    wired.device.mute = {FrameKind.HELLO}
    for _ in range(40):
        wired.pass_ms(200, beats=False)
        wired.device.out += old.seal(bytes(56)).encode()
        wired.settle()
    assert wired.link.session == first
    assert wired.of(TurnedAway)
    assert not wired.of(SessionEnded)


# --- what should not be ---------------------------------------------------------------------


def test_noise_is_told_with_its_cause() -> None:
    wired = Wired.running()
    wired.forget()
    wired.device.out += b"\x04abc\x00" + b"\x09a\x00" + b"z" * 300 + b"\x00"
    wired.settle()
    assert [one.cause.value for one in wired.of(Damaged)] == ["garbage", "cobs", "oversize"]
    assert len(wired.events) == 3


def test_old_counters_and_wrong_tags_are_suspicious_and_change_nothing() -> None:
    wired = Wired.running()
    sealer = wired.device.sealers[-1]
    frame = sealer.seal(bytes(56))
    wired.device.out += frame.encode() * 2
    wired.settle()
    assert type(wired.of(Suspicious)[0].error) is errors.Replayed
    forged = Sealer(bytes(32), sealer.session)
    forged.counter = sealer.counter + 5
    wired.device.out += forged.seal(bytes(56)).encode()
    wired.settle()
    assert type(wired.of(Suspicious)[1].error) is errors.NotAuthentic
    assert wired.say(bytes(56))
    assert wired.link.running


def test_data_without_a_session_means_nothing() -> None:
    wired = Wired()
    wired.device.mute = {FrameKind.HELLO}
    wired.open()
    wired.device.out += Sealer(bytes(32), 7).seal(bytes(56)).encode()
    wired.settle()
    assert not wired.events
    assert wired.link.ignored == 1


def test_an_alert_is_shown_and_nothing_follows() -> None:
    wired = Wired.running()
    wired.forget()
    alert = Alert(AlertCode.NO_SESSION, 0)
    wired.device.out += Frame(FrameKind.ALERT, 0, 0, alert.encode()).encode()
    wired.device.out += Frame(FrameKind.ALERT, 0, 0, b"\xff" * 8).encode()
    wired.settle()
    assert wired.events == [Alerted(alert)]
    assert wired.device.frames == []


def test_an_echo_of_what_the_host_sent_means_nothing() -> None:
    wired = Wired()
    wired.link.open(START)
    assert wired.link.receive(wired.link.take(), START) == []
    assert wired.link.ignored == 1


def test_hello_and_hs2_in_between_do_not_touch_a_session() -> None:
    wired = Wired.running()
    wired.forget()
    answer = wired.device.hello_rsp().encode()
    wired.device.out += Frame(FrameKind.HELLO_RSP, wired.device.session, 0, answer).encode()
    wired.device.out += Frame(FrameKind.HS2, wired.device.session, 0, bytes(48)).encode()
    wired.settle()
    assert not wired.events
    assert wired.link.running


def test_a_pairing_message_in_a_session_is_a_defect() -> None:
    wired = Wired.running()
    (defect,) = wired.say(PairDone(bytes(16), 1))
    assert isinstance(defect, Defective)
    assert type(defect.error) is errors.UnknownMessage


def test_a_beat_is_handed_on() -> None:
    wired = Wired.running()
    wired.forget()
    wired.device.beat()
    wired.settle()
    assert len(wired.of(Beat)) == 1


def test_a_port_that_takes_nothing_costs_no_more_than_its_bound() -> None:
    wired = Wired.running()
    for _ in range(2000):
        wired.link.pause(wired.now)
    assert MOST_OUT - 86 < len(wired.link.take()) <= MOST_OUT
    wired.link.go_on(wired.now)
    wired.settle()  # what was lost was lost: the device takes the higher counter
    wired.pass_ms(3000)
    assert wired.link.running


# --- misuse ---------------------------------------------------------------------------------


def test_misuse_is_refused() -> None:
    for boot in (0, 1 << 64, -1):
        with pytest.raises(ValueError, match="host_boot"):
            Link(OWN, DEVICE_KEY, device_class=DeviceClass.SHOE, serial=None, host_boot=boot)
    with pytest.raises(errors.BadKey):
        Link(OWN, b"short", device_class=DeviceClass.SHOE, serial=None, host_boot=1)
    assert DEVICE.public_key().public_bytes_raw() == DEVICE_KEY
