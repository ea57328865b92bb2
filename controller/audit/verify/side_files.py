"""Files beside the segments, compared with the record.

They are quarantined trailing bytes, checkpoints that a witness has countersigned, which prove the
record's length, and files that are no part of a record.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from controller.audit.files import LOCK, read_file
from controller.audit.format.merkle import EMPTY_ROOT, Hash
from controller.audit.format.notes import (
    MAX_SIZE,
    Certificate,
    Checkpoint,
    NoteProblem,
    SignedNote,
    VerifierKey,
    parse_base64,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from controller.audit.format.records import TailData
from controller.audit.format.segments import DIRECTORY, HEADER_SIZE, LARGEST, NAME, SPARE
from controller.audit.log import TAILS
from controller.audit.read.retirements import NAME as NOTE
from controller.audit.read.retirements import RETIRED
from controller.audit.witness import COSIGNED

_AROUND: Final = 1024 * 1024
"""Maximum of bytes in a quarantine file besides the quarantined bytes."""


def place_error(tail: TailData, segment: int, end: int) -> str:
    """Returns why these bytes cannot have been quarantined. Before the boot the record ended at
    `end`."""
    if tail.segment != segment or not HEADER_SIZE < tail.offset <= end:
        where = f"segment {tail.segment}, offset {tail.offset}"
        return f"a tail record of {where}; the records before end in {segment}, at {end}"
    return ""


def tail_error(record: Path, tail: TailData) -> str:
    """Returns how the quarantine file contradicts its `tail` record; empty if it does not."""
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
    """Maximum size of the file: base64 is a third longer than the bytes, which were less than a
    segment."""
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


# --- files that are no part of the record -----------------------------------------------------

KEYS: Final = "keys"
"""Demo keys, in the directory of a record of scripts."""
MAX_LISTED: Final = 20
"""Limit of files that are listed."""
_HERE: Final = re.compile(
    rf"{DIRECTORY}|{TAILS}|{COSIGNED}|{RETIRED}|{LOCK}|{KEYS}|index\.db(-wal|-shm)?"
)
_WITHIN: Final = {
    DIRECTORY: re.compile(rf"{NAME.pattern}|{re.escape(SPARE)}"),
    TAILS: re.compile(r".+\.json(\.new)?"),
    COSIGNED: re.compile(r"(0|[1-9][0-9]{0,17})\.note(\.new)?"),
    RETIRED: re.compile(rf"{NOTE.pattern}(\.new)?"),
}
"""Files with .new are being written, or were when the power failed."""


def foreign_files(record: Path, told: Collection[str]) -> Iterator[str]:
    """Describe each unknown file, sorted by name. `told` has the file names in `tail` records."""
    found = [name for name in _names(record) if name not in told]
    yield from (f"{name}: is no part of the record" for name in found[:MAX_LISTED])
    if len(found) > MAX_LISTED:
        yield f"{len(found) - MAX_LISTED} more files that are no part of the record"


def _names(record: Path) -> Iterator[str]:
    yield from (name for name in _listed(record) if not _HERE.fullmatch(name))
    for folder, known in _WITHIN.items():
        listed = _listed(record / folder)
        yield from (f"{folder}/{name}" for name in listed if not known.fullmatch(name))


def _listed(place: Path) -> list[str]:
    try:
        return sorted(os.listdir(place))
    except (FileNotFoundError, NotADirectoryError):
        return []


_NAME: Final = re.compile(r"(0|[1-9][0-9]{0,17})\.note")


class WitnessedCheckpoint(Struct, frozen=True):
    """A checkpoint that another party has seen."""

    who: str
    note: SignedNote
    checkpoint: Checkpoint
    seconds: int = 0
    """Time of the countersignature by a known witness key; 0 without one."""


class InvalidWitnessNote(Struct, frozen=True):
    """A note that was given as a witness's checkpoint and is none: forged or damaged."""

    what: str


def seen_by_witness(note: bytes, key: VerifierKey) -> WitnessedCheckpoint:
    """Returns the checkpoint in a note. Raises NoteProblem if the witness did not sign it."""
    read = parse_note(note)
    (signer,) = verify_note(read, (key,))
    return WitnessedCheckpoint(key.name, read, parse_checkpoint(read.text), signer.seconds or 0)


def read_cosigned(record: Path) -> tuple[list[WitnessedCheckpoint], list[tuple[int, str]]]:
    """Parse the notes in `cosigned/`; returns them, and the size and error of each invalid one.

    Their witnesses are unknown, but the checkpoints are compared.
    """
    found, bad = [], []
    for file in sorted((record / COSIGNED).glob("*.note")):
        name = _NAME.fullmatch(file.name)
        if name is None:
            continue
        where, size = f"{COSIGNED}/{file.name}", int(name[1])
        try:
            note = parse_note(read_file(file, MAX_SIZE + 1))
            checkpoint = parse_checkpoint(note.text)
        except NoteProblem as problem:
            bad.append((size, f"{where}: {problem}"))
            continue
        except OSError as problem:
            bad.append((size, f"{where}: cannot be read: {problem.strerror}"))
            continue
        if checkpoint.size != size:
            bad.append((size, f"{where}: is of {checkpoint.size} records"))
        found.append(WitnessedCheckpoint(where, note, checkpoint))
    return found, bad


def witness_error(
    seen: WitnessedCheckpoint,
    origin: str,
    last: int,
    roots: Mapping[int, Hash],
    keys: Iterable[Certificate],
) -> str:
    """Returns why the record is not the one that was seen; empty if it is.

    `last` is the record's last seq, `roots` are roots of its tree, `keys` are those of all its
    boots.
    """
    checkpoint, who = seen.checkpoint, seen.who
    if checkpoint.origin != origin:
        return f"{who} has seen {checkpoint.origin}, another record"
    if checkpoint.size > last:
        return f"cut off: {who} has seen {checkpoint.size} records, {last} are here"
    root = EMPTY_ROOT if checkpoint.size == 0 else roots.get(checkpoint.size)
    if root is None:
        return f"what {who} has seen of the first {checkpoint.size} records cannot be held"
    if root != checkpoint.root:
        return f"{who} has seen other records than the first {checkpoint.size} here: rewritten"
    return _signed_by_boot(seen, origin, keys)


def _signed_by_boot(seen: WitnessedCheckpoint, origin: str, keys: Iterable[Certificate]) -> str:
    """Check that the table's signature on the checkpoint is by a boot of this record."""
    known = {key.verifier.key_id: key.verifier for key in keys}
    ours = [one for one in seen.note.signatures if one.name == origin]
    if not ours:
        return f"what {seen.who} has seen is not signed by the table"
    for one in ours:
        key = known.get(one.key_id)
        try:
            if key is None:
                raise NoteProblem("no boot of the record has that key")
            key.check(seen.note.text, one.bytes)
        except NoteProblem as problem:
            return f"the table's signature on what {seen.who} has seen: {problem}"
    return ""
