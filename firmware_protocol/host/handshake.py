"""Starting a session from the host: HELLO, the check of its answer, and the KK handshake.

An attempt goes through the phases in their order. A failed attempt is reported with its error, and
retried after a backoff of 500 ms that doubles to 8 s until a session starts. There is no backoff if
the device did not answer at all, because the timeout HELLO_WAIT_MS has already passed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from enum import Enum
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.host.events import HandshakeFailed, HelloReceived
from firmware_protocol.host.exchange import (
    INITIAL_DELAY,
    HostSession,
    HostSessions,
    LinkOutput,
)
from firmware_protocol.messages import (
    HANDSHAKE_WAIT_MS,
    HELLO_WAIT_MS,
    SCHEMA_HASHES,
    VERSION,
    DeviceClass,
    FrameKind,
    FrameLimit,
    HandshakeError,
    Hello,
    HelloRsp,
    ProtocolError,
    WrongDevice,
)
from firmware_protocol.tablelink import (
    Frame,
    Handshake,
    agree,
    fingerprint,
    fingerprint_of,
    fingerprint_text,
    pick_session,
    prologue,
)

MAX_DELAY: Final = 8_000_000
_HELLO_WAIT: Final = HELLO_WAIT_MS * 1000
_HANDSHAKE_WAIT: Final = HANDSHAKE_WAIT_MS * 1000


class Phase(Enum):
    """The state of an attempt."""

    IDLE = "idle"
    """No session is wanted."""
    BACKOFF = "backoff"
    """The last attempt failed; the next one starts after the delay."""
    HELLO_SENT = "hello sent"
    HS1_SENT = "hs1 sent"
    PENDING = "pending"
    """HS2 was received; the first valid DATA under the new keys is missing."""


class PeerIdentity(Struct, frozen=True):
    """The host's key, and the device that it expects."""

    own: X25519PrivateKey
    device_key: bytes
    device_class: DeviceClass
    serial: str | None


