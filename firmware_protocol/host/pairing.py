"""Pairing on the host: XXpsk3 over a port, bytes and times in, bytes and results out.

    pairing = HostPairing(own, label_psk(code), serial="SH-0042", fingerprint=seen)
    results = pairing.open(now)
    port.write(pairing.take())
    results = pairing.receive(data, now)        # and wake(now) at due()

The device's key is returned only in PairingDone, after PAIR_DONE has opened, because the sender of
PAIR2 need not know the label. After PairingDone or PairingFailed the object does nothing more; a
retry needs a new one. Introduction is the first step alone: it identifies the device at a port.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, TypeAlias

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.messages import (
    HELLO_WAIT_MS,
    PAIR_WAIT_MS,
    SCHEMA_HASHES,
    VERSION,
    Alert,
    DeviceClass,
    FrameKind,
    FrameLimit,
    HandshakeError,
    Hello,
    HelloRsp,
    PairDone,
    ProtocolError,
    UnknownMessage,
    WrongAnswer,
    WrongDevice,
)
from firmware_protocol.tablelink import (
    Deframer,
    Frame,
    FrameDamage,
    Handshake,
    Opener,
    SessionKeys,
    agree,
    decode_plaintext,
    fingerprint,
    fingerprint_of,
    fingerprint_text,
    pick_session,
    prologue,
)

HELLO_TRIES: Final = 6
_MS: Final = 1000


class PairingFailure(Enum):
    """The step at which a pairing failed."""

    NO_ANSWER = "no HELLO_RSP"
    """No response to HELLO: there is no TableLink device, or it has no power."""
    TURNED_AWAY = "HELLO_RSP"
    """This host cannot pair with the device that answered; `error` says why."""
    NO_PAIR2 = "no PAIR2"
    """The device ignored PAIR1: its service switch is off, it is locked after too many wrong codes,
    or HELLO or its answer was changed by someone else."""
    BAD_PAIR2 = "PAIR2"
    """PAIR2 does not open, or it has another key than HELLO_RSP."""
    NO_DONE = "no PAIR_DONE"
    """The device rejected PAIR3, or PAIR_DONE was lost. Most likely the label code is wrong. The
    device may have stored this host's key, so it must be paired again in both cases."""
    BAD_DONE = "PAIR_DONE"
    """The message under the new keys is not the expected one."""
    LOST = "port"
    """The port disconnected."""
    CLOSED = "closed"
    """The caller closed it."""


class DeviceIntroduced(Struct, frozen=True):
    """A device answered HELLO. Nothing of the answer is authenticated."""

    answer: HelloRsp


class PairingDone(Struct, frozen=True):
    """Both sides have stored each other's key."""

    device_key: bytes
    answer: HelloRsp
    done: PairDone

    def __repr__(self) -> str:
        return f"PairingDone({self.answer.serial!r}, {self.done!r})"


class PairingFailed(Struct, frozen=True):
    """The pairing failed. A received key of the device is dropped."""

    why: PairingFailure
    error: ProtocolError | None = None


class PairingAlert(Struct, frozen=True):
    """A hint in clear, which is not authenticated and has no effect."""

    alert: Alert


class PairingNoise(Struct, frozen=True):
    """Bytes that are no valid frame."""

    damage: FrameDamage


class PairingFrameIgnored(Struct, frozen=True):
    """A frame that was not expected, or is not authentic."""

    error: ProtocolError


PairingEvent: TypeAlias = (
    DeviceIntroduced
    | PairingDone
    | PairingFailed
    | PairingAlert
    | PairingNoise
    | PairingFrameIgnored
)
_Step: TypeAlias = Callable[[Frame, int], list[PairingEvent]]


