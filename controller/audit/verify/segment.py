"""Verification of one segment by itself.

What its snapshot says of earlier segments (chain, tree, cursors, state, keys) is accepted here and
compared in `joins`, so segments can be verified in parallel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from controller.audit.errors import RecordDamaged
from controller.audit.format.merkle import Hash
from controller.audit.format.notes import NoteProblem
from controller.audit.format.records import (
    MAX_RECORD_BYTES,
    ChainPosition,
    Snapshot,
    TailData,
)
from controller.audit.format.segments import HEADER_SIZE, RecordFrame, segment_file, unpack
from controller.audit.format.tail import TailVerdict, begins_boot, classify
from controller.audit.format.validation import (
    Extended,
    Strict,
    WrongData,
    check_data,
    opened_in,
    read_all,
    unknown_in_snapshot,
    wrong_snapshot,
)
from controller.audit.read.reader import (
    PartOfTree,
    RecordSegment,
    ScannedFrames,
    in_words,
    load,
    record_of,
    roots,
    scan,
    snapshot_of,
)
from controller.audit.verify.boots import SegmentBoots
from controller.audit.verify.continuity import Continuity
from controller.audit.verify.decisions import DecisionReplay
from controller.audit.verify.facts import (
    BootState,
    RecordFinding,
    RecordTotals,
    SegmentEdge,
    SegmentFindings,
    SegmentStart,
    VerifiedSegment,
    VerifyScope,
    read_glance,
)
from controller.audit.verify.side_files import place_error, tail_error

MAX_READINGS: Final = 8
"""Limit of attempts to read a segment that keeps changing."""


class ScannedSegment(NamedTuple):
    """A segment up to its last valid frame."""

    segment: RecordSegment
    """It contains the last frame only."""
    scanned: ScannedFrames


def scan_segment(
    record: Path, number: int, *, grows: bool = False
) -> ScannedSegment | RecordFinding:
    """Scan a segment. Raises CannotWrite if its file cannot be read.

    With `grows` the segment may be written at the same time: as long as it grows, it is read again
    before trailing bytes are reported.
    """
    found = _scan_once(record, number)
    for _ in range(MAX_READINGS if grows else 0):
        before = _end(found)
        if before is None:
            break
        found = _scan_once(record, number)
        if _end(found) == before:
            break
    return found


def _end(found: ScannedSegment | RecordFinding) -> int | None:
    """The end of the last frame if invalid bytes follow it, else None."""
    if isinstance(found, RecordFinding):
        return 0
    return found.scanned.end if found.scanned.why else None


def _scan_once(record: Path, number: int) -> ScannedSegment | RecordFinding:
    file = segment_file(record, number)
    at = 0
    try:
        buffer = load(file, number)
        at = HEADER_SIZE
        snapshot, seq = _snapshot(file, number, buffer)
    except RecordDamaged as problem:
        return RecordFinding(number, at, 0, 0, problem.what.removeprefix(f"offset {at}: "), 0)
    before = ChainPosition(seq - 1, bytes.fromhex(snapshot.chain))
    scanned = scan(buffer, HEADER_SIZE, before)
    if not scanned.records:
        return RecordFinding(
            number, HEADER_SIZE, seq, 0, f"its first record is not good: {scanned.why}", 0
        )
    durable, offset = scanned.durable[1], scanned.offsets[-1]
    end = RecordFrame(scanned.where.seq, durable, scanned.where.chain, scanned.records[-1], offset)
    return ScannedSegment(RecordSegment(file, number, buffer, before, snapshot, [end]), scanned)


def tree_of(found: ScannedSegment) -> PartOfTree:
    return PartOfTree(found.segment.tree, found.scanned.leaves)


def roots_of(record: Path, number: int, sizes: Sequence[int]) -> dict[int, Hash]:
    """The requested roots of one segment; empty if it cannot be read. Raises CannotWrite."""
    found = scan_segment(record, number)
    return {} if isinstance(found, RecordFinding) else roots(tree_of(found), sizes)


def _snapshot(file: Path, number: int, buffer: bytes) -> tuple[Snapshot, int]:
    """The snapshot of a segment, and its seq. Raises RecordDamaged."""
    first = unpack(buffer, HEADER_SIZE)
    if first is None:
        raise RecordDamaged(file, f"offset {HEADER_SIZE}: its first record is not whole", "")
    try:
        return snapshot_of(file, number, record_of(file, first)), first.seq
    except RecursionError as problem:
        raise RecordDamaged(file, f"its snapshot cannot be read: {problem}", "") from None


BATCH_SIZE: Final = 256
"""Records that are decoded together; small enough for the CPU cache."""


def verify_segment(record: Path, number: int, last: bool, wanted: VerifyScope) -> VerifiedSegment:
    """Verify one segment. Raises CannotWrite if its file cannot be read."""
    found = scan_segment(record, number, grows=last)
    if isinstance(found, RecordFinding):
        return VerifiedSegment(number, [found])
    return _SegmentVerifier(record, *found, wanted).done(last)


class _SegmentVerifier:
    """Verifies one segment record by record."""

    def __init__(
        self, record: Path, segment: RecordSegment, scanned: ScannedFrames, wanted: VerifyScope
    ) -> None:
        self._record, self._segment, self._scanned = record, segment, scanned
        self._wanted = wanted
        said = segment.snapshot
        self._findings = found = SegmentFindings(segment.number, segment.before.seq, scanned)
        self._tree = tree_of(ScannedSegment(segment, scanned))
        frontier = self._tree.frontier(segment.before.seq)
        opened, note = said.opened or None, said.certificate or ""
        opened_bytes = b"" if opened is None else opened_in(scanned.records[0])
        state = bytes(said.state)
        decided = state != b"null"
        cursors = dict(said.cursors)
        self._before = SegmentEdge(
            segment.before, frontier, cursors, opened_bytes, note, state, decided
        )
        self._boots = SegmentBoots(said.origin, opened, opened_bytes, note, found)
        since = 0 if segment.number == 1 else -1
        self._succession = Continuity(self._boots, cursors, since, decided=decided)
        self._decisions = DecisionReplay(record, said, found, replay=wanted.replay)
        self._kinds: Counter[str] = Counter()
        self._tails: list[tuple[RecordFinding, TailData]] = []
        self._words: Counter[str] = Counter()
        """What a later vocabulary has, and this software does not know."""
        self._torn = ""
        self._odd_if_closed = False

    def done(self, last: bool) -> VerifiedSegment:
        records = self._scanned.records
        for start in range(0, len(records), BATCH_SIZE):
            found = read_all(records[start : start + BATCH_SIZE])
            former = self._boots.now.name
            large = any(len(one) > MAX_RECORD_BYTES for one in records[start : start + BATCH_SIZE])
            rows = [row for row in found if type(row) is Strict]
            kinds = [row.kind for row in rows]
            self._kinds.update(kinds)
            seq = self._segment.before.seq + 1 + start
            usual = not large and len(rows) == len(found)
            if usual and self._succession.accept_batch(rows, kinds, seq):
                self._check_usual(start, rows, kinds)
            else:
                self._check_each(start, found)
            self._check_durable(start, found, former)
        self._check_end(last)
        return self._verified()

    # --- every record ---------------------------------------------------------------------

    def _check_usual(self, start: int, rows: Sequence[Strict], kinds: Sequence[str]) -> None:
        """Check the data of records that continue as usual."""
        boots, decisions = self._boots, self._decisions
        skips = () if decisions.replays else decisions.skipped(rows, kinds)
        signed = 0
        for at in [at for at in range(len(rows)) if at not in skips]:
            self._findings.index = start + at
            if kinds[at] == "checkpoint":
                if boots.now.unsigned < 0 and signed < at:
                    boots.now.unsigned = rows[signed].mono
                signed = at + 1
            self._check_kind(rows[at])
        if boots.now.unsigned < 0 and signed < len(rows):
            boots.now.unsigned = rows[signed].mono

    def _check_each(self, start: int, found: Sequence[Strict | str]) -> None:
        boots = self._boots
        for index, row in enumerate(found, start):
            self._findings.index = index
            if isinstance(row, str):
                self._findings.report(row)
                continue
            if isinstance(row, Extended):
                self._unknown_words(", ".join(f"record.{name}" for name in row.unknown))
            if row.v > 1 and len(self._findings.record) > MAX_RECORD_BYTES:
                size = len(self._findings.record)
                self._findings.report(f"{size} bytes; a record has at most {MAX_RECORD_BYTES}")
            for wrong in self._succession.take(row, self._findings.seq):
                self._findings.report(wrong)
            if boots.now.unsigned < 0 and row.kind != "checkpoint":
                boots.now.unsigned = row.mono
            self._check_kind(row)

    def _check_kind(self, row: Strict) -> None:
        try:
            if wrong := self._kind_error(row):
                self._findings.report(wrong)
        except (NoteProblem, WrongData) as problem:
            self._findings.report(f"{row.kind}: {problem}")

    def _unknown_words(self, names: str) -> None:
        """Count what a later vocabulary may contain; an error under a known one."""
        if self._boots.later_vocabulary:
            self._words[names] += 1
        else:
            self._findings.report(f"unknown in the vocabulary of its boot: {names}")

    def _check_durable(self, start: int, rows: Sequence[Strict | str], former: str) -> None:
        """Check that `durable` does not decrease within a boot."""
        for index in self._scanned.back:
            if not start <= index < start + len(rows):
                continue
            row = rows[index - start]
            before = rows[index - start - 1] if index > start else former
            name = before if isinstance(before, str) else before.boot
            if not isinstance(row, str) and row.boot == name:
                self._findings.index = index
                self._findings.report("it says that less was on the disk than the record before it")

    # --- single kinds ---------------------------------------------------------------------

    def _kind_error(self, row: Strict) -> str:
        """Check the data of one record. Raises NoteProblem and WrongData."""
        decisions = self._decisions
        if row.kind == "decision":
            decisions.collect_face_down(row)
            return self._decided(row)
        if row.kind == "refusal":
            if wrong := decisions.refusal_error(row):
                self._findings.report(wrong)
            return self._decided(row)
        if row.kind == "snapshot":
            return self._snapshot_error(row)
        unknown = check_data(row.kind, row.bytes, row.v)
        wrong = self._done(row, self._findings.seq)
        if unknown:
            self._unknown_words(unknown)
        return wrong

    def _done(self, row: Strict, seq: int) -> str:
        """What kinds other than decisions, refusals and snapshots ask for."""
        boots = self._boots
        match row.kind:
            case "opened":
                return self._decisions.opened(row, boots.opened_record(row, seq))
            case "certificate":
                boots.certificate_record(row)
            case "checkpoint":
                boots.checkpoint_record(row, self._tree, seq)
            case "witnessed":
                boots.witnessed_record(row, self._tree, seq)
            case "tail":
                return self._tail_error(row)
            case "closed":
                boots.closed_record()
        return ""

    def _snapshot_error(self, row: Strict) -> str:
        if self._findings.index:
            return "a snapshot that no segment begins with"
        for wrong in wrong_snapshot(row.bytes, self._segment.snapshot, row.seq):
            self._findings.report(wrong)
        if unknown := unknown_in_snapshot(row.bytes):
            self._unknown_words(unknown)
        return self._decisions.begins(row)

    def _tail_error(self, row: Strict) -> str:
        tail = self._boots.tail_record(row)
        if tail is None:
            return ""
        wrong = tail_error(self._record, tail)
        index = self._boots.former - self._segment.before.seq
        if index > 0:
            return wrong or place_error(tail, self._segment.number, self._scanned.offsets[index])
        self._tails.append((self._findings.at(), tail))
        return wrong

    def _decided(self, row: Strict) -> str:
        if not self._decisions.replays:
            self._decisions.unread += 1
            return ""
        unknown, wrong = self._decisions.decided(row)
        if unknown:
            self._unknown_words(unknown)
        return wrong

    # --- the end --------------------------------------------------------------------------

    def _check_end(self, last: bool) -> None:
        segment, scanned = self._segment, self._scanned
        if not scanned.why:
            return
        tail = classify(segment.buffer, scanned.end, scanned.where.seq)
        words = in_words(tail, segment)
        if last and tail.verdict is TailVerdict.TORN:
            self._torn = words
            self._odd_if_closed = self._ends_signed() and not begins_boot(
                segment.buffer,
                scanned.end,
                scanned.where.seq,
                self._boots.table,
                self._boots.now.name,
            )
            return
        self._findings.report_at_end(f"{scanned.why}; {words}")

    def _ends_signed(self) -> bool:
        """Whether the last record is a checkpoint."""
        (last,) = read_all(self._scanned.records[-1:])
        return not isinstance(last, str) and last.kind == "checkpoint"

    def _start(self, boot: BootState) -> SegmentStart:
        """How it starts; `boot` is the last one."""
        scanned, boots, succession = self._scanned, self._boots, self._succession
        snapshot = read_glance(scanned.records[0])
        first = boot
        if boots.ended:
            first = replace(boots.ended[0], starts=succession.first_starts)
        return SegmentStart(
            first,
            snapshot.mono,
            scanned.durable[0],
            boots.inherits,
            boots.other,
            tuple(self._tails),
            succession.first,
            snapshot.round,
            succession.jumps,
        )

    def _verified(self) -> VerifiedSegment:
        segment, scanned, boots = self._segment, self._scanned, self._boots
        decisions = self._decisions
        succession = self._succession
        boot = replace(
            boots.now,
            mono=succession.mono,
            durable=scanned.durable[1],
            starts=succession.starts,
        )
        cursors, tick = succession.cursors, succession.tick
        known, frontier = decisions.known, self._tree.frontier(self._tree.size)
        decided = self._before.decided or self._kinds["decision"] > 0
        after = SegmentEdge(
            scanned.where, frontier, cursors, boots.opened_bytes, boots.note, known, decided
        )
        names = (*(one.name for one in boots.ended), boot.name)
        totals = RecordTotals(
            segment.snapshot.origin,
            (segment.number, segment.number),
            len(scanned.records),
            scanned.where.seq,
            scanned.end,
            dict(self._kinds),
            len(names),
            boots.checkpoints,
            boots.signed,
            decisions.again,
            decisions.unread,
            utc=(read_glance(scanned.records[0]).utc, read_glance(scanned.records[-1]).utc),
        )
        return VerifiedSegment(
            segment.number,
            self._findings.findings,
            self._findings.more,
            not scanned.why,
            totals,
            self._before,
            self._start(boot),
            after,
            boot,
            tick if tick.boot else None,
            names,
            tuple(boots.certificates),
            decisions.hidden,
            boots.deferred,
            dict(self._words),
            dict(decisions.other_code),
            boots.late,
            boots.longest,
            roots(self._tree, self._wanted.sizes),
            frozenset(boots.tail_files),
            self._torn,
            self._odd_if_closed,
            max(0, succession.round),
            frozenset(succession.adopted),
            frozenset(succession.moved),
        )
