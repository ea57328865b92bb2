"""Pairing on the device: only with the service switch on and with the label's code."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from firmware_protocol.device.sessions import DeviceContext, DeviceSessions, with_ephemeral
from firmware_protocol.messages import (
    PENDING_LIFE_MS,
    AlertCode,
    FrameKind,
    HandshakeError,
    PairDone,
    Paired,
    Tamper,
    TamperSource,
)
from firmware_protocol.tablelink import Frame, Handshake, encode_plaintext, fingerprint, label_psk

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