class Introduction:
    """Sends HELLO until a device answers. The result is DeviceIntroduced or PairingFailed."""

    def __init__(
        self,
        own_fingerprint: bytes,
        *,
        device_class: DeviceClass = DeviceClass.ANY,
        pick: Callable[[tuple[int, ...]], int] = pick_session,
        tries: int = HELLO_TRIES,
    ) -> None:
        self._hello = Hello(
            1,
            VERSION,
            device_class,
            FrameLimit.LARGE,
            SCHEMA_HASHES[VERSION],
            own_fingerprint,
        )
        self._pick = pick
        self._tries = tries
        self._deframer = Deframer()
        self._out = b""
        self._asked: Frame | None = None
        self._due: int | None = None
        self._expected: dict[FrameKind, _Step] = {}
        """Handlers of the expected frames."""
        self._on_timeout: Callable[[int], list[PairingEvent]] = self._retry
        self._over = False

    @property
    def over(self) -> bool:
        return self._over

    def open(self, now: int) -> list[PairingEvent]:
        """The port is open: send HELLO."""
        self._out = b"\0"  # ends an incomplete frame on the line
        self._deframer.reset()
        self._ask(now)
        return []

    def receive(self, data: bytes, now: int) -> list[PairingEvent]:
        """Handle bytes of the device. Returns the events."""
        events: list[PairingEvent] = []
        for frame in self._deframer.feed(data):
            if self._over:
                break
            if isinstance(frame, FrameDamage):
                events.append(PairingNoise(frame))
            else:
                events += self._frame(frame, now)
        return events

    def wake(self, now: int) -> list[PairingEvent]:
        """Do what is due."""
        if self._over or self._due is None or now < self._due:
            return []
        return self._on_timeout(now)

    def due(self) -> int | None:
        """When wake() must be called next; None at the end."""
        return None if self._over else self._due

    def take(self) -> bytes:
        """Returns the buffered bytes for the port, and empties the buffer."""
        out, self._out = self._out, b""
        return out

    def lost(self) -> list[PairingEvent]:
        """The port disconnected."""
        return [] if self._over else self._fail(PairingFailure.LOST)

    def close(self) -> list[PairingEvent]:
        """End it now."""
        return [] if self._over else self._fail(PairingFailure.CLOSED)

    # --- steps --------------------------------------------------------------------------------

    def _answered(self, question: Frame, answer: Frame, rsp: HelloRsp, now: int) -> None:
        """A device that this host can work with has answered."""
        self._end()

    def _ask(self, now: int) -> None:
        before = (self._asked.session,) if self._asked else ()
        session = self._pick(before)
        self._asked = Frame(FrameKind.HELLO, session, 0, self._hello.encode())
        self._out += self._asked.encode()
        self._tries -= 1
        self._due = now + HELLO_WAIT_MS * _MS
        self._expected = {FrameKind.HELLO_RSP: self._take_answer}

    def _retry(self, now: int) -> list[PairingEvent]:
        if self._tries <= 0:
            return self._fail(PairingFailure.NO_ANSWER)
        self._ask(now)
        return []

    def _take_answer(self, frame: Frame, now: int) -> list[PairingEvent]:
        question = self._asked
        if question is None or frame.session != question.session:
            return [PairingFrameIgnored(WrongAnswer(f"HELLO_RSP under session {frame.session}"))]
        try:
            answer = HelloRsp.decode(frame.payload)
            agree(self._hello, answer)
            self._check(answer)
        except ProtocolError as error:
            return self._fail(PairingFailure.TURNED_AWAY, error)
        self._expected = {}
        self._answered(question, frame, answer, now)
        return [DeviceIntroduced(answer)]

    def _check(self, answer: HelloRsp) -> None:
        """Raises WrongDevice unless it is the expected device."""

    def _frame(self, frame: Frame, now: int) -> list[PairingEvent]:
        if frame.kind is FrameKind.ALERT:
            return _hint(frame)
        step = self._expected.get(frame.kind)
        if step is None:
            return [PairingFrameIgnored(WrongAnswer(f"{frame.kind.name} was not waited for"))]
        return step(frame, now)

    def _fail(self, why: PairingFailure, error: ProtocolError | None = None) -> list[PairingEvent]:
        self._end()
        return [PairingFailed(why, error)]

    def _end(self) -> None:
        self._over = True
        self._expected = {}