class HandshakeAttempts:
    """Attempts to start a session, serially and with backoff."""

    def __init__(
        self,
        expected: PeerIdentity,
        sessions: HostSessions,
        random: Callable[[int], bytes] | None,
        output: LinkOutput,
    ) -> None:
        self._expected = expected
        self._print = fingerprint(expected.device_key)
        self._hello = Hello(
            version_min=1,
            version_max=VERSION,
            device_class=expected.device_class,
            largest=FrameLimit.LARGE,
            schema=SCHEMA_HASHES[VERSION],
            fingerprint=fingerprint_of(expected.own),
        ).encode()
        self._sessions = sessions
        self._random = random
        self._output = output
        self._phase = Phase.IDLE
        self.until: int | None = None
        """When wake() must be called; None: nothing is due."""
        self._delay = INITIAL_DELAY
        self._sent: Frame | None = None
        self._answer: HelloRsp | None = None
        self._version = VERSION
        self._shake: Handshake | None = None
        self._malformed: ProtocolError | None = None

    def start(self, now: int) -> None:
        """Start an attempt, unless one is in progress or in backoff."""
        if self._phase is Phase.IDLE:
            self._send_hello(now)

    def shorten_backoff(self, now: int) -> None:
        """Limit the current backoff to the initial delay, because the session ended."""
        if self._phase is Phase.BACKOFF and self.until is not None:
            self.until = min(self.until, now + INITIAL_DELAY)

    def wake(self, now: int) -> None:
        """Do what is due at `until`."""
        if self._phase is Phase.HELLO_SENT:
            self.fail(self._malformed or HandshakeError("no HELLO_RSP came"), now)
            self._send_hello(now)
        elif self._phase is Phase.BACKOFF:
            self._send_hello(now)
        elif self._phase is Phase.HS1_SENT:
            self.fail(HandshakeError("no HS2 came"), now)
        else:
            self.fail(HandshakeError("no DATA came under the new keys"), now)

    def receive(self, frame: Frame, now: int) -> HostSession | None:
        """Handle HELLO_RSP or HS2. Returns the new pending session, whose INFO is to be sent.
        Frames of no attempt or of another one are ignored."""
        if self._sent is None or frame.session != self._sent.session:
            return None
        try:
            if frame.kind is FrameKind.HELLO_RSP and self._phase is Phase.HELLO_SENT:
                self._check_answer(self._sent, frame, now)
            elif frame.kind is FrameKind.HS2 and self._phase is Phase.HS1_SENT:
                return self._finish(frame, now)
        except ProtocolError as error:
            self.fail(error, now)
        return None

    def succeeded(self) -> None:
        """Reset the backoff: the first valid DATA arrived."""
        self._reset()
        self._delay = INITIAL_DELAY

    def fail(self, error: ProtocolError, now: int) -> None:
        """Report the failed attempt, and schedule the next one."""
        if self._phase is not Phase.HELLO_SENT or self._answer is not None:
            delay = self._delay
            self._delay = min(2 * delay, MAX_DELAY)
        else:
            delay = 0
        self.drop()
        self._phase, self.until = Phase.BACKOFF, now + delay
        self._output.report(HandshakeFailed(error))

    def drop(self) -> None:
        """Drop the attempt and its keys, because the port is closed."""
        if self._shake is not None:
            self._shake.wipe()
        if self._sessions.pending is not None:
            self._sessions.pending.wipe()
            self._sessions.pending = None
        self._reset()

    def _reset(self) -> None:
        self._phase, self.until = Phase.IDLE, None
        self._shake = self._answer = self._malformed = None

    def _send_hello(self, now: int) -> None:
        taken = {session.id for session in self._sessions.all}
        if self._sent is not None:
            taken.add(self._sent.session)
        session = pick_session(taken, self._random or secrets.token_bytes)
        self._reset()
        self._sent = Frame(FrameKind.HELLO, session, 0, self._hello)
        self._phase, self.until = Phase.HELLO_SENT, now + _HELLO_WAIT
        # The leading 0x00 ends an incomplete frame on the line.
        self._output.write(b"\0" + self._sent.encode())

    def _check_answer(self, hello: Frame, frame: Frame, now: int) -> None:
        try:
            answer = HelloRsp.decode(frame.payload)
        except ProtocolError as error:
            self._malformed = error  # ignored; reported if no valid answer arrives
            return
        self._output.report(HelloReceived(answer))
        self._answer = answer
        self._version = agree(Hello.decode(self._hello), answer)
        self._check_identity(answer)
        bound = prologue(hello, frame)
        self._shake = Handshake.kk("host", bound, self._expected.own, self._expected.device_key)
        if self._random is not None:
            self._shake.fix_ephemeral(X25519PrivateKey.from_private_bytes(self._random(32)))
        message = self._shake.write()
        self._phase, self.until = Phase.HS1_SENT, now + _HANDSHAKE_WAIT
        self._output.write(Frame(FrameKind.HS1, hello.session, 0, message, self._version).encode())

    def _check_identity(self, answer: HelloRsp) -> None:
        """Raises WrongDevice unless the answer names the expected device, which HS2 will prove."""
        wanted = self._expected.serial
        if wanted is not None and answer.serial != wanted:
            raise WrongDevice(f"expected serial number {wanted}, found {answer.serial}")
        if answer.fingerprint != self._print:
            raise WrongDevice(
                f"serial number {answer.serial}: expected the key "
                f"{fingerprint_text(self._print)}, found {fingerprint_text(answer.fingerprint)}"
            )

    def _finish(self, frame: Frame, now: int) -> HostSession | None:
        if self._shake is None or self._answer is None or frame.version != self._version:
            return None
        self._shake.read(frame.payload)
        keys = self._shake.split()
        self._phase, self.until = Phase.PENDING, now + _HANDSHAKE_WAIT
        session = HostSession(keys, frame.session, self._version, self._answer, now)
        self._sessions.pending = session
        return session
