"""Cosigned checkpoints in the record's directory: storing, and monitoring for a running table.

  state = recorded_state(record)                 # what the record itself contains
  report = check_witnesses(record, state.size)   # what to record now

A running table does not know the witnesses' keys: it records a note if the table signed its
checkpoint, and a verifier checks the cosignature with the witness's key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from controller.audit.errors import RecordProblem
from controller.audit.files import (
    Disk,
    locked,
    make_directory,
    reporting_write_errors,
    write_atomically,
)
from controller.audit.format.notes import (
    MAX_SIZE,
    NoteProblem,
    SignedNote,
    VerifierKey,
    format_note,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from controller.audit.format.records import Kind, NoteData
from controller.audit.format.segments import HEADER_SIZE, RecordFrame, numbers, segment_file, unpack
from controller.audit.read.lookup import first_head, segment_of
from controller.audit.read.reader import load, record_of

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
    disk = disk or Disk()
    with reporting_write_errors(place, _WRITABLE):
        make_directory(disk, place)
        with locked(place, os.O_RDONLY | os.O_DIRECTORY):
            texts: dict[int, SignedNote] = {}
            stored = []
            for size, note in read:
                there = texts.get(size) or _stored_note(place, size, witness)
                texts[size] = _with_signature(place, size, there, note, witness)
                stored.append(StoredNote(size, _file(place, size), texts[size] != there))
            for one in stored:
                if one.new:
                    note = texts[one.size]
                    data = format_note(note.text, *note.signatures).encode()
                    write_atomically(disk, one.file, data)
    return stored


def _note(where: str, data: bytes, origin: str, witness: VerifierKey) -> tuple[int, SignedNote]:
    try:
        note = parse_note(data)
        said = parse_checkpoint(note.text)
        verify_note(note, (witness,))
    except NoteProblem as problem:
        raise NotCosigned(
            where, str(problem), "give a note that this witness has countersigned, as it was made"
        ) from None
    if said.origin != origin:
        raise NotCosigned(
            where,
            f"it is a checkpoint of {said.origin}, this record is {origin}",
            "bring it to its own record",
        )
    mine = [one for one in note.signatures if one.name in (origin, witness.name)]
    return said.size, SignedNote(note.text, tuple(mine))


def _with_signature(
    place: Path, size: int, there: SignedNote | None, note: SignedNote, witness: VerifierKey
) -> SignedNote:
    """Add this witness's signature to the stored note."""
    if there is None:
        return note
    if there.text != note.text:
        what = f"says another root of {size} records than the note that is brought"
        raise NotCosigned(
            _file(place, size), what, "keep both: who holds the table's key has signed two records"
        )
    if _has_signature(there, witness):
        return there
    more = [one for one in note.signatures if one.name == witness.name]
    return SignedNote(there.text, (*there.signatures, *more))


def _stored_note(place: Path, size: int, witness: VerifierKey) -> SignedNote | None:
    file = _file(place, size)
    if not file.exists():
        return None
    try:
        note = parse_note(file.read_bytes())
        if _has_signature(note, witness):
            verify_note(note, (witness,))
    except NoteProblem as problem:
        raise NotCosigned(file, f"is damaged: {problem}", "put it back, or remove it") from None
    return note


def _has_signature(note: SignedNote, witness: VerifierKey) -> bool:
    mine = (witness.name, witness.key_id)
    return any((one.name, one.key_id) == mine for one in note.signatures)


def _file(place: Path, size: int) -> Path:
    return place / f"{size}.note"


MAX_NOTES: Final = 32
"""Limit per check: the newest notes; each covers what older ones cover."""
MAX_SEGMENTS: Final = 16
"""Search limit for the recorded state. A state further back is recorded again, once per start."""
ABOUT_ITSELF: Final[frozenset[Kind]] = frozenset(
    ("snapshot", "certificate", "checkpoint", "clock", "witnessed", "unwitnessed")
)
"""Kinds that need no cosignature of their own. Otherwise each recorded cosignature would require
the next one."""
_NAME: Final = re.compile(r"[1-9][0-9]{0,17}")
_KIND: Final = re.compile(rb'"round":[0-9]+,"kind":"([a-z]+)"')
_STATE_KINDS: Final = (b'"kind":"witnessed"', b'"kind":"unwitnessed"')
_COSIGNATURE: Final = 72
"""Size of a cosignature's time and signature, behind the key id."""


class WitnessState(Struct, frozen=True):
    """The cosigned state according to the record."""

    size: int = 0
    """The size that the last `witnessed` record covers; 0 without one."""
    since: int = 0
    """`since` of an `unwitnessed` record after it; 0 without one."""


class CosignedCheckpoint(Struct, frozen=True):
    """A cosigned checkpoint of this record."""

    size: int
    note: str