class HostPairing(Introduction):
    """HELLO, then XXpsk3 with the device that answers. The result is PairingDone or PairingFailed.

    `serial` and `fingerprint` are those that people have confirmed; another device is rejected
    before PAIR1 is sent.
    """

    def __init__(
        self,
        own: X25519PrivateKey,
        psk: bytes,
        *,
        device_class: DeviceClass = DeviceClass.ANY,
        serial: str | None = None,
        fingerprint: bytes | None = None,
        pick: Callable[[tuple[int, ...]], int] = pick_session,
        tries: int = HELLO_TRIES,
    ) -> None:
        self._own_fingerprint = fingerprint_of(own)
        super().__init__(self._own_fingerprint, device_class=device_class, pick=pick, tries=tries)
        self._own: X25519PrivateKey | None = own
        self._psk = psk
        self._serial = serial
        self._fingerprint = fingerprint
        self._shake: Handshake | None = None
        self._answer: HelloRsp | None = None
        self._opener: Opener | None = None
        self._device_key = b""
        self._session = 0
        self._version = 0

    def _check(self, answer: HelloRsp) -> None:
        if self._serial not in (None, answer.serial):
            raise WrongDevice(f"expected {self._serial}, found {answer.serial}")
        if self._fingerprint not in (None, answer.fingerprint):
            raise WrongDevice(
                f"{answer.serial}: its key is {fingerprint_text(answer.fingerprint)}, "
                f"not {fingerprint_text(self._fingerprint or b'')}"
            )

    def _answered(self, question: Frame, answer: Frame, rsp: HelloRsp, now: int) -> None:
        assert self._own is not None
        self._answer = rsp
        self._session = question.session
        self._version = agree(self._hello, rsp)
        self._shake = Handshake.xxpsk3("host", prologue(question, answer), self._own, self._psk)
        self._send(FrameKind.PAIR1, self._shake.write())
        self._wait(FrameKind.PAIR2, self._take_pair2, PairingFailure.NO_PAIR2, now)

    def _take_pair2(self, frame: Frame, now: int) -> list[PairingEvent]:
        assert self._shake is not None
        assert self._answer is not None
        if frame.session != self._session or frame.version != self._version:
            return [PairingFrameIgnored(WrongAnswer(f"PAIR2 under session {frame.session}"))]
        try:
            self._shake.read(frame.payload)
            self._device_key = self._shake.their_key
            if fingerprint(self._device_key) != self._answer.fingerprint:
                raise WrongDevice("PAIR2 brings another key than HELLO_RSP has named")
            third = self._shake.write()
            keys = self._shake.split()
        except (HandshakeError, WrongDevice) as error:
            return self._fail(PairingFailure.BAD_PAIR2, error)
        self._opener = _opener(keys, self._session, self._version)
        self._send(FrameKind.PAIR3, third)
        self._wait(FrameKind.DATA, self._take_done, PairingFailure.NO_DONE, now)
        return []

    def _take_done(self, frame: Frame, now: int) -> list[PairingEvent]:
        assert self._opener is not None
        try:
            opened = self._opener.open(frame)
        except ProtocolError as error:
            # Of another session or forged: the authentic one may still arrive.
            return [PairingFrameIgnored(error)]
        try:
            return [self._done(frame, opened)]
        except ProtocolError as error:
            return self._fail(PairingFailure.BAD_DONE, error)

    def _done(self, frame: Frame, opened: bytes) -> PairingDone:
        assert self._answer is not None
        message = decode_plaintext(opened, sender="device")
        if not isinstance(message, PairDone):
            raise UnknownMessage("only PAIR_DONE is allowed under the keys of a pairing")
        if frame.counter != 0:
            raise WrongAnswer(f"PAIR_DONE came under counter {frame.counter}, not 0")
        if message.fingerprint != self._own_fingerprint:
            raise WrongDevice("PAIR_DONE names the key of another host")
        done = PairingDone(self._device_key, self._answer, message)
        self._end()
        return done

    def _send(self, kind: FrameKind, payload: bytes) -> None:
        self._out += Frame(kind, self._session, 0, payload, self._version).encode()

    def _wait(self, kind: FrameKind, step: _Step, why: PairingFailure, now: int) -> None:
        self._expected = {kind: step}
        self._due = now + PAIR_WAIT_MS * _MS
        self._on_timeout = lambda _: self._fail(why)

    def _end(self) -> None:
        """Wipe all secrets, and a key that was not authenticated."""
        super()._end()
        if self._shake is not None:
            self._shake.wipe()
        if self._opener is not None:
            self._opener.wipe()
        self._own = None
        self._psk = self._device_key = b""


def _hint(frame: Frame) -> list[PairingEvent]:
    try:
        return [PairingAlert(Alert.decode(frame.payload))]
    except ProtocolError as error:
        return [PairingFrameIgnored(error)]


def _opener(keys: SessionKeys, session: int, version: int) -> Opener:
    return Opener(keys.receive, session, version)
