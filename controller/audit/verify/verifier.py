"""Verification of a whole record: segments in parallel, each then compared with the previous one.

Memory use does not grow with the record: per segment only a `VerifiedSegment` is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from controller.audit.errors import NoRecord
from controller.audit.format.merkle import EMPTY_ROOT, Hash
from controller.audit.format.notes import Certificate, VerifierKey
from controller.audit.format.records import OpenedData
from controller.audit.format.segments import DIRECTORY, HEADER_SIZE, NAME
from controller.audit.log import quarantined_files
from controller.audit.verify.decisions import HoleCardTracker
from controller.audit.verify.facts import (
    CodeVersion,
    DeferredCheckpoint,
    RecordFinding,
    RecordTotals,
    SegmentEdge,
    VerifiedSegment,
    VerifyScope,
)
from controller.audit.verify.joins import RetiredSegments, SegmentJoins
from controller.audit.verify.segment import roots_of, verify_segment
from controller.audit.verify.side_files import (
    InvalidWitnessNote,
    WitnessedCheckpoint,
    foreign_files,
    read_cosigned,
    witness_error,
)
from controller.errors import printable
from controller.worker_processes import in_order, worker_processes

AHEAD: Final = 3
"""Segments per process that are submitted in advance."""


def verify_segments(
    record: Path, numbers: Sequence[int], last: int, wanted: VerifyScope, jobs: int
) -> Generator[VerifiedSegment]:
    """Yield the results in order. An incomplete write is allowed after segment `last`."""
    verify_one = partial(_verify_numbered, record, last, wanted)
    if jobs == 1 or len(numbers) < 2:
        yield from map(verify_one, numbers)
        return
    with worker_processes(min(jobs, len(numbers))) as pool:
        yield from in_order(pool, verify_one, numbers, AHEAD * jobs)


def _verify_numbered(record: Path, last: int, wanted: VerifyScope, number: int) -> VerifiedSegment:
    return verify_segment(record, number, number == last, wanted)


VALID, INVALID, INCOMPLETE = 0, 1, 3
"""Exit codes: valid; invalid; partly checked and valid."""
MAX_FINDINGS: Final = 1_000
"""Limit of findings that are listed."""


class VerifyReport(RecordTotals, frozen=True, kw_only=True):
    """The result of a verification. Its `segments` are the first and the last that exist."""

    table_key: str
    proven_key: bool
    """Whether the table's key was given by the caller."""
    witnessed: int
    """Records that the given witness's checkpoint covers, if it matches; else 0."""
    witnessed_at: int
    """Time of the countersignature, seconds since 1970."""
    findings: tuple[RecordFinding, ...]
    more: int
    """Number of findings that are not listed."""
    unchecked: tuple[str, ...]
    """What could not be checked."""
    remarks: tuple[str, ...]
    retired: tuple[str, ...] = ()
    """Descriptions of the retirements."""

    @property
    def code(self) -> int:
        if self.findings:
            return INVALID
        return INCOMPLETE if self.unchecked or self.unread else VALID


class VerifyProgress(Struct, frozen=True):
    segments: int
    of: int
    records: int
    findings: int


def verify(
    record: Path,
    *,
    replay: bool = True,
    table_key: VerifierKey | None = None,
    witness: WitnessedCheckpoint | InvalidWitnessNote | None = None,
    jobs: int = 1,
    on_progress: Callable[[VerifyProgress], None] = lambda _: None,
) -> VerifyReport:
    """Verify a whole record. Raises NoRecord, and what `on_progress` raises."""
    return _Verification(record, replay, table_key, witness, max(1, jobs)).run(on_progress)


