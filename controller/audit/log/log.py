"""Synchronous record writer: encodes and appends, by one thread at a time, durable on return.

A failed write leaves the log closed for writing (`LogFailed`): what the disk contains is known only
after it has been read again. `DiskFull` and `EntryTooLarge` are raised before anything is written
and leave the log usable.
"""

from __future__ import annotations

import contextlib
import errno
import secrets
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import UNSET, Raw, Struct

from controller.audit.errors import DiskFull, LogFailed, RecordDamaged
from controller.audit.files import DIRECTORY_MODE, release_lock, store_origin, write_all
from controller.audit.format.merkle import Span, leaf_hash
from controller.audit.format.notes import SigningKey, table_name
from controller.audit.format.records import (
    CONTROLLER,
    EMPTY_DATA,
    MAX_RECORD_BYTES,
    VERSION,
    VOCABULARY,
    BootIdentity,
    ChainPosition,
    DeviceCursor,
    Kind,
    Moment,
    NoteData,
    OpenedData,
    RecordEntry,
    Snapshot,
    WrittenFirst,
    WrittenRest,
    WrittenTime,
    encode,
)
from controller.audit.format.segments import (
    DIRECTORY,
    HEADER_SIZE,
    SIZE,
    SMALLEST,
    chain_start,
    pack,
    pack_header,
    segment_file,
)
from controller.audit.format.tail import MAX_WRITE_BYTES
from controller.audit.log.checkpoints import CheckpointSigner, unsigned_faults
from controller.audit.log.clock import Clock, Day, SystemClock, clock_set, gaming_day
from controller.audit.log.opening import RecordOpening, quarantine_tail, unrecorded_tails
from controller.audit.log.preallocate import SegmentPreallocator
from controller.procedure.model.state import State


class EntryTooLarge(ValueError):
    """An entry, or a batch, exceeds the size limit."""


class EncodedEntry(Struct, frozen=True, gc=False):
    """An entry encoded except for its seq and time; can be made in parallel to an append."""

    entry: RecordEntry
    rest: bytes
    """The encoded record behind its time."""


class StagedFrames(Struct, frozen=True, gc=False):
    """Frames ready to be written, with their leaf hashes and positions."""

    data: bytes
    leaves: list[bytes]
    made: list[ChainPosition]


def encode_entry(entry: RecordEntry) -> EncodedEntry:
    """Encode an entry. Raises TypeError, ValueError."""
    written = encode(
        WrittenRest(
            entry.round,
            entry.kind,
            entry.by,
            entry.cause or UNSET,
            entry.cursor or UNSET,
            entry.data,
        )
    )
    return EncodedEntry(entry, written[1:])


def stage(
    entries: Sequence[EncodedEntry], begin: bytes, moment: Moment, day: str, last: ChainPosition
) -> StagedFrames:
    """Frame the entries as successors of the record `last`. Raises EntryTooLarge.

    `begin`: the encoded record up to its seq. `day`: empty if it is the date of the moment. One
    loop with inlined hashing: it is on the append path.
    """
    time = encode(WrittenTime(day or UNSET, moment.utc, moment.mono, moment.quality))[1:-1]
    before = seq = last.seq
    chain = last.chain
    frames, leaves, made = [], [], []
    for one in entries:
        seq += 1
        data = b"%b%d,%b,%b" % (begin, seq, time, one.rest)
        if len(data) > MAX_RECORD_BYTES:
            raise EntryTooLarge(
                f"a {one.entry.kind} of {len(data)} bytes; a record has at most {MAX_RECORD_BYTES}"
            )
        leaf = sha256(b"\x00" + data).digest()  # Inlined leaf_hash() and chained().
        chain = sha256(chain + leaf).digest()
        frames.append(pack(seq, before, chain, data))
        leaves.append(leaf)
        made.append(ChainPosition(seq, chain))
    return StagedFrames(b"".join(frames), leaves, made)


END_RESERVE: Final = 8 * 1024
"""Bytes of the last segment that a full disk leaves for the end of a boot: counts of entries that
were not recorded, `closed`, and the checkpoints over both."""


class RecordRoom(NamedTuple):
    """The room for further entries in the segments that exist."""

    problem: str
    """Why the next segment cannot be made; empty if it exists or is being made."""
    left: int
    """Bytes of further entries."""
    written: int
    """Bytes of the record, from its first segment on."""


SIGN_AFTER_NS: Final = 900_000_000
"""A checkpoint is due at the latest this long after the first unsigned record."""


