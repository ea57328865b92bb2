"""What lies past the last good frame of a segment, and what explains it. No I/O.

None of it takes more than the bytes are long, whatever they are: `FORMAT.md` bounds the search for
frames that knew of more, and each frame of a write that was cut off is looked at once.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Final, NamedTuple

from controller.audit.format.frames import HEAD, HEAD_SIZE, MOST_BYTES, unpack

SECTOR: Final = 512
"""A disk writes so many bytes whole or not at all."""
MOST_TORN: Final = 4 * 1024 * 1024
"""Bytes of the longest write."""
SEARCHED: Final = 64 * 1024 * 1024
"""Bytes that are searched, beside SEARCHED_EACH for each byte of the tail."""
SEARCHED_EACH: Final = 8
_LIKE_A_HEAD: Final = re.compile(rb"(?s)(?!\0\0\0)(?=..[\0-\4]\0)")
"""A length that is one, as its bytes stand there."""
HOLE: Final = 40
"""More zeros in a row than a frame has anywhere."""
_HOLE: Final = re.compile(rb"\0{%d,}" % HOLE)
_TEXT: Final = re.compile(rb"[\x20-\xff]*")
_SEQ: Final = slice(8, 16)
"""Where it stands in a head."""
_JSON: Final = json.JSONDecoder()


class TailVerdict(Enum):
    CLEAN = "clean"
    TORN = "torn"
    """A write that was cut off; nothing acknowledged is missing."""
    MISSING = "missing"
    """Acknowledged records are gone."""
    UNEXPLAINED = "unexplained"


class Tail(NamedTuple):
    verdict: TailVerdict
    offset: int
    size: int
    """Up to and with the last byte that is not zero."""
    needed: int = 0
    """Of MISSING: so far the record went at least."""


def classify(buffer: bytes, end: int, last: int) -> Tail:
    """What `buffer` holds from `end` on, where the frame after `last` would begin."""
    stop = len(buffer.rstrip(b"\0"))
    if stop <= end:
        return Tail(TailVerdict.CLEAN, end, 0)
    needed, searched = _knew_of(buffer, end, stop, last)
    if needed > last:
        return Tail(TailVerdict.MISSING, end, stop - end, needed)
    torn = searched and stop - end <= MOST_TORN and _is_torn(buffer, end, stop, last)
    return Tail(TailVerdict.TORN if torn else TailVerdict.UNEXPLAINED, end, stop - end)


def _knew_of(buffer: bytes, start: int, stop: int, last: int) -> tuple[int, bool]:
    """The greatest seq past `last` that a whole frame says was on the disk, wherever the frame
    begins, or 0; and whether all was searched. What is made to be slow is not."""
    most = last + 1 + (stop - start) // HEAD_SIZE
    effort = SEARCHED + SEARCHED_EACH * (stop - start)
    needed, at = 0, start
    for match in _LIKE_A_HEAD.finditer(buffer, start, min(stop + 3, len(buffer))):
        place = match.start()
        if place < at or place + HEAD_SIZE > len(buffer):
            continue
        length, _, seq, before, _ = HEAD.unpack_from(buffer, place)
        if not (0 < length <= MOST_BYTES and last < before < seq <= most):
            continue
        effort -= HEAD_SIZE + length
        if effort < 0:
            return needed, False
        frame = unpack(buffer, place)
        if frame is not None:
            needed, at = max(needed, before), frame.end
    return needed, True


# --- a write that was cut off -----------------------------------------------------------------


def _is_torn(buffer: bytes, start: int, stop: int, last: int) -> bool:
    """Whether zeros in the place of what was written explain why the first frame is not whole.

    A frame that is whole, with nothing missing before it, would have been read as a good one were
    its chain right: no cut-off write leaves it."""
    if not _holes_are_sectors(buffer, start, stop):
        return False
    at, due = start, last + 1
    while at < stop:
        frame = unpack(buffer, at)
        if frame is None:
            end = _end_of_cut(buffer, at, stop, due, last)
            if end is None:
                return False
            if end == at:
                return True  # where the next one begins cannot be told any more
        elif at == start or frame.seq != due or frame.before > last:
            return False
        else:
            end = frame.end
        at, due = end, due + 1
    return True


def _holes_are_sectors(buffer: bytes, start: int, stop: int) -> bool:
    """Whether every run of zeros that no frame has is one or more sectors."""
    # What was written may end with zeros of its own where the hole begins, or begin with them.
    nearly = HOLE // 2
    return all(
        (hole.start() == start or -hole.start() % SECTOR <= nearly)
        and hole.end() % SECTOR <= nearly
        for hole in _HOLE.finditer(buffer, start, stop)
    )


def _end_of_cut(buffer: bytes, at: int, stop: int, due: int, last: int) -> int | None:
    """Where the frame `due` ends, of which a disk has not all; `at` where that cannot be told.
    None where what is there is not of that frame, or all of it is."""
    head = buffer[at : min(at + HEAD_SIZE, stop)]
    edge = SECTOR - at % SECTOR
    first, second = head[:edge].strip(b"\0"), head[edge:].strip(b"\0")
    length, _, _, before, _ = HEAD.unpack(head.ljust(HEAD_SIZE, b"\0"))
    known = bool(first) and len(head) >= 4 and (edge >= 4 or bool(second))
    """Whether its length is there, or only some bytes of it."""
    end = at + HEAD_SIZE + length
    possible = length <= MOST_BYTES and end <= len(buffer) and before <= last
    if not possible or (known and not length) or not _is_seq(head, edge, due):
        return None
    if not known or len(head) < HEAD_SIZE or (edge < HEAD_SIZE and not second):
        return at
    body = buffer[at + HEAD_SIZE : min(end, stop)]
    if body[:1] not in (b"{", b"\0", b""):
        return None
    lost = _lost(buffer, at, min(end, stop), cut=stop < end)
    return None if lost is not True or _begins_with_object(body) else end


def _is_seq(head: bytes, edge: int, due: int) -> bool:
    """Whether the head has this seq, as far as it has one: the piece up to `edge` and the one from
    there on may be lost."""
    wanted = due.to_bytes(8, "little")
    for begin, end in ((0, edge), (edge, HEAD_SIZE)):
        if not any(head[begin:end]):
            continue
        low, high = max(begin, _SEQ.start), min(end, _SEQ.stop, len(head))
        if low < high and head[low:high] != wanted[low - _SEQ.start : high - _SEQ.start]:
            return False
    return True


def _lost(buffer: bytes, start: int, end: int, *, cut: bool) -> bool | None:
    """Whether the frame at `start` is `cut` at `end`, or a piece of it is zero that a disk writes
    at once. None where what is there of it is no text: then nobody wrote it as a record."""
    lost, at = cut, start
    while at < end:
        until = min(end, at - at % SECTOR + SECTOR)
        piece = buffer[at:until]
        if not any(piece):
            lost = True
        elif not _TEXT.fullmatch(piece, max(0, start + HEAD_SIZE - at)):
            return None
        at = until
    return lost


def _begins_with_object(body: bytes) -> bool:
    """The record of the frame is there whole, so that no write of it was cut off."""
    try:
        # A record has no zero byte: behind one it does not go on.
        found, _ = _JSON.raw_decode(body.partition(b"\0")[0].decode("latin-1"))
    except RecursionError:
        return True  # so deep is nothing that was written here
    except ValueError:
        return False
    return isinstance(found, dict)
