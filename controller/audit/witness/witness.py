"""Cosigning by an independent witness, which verifies that a record continues what it saw before.

The witness reads the record on its own machine, computes the tree itself, and trusts only the
table's key. If a record was truncated, rewritten or replaced, it names the reason and signs
nothing. Its archive has the state in which it last saw each record, and its cosigned checkpoints:

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
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from controller.audit.errors import InUse, NothingSigned, RecordDamaged, WitnessProblem
from controller.audit.files import (
    MODE,
    Disk,
    make_directory,
    reporting_write_errors,
    write_atomically,
)
from controller.audit.format.merkle import Span, leaf_hash
from controller.audit.format.notes import (
    NoteProblem,
    SigningKey,
    VerifierKey,
    format_note,
    parse_checkpoint,
    parse_note,
    read_certificate,
)
from controller.audit.read.lookup import first_head
from controller.audit.read.reader import ASK, RecordSegment, record_of, segments
from controller.audit.read.retirements import RetirementChanged, retirement_files
from controller.audit.read.retirements import before as retired_before
from controller.audit.read.signatures import (
    OtherKey,
    SignatureReader,
    SignedCheckpoint,
    check_table_key,
    signed_checkpoint,
)
from controller.commands import real_path
from controller.errors import printable

_ORIGIN: Final = re.compile(r"holecard/([A-Za-z0-9][A-Za-z0-9._-]{0,63})/([0-9a-f]{16})")
_NOTE: Final = re.compile(r"([1-9][0-9]{0,18})\.note")
_SEEN: Final = "seen.json"
_LOCK: Final = "lock"
_MAX_FILE_BYTES: Final = 1 << 20
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

    def tree(self) -> Span:
        return Span.of(0, self.size, [bytes.fromhex(one) for one in self.frontier])


class RecordArchive:
    """The archived files of one record, locked."""

    def __init__(self, archive: Path, origin: str, disk: Disk) -> None:
        self.archive = archive
        self.origin = origin
        self.place = archive / directory_of(origin)
        self._disk = disk

    def load_state(self) -> WitnessedRecord | None:
        """The validated `seen.json`; None for a new record. Raises ArchiveProblem."""
        countersigned = self._countersigned()
        seen = _read(self.place)
        if seen is None:
            if countersigned:
                raise ArchiveProblem(
                    self.place / _SEEN,
                    f"it is gone, though {max(countersigned)} records were countersigned",
                    _BACKUP,
                )
            return None
        if countersigned and max(countersigned) > seen.size:
            what = f"it is of {seen.size} records, {max(countersigned)} were countersigned"
            raise ArchiveProblem(self.place / _SEEN, f"it is an old one: {what}", _BACKUP)
        if seen.origin != self.origin:
            raise ArchiveProblem(self.place / _SEEN, f"it is of {seen.origin}", _BACKUP)
        return seen

    def other_records(self) -> Iterator[WitnessedRecord]:
        """Other records in this archive. Raises ArchiveProblem."""
        for place in sorted(self.archive.iterdir()):
            if place != self.place and (seen := _read(place)) is not None:
                yield seen

    def store_state(self, seen: WitnessedRecord) -> None:
        """Store `seen.json` durably. Raises CannotWrite, and ArchiveProblem if another tree of
        this size was cosigned."""
        text = parse_note(seen.checkpoint).text
        file = self._file(seen.size)
        if file.exists() and _text_of(file) != text:
            raise ArchiveProblem(
                file,
                f"another tree of {seen.size} records was countersigned before",
                "keep both for whoever looks into it",
            )
        with reporting_write_errors(self.place, _WRITABLE):
            write_atomically(
                self._disk, self.place / _SEEN, msgspec.json.format(msgspec.json.encode(seen))
            )

    def store_note(self, size: int, note: str) -> None:
        """Store a cosigned note. An existing one is kept, since it has the earliest time. Raises
        CannotWrite."""
        file = self._file(size)
        if file.exists():
            return
        with reporting_write_errors(self.place, _WRITABLE):
            make_directory(self._disk, file.parent)
            write_atomically(self._disk, file, note.encode())

    def store_contradiction(self, signed: SignedCheckpoint) -> Path:
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
            raise InUse(
                kept.place,
                "this record is being countersigned already",
                "wait for the other one to end",
            ) from None
        yield kept
    finally:
        os.close(lock)


def directory_of(origin: str) -> str:
    """The directory name for an origin. Raises WitnessProblem if it is invalid."""
    found = _ORIGIN.fullmatch(origin)
    if found is None:
        raise WitnessProblem(
            "origin",
            f"no origin of a record: {origin[:100]!a}",
            "name a record that a table has begun",
        )
    return f"{found[1]}-{found[2]}"


def _read(place: Path) -> WitnessedRecord | None:
    """Read `seen.json` and verify it by its signatures and its tree. Raises ArchiveProblem."""
    file = place / _SEEN
    try:
        with file.open("rb") as opened:
            data = opened.read(_MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise ArchiveProblem(
            file, f"cannot be read: {problem.strerror}", "let the witness's user read it"
        ) from None
    try:
        seen = msgspec.json.decode(data, type=WitnessedRecord)
        table = VerifierKey.parse(seen.table_key)
        check_table_key(table, seen.origin)
        said = signed_checkpoint(
            parse_note(seen.checkpoint), read_certificate(seen.certificate, table)
        )
        right = (said.origin, said.size, said.root) == (seen.origin, seen.size, seen.tree().root())
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


_BACK: Final = 16
"""Maximum number of records between the last one that a checkpoint covers and the checkpoint."""
_ASK: Final = "ask the table's floor and surveillance what happened; keep both copies"


class RecordTruncated(WitnessProblem):
    """The end is missing, or the record was replaced by an older copy."""


class RecordRewritten(WitnessProblem):
    """Records differ from what was seen."""


class RecordForked(RecordRewritten):
    """Rewritten, and the table's key has signed both versions."""


