"""What lies behind the last good frame, and what was set aside: bytes that no record explains."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from controller.audit.files import read_file
from controller.audit.format.notes import NoteProblem, parse_base64
from controller.audit.format.records import TailData
from controller.audit.format.segments import HEADER_SIZE, LARGEST
from controller.audit.log import TAILS

_AROUND: Final = 1024 * 1024
"""Bytes that the file of what was set aside has beside them, and more."""


def place_error(tail: TailData, segment: int, end: int) -> str:
    """Why nothing can have been set aside there: before the boot the record ended at `end`."""
    if tail.segment != segment or not HEADER_SIZE < tail.offset <= end:
        where = f"segment {tail.segment}, offset {tail.offset}"
        return f"a tail record of {where}; the records before end in {segment}, at {end}"
    return ""


def tail_error(record: Path, tail: TailData) -> str:
    """Why the file of what was set aside is not what its record tells."""
    folder, _, name = tail.file.rpartition("/")
    if folder != TAILS or not name or name in (".", "..") or "\0" in name:
        return f"a tail record of a file {tail.file!r}, which is none in {TAILS}"
    try:
        data = read_file(record / TAILS / name, _max_bytes(tail))
    except FileNotFoundError:
        return f"{tail.file}: what was set aside is gone"
    except OSError as problem:
        return f"{tail.file}: what was set aside cannot be read: {problem.strerror}"
    return _wrong_file(tail, data)


def _max_bytes(tail: TailData) -> int:
    """Bytes of the file: in base64 it is a third longer than what was set aside, which was less
    than a segment."""
    return _AROUND + min(tail.size, LARGEST) * 4 // 3


def _wrong_file(tail: TailData, data: bytes) -> str:
    try:
        kept: dict[str, Any] = json.loads(data)
        lost = parse_base64(kept.pop("bytes"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, NoteProblem):
        return f"{tail.file}: cannot be read as what was set aside"
    told = msgspec.to_builtins(tail)
    if {**kept, "file": tail.file} != {**told, **({"two": list(tail.two)} if tail.two else {})}:
        return f"{tail.file}: says something else than its record"
    if len(lost) != tail.size or sha256(lost).hexdigest() != tail.sha256:
        return f"{tail.file}: does not hold what was set aside"
    return ""
