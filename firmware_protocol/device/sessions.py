"""HELLO, handshakes, pairing and the sessions of a device: greeted, pending, running.

A HELLO exchange and a pending session exist beside the running session and do not affect it. Only
the first valid DATA of the pending session replaces the running one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.device.behaviour import Behaviour
from firmware_protocol.device.control import Moment
from firmware_protocol.device.folder import DeviceIdentity, RandomBytes, StateStore
from firmware_protocol.device.send_window import Sending
from firmware_protocol.messages import (
    ALERT_GAP_MS,
    PENDING_LIFE_MS,
    Alert,
    AlertCode,
    Capabilities,
    DeviceState,
    Event,
    FaultCode,
    FrameKind,
    FrameLimit,
    HandshakeError,
    HelloRsp,
    PairDone,
    Paired,
    ProtocolError,
    Tamper,
    TamperSource,
)
from firmware_protocol.tablelink import (
    NO_SESSION,
    VERSIONS,
    Deframer,
    Frame,
    FrameDamage,
    Handshake,
    SessionKeys,
    encode_plaintext,
    fingerprint,
    label_psk,
    prologue,
)

_KEY_SIZE: Final = 32


class FrameChannel:
    """Encodes and decodes the frames of the port, and counts what was damaged or ignored."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.damaged = 0
        """Damaged frames since the start."""
        self.refused = 0
        """Ignored frames and malformed plaintexts since the start."""
        self._behaviour = behaviour
        self._deframer = Deframer()
        self._out = bytearray()
        self._alert_from: int | None = None

    def count_malformed(self) -> None:
        """Count an undamaged frame whose content is malformed."""
        if self._behaviour.malformed_is_damage():
            self.damaged += 1
        else:
            self.refused += 1

    def decode(self, data: bytes, now: int) -> list[Frame]:
        frames = []
        for found in self._behaviour.deframe(self._deframer, data, now):
            if isinstance(found, FrameDamage):
                self.damaged += 1
            else:
                frames.append(found)
        return frames

    def send(self, frame: Frame) -> None:
        self._out += frame.encode()

    def alert(self, code: AlertCode, now: int, arg: int = 0) -> None:
        """Send a hint in clear, unless the last one is less than ALERT_GAP_MS ago."""
        if self._alert_from is None or now >= self._alert_from:
            self._alert_from = now + 1000 * ALERT_GAP_MS
            self.send(Frame(FrameKind.ALERT, NO_SESSION, 0, Alert(code, arg).encode()))

    def refuse(self, code: AlertCode, now: int, arg: int = 0) -> None:
        """Count an ignored frame, and send the hint why."""
        self.refused += 1
        self.alert(code, now, arg)

    def take(self) -> bytes:
        """Returns the buffered bytes for the host, and empties the buffer."""
        out = bytes(self._out)
        self._out.clear()
        return out


class AnsweredHello(Struct, frozen=True):
    """A HELLO and its answer: the base of one handshake."""

    session: int
    version: int | None
    prologue: bytes


class DeviceSession:
    """Keys and state of one session."""

    def __init__(
        self,
        keys: SessionKeys,
        hello: AnsweredHello,
        version: int,
        now: int,
        behaviour: Behaviour,
    ) -> None:
        self.id = hello.session
        self.created_at = now
        self.started_at = now
        """When its first DATA opened."""
        self.received_at = now
        """When its last valid DATA arrived."""
        self.next_beat = 0
        self.host_beat_at = 0
        """When the last HOST_BEAT arrived."""
        self.resumed = False
        self.host_boot = 0
        """Of the last command."""
        self.replied: set[int] = set()
        """Ids of the replies that were sent in it."""
        self.wanted = 0
        """First record requested by a RESUME that is about to be answered OK; 0 for none."""
        self.sending: Sending | None = None
        """The send window since RESUME was answered OK."""
        self.sealer = behaviour.sealer(keys.send, self.id, version)
        self.opener = behaviour.opener(keys.receive, self.id, version)

    def wipe(self) -> None:
        self.sealer.wipe()
        self.opener.wipe()


class DeviceContext(Protocol):
    """The device, as its parts use it."""

    identity: DeviceIdentity
    storage: StateStore
    channel: FrameChannel
    behaviour: Behaviour
    draw: RandomBytes
    boot: int
    defects: dict[FaultCode, int]

    @property
    def host(self) -> bytes | None:
        """The public key of the paired host."""

    @property
    def running(self) -> DeviceSession | None: ...

    def state(self) -> DeviceState: ...

    def clock(self, now: int) -> int: ...

    def record(self, event: Event, now: int) -> bool: ...

    def send(self, session: DeviceSession, plaintext: bytes, now: int) -> None: ...

    def safe(self, now: int) -> None: ...

    def store_host(self, key: bytes) -> None: ...

    def reach(self, moment: Moment) -> None: ...

    def torn_bytes(self) -> int | None:
        """Bytes of a record that are written before a power cut; None if none is planned there."""


def with_ephemeral(shake: Handshake, draw: RandomBytes) -> Handshake:
    """The handshake, with an ephemeral key from the device's own generator."""
    shake.fix_ephemeral(X25519PrivateKey.from_private_bytes(draw(_KEY_SIZE)))
    return shake


