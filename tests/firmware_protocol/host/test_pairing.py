"""Pairing from the host's side: what is kept, what is turned away, and by which name."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.device import ServiceSwitch, create_identity
from firmware_protocol.host import (
    DeviceIntroduced,
    HostPairing,
    Introduction,
    PairingAlert,
    PairingDone,
    PairingEvent,
    PairingFailed,
    PairingFailure,
    PairingNoise,
)
from firmware_protocol.host.pairing import (
    HELLO_TRIES,
    PairingFrameIgnored,
)
from firmware_protocol.messages import (
    HELLO_WAIT_MS,
    PAIR_WAIT_MS,
    Alert,
    AlertCode,
    BadPadding,
    DeviceBeat,
    DeviceClass,
    DeviceState,
    Event,
    FrameKind,
    HandshakeNotAuthentic,
    Hello,
    NoCommonVersion,
    NotAuthentic,
    PairDone,
    Paired,
    ProtocolError,
    SchemaDiffers,
    Tamper,
    TamperSource,
    UnknownMessage,
    WeakKey,
    WrongAnswer,
    WrongDevice,
    WrongSession,
)
from firmware_protocol.tablelink import (
    Deframer,
    EventRecord,
    Frame,
    decode_plaintext,
    fingerprint,
    label_psk,
    noise,
)
from hil.devices import SimulatedStation
from hil.faults import faulty_device
from tests.support.firmware_protocol.pairing_device import CODE, Device
from tests.support.paths import ROOT

VECTOR = ROOT / "firmware_protocol/vectors/v1/handshake_xxpsk3.json"
OWN = X25519PrivateKey.from_private_bytes(bytes(range(32)))
OWN_PRINT = fingerprint(OWN.public_key().public_bytes_raw())
WAIT = PAIR_WAIT_MS * 1000


def pairing(**options: Any) -> HostPairing:
    return HostPairing(OWN, label_psk(CODE), **options)


def carry(host: Introduction, device: Device, now: int = 0) -> list[PairingEvent]:
    """Carry bytes to and fro until both are silent."""
    events = host.open(now)
    while data := host.take():
        events += host.receive(device.receive(data), now)
    return events


def failed(events: list[PairingEvent]) -> tuple[PairingFailure, type[ProtocolError] | None]:
    """Why, and for which kind of error."""
    end = events[-1]
    assert isinstance(end, PairingFailed)
    assert not [event for event in events if isinstance(event, PairingDone)]
    return end.why, None if end.error is None else type(end.error)


def spoiled(kind: FrameKind, at: int) -> Callable[[Frame], Frame]:
    """Flip a bit of the payload of one kind of frame."""

    def spoil(frame: Frame) -> Frame:
        if frame.kind is not kind:
            return frame
        payload = bytearray(frame.payload)
        payload[at] ^= 1
        return Frame(frame.kind, frame.session, frame.counter, bytes(payload), frame.version)

    return spoil


def test_pairing_returns_the_key_after_pair_done() -> None:
    host, device = pairing(device_class=DeviceClass.SHOE, serial="EW-1"), Device()
    introduced, done = carry(host, device)
    assert isinstance(introduced, DeviceIntroduced)
    assert introduced.answer.serial == "EW-1"
    assert isinstance(done, PairingDone)
    assert done == PairingDone(
        device.key.public_key().public_bytes_raw(), introduced.answer, PairDone(OWN_PRINT, 1)
    )
    assert done.device_key.hex() not in repr(done)
    assert str(done.device_key) not in repr(done)
    assert [frame.kind.name for frame in device.received] == ["HELLO", "PAIR1", "PAIR3"]
    assert len({frame.session for frame in device.received}) == 1
    assert (host.over, host.due()) == (True, None)
    assert host.wake(1 << 60) == host.receive(b"\0xyz\0", 0) == host.lost() == host.close() == []


def test_the_bytes_of_the_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    vector = json.loads(VECTOR.read_text())
    ephemeral = X25519PrivateKey.from_private_bytes(
        bytes.fromhex(vector["host_ephemeral"]["private"])
    )
    monkeypatch.setattr(noise, "X25519PrivateKey", SimpleNamespace(generate=lambda: ephemeral))
    own = X25519PrivateKey.from_private_bytes(bytes.fromhex(vector["host"]["private"]))
    host = HostPairing(
        own,
        bytes.fromhex(vector["psk"]),
        device_class=DeviceClass.SHOE,
        pick=lambda taken: vector["session"],
    )

    def frame(kind: FrameKind) -> bytes:
        return Frame(kind, vector["session"], 0, bytes.fromhex(vector[kind.name])).encode()

    host.open(0)
    assert host.take() == b"\0" + frame(FrameKind.HELLO)
    host.receive(frame(FrameKind.HELLO_RSP), 0)
    assert host.take() == frame(FrameKind.PAIR1)
    host.receive(frame(FrameKind.PAIR2), 0)
    assert host.take() == frame(FrameKind.PAIR3)
    (done,) = host.receive(bytes.fromhex(vector["PAIR_DONE"]["wire"]), 0)
    assert isinstance(done, PairingDone)
    assert done.device_key.hex() == vector["device"]["public"]


def test_an_introduction_ends_with_the_answer() -> None:
    host, device = Introduction(OWN_PRINT), Device(serial="X.9")
    (event,) = carry(host, device)
    assert isinstance(event, DeviceIntroduced)
    assert (event.answer.serial, host.over) == ("X.9", True)
    assert [frame.kind for frame in device.received] == [FrameKind.HELLO]
    assert Hello.decode(device.received[0].payload).fingerprint == OWN_PRINT


def test_silence_is_retried_under_new_session_ids_and_ends() -> None:
    picked: list[tuple[int, ...]] = []

    def pick(taken: tuple[int, ...]) -> int:
        picked.append(taken)
        return 100 + len(picked)

    host = pairing(pick=pick)
    host.open(0)
    asked, now = [host.take()], 0
    for _ in range(HELLO_TRIES - 1):
        assert host.wake(now + 1) == []
        assert host.take() == b""
        due = host.due()
        assert due is not None
        assert due - now == HELLO_WAIT_MS * 1000
        now = due
        assert host.wake(now) == []
        asked.append(host.take())
    sessions = [frame.session for frame in Deframer().feed(b"".join(asked))]  # type: ignore[union-attr]
    assert len(sessions) == HELLO_TRIES
    assert all(one != other for one, other in pairwise(sessions))
    assert picked == [(), *[(session,) for session in sessions[:-1]]]
    due = host.due()
    assert due is not None
    assert failed(host.wake(due)) == (PairingFailure.NO_ANSWER, None)


def test_a_late_answer_to_the_hello_before_is_ignored() -> None:
    host, device = pairing(), Device()
    host.open(0)
    late = device.receive(host.take())
    host.wake(HELLO_WAIT_MS * 1000)
    (event,) = host.receive(late, HELLO_WAIT_MS * 1000)
    assert isinstance(event, PairingFrameIgnored)
    assert isinstance(event.error, WrongAnswer)
    assert isinstance(carry(host, device)[-1], PairingDone)


@pytest.mark.parametrize(
    ("flaw", "options", "error"),
    [
        ({"version_min": 2, "version_max": 3}, {}, NoCommonVersion),
        ({"schema": bytes(8)}, {}, SchemaDiffers),
        ({}, {"device_class": DeviceClass.STATION}, WrongDevice),
        ({}, {"serial": "EW-2"}, WrongDevice),
        ({}, {"fingerprint": bytes(16)}, WrongDevice),
        ({"spoil": spoiled(FrameKind.HELLO_RSP, 95)}, {}, BadPadding),  # a reserved byte
    ],
)
def test_an_unexpected_or_malformed_answer_gets_no_pair1(
    flaw: dict[str, Any], options: dict[str, Any], error: type[ProtocolError]
) -> None:
    device = Device(**flaw)
    assert failed(carry(pairing(**options), device)) == (PairingFailure.TURNED_AWAY, error)
    assert [frame.kind for frame in device.received] == [FrameKind.HELLO]


def test_the_service_switch_is_off() -> None:
    host, alert = pairing(), Alert(AlertCode.PAIRING_OFF, 0)
    assert len(carry(host, Device(mute=FrameKind.PAIR2), now=7)) == 1
    hint = Frame(FrameKind.ALERT, 0, 0, alert.encode())
    assert host.receive(hint.encode(), 8) == [PairingAlert(alert)]
    assert not host.over  # a hint is shown and never acted on
    assert host.due() == 7 + WAIT
    assert host.wake(6 + WAIT) == []
    assert failed(host.wake(7 + WAIT)) == (PairingFailure.NO_PAIR2, None)


@pytest.mark.parametrize(
    ("flaw", "why"),
    [
        ({"mute": FrameKind.DATA}, PairingFailure.NO_DONE),
        *(
            ({"spoil": spoiled(FrameKind.HELLO_RSP, at)}, PairingFailure.NO_PAIR2)
            for at in (4, 24, 32, 40, 60, 75, 92)
        ),
    ],
)
def test_a_lost_pair_done_and_a_changed_hello_rsp_are_waited_for_in_vain(
    flaw: dict[str, Any], why: PairingFailure
) -> None:
    host = pairing()
    carry(host, Device(**flaw))
    assert failed(host.wake(WAIT)) == (why, None)


def of_low_order(frame: Frame) -> Frame:
    """PAIR2 with a key of low order."""
    if frame.kind is not FrameKind.PAIR2:
        return frame
    return Frame(frame.kind, frame.session, 0, bytes(32) + frame.payload[32:])


@pytest.mark.parametrize(
    ("flaw", "error"),
    [
        *(
            ({"spoil": spoiled(FrameKind.PAIR2, at)}, HandshakeNotAuthentic)
            for at in (0, 32, 79, 80, 95)
        ),
        ({"spoil": of_low_order}, WeakKey),
        ({"names_other_key": True}, WrongDevice),
    ],
)
def test_a_wrong_pair2_ends_it(flaw: dict[str, Any], error: type[ProtocolError]) -> None:
    device = Device(**flaw)
    assert failed(carry(pairing(), device)) == (PairingFailure.BAD_PAIR2, error)
    assert FrameKind.PAIR3 not in [frame.kind for frame in device.received]


def test_a_forged_pair_done_is_ignored_and_the_true_one_counts() -> None:
    host, device = pairing(), Device()
    host.open(0)
    for _ in range(2):
        host.receive(device.receive(host.take()), 0)
    true = device.receive(host.take())
    (frame,) = Deframer().feed(true)
    assert isinstance(frame, Frame)
    forged = spoiled(FrameKind.DATA, 3)(frame)
    stray = Frame(FrameKind.DATA, frame.session ^ 1 or 2, 0, frame.payload)
    ignored = host.receive(forged.encode() + stray.encode() + b"noise\0", 0)
    assert [
        type(one.error if isinstance(one, PairingFrameIgnored) else one) for one in ignored
    ] == [NotAuthentic, WrongSession, PairingNoise]
    (done,) = host.receive(true, 0)
    assert isinstance(done, PairingDone)


@pytest.mark.parametrize(
    ("done", "counter", "error"),
    [
        (PairDone(bytes(16), 1), 0, WrongDevice),
        (PairDone(OWN_PRINT, 1), 1, WrongAnswer),
        (DeviceBeat(1, 0, 1, 0, 0, DeviceState(0), 0, 0), 0, UnknownMessage),
    ],
)
def test_what_is_no_pair_done_keeps_nothing(
    done: Any, counter: int, error: type[ProtocolError]
) -> None:
    events = carry(pairing(), Device(done=done, done_counter=counter))
    assert failed(events) == (PairingFailure.BAD_DONE, error)


def test_frames_out_of_turn_are_ignored() -> None:
    host, device = pairing(), Device()
    host.open(0)
    answer = device.receive(host.take())
    host.receive(answer, 0)
    again = host.receive(answer + Frame(FrameKind.PAIR2, 1, 0, bytes(96)).encode(), 0)
    assert [type(event) for event in again] == [PairingFrameIgnored] * 2
    events: list[PairingEvent] = []
    while data := host.take():
        events += host.receive(device.receive(data), 0)
    assert isinstance(events[-1], PairingDone)


def test_the_port_disconnects_and_the_caller_closes() -> None:
    for end, why in (
        (HostPairing.lost, PairingFailure.LOST),
        (HostPairing.close, PairingFailure.CLOSED),
    ):
        host = pairing()
        carry(host, Device(mute=FrameKind.DATA))
        assert end(host) == [PairingFailed(why)]
        assert host.over
        assert end(host) == []


OWN_KEY = OWN.public_key().public_bytes_raw()
WRONG = label_psk(bytes(16))


def event_of(record: bytes) -> Event:
    read = decode_plaintext(record, sender="device")
    assert isinstance(read, EventRecord)
    return read.event


class Bench:
    """A device, a clock, and a cable between the device and the host."""

    def __init__(self, place: Path) -> None:
        create_identity(place, DeviceClass.STATION, "ST-7")
        self.now = 1_000_000
        self.device = faulty_device(place, SimulatedStation(), now=self.now, sync=False)

    @property
    def psk(self) -> bytes:
        return label_psk(self.device.identity.label)

    def switch(self, on: bool) -> None:
        self.device.request(ServiceSwitch(on), self.now)

    def run(self, host: Introduction) -> list[PairingEvent]:
        """Until the host is done, however long it takes on its clock."""
        events = host.open(self.now)
        while True:
            while data := host.take():
                self.device.receive(data, self.now)
                events += host.receive(self.device.take(), self.now)
            due = host.due()
            if due is None:
                return events
            self.now = due
            self.device.wake(self.now)
            events += host.receive(self.device.take(), self.now)
            events += host.wake(self.now)

    def recorded(self) -> list[Event]:
        ring = self.device.ring
        return [event_of(ring.record(seq)) for seq in range(1, ring.head + 1)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "station")


def test_a_pairing(bench: Bench) -> None:
    bench.switch(True)
    introduced, done = bench.run(HostPairing(OWN, bench.psk, device_class=DeviceClass.STATION))
    assert isinstance(introduced, DeviceIntroduced)
    assert DeviceState.SERVICE in introduced.answer.state
    assert isinstance(done, PairingDone)
    assert (done.device_key, done.done.pairings) == (bench.device.identity.public, 1)
    assert (bench.device.host, bench.recorded()[-1]) == (OWN_KEY, Paired(fingerprint(OWN_KEY), 1))


def test_an_introduction_changes_nothing(bench: Bench) -> None:
    before = bench.recorded()
    (event,) = bench.run(Introduction(bytes(16)))
    assert isinstance(event, DeviceIntroduced)
    assert event.answer.serial == "ST-7"
    assert event.answer.fingerprint == bench.device.identity.fingerprint
    assert DeviceState.SERVICE not in event.answer.state
    assert (bench.recorded(), bench.device.host) == (before, None)


def test_wrong_codes_and_the_lock_after_five(bench: Bench) -> None:
    bench.switch(True)
    for _ in range(5):
        _, hint, end = bench.run(HostPairing(OWN, WRONG))
        assert isinstance(hint, PairingAlert)
        assert hint.alert.code is AlertCode.PAIRING_REFUSED
        assert end == PairingFailed(PairingFailure.NO_DONE)
        assert bench.recorded()[-1] == Tamper(TamperSource.PAIRING_CODE, True)
    assert bench.run(HostPairing(OWN, bench.psk))[-1] == PairingFailed(PairingFailure.NO_PAIR2)
    assert bench.device.host is None
    bench.switch(False)
    bench.switch(True)
    assert isinstance(bench.run(HostPairing(OWN, bench.psk))[-1], PairingDone)


def test_another_host_replaces_the_first_and_can_be_replaced_by_it(bench: Bench) -> None:
    bench.switch(True)
    for number, own in enumerate((OWN, X25519PrivateKey.generate(), OWN), 1):
        done = bench.run(HostPairing(own, bench.psk))[-1]
        assert isinstance(done, PairingDone)
        assert done.done.pairings == number
        assert bench.device.host == own.public_key().public_bytes_raw()
