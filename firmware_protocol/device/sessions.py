"""HELLO, the session handshake, and which session's frames are taken: greeted, pending, running.

Greeting and pending exist beside a running session and do not touch it. What takes over is the
first valid DATA of the pending one, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.device.behaviour import Behaviour
from firmware_protocol.device.identity import DeviceIdentity, Draw
from firmware_protocol.device.send_window import Sending
from firmware_protocol.device.storage import StateStore
from firmware_protocol.messages.enums import (
    AlertCode,
    Capabilities,
    DeviceState,
    FaultCode,
    FrameKind,
    FrameLimit,
)
from firmware_protocol.messages.errors import HandshakeError, ProtocolError
from firmware_protocol.messages.frames import Alert, HelloRsp
from firmware_protocol.messages.limits import ALERT_GAP_MS
from firmware_protocol.tablelink.framing import VERSIONS, Deframer, Frame, FrameDamage
from firmware_protocol.tablelink.hello import NO_SESSION, prologue
from firmware_protocol.tablelink.noise import Handshake, SessionKeys


class FrameChannel:
    def __init__(self, behaviour: Behaviour) -> None:
        self.damaged = 0
        """Damaged frames since the start."""
        self.refused = 0
        """Whole frames that were ignored, and malformed plaintexts, since the start."""
        self._behaviour = behaviour
        self._deframer = Deframer()
        self._out = bytearray()
        self._alert_from: int | None = None

    def malformed(self) -> None:
        """A frame came whole, and what is in it is malformed."""
        if self._behaviour.malformed_is_damage():
            self.damaged += 1
        else:
            self.refused += 1

    def hear(self, data: bytes, now: int) -> list[Frame]:
        frames = []
        for heard in self._behaviour.hear(self._deframer, data, now):
            if isinstance(heard, FrameDamage):
                self.damaged += 1
            else:
                frames.append(heard)
        return frames

    def send(self, frame: Frame) -> None:
        self._out += frame.encode()

    def alert(self, code: AlertCode, now: int, arg: int = 0) -> None:
        """A hint in clear; dropped when one went out less than ALERT_GAP before."""
        if self._alert_from is None or now >= self._alert_from:
            self._alert_from = now + 1000 * ALERT_GAP_MS
            self.send(Frame(FrameKind.ALERT, NO_SESSION, 0, Alert(code, arg).encode()))

    def take(self) -> bytes:
        out = bytes(self._out)
        self._out.clear()
        return out


class DeviceParts(Struct, frozen=True):
    identity: DeviceIdentity
    kept: StateStore
    wire: FrameChannel
    behaviour: Behaviour
    draw: Draw


_KEY_SIZE: Final = 32


class HelloExchange(Struct, frozen=True):
    """A HELLO and its answer, which one handshake may be built on."""

    session: int
    version: int | None
    prologue: bytes


class DeviceSession:
    """The keys of one session, and how far it is."""

    def __init__(
        self,
        keys: SessionKeys,
        greeting: HelloExchange,
        version: int,
        now: int,
        behaviour: Behaviour,
    ) -> None:
        self.id = greeting.session
        self.made = now
        self.began = now
        """When its first DATA opened."""
        self.heard = now
        """When its last valid DATA came."""
        self.next_beat = 0
        self.resumed = False
        self.host_boot = 0
        """Of the last command."""
        self.replied: set[int] = set()
        """Ids of the replies that were sent in it."""
        self.wanted = 0
        """The first record that a RESUME wants whose OK is about to be sent."""
        self.sending: Sending | None = None
        """What flows since RESUME was answered OK."""
        self._sealer = behaviour.sealer(keys.send, self.id, version)
        self._opener = behaviour.opener(keys.receive, self.id, version)

    def open(self, frame: Frame) -> bytes:
        return self._opener.open(frame)

    def seal(self, plaintext: bytes) -> Frame:
        return self._sealer.seal(plaintext)

    def wipe(self) -> None:
        self._sealer.wipe()
        self._opener.wipe()


def fixed(shake: Handshake, draw: Draw) -> Handshake:
    """The handshake, with its ephemeral key from the device's own generator."""
    shake.fix_ephemeral(X25519PrivateKey.from_private_bytes(draw(_KEY_SIZE)))
    return shake


