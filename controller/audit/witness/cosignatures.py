"""Stores cosigned checkpoints in the record's directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from controller.audit.errors import RecordProblem
from controller.audit.files import (
    Disk,
    RealDisk,
    lock_with_timeout,
    make_directory,
    reporting_write_errors,
    write_atomically,
)
from controller.audit.format.notes import (
    NoteProblem,
    SignedNote,
    VerifierKey,
    format_note,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from controller.audit.read.heads import first_head

COSIGNED: Final = "cosigned"
_WRITABLE: Final = "let this user write there, and give it room"


class NotCosigned(RecordProblem):
    """The note is not a cosigned checkpoint of this record."""


class StoredNote(Struct, frozen=True):
    """A cosigned checkpoint in the record's directory."""

    size: int
    file: Path
    new: bool
    """This witness's signature was not there before."""


def store_notes(
    record: Path, notes: Sequence[tuple[str, bytes]], witness: VerifierKey, disk: Disk | None = None
) -> list[StoredNote]:
    """Validate all notes (with their names for errors), then store each in `cosigned/`. Raises
    NoRecord; NotCosigned if one is invalid, with nothing stored; CannotWrite; InUse on a lock
    timeout."""
    origin = first_head(record).snapshot.origin
    read = [_note(where, data, origin, witness) for where, data in notes]
    place = record / COSIGNED
    with reporting_write_errors(place, _WRITABLE), _alone(disk or RealDisk(), place):
        texts: dict[int, SignedNote] = {}
        brought = []
        for size, note in read:
            there = texts.get(size) or _there(place, size, witness)
            texts[size] = _together(place, size, there, note, witness)
            brought.append(StoredNote(size, _file(place, size), texts[size] != there))
        for one in brought:
            if one.new:
                note = texts[one.size]
                write_atomically(
                    disk or RealDisk(), one.file, format_note(note.text, *note.signatures).encode()
                )
    return brought


def _note(where: str, data: bytes, origin: str, witness: VerifierKey) -> tuple[int, SignedNote]:
    try:
        note = parse_note(data)
        said = parse_checkpoint(note.text)
        verify_note(note, (witness,))
    except NoteProblem as problem:
        todo = "give a note that this witness has countersigned, as it was made"
        raise NotCosigned(where, str(problem), todo) from None
    if said.origin != origin:
        what = f"it is a checkpoint of {said.origin}, this record is {origin}"
        raise NotCosigned(where, what, "bring it to its own record")
    mine = [one for one in note.signatures if one.name in (origin, witness.name)]
    return said.size, SignedNote(note.text, tuple(mine))


def _together(
    place: Path, size: int, there: SignedNote | None, note: SignedNote, witness: VerifierKey
) -> SignedNote:
    """Add this witness's signature to the stored note."""
    if there is None:
        return note
    if there.text != note.text:
        what = f"says another root of {size} records than the note that is brought"
        todo = "keep both: who holds the table's key has signed two records"
        raise NotCosigned(_file(place, size), what, todo)
    if _has(there, witness):
        return there
    more = [one for one in note.signatures if one.name == witness.name]
    return SignedNote(there.text, (*there.signatures, *more))


def _there(place: Path, size: int, witness: VerifierKey) -> SignedNote | None:
    file = _file(place, size)
    if not file.exists():
        return None
    try:
        note = parse_note(file.read_bytes())
        if _has(note, witness):
            verify_note(note, (witness,))
    except NoteProblem as problem:
        raise NotCosigned(file, f"is damaged: {problem}", "put it back, or remove it") from None
    return note


def _has(note: SignedNote, witness: VerifierKey) -> bool:
    mine = (witness.name, witness.key_id)
    return any((one.name, one.key_id) == mine for one in note.signatures)


def _file(place: Path, size: int) -> Path:
    return place / f"{size}.note"


@contextmanager
def _alone(disk: Disk, place: Path) -> Iterator[None]:
    """Lock the directory. Raises OSError, InUse."""
    make_directory(disk, place)
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock_with_timeout(fd, place)
        yield
    finally:
        os.close(fd)
