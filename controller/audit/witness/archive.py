"""A witness's archive: the state in which it last saw each record, and its cosigned checkpoints.

  ARCHIVE/TABLE-ID/seen.json            last checkpoint, tree and table key
  ARCHIVE/TABLE-ID/cosigned/SIZE.note   each checkpoint as first cosigned
  ARCHIVE/TABLE-ID/refused/*.json       signed checkpoints that contradict what was seen

Write-ahead: `seen.json` is durable before a checkpoint is cosigned, so that after a crash
nothing is cosigned that does not continue it.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from controller.audit.errors import InUse, WitnessProblem
from controller.audit.files import (
    MODE,
    Disk,
    make_directory,
    reporting_write_errors,
    write_atomically,
)
from controller.audit.format.merkle import Frontier
from controller.audit.format.notes import (
    NoteProblem,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    read_certificate,
)
from controller.audit.read.signatures import SignedCheckpoint, check_table_key, signed_checkpoint

_ORIGIN: Final = re.compile(r"holecard/([A-Za-z0-9][A-Za-z0-9._-]{0,63})/([0-9a-f]{16})")
_NOTE: Final = re.compile(r"([1-9][0-9]{0,18})\.note")
_SEEN: Final = "seen.json"
_LOCK: Final = "lock"
_MOST: Final = 1 << 20
"""Maximum file size in bytes."""
_BACKUP: Final = "put the archive back from a backup of what it was last"
_WRITABLE: Final = "let the witness's user write there, and give it room"


class ArchiveProblem(WitnessProblem):
    """The archive is corrupt or was rolled back."""


class WitnessedRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """The state in which a record was last seen."""

    format: Literal["holecard witness 1"]
    origin: str
    place: str
    """The path of the record."""
    table_key: str
    size: int
    segment: int
    """The segment of record `size`."""
    frontier: tuple[str, ...]
    """The tree at this size: hex roots of its complete subtrees, largest first."""
    time: int
    """Seconds since 1970 of the last cosignature."""
    checkpoint: str
    certificate: str

    def tree(self) -> Frontier:
        return Frontier.of(self.size, [bytes.fromhex(one) for one in self.frontier])


class RecordArchive:
    """The archived files of one record, locked."""

    def __init__(self, archive: Path, origin: str, disk: Disk) -> None:
        self.archive = archive
        self.origin = origin
        self.place = archive / directory_of(origin)
        self._disk = disk

    def seen(self) -> WitnessedRecord | None:
        """The validated `seen.json`; None for a new record. Raises ArchiveProblem."""
        countersigned = self._countersigned()
        seen = _read(self.place)
        if seen is None:
            if countersigned:
                what = f"it is gone, though {max(countersigned)} records were countersigned"
                raise ArchiveProblem(self.place / _SEEN, what, _BACKUP)
            return None
        if countersigned and max(countersigned) > seen.size:
            what = f"it is of {seen.size} records, {max(countersigned)} were countersigned"
            raise ArchiveProblem(self.place / _SEEN, f"it is an old one: {what}", _BACKUP)
        if seen.origin != self.origin:
            raise ArchiveProblem(self.place / _SEEN, f"it is of {seen.origin}", _BACKUP)
        return seen

    def others(self) -> Iterator[WitnessedRecord]:
        """Other records in this archive. Raises ArchiveProblem."""
        for place in sorted(self.archive.iterdir()):
            if place != self.place and (seen := _read(place)) is not None:
                yield seen

    def keep(self, seen: WitnessedRecord) -> None:
        """Store `seen.json` durably. Raises CannotWrite, and ArchiveProblem if another tree of
        this size was cosigned."""
        text = parse_note(seen.checkpoint).text
        file = self._file(seen.size)
        if file.exists() and _text_of(file) != text:
            what = f"another tree of {seen.size} records was countersigned before"
            raise ArchiveProblem(file, what, "keep both for whoever looks into it")
        with reporting_write_errors(self.place, _WRITABLE):
            write_atomically(
                self._disk, self.place / _SEEN, msgspec.json.format(msgspec.json.encode(seen))
            )

    def countersigned(self, size: int, note: str) -> None:
        """Store a cosigned note. An existing one is kept, since it has the earliest time. Raises
        CannotWrite."""
        file = self._file(size)
        if file.exists():
            return
        with reporting_write_errors(self.place, _WRITABLE):
            make_directory(self._disk, file.parent)
            write_atomically(self._disk, file, note.encode())

    def contradicted(self, signed: SignedCheckpoint) -> Path:
        """Store a signed checkpoint that contradicts what was seen, as evidence against the
        holder of the table's key. Raises CannotWrite."""
        said = signed.checkpoint
        file = self.place / "refused" / f"{said.size}-{said.root.hex()[:16]}.json"
        data = {"checkpoint": signed.note, "certificate": signed.certificate}
        with reporting_write_errors(self.place, _WRITABLE):
            make_directory(self._disk, file.parent)
            write_atomically(self._disk, file, msgspec.json.format(msgspec.json.encode(data)))
        return file

    def _file(self, size: int) -> Path:
        return self.place / "cosigned" / f"{size}.note"

    def _countersigned(self) -> list[int]:
        place = self.place / "cosigned"
        names = os.listdir(place) if place.is_dir() else []
        return [int(found[1]) for name in names if (found := _NOTE.fullmatch(name))]


@contextmanager
def open_archive(archive: Path, origin: str, disk: Disk) -> Iterator[RecordArchive]:
    """Lock a record's archive, without waiting. Raises CannotWrite, InUse, WitnessProblem."""
    kept = RecordArchive(archive, origin, disk)
    with reporting_write_errors(archive, _WRITABLE):
        make_directory(disk, archive)
        make_directory(disk, kept.place)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(kept.place / _LOCK, flags, MODE)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = "this record is being countersigned already"
            raise InUse(kept.place, what, "wait for the other one to end") from None
        yield kept
    finally:
        os.close(lock)


def directory_of(origin: str) -> str:
    """The directory name for an origin. Raises WitnessProblem if it is invalid."""
    found = _ORIGIN.fullmatch(origin)
    if found is None:
        todo = "name a record that a table has begun"
        raise WitnessProblem("origin", f"no origin of a record: {origin[:100]!a}", todo)
    return f"{found[1]}-{found[2]}"


def _read(place: Path) -> WitnessedRecord | None:
    """Read `seen.json` and verify it by its signatures and its tree. Raises ArchiveProblem."""
    file = place / _SEEN
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        what = f"cannot be read: {problem.strerror}"
        raise ArchiveProblem(file, what, "let the witness's user read it") from None
    try:
        seen = msgspec.json.decode(data, type=WitnessedRecord)
        table = VerifierKey.parse(seen.table_key)
        check_table_key(table, seen.origin)
        certificate = read_certificate(seen.certificate, table)
        said = signed_checkpoint(parse_note(seen.checkpoint), certificate)
        whole = (said.origin, said.size, said.root)
        right = whole == (seen.origin, seen.size, seen.tree().root())
    except (msgspec.DecodeError, UnicodeDecodeError, NoteProblem, ValueError) as problem:
        raise ArchiveProblem(file, f"it is damaged: {problem}", _BACKUP) from None
    if not right:
        raise ArchiveProblem(file, "it is damaged: its checkpoint is of another tree", _BACKUP)
    return seen


def _text_of(file: Path) -> str:
    try:
        text = parse_note(file.read_bytes()).text
        parse_checkpoint(text)
    except NoteProblem as problem:
        raise ArchiveProblem(file, f"it is damaged: {problem}", _BACKUP) from None
    return text
