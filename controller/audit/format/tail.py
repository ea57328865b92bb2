"""Classification of the bytes after the last good frame of a segment. No I/O.

The time is linear in the size, whatever the bytes are: FORMAT.md limits the search for later
frames, and each frame of an incomplete write is checked once.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Final, NamedTuple

from controller.audit.format.segments import HEAD, HEAD_SIZE, MAX_BYTES, unpack

SECTOR: Final = 512
"""A disk writes a sector atomically."""
MAX_WRITE_BYTES: Final = 4 * 1024 * 1024
"""Size limit of a single write in bytes."""
SEARCHED: Final = 64 * 1024 * 1024
"""Limit of the search in bytes, plus SEARCHED_EACH for each byte of the tail."""
SEARCHED_EACH: Final = 8
_LIKE_A_HEAD: Final = re.compile(rb"(?s)(?!\0\0\0)(?=..[\0-\4]\0)")
"""A possible length field of a frame."""
HOLE: Final = 40
"""A run of zeros longer than any in a frame."""
_HOLE: Final = re.compile(rb"\0{%d,}" % HOLE)
_TEXT: Final = re.compile(rb"[\x20-\xff]*")
_SEQ: Final = slice(8, 16)
"""Position of the seq in a frame's header."""
_JSON: Final = json.JSONDecoder()


class TailVerdict(Enum):
    CLEAN = "clean"
    TORN = "torn"
    """An incomplete write; no acknowledged record is missing."""
    MISSING = "missing"
    """Acknowledged records are missing."""
    UNEXPLAINED = "unexplained"


WRONG: Final = frozenset({TailVerdict.MISSING, TailVerdict.UNEXPLAINED})
"""Verdicts that are errors. An incomplete write is none: the next boot quarantines it."""


class Tail(NamedTuple):
    verdict: TailVerdict
    offset: int
    size: int
    """Up to the last byte that is not zero."""
    needed: int = 0
    """For MISSING: the record had at least this many records."""


def classify(buffer: bytes, end: int, last: int) -> Tail:
    """Classify the bytes of `buffer` from `end` on; `last` is the seq of the last good frame."""
    stop = len(buffer.rstrip(b"\0"))
    if stop <= end:
        return Tail(TailVerdict.CLEAN, end, 0)
    needed, searched = _knew_of(buffer, end, stop, last)
    if needed > last:
        return Tail(TailVerdict.MISSING, end, stop - end, needed)
    torn = searched and stop - end <= MAX_WRITE_BYTES and _is_torn(buffer, end, stop, last)
    return Tail(TailVerdict.TORN if torn else TailVerdict.UNEXPLAINED, end, stop - end)


def begins_boot(buffer: bytes, end: int, last: int, table: str, boot: str) -> bool:
    """Whether the bytes from `end` on are the first that another boot than `boot` has written: at
    least the length and the seq of a frame, and the beginning of its record as far as it is there.
    """
    stop = len(buffer.rstrip(b"\0"))
    piece = buffer[end : min(stop, end + SECTOR - end % SECTOR)]
    length, seq = int.from_bytes(piece[:4], "little"), int.from_bytes(piece[_SEQ], "little")
    if not 0 < length <= MAX_BYTES or seq != last + 1:
        return False
    shown = piece[HEAD_SIZE:]
    starts = (
        '{"v":2,"boot":"',
        f'{{"v":1,"table":{json.dumps(table, ensure_ascii=False)},"boot":"',
    )
    return any(
        start.startswith(shown[: len(start)]) and shown[len(start) :][:16] != boot.encode()
        for start in map(str.encode, starts)
    )


def _knew_of(buffer: bytes, start: int, stop: int, last: int) -> tuple[int, bool]:
    """The greatest durable seq beyond `last` that any complete frame states, or 0; and whether the
    search was complete. It stops early for bytes that are made to be slow."""
    most = last + 1 + (stop - start) // HEAD_SIZE
    effort = SEARCHED + SEARCHED_EACH * (stop - start)
    needed, at = 0, start
    for match in _LIKE_A_HEAD.finditer(buffer, start, min(stop + 3, len(buffer))):
        place = match.start()
        if place < at or place + HEAD_SIZE > len(buffer):
            continue
        length, _, seq, before, _ = HEAD.unpack_from(buffer, place)
        if not (0 < length <= MAX_BYTES and last < before < seq <= most):
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
    """Whether lost sectors explain why the first frame is incomplete.

    A complete frame in first place cannot result from an incomplete write: if its chain were right,
    it would be a good frame.
    """
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
                return True  # the start of the next frame is unknown from here on
        elif at == start or frame.seq != due or frame.before > last:
            return False
        else:
            end = frame.end
        at, due = end, due + 1
    return True


def _holes_are_sectors(buffer: bytes, start: int, stop: int) -> bool:
    """Whether every long run of zeros consists of complete sectors."""
    # The data around a hole may itself begin or end with zeros.
    nearly = HOLE // 2
    return all(
        (hole.start() == start or -hole.start() % SECTOR <= nearly)
        and hole.end() % SECTOR <= nearly
        for hole in _HOLE.finditer(buffer, start, stop)
    )


def _end_of_cut(buffer: bytes, at: int, stop: int, due: int, last: int) -> int | None:
    """The end of the incomplete frame `due`, or `at` if it cannot be determined. None if the bytes
    are not of that frame, or it is complete."""
    head = buffer[at : min(at + HEAD_SIZE, stop)]
    edge = SECTOR - at % SECTOR
    first, second = head[:edge].strip(b"\0"), head[edge:].strip(b"\0")
    length, _, _, before, _ = HEAD.unpack(head.ljust(HEAD_SIZE, b"\0"))
    known = bool(first) and len(head) >= 4 and (edge >= 4 or bool(second))
    """Whether its length is readable, at least in part."""
    end = at + HEAD_SIZE + length
    possible = length <= MAX_BYTES and end <= len(buffer) and before <= last
    if not possible or (known and not length) or not _is_seq(head, edge, due):
        return None
    if not known or len(head) < HEAD_SIZE or (edge < HEAD_SIZE and not second):
        return at
    body = buffer[at + HEAD_SIZE : min(end, stop)]
    if body[:1] not in (b"{", b"\0", b""):
        return None
    lost = _lost(buffer, at, min(end, stop), cut=stop < end)
    return None if lost is not True or begins_with_object(body) else end


def _is_seq(head: bytes, edge: int, due: int) -> bool:
    """Whether the readable part of the header has this seq; the parts before and behind `edge` may
    each be lost."""
    wanted = due.to_bytes(8, "little")
    for begin, end in ((0, edge), (edge, HEAD_SIZE)):
        if not any(head[begin:end]):
            continue
        low, high = max(begin, _SEQ.start), min(end, _SEQ.stop, len(head))
        if low < high and head[low:high] != wanted[low - _SEQ.start : high - _SEQ.start]:
            return False
    return True


def _lost(buffer: bytes, start: int, end: int, *, cut: bool) -> bool | None:
    """Whether the frame at `start` is truncated (`cut`) or has lost a sector. None if its readable
    part is not text, which no record is."""
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


def begins_with_object(body: bytes) -> bool:
    """Whether the record is complete, so that no incomplete write explains it."""
    try:
        # A record contains no zero byte, so it ends before the first.
        found, _ = _JSON.raw_decode(body.partition(b"\0")[0].decode("latin-1"))
    except RecursionError:
        return True  # deeper than any record that is written
    except ValueError:
        return False
    return isinstance(found, dict)