class OtherRecord(WitnessProblem):
    """A different record is at the same path, or the table has started another record."""


class OtherTableKey(WitnessProblem):
    """The table's key has changed."""


class ClockWentBack(WitnessProblem):
    """This machine's clock is behind the last cosignature."""


class CosignedNote(Struct, frozen=True):
    """A cosigned checkpoint."""

    origin: str
    size: int
    root: bytes
    before: int
    """The size that was seen before; 0 the first time."""
    note: str
    table_key: str
    proven: bool
    """The table's key was given, not taken from the record."""

    @property
    def first(self) -> bool:
        return self.before == 0


class _Tip(NamedTuple):
    """A checkpoint and its tree."""

    signed: SignedCheckpoint
    hashes: tuple[bytes, ...]
    segment: int
    """The segment of its last record."""


def cosign_record(  # noqa: PLR0913 - all but the first three have a usual value
    record: Path,
    archive: Path,
    key: SigningKey,
    *,
    table_key: VerifierKey | None = None,
    begin: bool = False,
    now: Callable[[], float] = time.time,
    disk: Disk | None = None,
    tell: Callable[[int], None] | None = None,
) -> CosignedNote:
    """Cosign the record's last checkpoint if the record continues what the archive has.

    `begin`: the table is known to have started another record. `tell`: progress callback with the
    segment number. Raises RecordProblem; nothing is signed then.
    """
    _check_archive_outside(record, archive)
    origin = first_head(record).snapshot.origin
    with open_archive(archive, origin, disk or Disk()) as kept:
        seen = kept.load_state()
        if not begin:
            _refuse_other_record(record, kept, seen)
        table = _table_key(record, origin, seen, table_key)
        walk = _Walk(record, origin, table, seen)
        try:
            tip = walk.read(tell or (lambda number: None))
        except OtherKey as problem:
            raise OtherTableKey(problem.where, problem.what, problem.todo) from None
        tip = _checkpoint_to_cosign(record, walk, tip, seen, kept)
        state = _state(record, tip, str(walk.table), int(now()))
        if seen is not None and state.time < seen.time:
            raise ClockWentBack(
                "clock of this machine",
                f"it says second {state.time}; what was countersigned last is of {seen.time}",
                "set it right",
            )
        note = _countersign(kept, key, state)
        return CosignedNote(
            origin,
            state.size,
            tip.signed.checkpoint.root,
            0 if seen is None else seen.size,
            note,
            state.table_key,
            table_key is not None,
        )