class WitnessReport(Struct, frozen=True):
    """The result of a check."""

    seen: tuple[CosignedCheckpoint, ...]
    """To record, in order: each covers records that no earlier one covers."""
    size: int
    """The largest cosigned size; 0 if none is."""
    since: int
    """The UTC of the first record that is not cosigned; 0 if all are."""
    wrong: tuple[str, ...]
    """Rejected notes with the reason."""


def recorded_state(record: Path) -> WitnessState:
    """Search the last segments for it. Raises RecordProblem."""
    since = 0
    for number in reversed(numbers(record)[-MAX_SEGMENTS:]):
        file = segment_file(record, number)
        buffer = load(file, number)
        if not any(one in buffer for one in _STATE_KINDS):
            continue
        found = [frame for frame in _frames(buffer) if _kind(frame) in ("witnessed", "unwitnessed")]
        for frame in reversed(found):
            data = record_of(file, frame).data
            if _kind(frame) == "witnessed":
                text = parse_note(msgspec.json.decode(data, type=NoteData).note).text
                return WitnessState(parse_checkpoint(text).size, since)
            since = since or msgspec.json.decode(data, type=dict[str, int])["since"]
    return WitnessState(0, since)


def cosigned_checkpoints(record: Path, recorded: int) -> tuple[tuple[int, int], ...]:
    """Size and modification time of the notes in `cosigned/` beyond size `recorded`. Raises
    OSError."""
    names = [file for file in (record / COSIGNED).glob("*.note") if _NAME.fullmatch(file.stem)]
    newer = sorted((int(file.stem), file) for file in names if int(file.stem) > recorded)
    return tuple((size, file.stat().st_mtime_ns) for size, file in newer[-MAX_NOTES:])


def check_witnesses(record: Path, recorded: int) -> WitnessReport:
    """Check for new cosignatures beyond size `recorded`. Raises RecordProblem, OSError."""
    seen: list[CosignedCheckpoint] = []
    wrong: list[str] = []
    size = recorded
    first, since = _first_after(record, recorded)
    for over, _ in cosigned_checkpoints(record, recorded):
        try:
            note = _countersigned(record, over)
        except (NoteProblem, RecordProblem) as problem:
            wrong.append(f"{COSIGNED}/{over}.note: {problem}")
            continue
        size = over
        if first and first <= over:
            seen.append(CosignedCheckpoint(over, note))
            first, since = _first_after(record, over)
    return WitnessReport(tuple(seen), size, since, tuple(wrong))


def _countersigned(record: Path, size: int) -> str:
    """The cosigned note of this size, as it is recorded. Raises NoteProblem, RecordProblem,
    OSError."""
    with (record / COSIGNED / f"{size}.note").open("rb") as opened:
        note = parse_note(opened.read(MAX_SIZE + 1))
    ours = _signed_after(record, size)
    if ours is None or ours.text != note.text:
        raise NoteProblem("no checkpoint of this record")
    by_table = [one for one in note.signatures if one in ours.signatures]
    by_others = [
        one
        for one in note.signatures
        if one.name != parse_checkpoint(note.text).origin and len(one.bytes) == _COSIGNATURE
    ]
    if not by_table:
        raise NoteProblem("not signed by the table")
    if not by_others:
        raise NoteProblem("countersigned by nobody")
    return format_note(note.text, *by_table, *by_others)


def _signed_after(record: Path, size: int) -> SignedNote | None:
    """The first checkpoint after record `size`. Raises RecordProblem."""
    for file, frame in _behind(record, size):
        if _kind(frame) == "checkpoint":
            return parse_note(msgspec.json.decode(record_of(file, frame).data, type=NoteData).note)
    return None


def _first_after(record: Path, size: int) -> tuple[int, int]:
    """Seq and UTC of the first record after record `size` that needs a cosignature; zeros if none
    does. Raises RecordProblem."""
    for file, frame in _behind(record, size):
        if _kind(frame) not in ABOUT_ITSELF:
            return frame.seq, record_of(file, frame).utc
    return 0, 0


def _behind(record: Path, size: int) -> Iterator[tuple[Path, RecordFrame]]:
    """The frames after record `size`, each with its file."""
    begins = first_head(record)
    start = begins.number if size < begins.record.seq else segment_of(record, size)
    for number in [one for one in numbers(record) if one >= start]:
        file = segment_file(record, number)
        for frame in _frames(load(file, number)):
            if frame.seq > size:
                yield file, frame


def _frames(buffer: bytes) -> Iterator[RecordFrame]:
    """All complete frames; the last one may still be in the page cache only."""
    at = HEADER_SIZE
    while (frame := unpack(buffer, at)) is not None:
        yield frame
        at = frame.end


def _kind(frame: RecordFrame) -> str:
    """The kind, without decoding the record: there may be many."""
    found = _KIND.search(frame.data)
    return "" if found is None else found[1].decode()
