"""How a session comes about: HELLO, the check of its answer, the handshake, INFO, RESUME."""

from __future__ import annotations

import itertools

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.host import (
    NO_CURSOR,
    AlertReceived,
    BeatReceived,
    ClockMeasured,
    CommandTimedOut,
    DeviceInfoReceived,
    FrameRejected,
    FramesDamaged,
    HandshakeFailed,
    HelloReceived,
    HostLink,
    LinkSessionStarted,
    ProtocolViolated,
    RingResumed,
)
from firmware_protocol.host.exchange import MAX_OUT
from firmware_protocol.messages import (
    Alert,
    AlertCode,
    BadKey,
    BadPadding,
    DeviceClass,
    FrameKind,
    HandshakeNotAuthentic,
    HostBeat,
    Info,
    NoCommonVersion,
    NotAuthentic,
    OutOfRange,
    PairDone,
    ProtocolError,
    Replayed,
    Resume,
    SchemaDiffers,
    TimeAnswer,
    TimeAsk,
    UnknownMessage,
    WeakKey,
    WrongDevice,
)
from firmware_protocol.tablelink import Cause, CommandCall, Frame, Sealer
from tests.long.fuzz.scripted import BOOT, DEVICE, DEVICE_KEY, MS, OWN, START, Scripted, Wired, lock


def test_a_session_starts_with_info_and_resume(wired: Wired) -> None:
    kinds = [type(event) for event in wired.events]
    assert kinds == [
        HelloReceived,
        LinkSessionStarted,
        DeviceInfoReceived,
        RingResumed,
        ClockMeasured,
    ]
    assert [type(what.command) for what in wired.device.said if isinstance(what, CommandCall)] == [
        Info,
        Resume,
    ]
    first = wired.device.said[0]
    assert isinstance(first, CommandCall)
    assert (first.command_id, first.host_boot) == (1, BOOT)
    assert (wired.link.running, wired.link.session) == (True, wired.device.session)
    (began,) = wired.of(LinkSessionStarted)
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
        ({"serial": "SN-2"}, WrongDevice),
        ({"device_class": DeviceClass.STATION}, WrongDevice),
        ({"fingerprint": bytes(16)}, WrongDevice),
        ({"schema": bytes(8)}, SchemaDiffers),
        ({"version_min": 2, "version_max": 3}, NoCommonVersion),
    ],
)
def test_a_wrong_answer_to_hello_is_rejected_before_any_key(
    answer: dict[str, object], error: type[ProtocolError]
) -> None:
    wired = Wired()
    wired.device.answer = answer
    wired.open()
    (away,) = wired.of(HandshakeFailed)
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
    (away,) = wired.of(HandshakeFailed)
    assert type(away.error) is HandshakeNotAuthentic
    assert not wired.of(LinkSessionStarted)


def test_another_class_is_taken_where_any_will_do() -> None:
    wired = Wired(device_class=DeviceClass.ANY, serial=None)
    wired.device.answer = {"device_class": DeviceClass.STATION, "serial": "OTHER"}
    wired.open()
    assert wired.link.running


def test_a_key_of_low_order_is_an_error_and_no_crash() -> None:
    device = Scripted()
    wired = Wired(device, key=bytes(32))
    from firmware_protocol.tablelink import fingerprint

    device.answer = {"fingerprint": fingerprint(bytes(32))}
    wired.open()
    (away,) = wired.of(HandshakeFailed)
    assert type(away.error) is WeakKey


def test_without_an_answer_hello_is_sent_again_under_another_id() -> None:
    wired = Wired()
    wired.device.mute = {FrameKind.HELLO}
    wired.open()
    wired.pass_ms(2100)
    ids = [frame.session for frame in wired.device.frames]
    assert len(ids) == 5
    assert all(one != other for one, other in itertools.pairwise(ids))
    assert [away.error.name for away in wired.of(HandshakeFailed)] == ["handshake-error"] * 4


def test_an_id_is_never_zero_that_of_the_session_or_that_of_the_attempt_before() -> None:
    drawn = iter((5, 6, 6, 5, 0, 7))

    def draw(size: int) -> bytes:
        return next(drawn).to_bytes(2, "little") if size == 2 else bytes(range(size))

    wired = Wired.running(random=draw, session_life_us=2_000_000)
    wired.device.mute = {FrameKind.HELLO}
    wired.forget()
    wired.pass_ms(2600)
    ids = [frame.session for frame in wired.device.frames if frame.kind is FrameKind.HELLO]
    assert ids == [6, 7]