class DeviceSessions:
    def __init__(
        self,
        board: DeviceParts,
        capabilities: Capabilities,
        *,
        host: Callable[[], bytes | None],
        state: Callable[[], DeviceState],
        damaged: Callable[[], bool],
        ended: Callable[[int], None],
    ) -> None:
        """`damaged`: whether the device's keys are found damaged."""
        self.greeting: HelloExchange | None = None
        self.pending: DeviceSession | None = None
        self.running: DeviceSession | None = None
        self._former: DeviceSession | None = None  # stays None in an honest device
        self._identity = board.identity
        self._wire = board.wire
        self._behaviour = board.behaviour
        self._draw = board.draw
        self._capabilities = capabilities
        self._host = host
        self._state = state
        self._damaged = damaged
        self._ended = ended

    # --- HELLO and HS1 ---

    def hello(self, frame: Frame, now: int) -> bool:
        """Answer a HELLO; False if it is malformed, and then nothing has changed."""
        try:
            hello = self._behaviour.read_hello(frame.payload)
        except ProtocolError:
            self._wire.malformed()
            return False
        if self._cannot_work(now):
            return False
        if self._behaviour.hello_ends_session():
            self.end(now)
        version = self._behaviour.common_version(hello)
        identity = self._identity
        answer = HelloRsp(
            version_min=VERSIONS[0],
            version_max=VERSIONS[-1],
            device_class=identity.device_class,
            largest=FrameLimit.LARGE,
            capabilities=self._capabilities,
            schema=self._behaviour.schema(VERSIONS[-1] if version is None else version),
            fingerprint=identity.fingerprint,
            random=self._behaviour.hello_random(self._draw),
            maker=identity.maker,
            model=identity.model,
            serial=identity.serial,
            state=self._state(),
        )
        sent = Frame(FrameKind.HELLO_RSP, frame.session, 0, answer.encode())
        self._wire.send(sent)
        self.forget_pending()
        self.greeting = HelloExchange(frame.session, version, prologue(frame, sent))
        return True

    def greeting_for(self, frame: Frame, now: int) -> HelloExchange | None:
        """What HS1 or PAIR1 builds on; None if it is to be ignored."""
        if self._cannot_work(now):
            return None
        greeting = self.greeting
        if greeting is None or not self._behaviour.greets(greeting.session, frame.session):
            self._wire.refused += 1
            return None
        if greeting.version != frame.version:
            self._wire.refused += 1
            self._wire.alert(AlertCode.NO_VERSION, now)
            return None
        return greeting

    def _cannot_work(self, now: int) -> bool:
        """Without its keys it shakes no hands. It makes no new ones: it was paired with those."""
        if not self._damaged():
            return False
        self._wire.refused += 1
        self._wire.alert(AlertCode.DEFECT, now, FaultCode.MEMORY)
        return True

    def hs1(self, frame: Frame, now: int) -> None:
        greeting = self.greeting_for(frame, now)
        if greeting is None:
            return
        if not self._behaviour.greeting_serves_again():
            self.greeting = None
        host = self._host()
        if host is None:
            self._wire.refused += 1
            self._wire.alert(AlertCode.NOT_PAIRED, now)
            return
        shake = Handshake.kk("device", greeting.prologue, self._identity.private, host)
        try:
            fixed(shake, self._draw).read(frame.payload)
            answer = shake.write()
        except HandshakeError:
            self._refuse_hs1(frame, now)
            return
        if self._behaviour.hs1_ends_session():
            self.end(now)
        self.forget_pending()
        self.pending = DeviceSession(shake.split(), greeting, frame.version, now, self._behaviour)
        self._wire.send(Frame(FrameKind.HS2, frame.session, 0, answer, frame.version))

    def _refuse_hs1(self, frame: Frame, now: int) -> None:
        self._wire.refused += 1
        answer = self._behaviour.unopened_hs1(self._draw)
        if answer is not None:
            self._wire.send(Frame(FrameKind.HS2, frame.session, 0, answer, frame.version))
        self._wire.alert(AlertCode.HANDSHAKE_REFUSED, now)

    # --- DATA ---

    def open(self, frame: Frame, now: int) -> tuple[DeviceSession, bytes] | None:
        """The session of this frame and its plaintext; None if it is to be ignored."""
        known = False
        for session in self._of(frame.session):
            known = True
            try:
                plaintext = session.open(frame)
            except ProtocolError:
                continue
            if session is self.pending:
                self._take_over(session, now)
            session.heard = now
            return session, plaintext
        self._wire.refused += 1
        if not known:
            self._wire.alert(AlertCode.NO_SESSION, now)
        return None

    def _of(self, ident: int) -> Iterator[DeviceSession]:
        for session in (self.pending, self.running, self._former):
            if session is not None and session.id == ident:
                yield session

    def _take_over(self, session: DeviceSession, now: int) -> None:
        if self.running is not None:
            if self._behaviour.former_goes_on():
                self._former = self.running
            else:
                self.running.wipe()
        self.running, self.pending = session, None
        session.began = now
        session.next_beat = self._behaviour.next_beat(now, now)

    # --- the end ---

    def end_all(self, now: int) -> None:
        """Another host was paired: nothing of the former one is left."""
        self.forget_pending()
        self.end(now)

    def end(self, now: int) -> None:
        """The running session is over, and the device takes its safe state."""
        if self.running is not None:
            self.running.wipe()
            self.running = None
            self._ended(now)

    def wake(self, now: int) -> None:
        due = self._pending_ends()
        if due is not None and now >= due:
            self.forget_pending()
        due = self._running_ends()
        if due is not None and now >= due:
            self.end(now)

    def due(self) -> tuple[int | None, ...]:
        return self._pending_ends(), self._running_ends()

    def _pending_ends(self) -> int | None:
        return None if self.pending is None else self._behaviour.pending_ends(self.pending.made)

    def _running_ends(self) -> int | None:
        return None if self.running is None else self._behaviour.session_ends(self.running.heard)

    def forget_pending(self) -> None:
        """A handshake that has not become a session is over."""
        if self.pending is not None:
            self.pending.wipe()
            self.pending = None
