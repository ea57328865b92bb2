"""What a link makes of noise, forgery, echoes and a port that takes nothing."""

from __future__ import annotations

from firmware_protocol.host import (
    AlertReceived,
    BeatReceived,
    FrameRejected,
    FramesDamaged,
    ProtocolViolated,
)
from firmware_protocol.host.exchange import MAX_OUT
from firmware_protocol.messages import (
    Alert,
    AlertCode,
    FrameKind,
    NotAuthentic,
    PairDone,
    Replayed,
    UnknownMessage,
)
from firmware_protocol.tablelink import Cause, Frame, Sealer
from tests.long.fuzz.scripted import START, Wired


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
    assert wired.events == [AlertReceived(alert)]
    assert wired.device.frames == []


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
    assert not wired.events
    assert wired.link.running


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