def _state(record: Path, tip: _Tip, table: str, seconds: int) -> WitnessedRecord:
    """The state to archive for a checkpoint that is going to be cosigned."""
    said = tip.signed.checkpoint
    return WitnessedRecord(
        "holecard witness 1",
        said.origin,
        printable(real_path(record)),
        table,
        said.size,
        tip.segment,
        tuple(one.hex() for one in tip.hashes),
        seconds,
        format_note(said.text(), tip.signed.signature),
        tip.signed.certificate,
    )


def _countersign(kept: RecordArchive, key: SigningKey, state: WitnessedRecord) -> str:
    """Store the state in the archive, then cosign its checkpoint."""
    kept.store_state(state)
    bare = parse_note(state.checkpoint)
    note = format_note(bare.text, *bare.signatures, key.cosign(bare.text, state.time))
    kept.store_note(state.size, note)
    return note


# --- what may be witnessed --------------------------------------------------------------------


def _check_archive_outside(record: Path, archive: Path) -> None:
    if real_path(record) in (real_path(archive), *real_path(archive).parents):
        raise WitnessProblem(
            archive,
            "it lies in the record's own directory: who can alter the one can alter the other",
            "name a directory elsewhere",
        )


def _refuse_other_record(record: Path, kept: RecordArchive, seen: WitnessedRecord | None) -> None:
    """Raise OtherRecord for a new record that replaces a known one of this path or table."""
    table = kept.origin.rpartition("/")[0]
    place = printable(real_path(record))
    if seen is not None and seen.place == place:
        return
    for other in kept.other_records():
        same = "here" if other.place == place else ""
        if seen is None and other.origin.rpartition("/")[0] == table:
            same = same or "of this table"
        if same:
            what = f"it is {kept.origin}; the record {same} was {other.origin}"
            raise OtherRecord(
                record,
                what,
                "if the table has begun a new record, say --new-record; if not, ask who did this",
            )


def _table_key(
    record: Path, origin: str, seen: WitnessedRecord | None, given: VerifierKey | None
) -> VerifierKey | None:
    """The trusted table key: as first seen, as given, or None. Raises OtherTableKey."""
    if given is not None:
        try:
            check_table_key(given, origin)
        except NoteProblem as problem:
            raise OtherTableKey(
                record, f"--table-key does not fit: {problem}", "give the key of this table"
            ) from None
    if seen is None:
        return given
    pinned = VerifierKey.parse(seen.table_key)
    if given is not None and given != pinned:
        raise OtherTableKey(
            record,
            f"--table-key is {given!r}; this record was seen with {pinned!r}",
            "find out which of them is the table's",
        )
    return pinned


def _checkpoint_to_cosign(
    record: Path, walk: _Walk, tip: _Tip | None, seen: WitnessedRecord | None, kept: RecordArchive
) -> _Tip:
    """The checkpoint to cosign if the record continues what was seen. Raises WitnessProblem."""
    if seen is not None:
        if walk.differed:
            _contradicted(record, tip, seen, kept)
        if not walk.matched or tip is None or tip.signed.checkpoint.size < seen.size:
            far = 0 if tip is None else tip.signed.checkpoint.size
            raise RecordTruncated(
                record,
                f"it was cut off, or is an older copy: {seen.size} records were seen signed, "
                f"here are {walk.size}, signed up to {far}",
                _ASK,
            )
    if tip is None:
        raise NothingSigned(record, "it has no checkpoint yet", "come back in a second")
    return tip


def _contradicted(
    record: Path, tip: _Tip | None, seen: WitnessedRecord, kept: RecordArchive
) -> None:
    what = f"the first {seen.size} records are not those that were seen"
    if tip is None or tip.signed.checkpoint.size < seen.size:
        raise RecordRewritten(record, f"it was rewritten: {what}", _ASK)
    file = kept.store_contradiction(tip.signed)
    what = f"it was rewritten by who holds the table's key: {what}, and yet they are signed"
    raise RecordForked(record, f"{what}; the signature is kept in {file}", _ASK)


# --- reading ----------------------------------------------------------------------------------


