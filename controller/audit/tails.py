"""What lies past the last good frame of a segment, and what explains it. No I/O."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Final, NamedTuple

from controller.audit.frames import HEAD, HEAD_SIZE, MOST_BYTES, Frame, unpack

SECTOR: Final = 512
"""A disk writes so many bytes whole or not at all."""
MOST_TORN: Final = 4 * 1024 * 1024
"""Bytes of the longest write."""
MOST_AHEAD: Final = 1_000_000
"""No frame so far past the last one can be of the same record's last writes."""
_SOMETHING: Final = re.compile(rb"[^\0]")
_ALL_ZERO: Final = re.compile(rb"\0*")
HOLE: Final = 40
"""More zeros in a row than a frame has anywhere."""
_HOLE: Final = re.compile(rb"\0{%d,}" % HOLE)
_JSON: Final = json.JSONDecoder()


class Verdict(Enum):
    CLEAN = "clean"
    TORN = "torn"
    """A write that was cut off; nothing acknowledged is missing."""
    MISSING = "missing"
    """Acknowledged records are gone."""
    UNEXPLAINED = "unexplained"


class Tail(NamedTuple):
    verdict: Verdict
    offset: int
    size: int
    """Up to and with the last byte that is not zero."""
    needed: int = 0
    """Of MISSING: so far the record went at least."""


def classify(buffer: bytes, end: int, last: int) -> Tail:
    """What `buffer` holds from `end` on, where the frame after `last` would begin."""
    stop = len(buffer.rstrip(b"\0"))
    if stop <= end:
        return Tail(Verdict.CLEAN, end, 0)
    found = whole_frames(buffer, end, stop, last)
    needed = max((frame.before for frame in found), default=0)
    if needed > last:
        return Tail(Verdict.MISSING, end, stop - end, needed)
    torn = stop - end <= MOST_TORN and _is_torn(buffer, end, stop, last)
    return Tail(Verdict.TORN if torn else Verdict.UNEXPLAINED, end, stop - end)


def whole_frames(buffer: bytes, start: int, stop: int, last: int) -> list[Frame]:
    """Every frame past `last` that is whole, wherever it begins."""
    frames = []
    at = start
    while at + HEAD_SIZE < stop:
        something = _SOMETHING.search(buffer, at, stop)
        if something is None:
            break
        # A length below 256 begins with the byte that is not zero, a greater one up to two later.
        at = max(at, something.start() - 2)
        frame = _later_frame(buffer, at, last)
        if frame is not None:
            frames.append(frame)
            at = frame.end
        else:
            at += 1
    return frames


def _later_frame(buffer: bytes, at: int, last: int) -> Frame | None:
    if at + HEAD_SIZE > len(buffer):
        return None
    length, _, seq, before, _ = HEAD.unpack_from(buffer, at)
    if not 0 < length <= MOST_BYTES or not last < seq <= last + MOST_AHEAD or before >= seq:
        return None
    return unpack(buffer, at)


def _is_torn(buffer: bytes, at: int, stop: int, last: int) -> bool:
    """Whether zeros in the place of what was written explain why the first frame is not whole.

    A frame that is whole, with nothing missing before it, would have been read as a good one were
    its chain right: no cut-off write leaves it."""
    if not _holes_are_pieces(buffer, at, stop):
        return False
    hole = False
    while at < stop:
        last += 1
        if _zero_piece(buffer, at, at + HEAD_SIZE):
            return True  # where the next one begins cannot be told any more
        if stop <= at + HEAD_SIZE:
            return _may_begin(buffer[at:stop], last)
        length, _, seq, before, _ = HEAD.unpack_from(buffer, at)
        end = at + HEAD_SIZE + int(length)
        likely = 0 < length <= MOST_BYTES and seq == last and before < seq
        if not likely or end > len(buffer):
            return False
        if unpack(buffer, at) is None:
            if _begins_with_object(buffer[at + HEAD_SIZE : stop]):
                return False
            if not _zero_piece(buffer, at, end):
                return stop < end
            hole = True
        elif not hole:
            return False
        at = end
    return hole


def _holes_are_pieces(buffer: bytes, at: int, stop: int) -> bool:
    """Whether every run of zeros that no frame has is one or more sectors, or ends with one."""
    for hole in _HOLE.finditer(buffer, at, stop):
        begins = hole.start() == at or not hole.start() % SECTOR
        # What was written may end with zeros of its own where the hole begins, or begin with them.
        nearly = HOLE // 2
        inside = hole.end() % SECTOR
        begins = begins or SECTOR - hole.start() % SECTOR <= nearly
        if not begins or nearly < inside:
            return False
    return True


def _may_begin(head: bytes, seq: int) -> bool:
    """Whether this can be the beginning of the frame `seq`, as far as it goes."""
    length = int.from_bytes(head[:4].ljust(4, b"\0"), "little")
    expected = seq.to_bytes(8, "little")[: max(0, len(head) - 8)]
    return 0 < length <= MOST_BYTES and head[8:16] == expected[: len(head[8:16])]


def _zero_piece(buffer: bytes, start: int, end: int) -> bool:
    """Whether a whole piece of start..end, as a disk would have written it, is zero."""
    at = start
    while at < end:
        until = min(end, at - at % SECTOR + SECTOR)
        zeros = _ALL_ZERO.match(buffer, at, until)
        if zeros is not None and zeros.end() == until:
            return True
        at = until
    return False


def _begins_with_object(data: bytes) -> bool:
    """The record of the frame is there whole, so that no write of it was cut off."""
    try:
        found, _ = _JSON.raw_decode(data.decode("latin-1"))
    except RecursionError:
        return True  # so deep is nothing that was written here
    except ValueError:
        return False
    return isinstance(found, dict)
