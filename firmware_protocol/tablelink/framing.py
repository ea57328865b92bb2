"""Decoder and encoder of frames, which are separated by 0x00 on the wire. No I/O.

    deframer = Deframer()
    for found in deframer.feed(data):     # Frame or FrameDamage, in the order of the wire
        ...
    port.write(Frame(FrameKind.HELLO, session, 0, hello.encode()).encode())

Received bytes never raise an exception. Damaged bytes are counted, and reported with their cause;
decoding continues after the next 0x00. At most MAX_ENCODED bytes are buffered.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Final, TypeAlias

import google_crc32c
from msgspec import Struct

from firmware_protocol.messages import (
    CRC_SIZE,
    HEADER_SIZE,
    MAX_ENCODED,
    PAYLOAD_SIZES,
    VERSION,
    BadFrame,
    FrameKind,
)

IN_CLEAR_VERSION: Final = 1
"""The version in HELLO, HELLO_RSP and ALERT, which are the same in all versions."""
VERSIONS: Final = range(1, VERSION + 1)

_HEADER: Final = struct.Struct("<BBHI")
_CRC: Final = struct.Struct("<I")
_MIN_SIZE: Final = HEADER_SIZE + CRC_SIZE
_RESIDUE: Final = 0x48674BC7
"""The CRC-32C of any bytes that are followed by their own CRC."""
_ZEROS: Final = re.compile(rb"\0+")
_CODES: Final = tuple(bytes((code,)) for code in range(256))
_KINDS: Final = {int(kind): kind for kind in FrameKind}
_IN_CLEAR: Final = (FrameKind.HELLO, FrameKind.HELLO_RSP, FrameKind.ALERT)


class Cause(Enum):
    """Why bytes are no valid frame, in the order of the checks."""

    # Members are singletons, so identity is enough; the hash of Enum is slow under heavy noise.
    __hash__ = object.__hash__

    OVERSIZE = "oversize"
    """More than MAX_ENCODED bytes without a 0x00."""
    COBS = "cobs"
    """A COBS code points beyond the end."""
    GARBAGE = "garbage"
    """Too short for header and CRC."""
    CRC = "crc"
    """The CRC is wrong: noise or lost bytes."""
    VERSION = "version"
    """The CRC is correct, but the version is not supported."""
    KIND = "kind"
    """The CRC is correct, but that version has no such kind."""
    LENGTH = "length"
    """The CRC is correct, but n disagrees with the length or the kind of the frame."""
    HEADER = "header"
    """The CRC is correct, but the kind does not allow this session id or counter."""


class FrameDamage(Struct, frozen=True, gc=False):
    """A report of bytes that are no valid frame. The bytes themselves are dropped."""

    cause: Cause
    size: int
    """Number of bytes, up to the one that revealed the damage."""


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
        """Header and payload without the CRC, as used in the prologue of a handshake."""
        return self.header() + self.payload

    def encode(self) -> bytes:
        """Encode the frame for the wire, with its 0x00. Raises BadFrame if it is not allowed."""
        decoded = self.decoded()
        return cobs_encode(decoded + _CRC.pack(crc32c(decoded))) + b"\0"


FrameOrDamage: TypeAlias = Frame | FrameDamage


class _Form(Struct, frozen=True):
    """The allowed header values for one kind and version."""

    kind: FrameKind
    version: int
    sizes: tuple[int, ...]
    sessions: range
    counters: range


def _form(kind: FrameKind, version: int) -> _Form:
    """Only ALERT has no session, and only DATA has a counter."""
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
        raise BadFrame(f"{kind.name}: version {version} is not allowed")
    if size not in form.sizes:
        raise BadFrame(f"{kind.name}: a payload of {size} bytes, not {form.sizes}")
    if session not in form.sessions or counter not in form.counters:
        raise BadFrame(f"{kind.name}: session {session} or counter {counter} is not allowed")
    return _HEADER.pack(first, size, session, counter)


crc32c: Final[Callable[[bytes], int]] = google_crc32c.value
"""The CRC-32C of these bytes, by a library in C."""


def cobs_encode(data: bytes) -> bytes:
    """Encode at most 254 bytes, the maximum of a frame: one code for each run up to a zero. The
    code 0xFF occurs only if none of 254 bytes is zero."""
    out = []
    for run in data.split(b"\0"):
        out.append(_CODES[len(run) + 1])
        out.append(run)
    return b"".join(out)


def cobs_decode(data: bytes) -> bytes | None:
    """Decode at most 255 bytes without a zero. Returns None if they are no valid encoding."""
    if 0 in data:
        return None
    out = bytearray(data)
    at, end = 0, len(data)
    while at < end:
        out[at] = 0  # each code but the first replaces a zero
        at += data[at]
    return bytes(out[1:]) if at == end else None


def _is_cobs(data: bytes) -> bool:
    at, end = 0, len(data)
    while at < end and data[at]:
        at += data[at]
    return at == end and 0 not in data


class Deframer:
    """Splits a stream of bytes into frames. The result does not depend on the chunks of feed()."""

    def __init__(self, versions: range = VERSIONS) -> None:
        self._versions = versions
        self._buffer = bytearray()
        self._oversize = False  # too many bytes without a 0x00: skip to the next one

    @property
    def buffered(self) -> int:
        """Number of buffered bytes without their 0x00."""
        return len(self._buffer)

    def reset(self) -> None:
        """Drop the buffered bytes, because the port was opened again."""
        self._buffer.clear()
        self._oversize = False

    def feed(self, data: bytes) -> list[FrameOrDamage]:
        """Decode these bytes. Returns complete frames and damage in the order of the wire."""
        out: list[FrameOrDamage] = []
        size = len(data)
        at = 0
        while at < size:
            zero = data.find(0, at)
            if zero < 0:
                self._append(data, at, size, out)
                break
            if at < zero <= at + MAX_ENCODED and not self._buffer and not self._oversize:
                self._read(data[at:zero], out)  # the frame is complete, the usual case
            else:
                self._append(data, at, zero, out)
                self._close(out)
            at = zero + 1
            if at < size and not data[at]:
                # Skip further zeros quickly: a port that sends only zeros must cost nothing.
                zeros = _ZEROS.match(data, at)
                at = at if zeros is None else zeros.end()
        return out

    def _append(self, data: bytes, start: int, end: int, out: list[FrameOrDamage]) -> None:
        if self._oversize:
            return
        if len(self._buffer) + end - start <= MAX_ENCODED:
            self._buffer += data[start:end]
        else:
            # Reported at the first byte too many, because a 0x00 may never arrive.
            self._oversize = True
            out.append(FrameDamage(Cause.OVERSIZE, MAX_ENCODED + 1))
            self._buffer.clear()

    def _close(self, out: list[FrameOrDamage]) -> None:
        encoded = bytes(self._buffer)
        self._oversize = False
        self._buffer.clear()
        if encoded:
            self._read(encoded, out)

    def _read(self, encoded: bytes, out: list[FrameOrDamage]) -> None:
        found = read_frame(encoded, self._versions)
        out.append(FrameDamage(found, len(encoded)) if isinstance(found, Cause) else found)


def read_frame(encoded: bytes, versions: range = VERSIONS) -> Frame | Cause:
    """Decode the bytes between two 0x00. Returns the frame, or why it is invalid."""
    if len(encoded) > MAX_ENCODED:
        return Cause.OVERSIZE
    if len(encoded) <= _MIN_SIZE:  # never a frame, and frequent in noise
        return Cause.GARBAGE if _is_cobs(encoded) else Cause.COBS
    decoded = cobs_decode(encoded)
    if decoded is None:
        return Cause.COBS
    if crc32c(decoded) != _RESIDUE:
        return Cause.CRC
    # A later error is one of the sender, not of the wire.
    first, size, session, counter = _HEADER.unpack_from(decoded)
    form = _forms(versions)[first]
    if isinstance(form, Cause):
        return form
    if size != len(decoded) - _MIN_SIZE or size not in form.sizes:
        return Cause.LENGTH
    if session not in form.sessions or counter not in form.counters:
        return Cause.HEADER
    return Frame(form.kind, session, counter, decoded[HEADER_SIZE:-CRC_SIZE], form.version)


@cache
def _forms(versions: range) -> tuple[_Form | Cause, ...]:
    """For each first byte of a header, its allowed values, or why it is invalid."""
    return tuple(_form_of(first >> 4, _KINDS.get(first & 0xF), versions) for first in range(256))


def _form_of(version: int, kind: FrameKind | None, versions: range) -> _Form | Cause:
    if version not in ((IN_CLEAR_VERSION,) if kind in _IN_CLEAR else versions):
        return Cause.VERSION
    return Cause.KIND if kind is None else _form(kind, version)
