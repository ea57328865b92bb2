"""Someone in the cable between a host and a device: what each attack is told as.

The attacker sees and changes everything and has no key. Whatever is tried, no session comes about
that the two did not make, no record comes that the device did not send, and the host says why.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.device import identity
from firmware_protocol.device.control import Load
from firmware_protocol.host import (
    AlertReceived,
    FrameRejected,
    HandshakeFailed,
    LinkSessionStarted,
)
from firmware_protocol.messages import errors
from firmware_protocol.messages.enums import AlertCode, Capabilities, FrameKind
from firmware_protocol.messages.frames import Hello, HelloRsp
from firmware_protocol.tablelink.framing import Deframer, Frame
from hil.devices import SimulatedShoe
from tests.support.hil.devices.meeting import Meeting

Touch = Callable[[Frame], Frame | None]
"""What the attacker makes of a frame; None: it does not arrive."""


class Between(Meeting):
    """Frames go through the attacker's hands, who may also send what was seen before."""

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

    def errors(self) -> list[type[errors.ProtocolError]]:
        return [type(away.error) for away in self.all(HandshakeFailed)]

    def alerts(self) -> list[AlertCode]:
        return [one.alert.code for one in self.all(AlertReceived)]

    def honest(self) -> None:
        """The attacker goes away, and all is well again."""
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


def _higher(frame: Frame) -> Frame:
    """The host's HELLO, as if it spoke newer versions too."""
    hello = msgspec.structs.replace(Hello.decode(frame.payload), version_max=9)
    return with_payload(frame, hello.encode())


def _older(frame: Frame) -> Frame:
    """The device's answer, as if it had no gate."""
    answer = HelloRsp.decode(frame.payload)
    return with_payload(
        frame, msgspec.structs.replace(answer, capabilities=Capabilities(0)).encode()
    )


@pytest.mark.parametrize(
    ("way", "kind", "change"),
    [
        ("to_device", FrameKind.HELLO, _higher),
        ("to_host", FrameKind.HELLO_RSP, _older),
        ("to_host", FrameKind.HELLO_RSP, lambda frame: flipped(frame, 33)),
        ("to_device", FrameKind.HS1, flipped),
    ],
    ids=["downgrade", "capabilities", "random", "hs1"],
)
def test_what_was_changed_before_the_keys_fails_at_the_device(
    tmp_path: Path, way: str, kind: FrameKind, change: Callable[[Frame], Frame]
) -> None:
    between = Between(tmp_path)
    setattr(between, way, only(kind, change))
    between.open()
    between.run(4_000)
    assert not between.all(LinkSessionStarted)
    assert AlertCode.HANDSHAKE_REFUSED in between.alerts()
    assert errors.HandshakeNotAuthentic not in between.errors()  # it never came so far
    assert between.errors()
    between.honest()


def test_a_changed_hs2_is_not_authentic(tmp_path: Path) -> None:
    between = Between(tmp_path)
    between.to_host = only(FrameKind.HS2, lambda frame: flipped(frame, 40))
    between.open()
    between.run(100)
    assert between.errors() == [errors.HandshakeNotAuthentic]
    between.honest()


def test_a_replayed_first_message_gets_no_answer(tmp_path: Path) -> None:
    between = Between(tmp_path)
    between.open()
    between.run(300)
    hello, hs1 = between.last_seen(FrameKind.HELLO), between.last_seen(FrameKind.HS1)
    answers = len([one for one in between.seen if one.kind is FrameKind.HS2])
    session = between.link.session
    for replayed in (hs1, hello, hs1):
        between.stand.receive(replayed.encode(), between.now)
        between.settle()
    between.run(500)
    assert len([one for one in between.seen if one.kind is FrameKind.HS2]) == answers
    assert between.alerts() == [AlertCode.HANDSHAKE_REFUSED]
    assert between.link.session == session


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
    assert between.errors() == [errors.HandshakeNotAuthentic]
    between.honest()


def test_replayed_and_forged_data_is_suspicious_and_changes_nothing(tmp_path: Path) -> None:
    between = Between(tmp_path)
    between.open()
    between.run(300)
    between.hand(Load(decks=1))
    between.run(300)
    records = list(between.records)
    data = between.last_seen(FrameKind.DATA)
    device = [one for one in between.seen if one.kind is FrameKind.DATA]
    for forged in (data, flipped(device[-1]), msgspec.structs.replace(data, counter=10_000)):
        between._hear(between.link.receive(forged.encode(), between.now))
    named = [type(one.error) for one in between.all(FrameRejected)]
    assert set(named) == {errors.Replayed, errors.NotAuthentic}
    assert len(named) == 3
    between.run(2_000)
    assert between.records == records
    assert between.link.resumed


def test_another_key_behind_the_same_serial_is_a_wrong_device(tmp_path: Path) -> None:
    between = Between(tmp_path)
    clone = identity.create(tmp_path / "clone", SimulatedShoe().device_class, "XX-0001")

    def cloned(frame: Frame) -> Frame:
        answer = HelloRsp.decode(frame.payload)
        return with_payload(
            frame, msgspec.structs.replace(answer, fingerprint=clone.fingerprint).encode()
        )

    between.to_host = only(FrameKind.HELLO_RSP, cloned)
    between.open()
    between.run(100)
    assert between.errors() == [errors.WrongDevice]
    between.honest()


def test_a_host_that_is_not_the_paired_one_is_turned_away(tmp_path: Path) -> None:
    between = Between(tmp_path)
    other = X25519PrivateKey.generate().public_key().public_bytes_raw()
    identity.pair_directly(between.place, other)
    between.open()
    between.run(4_000)
    assert not between.all(LinkSessionStarted)
    assert AlertCode.HANDSHAKE_REFUSED in between.alerts()
    assert between.errors()
