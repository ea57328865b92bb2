"""An attacker in the cable between a host and a device.

The attacker reads and changes all bytes and has no key. No forged session and no forged record is
accepted, and the host reports the cause.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from firmware_protocol.device import Load, create_identity
from firmware_protocol.host import (
    AlertReceived,
    FrameRejected,
    HandshakeFailed,
    LinkSessionStarted,
)
from firmware_protocol.messages import (
    AlertCode,
    FrameKind,
    HandshakeNotAuthentic,
    HelloRsp,
    NotAuthentic,
    ProtocolError,
    Replayed,
    WrongDevice,
)
from firmware_protocol.tablelink import Deframer, Frame
from hil.devices import SimulatedShoe
from tests.support.hil.devices.meeting import Meeting

Touch = Callable[[Frame], Frame | None]
"""Changes a frame; None drops it."""


class Between(Meeting):
    """Passes frames through the attacker, who may replay former ones."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, SimulatedShoe)
        self.to_device: Touch = lambda frame: frame
        self.to_host: Touch = lambda frame: frame
        self.seen: list[Frame] = []
        self._host, self._device = Deframer(), Deframer()

    def settle(self) -> None:
        while True:
            out, back = self.link.take(), self.stand.take()
            if not out and not back:
                return
            self.stand.receive(self._through(self._host, out, self.to_device), self.now)
            self._hear(self.link.receive(self._through(self._device, back, self.to_host), self.now))

    def _through(self, cutter: Deframer, data: bytes, touch: Touch) -> bytes:
        out = b""
        for frame in cutter.feed(data):
            assert isinstance(frame, Frame)
            self.seen.append(frame)
            touched = touch(frame)
            out += b"" if touched is None else touched.encode()
        return out

    def last_seen(self, kind: FrameKind) -> Frame:
        return [frame for frame in self.seen if frame.kind is kind][-1]

    def errors(self) -> list[type[ProtocolError]]:
        return [type(away.error) for away in self.all(HandshakeFailed)]

    def alerts(self) -> list[AlertCode]:
        return [one.alert.code for one in self.all(AlertReceived)]

    def honest(self) -> None:
        """Stop the attack, and check that a session starts."""
        before = len(self.all(LinkSessionStarted))
        self.to_device = self.to_host = lambda frame: frame
        self.run(10_000)
        assert len(self.all(LinkSessionStarted)) > before
        assert self.link.resumed


def with_payload(frame: Frame, payload: bytes) -> Frame:
    return msgspec.structs.replace(frame, payload=payload)


def flipped(frame: Frame, at: int = 3) -> Frame:
    payload = bytearray(frame.payload)
    payload[at] ^= 0x10
    return with_payload(frame, bytes(payload))


def only(kind: FrameKind, change: Callable[[Frame], Frame | None]) -> Touch:
    return lambda frame: change(frame) if frame.kind is kind else frame


def test_a_changed_hs2_is_not_authentic(tmp_path: Path) -> None:
    between = Between(tmp_path)
    between.to_host = only(FrameKind.HS2, lambda frame: flipped(frame, 40))
    between.open()
    between.run(100)
    assert between.errors() == [HandshakeNotAuthentic]
    between.honest()


def test_an_old_hs2_is_not_authentic(tmp_path: Path) -> None:
    between = Between(tmp_path)
    between.open()
    between.run(300)
    old = between.last_seen(FrameKind.HS2)
    between.to_host = only(
        FrameKind.HS2, lambda frame: msgspec.structs.replace(old, session=frame.session)
    )
    between.replug()
    between.run(100)
    assert between.errors() == [HandshakeNotAuthentic]
    between.honest()


def test_replayed_and_forged_data_is_suspicious_and_changes_nothing(tmp_path: Path) -> None:
    between = Between(tmp_path)
    between.open()
    between.run(300)
    between.request(Load(decks=1))
    between.run(300)
    records = list(between.records)
    data = between.last_seen(FrameKind.DATA)
    device = [one for one in between.seen if one.kind is FrameKind.DATA]
    for forged in (data, flipped(device[-1]), msgspec.structs.replace(data, counter=10_000)):
        between._hear(between.link.receive(forged.encode(), between.now))
    named = [type(one.error) for one in between.all(FrameRejected)]
    assert set(named) == {Replayed, NotAuthentic}
    assert len(named) == 3
    between.run(2_000)
    assert between.records == records
    assert between.link.resumed


def test_another_key_behind_the_same_serial_is_a_wrong_device(tmp_path: Path) -> None:
    between = Between(tmp_path)
    clone = create_identity(tmp_path / "clone", SimulatedShoe().device_class, "XX-0001")

    def cloned(frame: Frame) -> Frame:
        answer = HelloRsp.decode(frame.payload)
        return with_payload(
            frame, msgspec.structs.replace(answer, fingerprint=clone.fingerprint).encode()
        )

    between.to_host = only(FrameKind.HELLO_RSP, cloned)
    between.open()
    between.run(100)
    assert between.errors() == [WrongDevice]
    between.honest()
