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
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Final, TypeAlias

import google_crc32c
from msgspec import Struct, field

from firmware_protocol.messages.enums import FrameKind
from firmware_protocol.messages.errors import BadFrame
from firmware_protocol.messages.frames import PAYLOAD_SIZES
from firmware_protocol.messages.limits import CRC_SIZE, HEADER_SIZE, MAX_ENCODED, VERSION

IN_CLEAR_VERSION: Final = 1
"""HELLO, HELLO_RSP and ALERT are the same in all versions, and carry this one."""
VERSIONS: Final = range(1, VERSION + 1)

_HEADER: Final = struct.Struct("<BBHI")
_CRC: Final = struct.Struct("<I")
_LEAST: Final = HEADER_SIZE + CRC_SIZE
_WHOLE: Final = 0x48674BC7
"""The CRC-32C of any bytes with their own CRC behind them."""
_ZEROS: Final = re.compile(rb"\0+")
_CODES: Final = tuple(bytes((code,)) for code in range(256))
_KINDS: Final = {int(kind): kind for kind in FrameKind}
_IN_CLEAR: Final = (FrameKind.HELLO, FrameKind.HELLO_RSP, FrameKind.ALERT)


class Cause(Enum):
    """Why bytes are no frame. In the order in which it is looked for; the first one counts."""

    # There is one of each, so what it is tells it; Enum's own hash is slow where noise floods.
    __hash__ = object.__hash__

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


class FrameDamage(Struct, frozen=True, gc=False):
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


Heard: TypeAlias = Frame | FrameDamage


class _Form(Struct, frozen=True):
    """What a header may say whose first byte says this kind and version."""

    kind: FrameKind
    version: int
    sizes: tuple[int, ...]
    sessions: range
    counters: range


def _form(kind: FrameKind, version: int) -> _Form:
    """Only ALERT is of no session, and only DATA is counted."""
    sessions = range(1) if kind is FrameKind.ALERT else range(1, 1 << 16)
    counters = range(1 << 32 if kind is FrameKind.DATA else 1)
    return _Form(kind, version, PAYLOAD_SIZES[kind], sessions, counters)


_ALL_FORMS: Final = {
    version << 4 | kind: _form(kind, version)
    for kind in FrameKind
    for version in ((IN_CLEAR_VERSION,) if kind in _IN_CLEAR else range(1, 16))
}
"""By the first byte of the header."""


def pack_header(kind: FrameKind, session: int, counter: int, size: int, version: int) -> bytes:
    first = version << 4 | kind
    form = _ALL_FORMS.get(first)
    if form is None:
        raise BadFrame(f"{kind.name}: version {version} is none that it may carry")
    if size not in form.sizes:
        raise BadFrame(f"{kind.name}: a payload of {size} bytes, not {form.sizes}")
    if session not in form.sessions or counter not in form.counters:
        raise BadFrame(f"{kind.name}: session {session} or counter {counter} may not stand there")
    return _HEADER.pack(first, size, session, counter)


def encode_frame(frame: Frame) -> bytes:
    """The frame as it goes onto the wire, its 0x00 included. BadFrame if it may not."""
    decoded = frame.decoded()
    return cobs_encode(decoded + _CRC.pack(crc32c(decoded))) + b"\0"


crc32c: Final[Callable[[bytes], int]] = google_crc32c.value
"""The CRC-32C of these bytes, by a library in C."""


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
    out = bytearray(data)
    at, end = 0, len(data)
    while at < end:
        out[at] = 0  # where a code stood, save the first, the zero was
        at += data[at]
    return bytes(out[1:]) if at == end else None


def _is_cobs(data: bytes) -> bool:
    at, end = 0, len(data)
    while at < end and data[at]:
        at += data[at]
    return at == end and 0 not in data


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
        size = len(data)
        self.counts.bytes += size
        at = 0
        while at < size:
            zero = data.find(0, at)
            if zero < 0:
                self._hold(data, at, size, out)
                break
            if at < zero <= at + MAX_ENCODED and not self._held and not self._drowned:
                self._read(data[at:zero], out)  # all of it is here, as almost always
            else:
                self._hold(data, at, zero, out)
                self._close(out)
            at = zero + 1
            if at < size and not data[at]:
                at = self._skip(data, at)
        return out

    def _skip(self, data: bytes, at: int) -> int:
        """Past the zeros that follow a zero: a port that sends nothing else must cost nothing."""
        zeros = _ZEROS.match(data, at)
        end = at if zeros is None else zeros.end()
        self.counts.empty += end - at
        return end

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
        self._read(encoded, out)

    def _read(self, encoded: bytes, out: list[Heard]) -> None:
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
        out.append(FrameDamage(cause, size))


def read_frame(encoded: bytes, versions: range = VERSIONS) -> Frame | Cause:
    """The frame that stands between two 0x00, or why it is none."""
    if len(encoded) > MAX_ENCODED:
        return Cause.OVERSIZE
    if len(encoded) <= _LEAST:  # it is no frame in any case, and noise has many of these
        return Cause.GARBAGE if _is_cobs(encoded) else Cause.COBS
    decoded = cobs_decode(encoded)
    if decoded is None:
        return Cause.COBS
    if crc32c(decoded) != _WHOLE:
        return Cause.CRC
    # From here on it is the sender who is at fault, not the wire.
    first, size, session, counter = _HEADER.unpack_from(decoded)
    form = _forms(versions)[first]
    if isinstance(form, Cause):
        return form
    if size != len(decoded) - _LEAST or size not in form.sizes:
        return Cause.LENGTH
    if session not in form.sessions or counter not in form.counters:
        return Cause.HEADER
    return Frame(form.kind, session, counter, decoded[HEADER_SIZE:-CRC_SIZE], form.version)


@cache
def _forms(versions: range) -> tuple[_Form | Cause, ...]:
    """What each first byte of a header means where these versions are spoken: its form, or why it
    has none."""
    return tuple(_meant(first >> 4, _KINDS.get(first & 0xF), versions) for first in range(256))


def _meant(version: int, kind: FrameKind | None, versions: range) -> _Form | Cause:
    if version not in ((IN_CLEAR_VERSION,) if kind in _IN_CLEAR else versions):
        return Cause.VERSION
    return Cause.KIND if kind is None else _form(kind, version)
