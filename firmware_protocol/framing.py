"""Frames: what stands between two 0x00 on the wire. Bytes in, frames and reports out; no I/O.

    deframer = Deframer()
    for what in deframer.feed(data):      # Frame or Damage, in the order of the wire
        ...
    port.write(Frame(FrameKind.HELLO, session, 0, hello.encode()).encode())

Nothing raises on what comes in. What is damaged is reported with its cause and counted; the next
0x00 begins anew. At most MAX_ENCODED bytes are ever held back.
"""

from __future__ import annotations

import re
import struct
from enum import Enum
from typing import Final, TypeAlias

import google_crc32c
from msgspec import Struct, field

from firmware_protocol.enums import FrameKind
from firmware_protocol.errors import BadFrame
from firmware_protocol.limits import CRC_SIZE, HEADER_SIZE, MAX_ENCODED, VERSION
from firmware_protocol.messages_frames import PAYLOAD_SIZES

IN_CLEAR_VERSION: Final = 1
"""HELLO, HELLO_RSP and ALERT are the same in all versions, and carry this one."""
VERSIONS: Final = range(1, VERSION + 1)

_HEADER: Final = struct.Struct("<BBHI")
_CRC: Final = struct.Struct("<I")
_LEAST: Final = HEADER_SIZE + CRC_SIZE
_ZEROS: Final = re.compile(rb"\0+")
_CODES: Final = tuple(bytes((code,)) for code in range(256))
_KINDS: Final = {int(kind): kind for kind in FrameKind}
_IN_CLEAR: Final = (FrameKind.HELLO, FrameKind.HELLO_RSP, FrameKind.ALERT)


class Cause(Enum):
    """Why bytes are no frame. In the order in which it is looked for; the first one counts."""

    OVERSIZE = "oversize"
    """More than MAX_ENCODED bytes without a 0x00."""
    COBS = "cobs"
    """A COBS code points beyond the end."""
    GARBAGE = "garbage"
    """Too short for header and CRC."""
    CRC = "crc"
    """The CRC is wrong: noise, or a part was lost."""
    VERSION = "version"
    """The CRC is right, and the version is none that is spoken here."""
    KIND = "kind"
    """The CRC is right, and the kind is none of that version."""
    LENGTH = "length"
    """The CRC is right, and n disagrees with the frame's length or with its kind."""
    HEADER = "header"
    """The CRC is right, and the session id or counter is none that the kind may have."""


class Damage(Struct, frozen=True, gc=False):
    """A report of bytes that were no frame. The bytes themselves are not kept."""

    cause: Cause
    size: int
    """How many bytes, up to the one at which it was known."""


class Frame(Struct, frozen=True, gc=False):
    kind: FrameKind
    session: int
    counter: int
    payload: bytes
    version: int = IN_CLEAR_VERSION

    def header(self) -> bytes:
        """The 8 bytes before the payload: a DATA frame's associated data."""
        return pack_header(self.kind, self.session, self.counter, len(self.payload), self.version)

    def decoded(self) -> bytes:
        """Header and payload, without the CRC: what the prologue takes of HELLO and HELLO_RSP."""
        return self.header() + self.payload

    def encode(self) -> bytes:
        """The frame as it goes onto the wire, its 0x00 included. BadFrame if it may not."""
        return encode_frame(self)


Heard: TypeAlias = Frame | Damage


def pack_header(kind: FrameKind, session: int, counter: int, size: int, version: int) -> bytes:
    if size not in PAYLOAD_SIZES[kind]:
        raise BadFrame(f"{kind.name}: a payload of {size} bytes, not {PAYLOAD_SIZES[kind]}")
    if not 0 < version < 16 or (kind in _IN_CLEAR and version != IN_CLEAR_VERSION):
        raise BadFrame(f"{kind.name}: version {version} is none that it may carry")
    if not _header_fits(kind, session, counter):
        raise BadFrame(f"{kind.name}: session {session} or counter {counter} may not stand there")
    return _HEADER.pack(version << 4 | kind, size, session, counter)


def _header_fits(kind: FrameKind, session: int, counter: int) -> bool:
    """Only ALERT is of no session, and only DATA is counted."""
    return (
        0 <= session <= 0xFFFF
        and (session == 0) == (kind is FrameKind.ALERT)
        and 0 <= counter <= 0xFFFFFFFF
        and (counter == 0 or kind is FrameKind.DATA)
    )


def encode_frame(frame: Frame) -> bytes:
    """The frame as it goes onto the wire, its 0x00 included. BadFrame if it may not."""
    decoded = frame.decoded()
    return cobs_encode(decoded + _CRC.pack(crc32c(decoded))) + b"\0"


def crc32c(data: bytes) -> int:
    return int(google_crc32c.value(data))


