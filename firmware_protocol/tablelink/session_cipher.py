"""Encryption of a session: plaintexts to DATA frames and back, one object per direction.

    sealer = Sealer(keys.send, session)
    port.write(sealer.seal(plaintext.encode(message)))
    opener = Opener(keys.receive, session)
    message = plaintext.decode(opener.open(frame), sender="device")

The counter in the header is the nonce, and the header is the associated data. A counter is never
used twice: a retry is sealed again under the next one.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag

from firmware_protocol.messages.enums import FrameKind
from firmware_protocol.messages.errors import (
    BadFrame,
    NotAuthentic,
    Replayed,
    SessionSpent,
    WrongSession,
    WrongSize,
)
from firmware_protocol.messages.limits import MAX_FRAMES, TAG_SIZE, VERSION
from firmware_protocol.tablelink.framing import Frame, pack_header
from firmware_protocol.tablelink.noise import Cipher
from firmware_protocol.tablelink.plaintext import SIZES


class Sealer:
    """Sends one direction of a session."""

    def __init__(self, key: bytes, session: int, version: int = VERSION) -> None:
        if not 0 < session <= 0xFFFF:
            raise BadFrame(f"session {session} is not 1 to 65535")
        self._cipher = Cipher(key)
        self.session = session
        self.version = version
        self.counter = 0
        """The counter of the next frame."""

    def seal(self, plaintext: bytes) -> Frame:
        """The frame that carries this plaintext, under the next counter."""
        if len(plaintext) not in SIZES:
            raise WrongSize(f"plaintext: has {len(plaintext)} bytes, not one of {SIZES}")
        if self.counter >= MAX_FRAMES:
            raise SessionSpent(f"session {self.session}: all counters are used")
        counter = self.counter
        size = len(plaintext) + TAG_SIZE
        header = pack_header(FrameKind.DATA, self.session, counter, size, self.version)
        sealed = self._cipher.seal(counter, header, plaintext)
        self.counter += 1
        return Frame(FrameKind.DATA, self.session, counter, sealed, self.version)

    def wipe(self) -> None:
        self._cipher.wipe()


class Opener:
    """Receives one direction of a session. A rejected frame has no side effects."""

    def __init__(self, key: bytes, session: int, version: int = VERSION) -> None:
        self._cipher = Cipher(key)
        self.session = session
        self.version = version
        self.last = -1
        """The highest counter that was accepted."""

    def open(self, frame: Frame) -> bytes:
        """Returns the plaintext of this frame.

        Raises WrongSession, Replayed, SessionSpent or NotAuthentic. Only NotAuthentic means that
        the frame was forged or changed, because the CRC detects noise.
        """
        if (
            frame.session != self.session
            or frame.version != self.version
            or frame.kind is not FrameKind.DATA
        ):
            raise WrongSession(f"{frame.kind.name} of session {frame.session}")
        if frame.counter <= self.last:
            raise Replayed(f"counter {frame.counter} after {self.last}")
        if frame.counter >= MAX_FRAMES:
            raise SessionSpent(f"counter {frame.counter} is beyond the limit of a session")
        try:
            plaintext = self._cipher.open(frame.counter, frame.header(), frame.payload)
        except InvalidTag:
            raise NotAuthentic(f"session {frame.session}, counter {frame.counter}") from None
        self.last = frame.counter
        return plaintext

    def wipe(self) -> None:
        self._cipher.wipe()
