"""The device side of a pairing, written from PROTOCOL.md, with optional errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.messages import (
    SCHEMA_HASHES,
    Alert,
    AlertCode,
    Capabilities,
    DeviceClass,
    DeviceState,
    FrameKind,
    FrameLimit,
    HandshakeNotAuthentic,
    HelloRsp,
    PairDone,
)
from firmware_protocol.tablelink import (
    Deframer,
    Frame,
    Handshake,
    Sealer,
    encode_plaintext,
    fingerprint,
    label_psk,
    prologue,
)

CODE = bytes(range(16))


class Device:
    """The device side; `spoil` and the flags add errors."""

    def __init__(
        self,
        *,
        mute: FrameKind | None = None,
        spoil: Callable[[Frame], Frame] = lambda frame: frame,
        done: Any = None,
        done_counter: int = 0,
        names_other_key: bool = False,
        **answer: Any,
    ) -> None:
        self.key = X25519PrivateKey.generate()
        self.says = answer
        self.mute = mute
        self.done_counter = done_counter
        self.done = done
        self.names_other_key = names_other_key
        self.spoil = spoil
        self.received: list[Frame] = []
        self._deframer = Deframer()
        self._hello: Frame | None = None
        self._rsp: Frame | None = None
        self._shake: Handshake | None = None

    def receive(self, data: bytes) -> bytes:
        out = b""
        for frame in self._deframer.feed(data):
            assert isinstance(frame, Frame)
            self.received.append(frame)
            for answer in self._answer(frame):
                if answer.kind is not self.mute:
                    out += self.spoil(answer).encode()
        return out

    def _answer(self, frame: Frame) -> Iterator[Frame]:
        yield from {
            FrameKind.HELLO: self._greet,
            FrameKind.PAIR1: self._second,
            FrameKind.PAIR3: self._last,
        }[frame.kind](frame)

    def _greet(self, frame: Frame) -> Iterator[Frame]:
        self._hello = frame
        public = bytes(32) if self.names_other_key else self.key.public_key().public_bytes_raw()
        fields: dict[str, Any] = {
            "version_min": 1,
            "version_max": 1,
            "device_class": DeviceClass.SHOE,
            "largest": FrameLimit.MEDIUM,
            "capabilities": Capabilities.GATE,
            "schema": SCHEMA_HASHES[1],
            "fingerprint": fingerprint(public),
            "random": bytes(8),
            "maker": "Example Works",
            "model": "Shoe One",
            "serial": "EW-1",
            "state": DeviceState.SERVICE,
        }
        self._rsp = Frame(
            FrameKind.HELLO_RSP, frame.session, 0, HelloRsp(**{**fields, **self.says}).encode()
        )
        yield self._rsp

    def _second(self, frame: Frame) -> Iterator[Frame]:
        assert self._hello is not None
        assert self._rsp is not None
        # The last HELLO_RSP as it was made: what the host saw of it may have been changed.
        bound = prologue(self._hello, self._rsp)
        self._shake = Handshake.xxpsk3("device", bound, self.key, label_psk(CODE))
        try:
            self._shake.read(frame.payload)
        except HandshakeNotAuthentic:
            return
        yield Frame(FrameKind.PAIR2, frame.session, 0, self._shake.write())

    def _last(self, frame: Frame) -> Iterator[Frame]:
        assert self._shake is not None
        try:
            self._shake.read(frame.payload)
        except HandshakeNotAuthentic:
            yield Frame(FrameKind.ALERT, 0, 0, Alert(AlertCode.PAIRING_REFUSED, 0).encode())
            return
        sealer = Sealer(self._shake.split().send, frame.session)
        sealer.counter = self.done_counter
        own = PairDone(fingerprint(self._shake.their_key), 1)
        yield sealer.seal(encode_plaintext(self.done or own))
