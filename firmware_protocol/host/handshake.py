"""How the host comes to a session: HELLO, the check of the answer, and the KK handshake.

An attempt goes through the phases in their order. One that fails is told with its error; the next
one begins after 500 ms, doubling to 8 s until a session began. Only where no answer came at all
there is no such pause: HELLO_WAIT has been long enough.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.host.events import HandshakeFailed, HelloReceived, LinkEvent
from firmware_protocol.host.session import HostSession, HostSessions
from firmware_protocol.messages.enums import DeviceClass, FrameKind, FrameLimit
from firmware_protocol.messages.errors import HandshakeError, ProtocolError, WrongDevice
from firmware_protocol.messages.frames import Hello, HelloRsp
from firmware_protocol.messages.limits import (
    HANDSHAKE_WAIT_MS,
    HELLO_WAIT_MS,
    SCHEMA_HASHES,
    VERSION,
)
from firmware_protocol.tablelink.fingerprints import fingerprint, fingerprint_of, fingerprint_text
from firmware_protocol.tablelink.framing import Frame
from firmware_protocol.tablelink.hello import agree, pick_session, prologue
from firmware_protocol.tablelink.noise import Handshake

INITIAL_DELAY: Final = 500_000
MAX_DELAY: Final = 8_000_000
_HELLO_WAIT: Final = HELLO_WAIT_MS * 1000
_HANDSHAKE_WAIT: Final = HANDSHAKE_WAIT_MS * 1000


class Phase(Enum):
    """How far an attempt is."""

    RESTING = "resting"
    """No session is wanted."""
    PAUSING = "pausing"
    """The last attempt failed; the next one begins when the pause is over."""
    GREETING = "greeting"
    """HELLO was sent."""
    SHAKING = "shaking"
    """HS1 was sent."""
    PROVING = "proving"
    """HS2 has come, and the new keys wait for their first valid DATA."""


class ExpectedDevice(Struct, frozen=True):
    """Who the host is, and whom it expects."""

    own: X25519PrivateKey
    device_key: bytes
    device_class: DeviceClass
    serial: str | None


class HandshakeAttempts:
    """One attempt after the other, as long as a session is wanted."""

    def __init__(
        self,
        expected: ExpectedDevice,
        sessions: HostSessions,
        random: Callable[[int], bytes] | None,
        send: Callable[[bytes], None],
        tell: Callable[[LinkEvent], None],
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
        self._send = send
        self._tell = tell
        self._phase = Phase.RESTING
        self._until: int | None = None
        self._pause = INITIAL_DELAY
        self._sent: Frame | None = None
        self._answer: HelloRsp | None = None
        self._version = VERSION
        self._shake: Handshake | None = None
        self._malformed: ProtocolError | None = None

    def want(self, now: int) -> None:
        """A session is wanted: begin, unless an attempt is under way or the pause is not over."""
        if self._phase is Phase.RESTING:
            self._begin(now)

    def hurry(self, now: int) -> None:
        """The session has died: no longer pause than the shortest."""
        if self._phase is Phase.PAUSING and self._until is not None:
            self._until = min(self._until, now + INITIAL_DELAY)

    def due(self) -> int | None:
        return self._until

    def wake(self, now: int) -> None:
        """Do what is due."""
        if self._until is None or now < self._until:
            return
        if self._phase is Phase.GREETING:
            self.fail(self._malformed or HandshakeError("no HELLO_RSP came"), now)
            self._begin(now)
        elif self._phase is Phase.PAUSING:
            self._begin(now)
        elif self._phase is Phase.SHAKING:
            self.fail(HandshakeError("no HS2 came"), now)
        else:
            self.fail(HandshakeError("no DATA came under the new keys"), now)

    def hear(self, frame: Frame, now: int) -> HostSession | None:
        """HELLO_RSP or HS2. The session that it made, whose INFO is to be sent now. What belongs
        to no attempt, or to another one, is ignored."""
        if self._sent is None or frame.session != self._sent.session:
            return None
        try:
            if frame.kind is FrameKind.HELLO_RSP and self._phase is Phase.GREETING:
                self._greeted(self._sent, frame, now)
            elif frame.kind is FrameKind.HS2 and self._phase is Phase.SHAKING:
                return self._shaken(frame, now)
        except ProtocolError as error:
            self.fail(error, now)
        return None

    def succeeded(self) -> None:
        """The first valid DATA came: a session began."""
        self._rest()
        self._pause = INITIAL_DELAY

    def fail(self, error: ProtocolError, now: int) -> None:
        """The attempt came to nothing."""
        if self._phase is not Phase.GREETING or self._answer is not None:
            pause = self._pause
            self._pause = min(2 * pause, MAX_DELAY)
        else:
            pause = 0
        self.drop()
        self._phase, self._until = Phase.PAUSING, now + pause
        self._tell(HandshakeFailed(error))

    def drop(self) -> None:
        """Forget the attempt and its keys: the port has gone."""
        if self._shake is not None:
            self._shake.wipe()
        if self._sessions.pending is not None:
            self._sessions.pending.wipe()
            self._sessions.pending = None
        self._rest()

    def _rest(self) -> None:
        self._phase, self._until = Phase.RESTING, None
        self._shake = self._answer = self._malformed = None

    def _begin(self, now: int) -> None:
        taken = {session.id for session in self._sessions}
        if self._sent is not None:
            taken.add(self._sent.session)
        session = self._pick(taken)
        self._rest()
        self._sent = Frame(FrameKind.HELLO, session, 0, self._hello)
        self._phase, self._until = Phase.GREETING, now + _HELLO_WAIT
        # The 0x00 before it ends whatever was cut off on the line.
        self._send(b"\0" + self._sent.encode())

    def _pick(self, taken: set[int]) -> int:
        if self._random is None:
            return pick_session(taken)
        while (session := int.from_bytes(self._random(2), "little")) in {0, *taken}:
            pass
        return session

    def _greeted(self, hello: Frame, frame: Frame, now: int) -> None:
        try:
            answer = HelloRsp.decode(frame.payload)
        except ProtocolError as error:
            self._malformed = error  # ignored; told if no better answer comes
            return
        self._tell(HelloReceived(answer))
        self._answer = answer
        self._version = agree(Hello.decode(self._hello), answer)
        self._recognise(answer)
        bound = prologue(hello, frame)
        self._shake = Handshake.kk("host", bound, self._expected.own, self._expected.device_key)
        if self._random is not None:
            self._shake.fix_ephemeral(X25519PrivateKey.from_private_bytes(self._random(32)))
        message = self._shake.write()
        self._phase, self._until = Phase.SHAKING, now + _HANDSHAKE_WAIT
        self._send(Frame(FrameKind.HS1, hello.session, 0, message, self._version).encode())

    def _recognise(self, answer: HelloRsp) -> None:
        """Whether the device claims to be the one that is expected; HS2 proves it."""
        wanted = self._expected.serial
        if wanted is not None and answer.serial != wanted:
            raise WrongDevice(f"expected serial number {wanted}, found {answer.serial}")
        if answer.fingerprint != self._print:
            raise WrongDevice(
                f"serial number {answer.serial}: expected the key "
                f"{fingerprint_text(self._print)}, found {fingerprint_text(answer.fingerprint)}"
            )

    def _shaken(self, frame: Frame, now: int) -> HostSession | None:
        if self._shake is None or self._answer is None or frame.version != self._version:
            return None
        self._shake.read(frame.payload)
        keys = self._shake.split()
        self._phase = Phase.PROVING
        session = HostSession(keys, frame.session, self._version, self._answer, now)
        self._sessions.pending = session
        return session