def test_a_malformed_answer_is_ignored_and_reported_when_no_better_one_comes() -> None:
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
    (away,) = wired.of(HandshakeFailed)
    assert type(away.error) is BadPadding


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
    (away,) = wired.of(HandshakeFailed)
    assert str(away.error) == "no DATA came under the new keys"
    # INFO is retried each 200 ms, and the heartbeat keeps its schedule.
    assert (len(wired.device.received(Info)), len(wired.device.received(HostBeat))) == (6, 3)
    assert (wired.of(LinkSessionStarted), wired.of(CommandTimedOut)) == ([], [])


def test_an_unanswered_info_is_reported_and_retried() -> None:
    wired = Wired()
    wired.device.mute = {Info}
    wired.open()
    wired.device.beat()
    wired.settle()
    wired.pass_ms(1300)
    told = wired.of(CommandTimedOut)
    assert [type(one.command) for one in told] == [Info, Info]
    assert len({one.command_id for one in told}) == 2
    wired.device.mute = set()
    wired.pass_ms(250)
    assert wired.of(DeviceInfoReceived)


# --- misuse ---------------------------------------------------------------------------------


def test_misuse_is_refused() -> None:
    for boot in (0, 1 << 64, -1):
        with pytest.raises(ValueError, match="host_boot"):
            HostLink(OWN, DEVICE_KEY, device_class=DeviceClass.SHOE, serial=None, host_boot=boot)
    with pytest.raises(BadKey):
        HostLink(OWN, b"short", device_class=DeviceClass.SHOE, serial=None, host_boot=1)
    assert DEVICE.public_key().public_bytes_raw() == DEVICE_KEY