class Log:
    """Appends to one table's record and signs it. Not thread-safe."""

    def __init__(
        self,
        opening: RecordOpening,
        identity: BootIdentity,
        origin: str,
        size: int,
        clock: Clock,
        day: Day,
        state: State | None,
    ) -> None:
        self.record = opening.record
        self.origin = origin
        self.boot = secrets.token_hex(8)
        self.size = size
        self._identity = identity
        self._record_begin = encode(WrittenFirst(VERSION, self.boot))[:-1] + b',"seq":'
        self._disk = opening.disk
        self._lock = -1
        self._clock, self._day = clock, day
        self.spares = SegmentPreallocator(self._disk, self.record, size)
        self._failed: BaseException | None = None
        self._state: State | None = state
        self._cursors: dict[str, DeviceCursor] = dict(opening.cursors)
        self._round = 0
        self._moment: Moment | None = None
        self._believed = opening.believed
        self._opened: OpenedData | None = opening.opened()
        self._certificate = opening.certificate()
        self._fd = -1
        self._number = 0
        self._at = 0
        self._reserve = min(END_RESERVE, size // 4)
        self._is_full = False
        """The last entry was refused: none follows before there is a next segment, since a smaller
        one would let the table go on for a moment."""
        self._tree = Span()
        self._leaves: list[bytes] = []
        """Not yet in the tree: hashing is deferred to the next checkpoint, off the append path."""
        self.where = ChainPosition(0, chain_start(origin))
        """The position of the last record."""
        self._read_to = self.where
        """The position up to which the signer has read back."""
        self._unsigned_since = 0
        self._begun = False
        """This boot has appended a record, so its monotonic clock is comparable with the next one.
        """
        last, segment = opening.last_not_snapshot, opening.segment
        if last is not None:
            self._moment = Moment(last.utc, last.mono, last.clock)
        if segment is not None:
            self._round = max(record.round for record in opening.records)
            self._number, self._at = segment.number, segment.end
            self.where, self._read_to = segment.after, segment.before
            self._tree = segment.tree
            self._leaves = [leaf_hash(frame.data) for frame in segment.frames]
        self._signer = CheckpointSigner(self.record, origin, self._tree)
        # last: an exception before leaves the lock with the opening
        self._lock, opening.lock = opening.lock, -1

    @classmethod
    def begin(
        cls,
        opening: RecordOpening,
        identity: BootIdentity,
        table_key: Ed25519PrivateKey,
        *,
        state: State | None = None,
        clock: Clock | None = None,
        day: Day | None = None,
        size: int = SIZE,
    ) -> Log:
        """Begin a boot: quarantine the tail, append `opened` and the boot's certificate, and sign.
        `state`: the procedure's state after the records of the opening.

        Takes over the opening's lock in every case. Raises DiskFull, LogFailed, RecordDamaged;
        BadSignature and UnsignedRecords if the last segment is not signed as it must be.
        """
        origin = f"holecard/{identity.table}/{secrets.token_hex(8)}"
        if opening.snapshot is not None:
            origin = opening.snapshot.origin
        times = clock or SystemClock(), day or gaming_day()
        try:
            if size < SMALLEST:
                raise ValueError(f"a segment of {size} bytes; at least {SMALLEST}")
            size = size if opening.segment is None else len(opening.segment.buffer)
            log = cls(opening, identity, origin, size, *times, state)
        except BaseException:
            opening.close()
            raise
        try:
            log._begin(opening, table_key)
        except BaseException:
            if not log._begun:
                opening.undo()
            log.release()
            raise
        return log

    def _begin(self, opening: RecordOpening, table_key: Ed25519PrivateKey) -> None:
        last = 0 if opening.last is None else opening.last.seq
        verifier = SigningKey(table_name(self.origin), table_key).verifier
        faults = unsigned_faults(opening, verifier)
        try:
            if opening.segment is None:
                (self.record / DIRECTORY).mkdir(mode=DIRECTORY_MODE, exist_ok=True)
                self._disk.sync_directory(self.record)
                self._disk.sync_directory(self.record.parent)
                self._next_segment(self._clock())
            else:
                quarantine_tail(opening)
                self._fd = self._disk.open(opening.segment.file)
                # What was read may be only in the page cache: written by a killed process, or kept
                # after a disk error. After this sync the record that was read is durable.
                self._disk.sync(self._fd)
                self._disk.sync_directory(opening.segment.file.parent)
                self._signer.begin(self._number, HEADER_SIZE)
                self._read_back()
            store_origin(self._lock, self.origin)
            tails = unrecorded_tails(opening)
        except OSError as problem:
            raise LogFailed(self.record, problem) from problem
        me = self._identity
        opened = OpenedData(
            origin=self.origin,
            software=me.software,
            sw=me.sw,
            conf=me.conf,
            proc=me.proc,
            code=me.code,
            game=Raw(me.game),
            table_key=str(verifier),
            last=last,
            torn=sum(tail.size for tail in tails),
            readback=self._signer.way,
            hole=me.hole or UNSET,
            sealed_to=me.sealed_to or UNSET,
            debuggable=True if me.debuggable else UNSET,
            vocabulary=VOCABULARY,
            release=me.release,
            dependencies=me.dependencies,
            runs=me.runs,
        )
        entries = [self._entry("opened", opened)]
        entries += [self._entry("tail", tail) for tail in tails]
        entries += [self._entry("fault", fault) for fault in faults]
        opened_at = self.write(entries)[0].seq
        self._opened = opened
        note = self._signer.certificate(self.boot, opened_at, table_key)
        self.write([self._entry("certificate", NoteData(note), cause=opened_at)])
        # from now on: a segment started before it must name the previous certificate
        self._certificate = note
        self.sign()
        self.spares.prepare()

    # --- what it is asked for -------------------------------------------------------------

    def checkpoint_due_in(self) -> float | None:
        """Seconds until a checkpoint is due, 0 if it is overdue; None if everything is signed."""
        if not self._unsigned_since:
            return None
        return max(0, self._unsigned_since + SIGN_AFTER_NS - self._clock().mono) / 1e9

    def room(self) -> RecordRoom:
        """The room for further entries. Thread-safe: figures of the last append."""
        problem, left = self.spares.problem, self.size - self._at
        if problem is not None:
            left = 0 if self._is_full else max(0, left - self._reserve)
        elif self.spares.ready:
            left += self.size
        why = "" if problem is None else problem.strerror or str(problem)
        return RecordRoom(why, left, self._number * self.size + self._at)

    def ready(self, entry: RecordEntry) -> EncodedEntry:
        """Encode an entry for write_ready(). Thread-safe. Raises TypeError, ValueError."""
        return encode_entry(entry)

    def write(self, entries: Sequence[RecordEntry]) -> list[ChainPosition]:
        """Append entries in order; durable on return. Raises EntryTooLarge or DiskFull if nothing
        was written, LogFailed."""
        return self.write_ready([self.ready(one) for one in entries])

    def sign(self) -> ChainPosition:
        """Append a checkpoint over all records so far. Raises DiskFull, LogFailed."""
        if self._failed is not None:
            raise LogFailed(self.record, self._failed)
        with self._closing_on_error():
            self._read_back()
            note = self._signer.checkpoint(self._grown())
        signed = self.where.seq
        entry = self._entry("checkpoint", NoteData(note), reserved=True)
        made = self.write([entry])[0]
        if made.seq == signed + 1:
            # otherwise a snapshot or a clock record came between, and is unsigned
            self._unsigned_since = 0
        return made

    def close(self) -> None:
        """Append `closed` and a checkpoint, and release the record even if that fails. Raises
        DiskFull, LogFailed."""
        try:
            if self._failed is None and self._fd >= 0:
                self.write([self._entry("closed", EMPTY_DATA, reserved=True)])
                self.sign()
        finally:
            self.release()

    def release(self) -> None:
        """Release the record without further records, as a kill would."""
        self._failed = self._failed or OSError(errno.EBADF, "it is closed")
        self._signer.close()
        fd, self._fd = self._fd, -1
        self._close(fd)
        self.spares.close()
        lock, self._lock = self._lock, -1
        release_lock(lock)  # last: the next segment was being written until here

    # --- writing --------------------------------------------------------------------------

    def write_ready(self, entries: Sequence[EncodedEntry]) -> list[ChainPosition]:
        """Append encoded entries to one segment, a new one if they do not fit into the current one.
        Raises as write().

        Few calls on purpose: this path runs with cold caches after each wait for the disk.
        """
        if self._failed is not None:
            raise LogFailed(self.record, self._failed)
        moment = self._clock()
        changed = clock_set(self._moment, moment, runs=self._begun, two=self._believed)
        if changed is not None:
            entries = [self.ready(self._entry("clock", changed)), *entries]
        staged = self._staged(entries, moment)
        size = len(staged.data)
        end = self._at + size
        fits = size <= MAX_WRITE_BYTES and end <= self.size
        if not fits or (self.spares.problem is not None and self._must_wait(end, entries)):
            staged = self._stage_in_next_segment(staged, entries, moment)
        try:
            write_all(self._disk, self._fd, staged.data, self._at)
            self._disk.sync(self._fd)
        except BaseException as problem:
            self._fail(problem)
            raise
        self._advance(staged)
        self._moment = moment
        self._begun = True
        self._remember_for_snapshot(entries)
        if not self._unsigned_since:
            self._unsigned_since = moment.mono
        return staged.made if changed is None else staged.made[1:]

    def _must_wait(self, end: int, entries: Sequence[EncodedEntry]) -> bool:
        """Whether the entries have to wait for the next segment, which cannot be made."""
        ordinary = [one for one in entries if one.entry.kind != "clock"]
        if all(one.entry.reserved for one in ordinary):
            return False
        return self._is_full or end > self.size - self._reserve

    def _stage_in_next_segment(
        self, staged: StagedFrames, entries: Sequence[EncodedEntry], moment: Moment
    ) -> StagedFrames:
        """Start the next segment and stage the entries there. Raises EntryTooLarge, DiskFull,
        LogFailed."""
        size = len(staged.data)
        if size > MAX_WRITE_BYTES:
            raise EntryTooLarge(f"{size} bytes at once; at most {MAX_WRITE_BYTES}")
        if HEADER_SIZE + size > self.size:
            raise EntryTooLarge(f"{size} bytes at once; a segment has {self.size}")
        self._next_segment(moment)
        staged = self._staged(entries, moment)
        if self._at + len(staged.data) > self.size:
            raise EntryTooLarge(
                f"{len(staged.data)} bytes at once; {self.size - self._at} are free"
            )
        return staged

    def _entry(
        self, kind: Kind, data: object, *, cause: int = 0, reserved: bool = False
    ) -> RecordEntry:
        """An entry of the controller itself."""
        return RecordEntry(kind, CONTROLLER, data, self._round, cause, reserved=reserved)

    def _staged(self, entries: Sequence[EncodedEntry], moment: Moment) -> StagedFrames:
        """No side effects. Raises EntryTooLarge."""
        return stage(entries, self._record_begin, moment, self._day(moment.utc), self.where)

    def _advance(self, staged: StagedFrames) -> None:
        """Adopt staged frames that are durable."""
        self._leaves += staged.leaves
        self._at += len(staged.data)
        self.where = staged.made[-1]

    def _read_back(self) -> None:
        """Verify what was written since the last call. Raises OSError, RecordDamaged."""
        self._signer.read_back(self._at, self._read_to, self.where)
        self._read_to = self.where

    def _grown(self) -> Span:
        """The tree over all records."""
        self._tree.grow(self._leaves)
        self._leaves.clear()
        return self._tree

    def _remember_for_snapshot(self, entries: Sequence[EncodedEntry]) -> None:
        """Update what the next snapshot will contain."""
        for one in entries:
            entry = one.entry
            self._round = max(self._round, entry.round)
            if entry.cursor is not None:
                self._cursors[entry.cursor.device] = entry.cursor
            if entry.state is not None:
                self._state = entry.state

    def _next_segment(self, moment: Moment) -> None:
        """Start the next segment. Raises DiskFull without side effects, LogFailed."""
        try:
            file = self.spares.take()
        except LogFailed as failed:
            self._failed = self._failed or failed.first
            raise
        except DiskFull:
            self._is_full = True
            raise
        number = self._number + 1
        snapshot = Snapshot(
            origin=self.origin,
            segment=number,
            chain=self.where.chain.hex(),
            frontier=tuple(one.hex() for one in self._grown().hashes),
            opened=self._opened or UNSET,
            certificate=self._certificate or UNSET,
            cursors=self._cursors,
            state=Raw(encode(self._state)),
        )
        staged = self._staged([self.ready(self._entry("snapshot", snapshot))], moment)
        if HEADER_SIZE + len(staged.data) > self.size:
            raise EntryTooLarge(
                f"a snapshot of {len(staged.data)} bytes; a segment has {self.size}"
            )
        with self._closing_on_error():
            if self._fd >= 0:
                self._read_back()
            fd = self._disk.open(file)
            try:
                write_all(self._disk, fd, pack_header(number, self.size) + staged.data, 0)
                self._disk.sync(fd)
                whole = segment_file(self.record, number)
                self._disk.rename(file, whole)
                self._disk.sync_directory(whole.parent)
                self._signer.begin(number, HEADER_SIZE)
            except BaseException:
                self._close(fd)
                raise
            old, self._fd, self._number, self._at = self._fd, fd, number, HEADER_SIZE
            self._is_full = False
            self._advance(staged)
            self._close(old)
        self.spares.prepare()

    def _close(self, fd: int) -> None:
        """Close `fd`, ignoring errors: its number may be reused in any case."""
        if fd >= 0:
            # all important bytes were synced, or the error was reported
            with contextlib.suppress(OSError):
                self._disk.close(fd)

    @contextlib.contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """An exception in the block closes the log for writing."""
        try:
            yield
        except BaseException as problem:
            self._fail(problem)
            raise

    def _fail(self, problem: BaseException) -> None:
        """Close the log for writing: the disk's content is unknown now. The first cause is kept.
        Raises LogFailed for errors of the disk."""
        self._failed = self._failed or problem
        if isinstance(problem, OSError | RecordDamaged):
            raise LogFailed(self.record, self._failed) from problem
