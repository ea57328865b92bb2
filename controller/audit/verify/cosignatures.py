"""Checkpoints that a witness has countersigned, compared with a record: they prove its length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from controller.audit.files import read_file
from controller.audit.format.merkle import EMPTY_ROOT, Hash
from controller.audit.format.notes import (
    MAX_SIZE,
    Certificate,
    Checkpoint,
    NoteProblem,
    SignedNote,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from controller.audit.witness import COSIGNED

_NAME: Final = re.compile(r"(0|[1-9][0-9]{0,17})\.note")


class WitnessedCheckpoint(Struct, frozen=True):
    """A checkpoint that another party has seen."""

    who: str
    note: SignedNote
    checkpoint: Checkpoint
    seconds: int = 0
    """Time of the countersignature by a known witness key; 0 without one."""


class BadNote(Struct, frozen=True):
    """A file in `cosigned/` that is no valid note."""

    size: int
    what: str


def seen_by_witness(note: bytes, key: VerifierKey) -> WitnessedCheckpoint:
    """Return the checkpoint in a note. Raises NoteProblem if the witness did not countersign it."""
    read = parse_note(note)
    (signer,) = verify_note(read, (key,))
    return WitnessedCheckpoint(key.name, read, parse_checkpoint(read.text), signer.seconds or 0)


def read_cosigned(record: Path) -> tuple[list[WitnessedCheckpoint], list[BadNote]]:
    """Parse the notes in `cosigned/`. Their witnesses are unknown, but the checkpoints are
    compared."""
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
            bad.append(BadNote(size, f"{where}: {problem}"))
            continue
        except OSError as problem:
            bad.append(BadNote(size, f"{where}: cannot be read: {problem.strerror}"))
            continue
        if checkpoint.size != size:
            bad.append(BadNote(size, f"{where}: is of {checkpoint.size} records"))
        found.append(WitnessedCheckpoint(where, note, checkpoint))
    return found, bad


def witness_error(
    seen: WitnessedCheckpoint,
    origin: str,
    last: int,
    roots: Mapping[int, Hash],
    keys: Iterable[Certificate],
) -> str:
    """Return why the record is not the one that was seen; empty if it is.

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