def test_beats_are_sent_at_each_multiple_of_the_heartbeat(wired: Wired) -> None:
    times = []
    for _ in range(300):
        before = len(wired.device.received(HostBeat))
        wired.call(lock())
        wired.pass_ms(7)
        if len(wired.device.received(HostBeat)) > before:
            times.append((wired.now - START) // MS)
    assert [time // 250 for time in times] == list(range(1, len(times) + 1))
    assert all(time % 250 < 7 for time in times)


def test_the_beat_goes_before_what_is_due_at_once(wired: Wired) -> None:
    wired.pass_ms(100)
    wired.device.said.clear()
    wired.now = START + 250 * MS
    wired.call(lock())
    assert [type(one).__name__ for one in wired.device.said] == ["HostBeat", "CommandCall"]


def test_beats_that_were_missed_are_not_sent_later(wired: Wired) -> None:
    wired.device.said.clear()
    wired.now = START + 630 * MS
    wired.take(wired.link.wake(wired.now))
    wired.settle()
    assert (len(wired.device.received(HostBeat)), wired.link.due()) == (1, START + 750 * MS)


def test_a_beat_acknowledges_nothing_before_resume() -> None:
    wired = Wired(Scripted(3))
    wired.device.mute = {Resume}
    wired.open()
    wired.pass_ms(600)
    assert set(wired.device.received(HostBeat)) == {HostBeat(0, 0, 0)}


def test_the_clock_is_read_after_resume_and_each_ten_seconds(wired: Wired) -> None:
    (first,) = wired.of(ClockMeasured)
    assert (first.offset_us, first.uncertainty_us) == (1_000_005, 5)
    wired.pass_ms(60_000)
    asked = [one.t1 for one in wired.device.received(TimeAsk)]
    assert len(asked) == 7
    assert all(b - a == 10_000_000 for a, b in itertools.pairwise(asked))


def test_a_lost_answer_is_asked_for_again_soon() -> None:
    wired = Wired(Scripted(), cursor=NO_CURSOR)
    wired.device.mute = {TimeAsk}
    wired.open()
    wired.pass_ms(2500)
    assert (len(wired.device.received(TimeAsk)), wired.of(ClockMeasured)) == (3, [])


def test_the_clock_by_the_formula(wired: Wired) -> None:
    wired.device.mute = {TimeAsk}
    wired.pass_ms(10_000)
    ask = wired.device.received(TimeAsk)[-1]
    asked_at = ask.t1
    wired.now = asked_at + 800
    told = wired.say(TimeAnswer(asked_at, 777_000, 777_100))
    (read,) = [one for one in told if isinstance(one, ClockMeasured)]
    t1, t2, t3, t4 = asked_at, 777_000, 777_100, asked_at + 800
    assert read.offset_us == ((t2 - t1) + (t3 - t4)) // 2
    assert read.uncertainty_us == ((t4 - t1) - (t3 - t2)) // 2 == 350
    assert not [one for one in wired.say(TimeAnswer(t1, 1, 2)) if isinstance(one, ClockMeasured)]


def test_a_clock_that_cannot_be_is_a_defect(wired: Wired) -> None:
    wired.device.mute = {TimeAsk}
    wired.pass_ms(10_000)
    ask = wired.device.received(TimeAsk)[-1]
    (defect,) = wired.say(TimeAnswer(ask.t1, 100, 99))
    assert isinstance(defect, ProtocolViolated)
    assert type(defect.error) is OutOfRange


def test_noise_is_reported_with_its_cause(wired: Wired) -> None:
    wired.forget()
    wired.device.out += b"\x04abc\x00" + b"\x09a\x00" + b"z" * 300 + b"\x00"
    wired.settle()
    assert [one.cause.value for one in wired.of(FramesDamaged)] == ["oversize", "cobs", "garbage"]
    assert len(wired.events) == 3


def test_much_noise_at_once_is_counted(wired: Wired) -> None:
    wired.forget()
    alert = Frame(FrameKind.ALERT, 0, 0, Alert(AlertCode.NO_SESSION, 0).encode()).encode()
    wired.device.out += b"\x01\0" * 500 + alert + b"\x09a\0" * 3 + b"\x01\0" * 500
    wired.settle()
    assert wired.events[1:] == [
        FramesDamaged(Cause.COBS, 3),
        FramesDamaged(Cause.GARBAGE, 1000),
    ]
    assert isinstance(wired.events[0], AlertReceived)


def test_old_counters_and_wrong_tags_are_suspicious_and_change_nothing(wired: Wired) -> None:
    sealer = wired.device.sealers[-1]
    frame = sealer.seal(bytes(56))
    wired.device.out += frame.encode() * 2
    wired.settle()
    assert type(wired.of(FrameRejected)[0].error) is Replayed
    forged = Sealer(bytes(32), sealer.session)
    forged.counter = sealer.counter + 5
    wired.device.out += forged.seal(bytes(56)).encode()
    wired.settle()
    assert type(wired.of(FrameRejected)[1].error) is NotAuthentic
    assert wired.say(bytes(56))
    assert wired.link.running


def test_data_without_a_session_is_ignored() -> None:
    wired = Wired()
    wired.device.mute = {FrameKind.HELLO}
    wired.open()
    wired.device.out += Sealer(bytes(32), 7).seal(bytes(56)).encode()
    wired.settle()
    assert not wired.events


def test_an_alert_is_shown_and_nothing_follows(wired: Wired) -> None:
    wired.forget()
    alert = Alert(AlertCode.NO_SESSION, 0)
    wired.device.out += Frame(FrameKind.ALERT, 0, 0, alert.encode()).encode()
    wired.device.out += Frame(FrameKind.ALERT, 0, 0, b"\xff" * 8).encode()
    wired.settle()
    assert (wired.events, wired.device.frames) == ([AlertReceived(alert)], [])


def test_an_echo_of_what_the_host_sent_is_ignored() -> None:
    wired = Wired()
    wired.link.open(START)
    assert wired.link.receive(wired.link.take(), START) == []


def test_hello_and_hs2_in_between_do_not_affect_a_session(wired: Wired) -> None:
    wired.forget()
    answer = wired.device.hello_rsp().encode()
    wired.device.out += Frame(FrameKind.HELLO_RSP, wired.device.session, 0, answer).encode()
    wired.device.out += Frame(FrameKind.HS2, wired.device.session, 0, bytes(48)).encode()
    wired.settle()
    assert (wired.events, wired.link.running) == ([], True)


def test_a_pairing_message_in_a_session_is_a_defect(wired: Wired) -> None:
    (defect,) = wired.say(PairDone(bytes(16), 1))
    assert isinstance(defect, ProtocolViolated)
    assert type(defect.error) is UnknownMessage


def test_a_beat_is_reported(wired: Wired) -> None:
    wired.forget()
    wired.device.beat()
    wired.settle()
    assert len(wired.of(BeatReceived)) == 1


def test_a_port_that_takes_nothing_costs_no_more_than_its_bound(wired: Wired) -> None:
    for _ in range(2000):
        wired.link.pause(wired.now)
    assert MAX_OUT - 86 < len(wired.link.take()) <= MAX_OUT
    wired.link.unpause(wired.now)
    wired.settle()  # what was lost was lost: the device takes the higher counter
    wired.pass_ms(3000)
    assert wired.link.running