class _Verification:
    """One verification of a record."""

    def __init__(
        self,
        record: Path,
        replay: bool,
        table_key: VerifierKey | None,
        witness: WitnessedCheckpoint | InvalidWitnessNote | None,
        jobs: int,
    ) -> None:
        self._record = record
        self._retired = RetiredSegments(record, _segment_numbers(record))
        self._numbers = self._retired.left
        self._seen, bad = read_cosigned(record)
        self._given: WitnessedCheckpoint | None = None
        if isinstance(witness, InvalidWitnessNote):
            bad.append((0, witness.what))
        elif witness is not None:
            self._given = witness
            self._seen.append(witness)
        self._table_key = table_key
        sizes = {seen.checkpoint.size for seen in self._seen} | self._retired.sizes
        self._wanted = VerifyScope(replay, tuple(sorted(sizes)))
        self._jobs = jobs
        self._findings: list[RecordFinding] = []
        self._more = 0
        self._unchecked: list[str] = []
        self._remarks: list[str] = []
        self._totals = RecordTotals()
        """Of the segments that could be read."""
        self._other_code: Counter[CodeVersion] = Counter()
        self._unknown: Counter[str] = Counter()
        """What a later vocabulary has, and this software does not know."""
        self._joins = SegmentJoins()
        self._holes = HoleCardTracker(self._numbers[0] == 1 or self._retired.joins)
        self._holes.start_with(*self._retired.face_down)
        self._roots: dict[int, Hash] = {0: EMPTY_ROOT}
        self._spans: list[tuple[int, int, int]] = []
        """Number of each segment, and tree size before and after it."""
        self._deferred: list[DeferredCheckpoint] = []
        self._keys: dict[str, Certificate] = {}
        self._tail_files: set[str] = set()
        self._boots: set[str] = set()
        self._opened_key = ""
        self._number = 0
        self._begins: SegmentEdge | None = None
        """State before the first segment."""
        self._last: VerifiedSegment | None = None
        """The last segment that could be read."""
        for size, what in bad:
            self._add_finding(RecordFinding(self._numbers[-1], 0, size, 0, what, 0))

    def run(self, on_progress: Callable[[VerifyProgress], None]) -> VerifyReport:
        there, last = self._numbers, self._numbers[-1]
        with closing(
            verify_segments(self._record, there, last, self._wanted, self._jobs)
        ) as segments:
            for done, segment in enumerate(segments, 1):
                self._take(segment)
                records, findings = self._totals.records, len(self._findings) + self._more
                on_progress(VerifyProgress(done, len(there), records, findings))
        self._end()
        return self._report()

    # --- segment by segment ---------------------------------------------------------------

    def _take(self, segment: VerifiedSegment) -> None:
        since, due = self._totals.utc[1], self._totals.last + 1
        self._gap(segment.number, due, since)
        for found in [*segment.findings, *self._joins.take(segment)]:
            self._add_finding(replace(found, seq=found.seq or due, since=found.since or since))
        self._more += segment.more
        if segment.after is None or segment.before is None:
            self._holes.gap()
            return
        self._last = segment
        if segment.number == self._numbers[0]:
            self._begins = segment.before
        self._totals = self._totals.followed_by(segment.totals)
        self._other_code.update(segment.other_code)
        self._unknown.update(segment.unknown)
        self._roots |= segment.roots
        self._tail_files |= segment.tail_files
        self._boots.update(segment.boots)
        self._keys |= {key.boot: key for key in segment.certificates}
        self._deferred += segment.deferred
        self._spans.append((segment.number, segment.before.where.seq, segment.after.where.seq))
        for hidden in segment.hidden:
            for found in self._holes.take(hidden):
                self._add_finding(found)
        if not segment.whole:
            self._holes.gap()
        self._check_table_key(segment.before.opened or segment.after.opened, segment)

    def _gap(self, number: int, due: int, since: int) -> None:
        """Report missing segments before this one."""
        before, self._number = self._number, number
        if before and number != before + 1:
            self._add_finding(RecordFinding(before + 1, 0, due, 0, "the segment is missing", since))
            self._holes.gap()
            self._joins.gap()

    def _check_table_key(self, opened: bytes, segment: VerifiedSegment) -> None:
        """Compare the table's key of the first boot with the given key. Changes of it are found by
        `boots`."""
        if self._opened_key or not opened:
            return
        self._opened_key = msgspec.json.decode(opened, type=OpenedData).table_key
        if self._table_key is not None and str(self._table_key) != self._opened_key:
            what = f"the table's key is {self._opened_key}, not the one that was given"
            seq = 0 if segment.before is None else segment.before.where.seq + 1
            self._add_finding(
                RecordFinding(segment.number, HEADER_SIZE, seq, 0, what, segment.totals.utc[0])
            )

    def _add_finding(self, finding: RecordFinding) -> None:
        if len(self._findings) < MAX_FINDINGS:
            self._findings.append(finding)
        else:
            self._more += 1

    # --- when all are there ---------------------------------------------------------------

    def _end(self) -> None:
        self._joins.end()
        self._verify_retirements()
        self._verify_deferred()
        for seen in self._seen:
            wrong = witness_error(
                seen, self._totals.origin, self._totals.last, self._roots, self._keys.values()
            )
            if not wrong:
                continue
            size = seen.checkpoint.size
            if self._numbers[0] > 1 and size not in self._roots and 0 < size <= self._totals.last:
                self._unchecked.append(wrong)
            else:
                self._add_finding(replace(self._place_of(size), what=wrong))
        self._check_closed_end()
        self._find_unchecked()
        self._find_remarks()
        self._findings.sort(key=lambda found: (found.segment, found.offset))

    def _check_closed_end(self) -> None:
        """Only another boot writes behind a closed record."""
        last = self._last
        if last is not None and last.odd_if_closed and self._joins.closed:
            what = "the record is closed, and what stands behind its end is no start of a boot"
            at = RecordFinding(last.number, last.totals.size, self._totals.last + 1, 0, what, 0)
            self._add_finding(replace(at, since=last.totals.utc[1]))

    def _verify_retirements(self) -> None:
        """Verify the retirements; they then replace the missing segments."""
        key, begins = self._opened_key, self._begins
        for one in self._retired.verify(
            self._totals.origin, key, begins, self._roots, self._totals.last
        ):
            self._add_finding(one)
        before = self._retired.before
        if before is not None:
            self._roots = {**before.roots, **self._roots}
            self._keys |= {key.boot: key for key in before.boots}
            self._tail_files |= self._retired.tails

    def _place_of(self, seq: int) -> RecordFinding:
        """The position of a record, as precisely as it is known without reading again."""
        last = self._last
        for number, before, after in self._spans:
            if before < seq <= after:
                return RecordFinding(number, HEADER_SIZE, seq, 0, "", 0)
        number, end = (self._numbers[-1], 0) if last is None else (last.number, last.totals.size)
        return RecordFinding(number, end, seq, 0, "", self._totals.utc[1])

    def _verify_deferred(self) -> None:
        """Verify checkpoints over records of earlier segments; those segments are read again."""
        wanted = {deferred.size for deferred in self._deferred} - self._roots.keys()
        for number, before, after in self._spans:
            sizes = sorted(size for size in wanted if before < size <= after)
            if sizes:
                self._roots |= roots_of(self._record, number, tuple(sizes))
        for deferred in self._deferred:
            root = self._roots.get(deferred.size)
            if root is None:  # reported already: the segment cannot be read
                self._unchecked.append(
                    f"a checkpoint over {deferred.size} records: not all are here"
                )
            elif root != deferred.root:
                what = (
                    f"a checkpoint over another tree than that of the first {deferred.size} records"
                )
                self._add_finding(replace(deferred.at, what=what))

    def _find_unchecked(self) -> None:
        first = self._numbers[0]
        if first > 1 and not self._retired.joins:
            self._unchecked.append(f"what stands before segment {first} is not here")
        for (software, code), count in sorted(self._other_code.items()):
            self._unchecked.append(
                f"{count:,} decisions and refusals were made by {software}, whose procedure's code "
                f"is {code}: they can be made again with that version"
            )
        for names, count in sorted(self._unknown.items()):
            self._unchecked.append(
                f"{count:,} records have what a later vocabulary added: {printable(names)}"
            )
        if self._holes.unproven:
            what = "hole cards were committed to in segments that are not here"
            self._unchecked.append(f"{self._holes.unproven} {what}")

    def _find_remarks(self) -> None:
        remark, last = self._remarks.append, self._last
        boot = None if last is None else last.boot
        if boot is not None and not self._joins.closed:
            remark("the controller has not closed it: it runs, or was stopped")
        if boot is not None and boot.unsigned >= 0:
            count = self._totals.last - self._totals.signed
            remark(f"the last {count} records have no signature over them: nothing proves them")
        if last is not None and last.torn:
            remark(last.torn)
        if self._joins.late:
            remark(
                f"{self._joins.late} times something stood without a signature for more than a "
                f"second, the longest for {self._joins.longest / 1e9:.1f} s"
            )
        for file in sorted(quarantined_files(self._record) - self._tail_files):
            remark(f"{file}: was set aside, and no record tells of it")
        for text in foreign_files(self._record, self._tail_files):
            remark(text)
        for text in self._retired.remarks:
            remark(text)

    # --- what it came to ------------------------------------------------------------------

    def _report(self) -> VerifyReport:
        witness = self._given
        size = 0 if witness is None else witness.checkpoint.size
        right = witness is not None and self._roots.get(size) == witness.checkpoint.root
        totals = replace(
            self._totals,
            segments=(self._numbers[0], self._numbers[-1]),
            boots=len(self._boots),
            opened=self._holes.opened,
        )
        return VerifyReport(
            **asdict(totals),
            table_key=self._opened_key,
            proven_key=self._table_key is not None,
            witnessed=size if right else 0,
            witnessed_at=witness.seconds if right and witness is not None else 0,
            findings=tuple(self._findings),
            more=self._more,
            unchecked=tuple(self._unchecked),
            remarks=tuple(self._remarks),
            retired=self._retired.descriptions if self._retired.before is not None else (),
        )


def _segment_numbers(record: Path) -> list[int]:
    """The numbers of the existing segments, sorted; there may be gaps. Raises NoRecord."""
    place = record / DIRECTORY
    try:
        names = [NAME.fullmatch(entry.name) for entry in place.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        raise NoRecord(record, "there is no record here", "name its directory") from None
    found = sorted(int(name[1]) for name in names if name)
    if not found:
        raise NoRecord(record, "the record has no segment", "put its segments back")
    return found