class DeviceSessions:
    """Answers HELLO and HS1, and assigns DATA to a session."""

    def __init__(self, device: DeviceContext, capabilities: Capabilities) -> None:
        self.hello: AnsweredHello | None = None
        self.pending: DeviceSession | None = None
        self.running: DeviceSession | None = None
        self._former: DeviceSession | None = None  # stays None with the correct behaviour
        self._device = device
        self._channel = device.channel
        self._behaviour = device.behaviour
        self._capabilities = capabilities

    # --- HELLO and HS1 ---

    def answer_hello(self, frame: Frame, now: int) -> bool:
        """Answer a HELLO. Returns False without side effects if it is malformed."""
        try:
            hello = self._behaviour.read_hello(frame.payload)
        except ProtocolError:
            self._channel.count_malformed()
            return False
        if self._keys_damaged(now):
            return False
        if self._behaviour.hello_ends_session():
            self.end(now)
        version = self._behaviour.common_version(hello)
        identity = self._device.identity
        answer = HelloRsp(
            version_min=VERSIONS[0],
            version_max=VERSIONS[-1],
            device_class=identity.device_class,
            largest=FrameLimit.LARGE,
            capabilities=self._behaviour.capabilities(self._capabilities, identity.device_class),
            schema=self._behaviour.schema(VERSIONS[-1] if version is None else version),
            fingerprint=identity.fingerprint,
            random=self._behaviour.hello_random(self._device.draw),
            maker=identity.maker,
            model=identity.model,
            serial=identity.serial,
            state=self._device.state(),
        )
        sent = Frame(FrameKind.HELLO_RSP, frame.session, 0, answer.encode())
        self._channel.send(sent)
        self.drop_pending()
        self.hello = AnsweredHello(frame.session, version, prologue(frame, sent))
        return True

    def hello_for(self, frame: Frame, now: int) -> AnsweredHello | None:
        """The HELLO exchange that this HS1 or PAIR1 continues; None if it must be ignored."""
        if self._keys_damaged(now):
            return None
        hello = self.hello
        if hello is None or not self._behaviour.continues_hello(hello.session, frame.session):
            self._channel.refused += 1
            return None
        if hello.version != frame.version:
            self._channel.refuse(AlertCode.NO_VERSION, now)
            return None
        return hello

    def _keys_damaged(self, now: int) -> bool:
        """Whether the stored keys are damaged: then no handshake is possible. New keys are not
        generated, because the host is paired with the old ones."""
        if FaultCode.MEMORY not in self._device.defects:
            return False
        self._channel.refuse(AlertCode.DEFECT, now, FaultCode.MEMORY)
        return True

    def answer_hs1(self, frame: Frame, now: int) -> None:
        hello = self.hello_for(frame, now)
        if hello is None:
            return
        if not self._behaviour.hello_serves_again():
            self.hello = None
        host = self._device.host
        if host is None:
            self._channel.refuse(AlertCode.NOT_PAIRED, now)
            return
        shake = Handshake.kk("device", hello.prologue, self._device.identity.private, host)
        try:
            with_ephemeral(shake, self._device.draw).read(frame.payload)
            answer = shake.write()
        except HandshakeError:
            self._refuse_hs1(frame, now)
            return
        if self._behaviour.hs1_ends_session():
            self.end(now)
        self.drop_pending()
        self.pending = DeviceSession(shake.split(), hello, frame.version, now, self._behaviour)
        self._channel.send(Frame(FrameKind.HS2, frame.session, 0, answer, frame.version))

    def _refuse_hs1(self, frame: Frame, now: int) -> None:
        answer = self._behaviour.unopened_hs1(self._device.draw)
        if answer is not None:
            self._channel.send(Frame(FrameKind.HS2, frame.session, 0, answer, frame.version))
        self._channel.refuse(AlertCode.HANDSHAKE_REFUSED, now)

    # --- DATA ---

    def open(self, frame: Frame, now: int) -> tuple[DeviceSession, bytes] | None:
        """Returns the session of this frame and its plaintext; None if it must be ignored."""
        known = False
        for session in self._with_id(frame.session):
            known = True
            try:
                plaintext = session.opener.open(frame)
            except ProtocolError:
                continue
            if session is self.pending:
                self._take_over(session, now)
            session.received_at = now
            return session, plaintext
        if known:
            self._channel.refused += 1
        else:
            self._channel.refuse(AlertCode.NO_SESSION, now)
        return None

    def _with_id(self, ident: int) -> Iterator[DeviceSession]:
        for session in (self.pending, self.running, self._former):
            if session is not None and session.id == ident:
                yield session

    def _take_over(self, session: DeviceSession, now: int) -> None:
        if self.running is not None:
            if self._behaviour.keeps_former_session():
                self._former = self.running
            else:
                self.running.wipe()
        self.running, self.pending = session, None
        session.started_at = now
        session.next_beat = self._behaviour.next_beat(now, now)

    # --- the end ---

    def end_all(self, now: int) -> None:
        """End every session, because another host was paired."""
        self.drop_pending()
        self.end(now)

    def end(self, now: int) -> None:
        """End the running session; the device takes its safe state."""
        if self.running is not None:
            self.running.wipe()
            self.running = None
            self._device.safe(now)

    def wake(self, now: int) -> None:
        pending_ends, running_ends = self.due()
        if pending_ends is not None and now >= pending_ends:
            self.drop_pending()
        if running_ends is not None and now >= running_ends:
            self.end(now)

    def due(self) -> tuple[int | None, int | None]:
        """When the pending and the running session time out."""
        pending, running, rules = self.pending, self.running, self._behaviour
        return (
            None if pending is None else rules.pending_ends(pending.created_at),
            None if running is None else rules.session_ends(running.received_at),
        )

    def drop_pending(self) -> None:
        """Drop a handshake that has not become a session."""
        if self.pending is not None:
            self.pending.wipe()
            self.pending = None