class _Walk:
    """Reads a record from the segment in which it was last seen."""

    def __init__(
        self, record: Path, origin: str, table: VerifierKey | None, seen: WitnessedRecord | None
    ) -> None:
        self._record = record
        self._origin = origin
        self._seen = seen
        self._wanted = () if seen is None else seen.tree().hashes
        self._signatures = SignatureReader(origin, table)
        self._tree: Span | None = None
        self._tip: _Tip | None = None
        self._last_trees: deque[tuple[int, tuple[bytes, ...], int]] = deque(maxlen=_BACK)
        self.matched = False
        """The tree was the same at the size that was seen."""
        self.differed = False
        """The tree was different at that size."""

    @property
    def table(self) -> VerifierKey | None:
        return self._signatures.table

    @property
    def size(self) -> int:
        """The size of the tree after the last record that was read."""
        return 0 if self._tree is None else self._tree.end

    def read(self, tell: Callable[[int], None]) -> _Tip | None:
        """The last checkpoint. Raises RecordDamaged, BadSignature, RecordRewritten."""
        start = None if self._seen is None else self._seen.segment
        for segment in segments(self._record, start):
            tell(segment.number)
            self._segment(segment)
        if self._tree is None and self._seen is not None:
            gone = f"segment {start}, which held record {self._seen.size}, is gone"
            raise RecordTruncated(
                self._record, f"it was cut off, or is an older copy: {gone}", _ASK
            )
        return self._tip

    def _segment(self, segment: RecordSegment) -> None:
        said = segment.snapshot
        if said.origin != self._origin:
            raise RecordDamaged(segment.file, f"is of {said.origin}, not of {self._origin}", ASK)
        if self._tree is None:
            self._signatures.begin(segment)
            self._tree = self._first_tree(segment)
        elif self._tree.hashes != segment.tree.hashes:
            raise RecordRewritten(
                segment.file,
                "its snapshot has another tree than that of the records before it",
                _ASK,
            )
        for frame in segment.frames:
            signed = self._signatures.take(segment.place(frame), record_of(segment.file, frame))
            if signed is not None:
                self._checkpoint(segment, signed)
            self._tree.add(leaf_hash(frame.data))
            self._last_trees.append((self._tree.end, self._tree.hashes, segment.number))
            if self._seen is not None and self._tree.end == self._seen.size:
                self.matched = self._tree.hashes == self._wanted
                self.differed = not self.matched

    def _first_tree(self, segment: RecordSegment) -> Span:
        """The tree before the first segment that is read: empty the first time, later from the
        snapshot, which is verified when the size that was seen is reached."""
        wanted = 1 if self._seen is None else self._seen.segment
        begins = segment.before.seq
        if segment.number != wanted:
            self._retired(segment, wanted)
        elif self._seen is not None and begins >= self._seen.size:
            raise RecordRewritten(
                segment.file,
                f"begins with record {begins + 1}; record {self._seen.size} stood in it",
                _ASK,
            )
        if begins:
            self._last_trees.append((begins, segment.tree.hashes, segment.number - 1))
        return segment.tree

    def _retired(self, segment: RecordSegment, wanted: int) -> None:
        """Check a record that begins after a retirement: the retirement's signed tree must match
        the snapshot and the tree that was seen."""
        what = f"segment {wanted} is needed, the first that is here is {segment.number}"
        todo = "put the segments back from the archive"
        kept, table = retirement_files(self._record), self._signatures.table
        if not kept or kept[-1].number != segment.number - 1 or table is None:
            raise WitnessProblem(self._record, what, todo)
        try:
            before = retired_before(kept, self._origin, table)
        except (RetirementChanged, NoteProblem) as problem:
            raise RecordDamaged(self._record, f"{problem}", ASK) from None
        if (before.where, before.frontier) != (segment.before, segment.tree.hashes):
            raise RecordRewritten(
                segment.file, "it does not begin where what was retired ends", _ASK
            )
        if self._seen is None:
            return
        root = before.roots.get(self._seen.size)
        if root is None:
            what = f"{what}; what it saw was retired, and no root of {self._seen.size} records kept"
            raise WitnessProblem(self._record, what, todo)
        self.matched = root == self._seen.tree().root()
        self.differed = not self.matched

    def _checkpoint(self, segment: RecordSegment, signed: SignedCheckpoint) -> None:
        said = signed.checkpoint
        for size, hashes, number in reversed(self._last_trees):
            if size == said.size:
                if Span.of(0, size, hashes).root() != said.root:
                    raise RecordRewritten(
                        segment.file,
                        f"record {signed.seq} is a checkpoint over other records than these",
                        _ASK,
                    )
                self._tip = _Tip(signed, hashes, number)
                return
        raise RecordDamaged(
            segment.file,
            f"record {signed.seq} is a checkpoint over {said.size} records, and comes too late",
            ASK,
        )