def cobs_encode(data: bytes) -> bytes:
    """COBS for at most 254 bytes, as every frame is. There it is one code for each run up to a
    zero, and the code 0xFF stands only where all 254 bytes are not zero."""
    out = []
    for run in data.split(b"\0"):
        out.append(_CODES[len(run) + 1])
        out.append(run)
    return b"".join(out)


def cobs_decode(data: bytes) -> bytes | None:
    """The bytes that were encoded to at most 255 bytes without a zero; None if they were not."""
    if 0 in data:
        return None
    out = []
    at, end = 0, len(data)
    while at < end:
        after = at + data[at]
        if after > end:
            return None
        out.append(data[at + 1 : after])
        at = after
    return b"\0".join(out)


class Counts(Struct):
    """What a Deframer has seen so far."""

    bytes: int = 0
    frames: int = 0
    damaged: int = 0
    damaged_bytes: int = 0
    empty: int = 0
    """Two 0x00 with nothing between: allowed, and means nothing."""
    causes: dict[Cause, int] = field(default_factory=lambda: dict.fromkeys(Cause, 0))


class Deframer:
    """Cuts a stream of bytes into frames. How the bytes are cut into feeds changes nothing."""

    def __init__(self, versions: range = VERSIONS) -> None:
        self.counts = Counts()
        self._versions = versions
        self._held = bytearray()
        self._drowned = False  # more than a frame came without a 0x00: wait for the next one

    @property
    def held(self) -> int:
        """How many bytes wait for their 0x00."""
        return len(self._held)

    def reset(self) -> None:
        """Forget what waits: the port was opened anew."""
        self._held.clear()
        self._drowned = False

    def feed(self, data: bytes) -> list[Heard]:
        """What these bytes complete, in the order of the wire."""
        out: list[Heard] = []
        self.counts.bytes += len(data)
        at = 0
        while at < len(data):
            zero = data.find(0, at)
            end = len(data) if zero < 0 else zero
            self._hold(data, at, end, out)
            if zero < 0:
                break
            self._close(out)
            at = self._skip(data, zero + 1)
        return out

    def _skip(self, data: bytes, at: int) -> int:
        """Past the zeros that follow a zero: a port that sends nothing else must cost nothing."""
        zeros = _ZEROS.match(data, at)
        if zeros is None:
            return at
        self.counts.empty += zeros.end() - at
        return zeros.end()

    def _hold(self, data: bytes, start: int, end: int, out: list[Heard]) -> None:
        if self._drowned:
            self.counts.damaged_bytes += end - start
        elif len(self._held) + end - start <= MAX_ENCODED:
            self._held += data[start:end]
        else:
            # Told at the byte that is one too many, not when a 0x00 comes: it may never come.
            self._drowned = True
            self._damage(Cause.OVERSIZE, MAX_ENCODED + 1, out)
            self.counts.damaged_bytes += len(self._held) + end - start - (MAX_ENCODED + 1)
            self._held.clear()

    def _close(self, out: list[Heard]) -> None:
        if self._drowned:
            self._drowned = False
            return
        if not self._held:
            self.counts.empty += 1
            return
        encoded = bytes(self._held)
        self._held.clear()
        heard = read_frame(encoded, self._versions)
        if isinstance(heard, Cause):
            self._damage(heard, len(encoded), out)
        else:
            self.counts.frames += 1
            out.append(heard)

    def _damage(self, cause: Cause, size: int, out: list[Heard]) -> None:
        self.counts.damaged += 1
        self.counts.damaged_bytes += size
        self.counts.causes[cause] += 1
        out.append(Damage(cause, size))


def read_frame(encoded: bytes, versions: range = VERSIONS) -> Frame | Cause:
    """The frame that stands between two 0x00, or why it is none."""
    if len(encoded) > MAX_ENCODED:
        return Cause.OVERSIZE
    decoded = cobs_decode(encoded)
    if decoded is None:
        return Cause.COBS
    if len(decoded) < _LEAST:
        return Cause.GARBAGE
    body = decoded[:-CRC_SIZE]
    if _CRC.pack(crc32c(body)) != decoded[-CRC_SIZE:]:
        return Cause.CRC
    return _read_decoded(body, versions)


def _read_decoded(body: bytes, versions: range) -> Frame | Cause:
    first, size, session, counter = _HEADER.unpack_from(body)
    version, kind = first >> 4, _KINDS.get(first & 0xF)
    # From here on it is the sender who is at fault, not the wire.
    if version not in ((IN_CLEAR_VERSION,) if kind in _IN_CLEAR else versions):
        return Cause.VERSION
    if kind is None:
        return Cause.KIND
    frame = Frame(kind, session, counter, body[HEADER_SIZE:], version)
    if size != len(frame.payload) or size not in PAYLOAD_SIZES[kind]:
        return Cause.LENGTH
    return frame if _header_fits(kind, session, counter) else Cause.HEADER
