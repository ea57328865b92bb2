"""Pairing, on the device's side: with the service switch on, and with the label's code only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from firmware_protocol.device.sessions import DeviceParts, DeviceSessions, fixed
from firmware_protocol.messages.common import Paired, Tamper
from firmware_protocol.messages.control import PairDone
from firmware_protocol.messages.enums import AlertCode, FrameKind, TamperSource
from firmware_protocol.messages.errors import HandshakeError
from firmware_protocol.messages.limits import PENDING_LIFE_MS
from firmware_protocol.tablelink.fingerprints import fingerprint, label_psk
from firmware_protocol.tablelink.framing import Frame
from firmware_protocol.tablelink.noise import Handshake
from firmware_protocol.tablelink.plaintext import encode

_SWITCH: Final = "service"
_WRONG_CODES: Final = "wrong-codes"
_PAIRINGS: Final = "pairings"


class _Begun(Struct, frozen=True):
    session: int
    version: int
    shake: Handshake
    ends: int


class DevicePairing:
    def __init__(
        self,
        board: DeviceParts,
        sessions: DeviceSessions,
        *,
        store: Callable[[bytes], None],
        record: Callable[[Paired | Tamper, int], bool],
    ) -> None:
        self._identity = board.identity
        self._wire = board.wire
        self._behaviour = board.behaviour
        self._draw = board.draw
        self._kept = board.kept
        self._sessions = sessions
        self._store = store
        self._record = record
        self._begun: _Begun | None = None
        self.service = self._kept.kept(_SWITCH) == b"on"
        """The service switch, which stays as it is while the power is off."""

    def turn_service(self, on: bool, now: int) -> None:
        if on == self.service:
            return
        self.service = on
        self._kept.keep(_SWITCH, b"on" if on else b"off")
        if on:
            self._kept.set_number(_WRONG_CODES, 0)
        else:
            self._begun = None
        self._record(Tamper(TamperSource.SERVICE_SWITCH, on), now)

    @property
    def due(self) -> int | None:
        return None if self._begun is None else self._begun.ends

    def wake(self, now: int) -> None:
        if self._begun is not None and now >= self._begun.ends:
            self._begun = None

    def forget(self) -> None:
        """HELLO came: an unfinished pairing is forgotten."""
        self._begun = None

    def pair1(self, frame: Frame, now: int) -> None:
        if not self._allowed(now):
            return
        greeting = self._sessions.greeting_for(frame, now)
        if greeting is None:
            return
        self._sessions.greeting = None
        psk = label_psk(self._identity.label)
        shake = Handshake.xxpsk3("device", greeting.prologue, self._identity.private, psk)
        try:
            fixed(shake, self._draw).read(frame.payload)
            answer = shake.write()
        except HandshakeError:
            self._wire.refused += 1
            return
        ends = now + 1000 * PENDING_LIFE_MS
        self._begun = _Begun(frame.session, frame.version, shake, ends)
        self._wire.send(Frame(FrameKind.PAIR2, frame.session, 0, answer, frame.version))

    def pair3(self, frame: Frame, now: int) -> None:
        if not self._allowed(now):
            return
        begun = self._begun
        if begun is None or (begun.session, begun.version) != (frame.session, frame.version):
            self._wire.refused += 1
            return
        self._begun = None
        try:
            begun.shake.read(frame.payload)
        except HandshakeError:
            self._wrong_code(now)
            return
        self._finish(begun, now)

    def _allowed(self, now: int) -> bool:
        if not self._behaviour.pairing_is_on(self.service):
            self._wire.refused += 1
            self._wire.alert(AlertCode.PAIRING_OFF, now)
            return False
        if self._behaviour.locked_out(self._kept.last_number(_WRONG_CODES)):
            self._wire.refused += 1
            self._wire.alert(AlertCode.PAIRING_OFF, now)
            return False
        return True

    def _wrong_code(self, now: int) -> None:
        # Counted before anything is told, so that no power cut gives a try for nothing.
        self._kept.number(_WRONG_CODES)
        self._wire.refused += 1
        if self._behaviour.records_wrong_code():
            self._record(Tamper(TamperSource.PAIRING_CODE, True), now)
        self._wire.alert(AlertCode.PAIRING_REFUSED, now)

    def _finish(self, begun: _Begun, now: int) -> None:
        host = begun.shake.their_key
        keys = begun.shake.split()
        # The former host's session goes first: it is not to see the record of the new one.
        ends = self._behaviour.pairing_ends_session()
        if ends and self._behaviour.ends_session_first():
            self._sessions.end_all(now)
        # The number is taken before all else, so that none comes twice. With the event before the
        # key, power that goes between leaves an event too many, and never one too few.
        pairings = self._kept.number(_PAIRINGS)
        self._record(Paired(fingerprint(host), pairings), now)
        self._store(host)
        if ends:
            self._sessions.end_all(now)
        sealer = self._behaviour.sealer(keys.send, begun.session, begun.version)
        self._wire.send(sealer.seal(encode(PairDone(fingerprint(host), pairings))))
        sealer.wipe()