# --- pairing: only with the service switch on and with the label -----------------------------

_SWITCH: Final = "service"
_WRONG_CODES: Final = "wrong-codes"
_PAIRINGS: Final = "pairings"


class _StartedPairing(Struct, frozen=True):
    session: int
    version: int
    shake: Handshake
    ends: int


class DevicePairing:
    """Answers PAIR1 and PAIR3, and counts wrong codes."""

    def __init__(self, device: DeviceContext, sessions: DeviceSessions) -> None:
        self._device = device
        self._channel = device.channel
        self._behaviour = device.behaviour
        self._storage = device.storage
        self._sessions = sessions
        self._started: _StartedPairing | None = None
        self.service = self._storage.load(_SWITCH) == b"on"
        """The service switch. Its position outlasts a power cut."""

    def turn_service(self, on: bool, now: int) -> None:
        if on == self.service:
            return
        self.service = on
        self._storage.save(_SWITCH, b"on" if on else b"off")
        if on:
            self._storage.set_number(_WRONG_CODES, 0)
        else:
            self._started = None
        self._device.record(Tamper(TamperSource.SERVICE_SWITCH, on), now)

    @property
    def due(self) -> int | None:
        """When the unfinished pairing times out."""
        return None if self._started is None else self._started.ends

    def wake(self, now: int) -> None:
        if self._started is not None and now >= self._started.ends:
            self._started = None

    def drop(self) -> None:
        """Drop an unfinished pairing, because a HELLO arrived."""
        self._started = None

    def answer_pair1(self, frame: Frame, now: int) -> None:
        if not self._allowed(now):
            return
        hello = self._sessions.hello_for(frame, now)
        if hello is None:
            return
        self._sessions.hello = None
        identity = self._device.identity
        psk = label_psk(identity.label)
        shake = Handshake.xxpsk3("device", hello.prologue, identity.private, psk)
        try:
            with_ephemeral(shake, self._device.draw).read(frame.payload)
            answer = shake.write()
        except HandshakeError:
            self._channel.refused += 1
            return
        ends = now + 1000 * PENDING_LIFE_MS
        self._started = _StartedPairing(frame.session, frame.version, shake, ends)
        self._channel.send(Frame(FrameKind.PAIR2, frame.session, 0, answer, frame.version))

    def finish(self, frame: Frame, now: int) -> None:
        """Handle PAIR3."""
        if not self._allowed(now):
            return
        started = self._started
        if started is None or (started.session, started.version) != (frame.session, frame.version):
            self._channel.refused += 1
            return
        self._started = None
        try:
            started.shake.read(frame.payload)
        except HandshakeError:
            self._wrong_code(now)
            return
        self._store(started, now)

    def _allowed(self, now: int) -> bool:
        wrong_codes = self._storage.last_number(_WRONG_CODES)
        if self._behaviour.pairing_is_on(self.service) and not self._behaviour.locked_out(
            wrong_codes
        ):
            return True
        self._channel.refuse(AlertCode.PAIRING_OFF, now)
        return False

    def _wrong_code(self, now: int) -> None:
        # Counted before it is reported, so that a power cut does not give a free attempt.
        self._storage.next_number(_WRONG_CODES)
        if self._behaviour.records_wrong_code():
            self._device.record(Tamper(TamperSource.PAIRING_CODE, True), now)
        self._channel.refuse(AlertCode.PAIRING_REFUSED, now)

    def _store(self, started: _StartedPairing, now: int) -> None:
        host = started.shake.their_key
        keys = started.shake.split()
        # The former host's session ends first: it must not receive the record of the new pairing.
        ends = self._behaviour.pairing_ends_session()
        if ends and self._behaviour.ends_session_first():
            self._sessions.end_all(now)
        # The number is stored before anything else, so that none is used twice. The event is stored
        # before the key: a power cut in between leaves an event too many, never one too few.
        pairings = self._storage.next_number(_PAIRINGS)
        self._device.record(Paired(fingerprint(host), pairings), now)
        self._device.store_host(host)
        if ends:
            self._sessions.end_all(now)
        sealer = self._behaviour.sealer(keys.send, started.session, started.version)
        self._channel.send(sealer.seal(encode_plaintext(PairDone(fingerprint(host), pairings))))
        sealer.wipe()
