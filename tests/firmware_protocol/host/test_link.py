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
from firmware_protocol.tablelink import Cause, CommandCall, Frame, Sealer, fingerprint
from tests.long.fuzz.scripted import (
    BOOT,
    DEVICE,
    DEVICE_KEY,
    MS,
    OWN,
    START,
    Scripted,
    Wired,
    defects,
    lock,
)


def test_a_session_starts_with_info_and_resume(wired: Wired) -> None:
    assert [type(event) for event in wired.events] == [
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
    assert wired.device.said[0] == CommandCall(1, BOOT, Info())
    assert (wired.link.running, wired.link.session) == (True, wired.device.session)
    assert wired.of(LinkSessionStarted) == [LinkSessionStarted(wired.device.session, 1, False)]


def test_the_first_bytes_are_a_zero_and_hello() -> None:
    wired = Wired()
    wired.link.open(START)
    data = wired.link.take()
    assert data[0] == 0
    wired.device.receive(data)
    assert [frame.kind for frame in wired.device.frames] == [FrameKind.HELLO]


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
    wired = Wired.opened(Scripted(answer=answer))
    assert wired.errors(HandshakeFailed) == [error]
    assert [frame.kind for frame in wired.device.frames] == [FrameKind.HELLO]
    assert not wired.link.running
    wired.device.answer = {}
    wired.pass_ms(500)
    assert wired.link.running


def test_a_device_that_copies_serial_and_fingerprint_fails_the_handshake() -> None:
    device = Scripted(answer={"fingerprint": Scripted().hello_rsp().fingerprint})
    device.key = X25519PrivateKey.generate()
    # It cannot open HS1, so it makes up an HS2.
    device.mute = {FrameKind.HS1}
    wired = Wired.opened(device)
    hs1 = device.frames[-1]
    assert hs1.kind is FrameKind.HS1
    wired.hear(Frame(FrameKind.HS2, hs1.session, 0, bytes(range(48))))
    assert wired.errors(HandshakeFailed) == [HandshakeNotAuthentic]
    assert not wired.of(LinkSessionStarted)


def test_another_class_is_taken_where_any_will_do() -> None:
    other = Scripted(answer={"device_class": DeviceClass.STATION, "serial": "OTHER"})
    assert Wired.opened(other, device_class=DeviceClass.ANY, serial=None).link.running


def test_a_key_of_low_order_is_an_error_and_no_crash() -> None:
    device = Scripted(answer={"fingerprint": fingerprint(bytes(32))})
    wired = Wired.opened(device, key=bytes(32))
    assert wired.errors(HandshakeFailed) == [WeakKey]


def test_without_an_answer_hello_is_sent_again_under_another_id() -> None:
    wired = Wired.opened(Scripted(mute={FrameKind.HELLO}))
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
    assert wired.device.ids(FrameKind.HELLO) == [6, 7]


def test_a_malformed_answer_is_ignored_and_reported_when_no_better_one_comes() -> None:
    wired = Wired.opened(Scripted(mute={FrameKind.HELLO}))
    payload = bytearray(wired.device.hello_rsp().encode())
    payload[95] = 1
    session = wired.device.frames[-1].session
    wired.hear(Frame(FrameKind.HELLO_RSP, session, 0, bytes(payload)))
    assert not wired.events
    wired.pass_ms(500)
    assert wired.errors(HandshakeFailed) == [BadPadding]


def test_what_belongs_to_another_attempt_is_ignored() -> None:
    wired = Wired.opened(Scripted(mute={FrameKind.HELLO}))
    session = wired.device.frames[-1].session
    wired.hear(
        Frame(FrameKind.HELLO_RSP, session ^ 1 or 2, 0, wired.device.hello_rsp().encode()),
        Frame(FrameKind.HS2, session, 0, bytes(48)),
    )
    assert not wired.events


def test_attempts_that_fail_come_ever_more_slowly_and_fast_again_after_a_session() -> None:
    wired = Wired.opened(Scripted(mute={FrameKind.HS1}))
    times = []
    for _ in range(7):
        wired.device.frames.clear()
        while not wired.device.frames:
            wired.pass_ms(50)
        times.append(wired.now)
    gaps = [round((b - a) / 1_000_000, 1) for a, b in itertools.pairwise(times)]
    assert gaps == [11.0, 12.0, 14.0, 18.0, 18.0, 18.0]  # HANDSHAKE_WAIT and 1, 2, 4, 8, 8, 8 s
    wired.device.mute = set()
    wired.pass_ms(20_000)
    assert wired.link.running
    wired.device.mute = {FrameKind.HS1}
    wired.forget()
    wired.pass_ms(1100, beats=False)  # silent: HELLO at once
    wired.pass_ms(10_500, beats=False)  # no HS2: 500 ms later again
    assert len(wired.device.ids(FrameKind.HELLO)) == 2


def test_no_data_under_the_new_keys_is_an_error() -> None:
    wired = Wired.opened(Scripted(mute={Info}))
    wired.pass_ms(1000, beats=False)
    assert [str(one.error) for one in wired.of(HandshakeFailed)] == [
        "no DATA came under the new keys"
    ]
    # INFO is retried each 200 ms, and the heartbeat keeps its schedule.
    assert (len(wired.device.received(Info)), len(wired.device.received(HostBeat))) == (6, 3)
    assert (wired.of(LinkSessionStarted), wired.of(CommandTimedOut)) == ([], [])


def test_an_unanswered_info_is_reported_and_retried() -> None:
    wired = Wired.opened(Scripted(mute={Info}))
    wired.beat()
    wired.pass_ms(1300)
    assert [type(one.command) for one in wired.of(CommandTimedOut)] == [Info, Info]
    assert len({one.command_id for one in wired.of(CommandTimedOut)}) == 2
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


def test_one_timer_may_send_a_beat_early(wired: Wired) -> None:
    """Those after it keep their times; none is sent twice, or earlier than is allowed."""
    sent: dict[int, int] = {}

    def wake(ms: int, early: int) -> None:
        wired.device.said.clear()
        wired.now = START + ms * MS
        wired.take(wired.link.wake(wired.now, early=early))
        wired.settle()
        sent[ms] = len(wired.device.received(HostBeat))

    for ms in range(100, 1100, 100):  # a timer that serves other links too
        wake(ms, 100 * MS)
    assert [ms for ms, beats in sent.items() if beats] == [200, 400, 700, 900]
    assert set(sent.values()) == {0, 1}
    wake(1100, 10_000 * MS)
    assert sent[1100] == 0
    wake(1126, 10_000 * MS)
    assert sent[1126] == 1


def test_beats_that_were_missed_are_not_sent_later(wired: Wired) -> None:
    wired.device.said.clear()
    wired.now = START + 630 * MS
    wired.take(wired.link.wake(wired.now))
    wired.settle()
    assert (len(wired.device.received(HostBeat)), wired.link.due()) == (1, START + 750 * MS)


def test_a_beat_acknowledges_nothing_before_resume() -> None:
    wired = Wired.opened(Scripted(3, mute={Resume}))
    wired.pass_ms(600)
    assert set(wired.device.received(HostBeat)) == {HostBeat(0, 0, 0)}


def test_the_clock_is_read_after_resume_and_each_ten_seconds(wired: Wired) -> None:
    assert wired.of(ClockMeasured) == [ClockMeasured(1_000_005, 5)]
    wired.pass_ms(60_000)
    asked = [one.t1 for one in wired.device.received(TimeAsk)]
    assert len(asked) == 7
    assert all(b - a == 10_000_000 for a, b in itertools.pairwise(asked))


def test_a_lost_answer_is_asked_for_again_soon() -> None:
    wired = Wired.opened(Scripted(mute={TimeAsk}), cursor=NO_CURSOR)
    wired.pass_ms(2500)
    assert (len(wired.device.received(TimeAsk)), wired.of(ClockMeasured)) == (3, [])


def test_the_clock_by_the_formula(wired: Wired) -> None:
    wired.device.mute = {TimeAsk}
    wired.pass_ms(10_000)
    t1 = wired.device.received(TimeAsk)[-1].t1
    t2, t3, t4 = 777_000, 777_100, t1 + 800
    wired.now = t4
    wired.forget()
    wired.say(TimeAnswer(t1, t2, t3), TimeAnswer(t1, 1, 2))
    assert wired.of(ClockMeasured) == [ClockMeasured(((t2 - t1) + (t3 - t4)) // 2, 350)]


def test_a_clock_that_cannot_be_is_a_defect(wired: Wired) -> None:
    wired.device.mute = {TimeAsk}
    wired.pass_ms(10_000)
    assert defects(wired.say(TimeAnswer(wired.device.received(TimeAsk)[-1].t1, 100, 99))) == [
        OutOfRange
    ]


def test_noise_is_reported_with_its_cause(wired: Wired) -> None:
    wired.forget()
    wired.hear(b"\x04abc\x00" + b"\x09a\x00" + b"z" * 300 + b"\x00")
    assert [one.cause.value for one in wired.of(FramesDamaged)] == ["oversize", "cobs", "garbage"]
    assert len(wired.events) == 3


def test_much_noise_at_once_is_counted(wired: Wired) -> None:
    wired.forget()
    alert = Alert(AlertCode.NO_SESSION, 0)
    wired.hear(
        b"\x01\0" * 500
        + Frame(FrameKind.ALERT, 0, 0, alert.encode()).encode()
        + b"\x09a\0" * 3
        + b"\x01\0" * 500
    )
    assert wired.events == [
        AlertReceived(alert),
        FramesDamaged(Cause.COBS, 3),
        FramesDamaged(Cause.GARBAGE, 1000),
    ]


def test_old_counters_and_wrong_tags_are_suspicious_and_change_nothing(wired: Wired) -> None:
    sealer = wired.device.sealers[-1]
    wired.hear(sealer.seal(bytes(56)).encode() * 2)
    forged = Sealer(bytes(32), sealer.session)
    forged.counter = sealer.counter + 5
    wired.hear(forged.seal(bytes(56)))
    assert wired.errors(FrameRejected) == [Replayed, NotAuthentic]
    assert wired.say(bytes(56))
    assert wired.link.running


def test_data_without_a_session_is_ignored() -> None:
    wired = Wired.opened(Scripted(mute={FrameKind.HELLO}))
    wired.hear(Sealer(bytes(32), 7).seal(bytes(56)))
    assert not wired.events


def test_an_alert_is_shown_and_nothing_follows(wired: Wired) -> None:
    wired.forget()
    alert = Alert(AlertCode.NO_SESSION, 0)
    wired.hear(
        Frame(FrameKind.ALERT, 0, 0, alert.encode()), Frame(FrameKind.ALERT, 0, 0, b"\xff" * 8)
    )
    assert (wired.events, wired.device.frames) == ([AlertReceived(alert)], [])


def test_an_echo_of_what_the_host_sent_is_ignored() -> None:
    wired = Wired()
    wired.link.open(START)
    assert wired.link.receive(wired.link.take(), START) == []


def test_hello_and_hs2_in_between_do_not_affect_a_session(wired: Wired) -> None:
    wired.forget()
    answer = wired.device.hello_rsp().encode()
    wired.hear(
        Frame(FrameKind.HELLO_RSP, wired.device.session, 0, answer),
        Frame(FrameKind.HS2, wired.device.session, 0, bytes(48)),
    )
    assert (wired.events, wired.link.running) == ([], True)


def test_a_pairing_message_in_a_session_is_a_defect(wired: Wired) -> None:
    assert defects(wired.say(PairDone(bytes(16), 1))) == [UnknownMessage]


def test_a_beat_is_reported(wired: Wired) -> None:
    wired.forget()
    wired.beat()
    assert len(wired.of(BeatReceived)) == 1


def test_a_port_that_takes_nothing_costs_no_more_than_its_bound(wired: Wired) -> None:
    for _ in range(2000):
        wired.link.pause(wired.now)
    assert MAX_OUT - 86 < len(wired.link.take()) <= MAX_OUT
    wired.link.unpause(wired.now)
    wired.settle()  # what was lost was lost: the device takes the higher counter
    wired.pass_ms(3000)
    assert wired.link.running
