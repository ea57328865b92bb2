"""Joins of segments: the snapshot of each is compared with the end of the previous one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from controller.audit.format.merkle import Hash
from controller.audit.format.notes import NoteProblem, VerifierKey
from controller.audit.format.segments import HEADER_SIZE
from controller.audit.format.validation import same_value
from controller.audit.read.retirements import (
    RetiredCard,
    RetiredPart,
    Retirement,
    RetirementChanged,
    RetirementFile,
    before,
    in_words,
    retirement_files,
)
from controller.audit.verify.continuity import clock_error
from controller.audit.verify.facts import (
    SECOND,
    BootState,
    RecordFinding,
    SegmentEdge,
    SegmentStart,
    VerifiedSegment,
    common_starts,
)
from controller.audit.verify.side_files import place_error


class SegmentJoins:
    """Carries the end of each segment to the next one."""

    def __init__(self) -> None:
        self._former: VerifiedSegment | None = None
        self._boot: BootState | None = None
        """The state of the last boot, with what earlier segments have of it."""
        self._names: set[str] = set()
        self._last_name = ""
        self._adopted = frozenset[str]()
        """Devices whose log was adopted, without a cursor since; or for which that is unknown."""
        self.late = self.longest = 0
        """As in VerifiedSegment: over all segments, and from one to the next."""

    def take(self, segment: VerifiedSegment) -> list[RecordFinding]:
        """Compare a segment with the previous one, and return the findings."""
        former, self._former = self._former, segment
        self.late += segment.late
        self.longest = max(self.longest, segment.longest)
        start, boot, before = segment.start, segment.boot, segment.before
        if start is None or boot is None or before is None:
            self._boot = None
            return []
        known = self._boot if former is not None and former.boot is not None else None
        found: list[RecordFinding] = []
        if former is not None and former.whole and former.after is not None:
            found += _of_edges(former, former.after, segment, before)
        if not found:  # otherwise further findings would only be consequences
            over = self._names - {self._last_name}
            read = former is None or former.whole
            found += _of_boots(segment, start, known, over, read=read)
        if not found and former is not None and former.whole:
            found += _of_clocks(segment, start, former)
            found += _of_rounds(segment, start, former)
            found += _of_tails(start, former, known)
        if former is None or not former.whole:
            self._adopted = frozenset(before.cursors)
        found += [at for device, at in start.jumps.items() if device not in self._adopted]
        self._adopted = segment.adopted | (self._adopted - segment.moved)
        self._unsigned(start, known, left=len(segment.boots) > 1)
        self._boot = _carried(known, start, boot)
        self._names.update(segment.boots)
        self._last_name = boot.name
        return found

    def gap(self) -> None:
        """A segment is missing."""
        self._former = self._boot = None

    @property
    def closed(self) -> bool:
        """Whether the last boot ended with `closed`."""
        return self._boot is not None and self._boot.closed

    def end(self) -> None:
        """There are no more segments."""
        if self._boot is not None and self._boot.unsigned >= 0:
            self._late(self._boot.mono - self._boot.unsigned)

    def _unsigned(self, start: SegmentStart, known: BootState | None, *, left: bool) -> None:
        """Count records without a signature at the end of the previous segment.

        `left`: the boot has ended in this segment.
        """
        if known is None or known.unsigned < 0:
            return
        if known.name != start.first.name:
            self._late(known.mono - known.unsigned)
            return
        signed = start.first.signed >= 0
        until = start.first.signed if signed else start.first.mono
        if signed or left:
            noticed = until - start.mono > SECOND  # counted within the segment already
            self._late(until - known.unsigned, 0 if noticed else 1)

    def _late(self, span: int, times: int = 1) -> None:
        if span > SECOND:
            self.late += times
            self.longest = max(self.longest, span)


def _carried(known: BootState | None, start: SegmentStart, boot: BootState) -> BootState:
    """The state of a segment's last boot, including earlier segments."""
    if known is None or boot.name != known.name or boot.name != start.first.name:
        return boot
    return replace(
        boot,
        opened=boot.opened or known.opened,
        certified=boot.certified or known.certified,
        closed=boot.closed or known.closed,
        unsigned=known.unsigned if boot.signed < 0 and known.unsigned >= 0 else boot.unsigned,
        starts=common_starts(known.starts, boot.starts) or boot.starts,
    )


def _at(segment: VerifiedSegment, since: int) -> RecordFinding:
    """The first record of a segment."""
    seq = 0 if segment.before is None else segment.before.where.seq + 1
    return RecordFinding(segment.number, HEADER_SIZE, seq, 0, "", since)


def _of_edges(
    former: VerifiedSegment, found: SegmentEdge, segment: VerifiedSegment, said: SegmentEdge
) -> Iterator[RecordFinding]:
    """Compare a snapshot; only the first difference, since others may be its consequence."""
    at = _at(segment, former.totals.utc[1])
    ours, other = former.totals.origin, segment.totals.origin
    if other != ours:
        what = f"it is a segment of {other}, another record than {ours}"
        yield replace(at, what=what)
        return
    same_boot = bool(said.opened and found.opened) and same_value(said.opened, found.opened)
    pairs = (
        ("seq", said.where.seq, found.where.seq),
        ("chain", said.where.chain, found.where.chain),
        ("tree", said.frontier, found.frontier),
        ("last boot", said.opened, said.opened if same_boot else found.opened),
        ("certificate", said.certificate, found.certificate),
        ("cursors of the devices", said.cursors, found.cursors),
        ("state of the procedure", said.decided, found.decided),
    )
    wrong = [name for name, theirs, ours in pairs if theirs != ours]
    if not wrong and found.state and not same_value(said.state, found.state):
        wrong = ["state of the procedure"]
    if wrong:
        what = f"its snapshot has another {wrong[0]} than the segment before it ends with"
        yield replace(at, what=what)


def _of_clocks(
    segment: VerifiedSegment, start: SegmentStart, former: VerifiedSegment
) -> Iterator[RecordFinding]:
    tick = start.tick
    if former.tick is None or tick is None:
        return
    wrong = clock_error(former.tick, tick)
    if wrong:
        yield replace(_at(segment, former.totals.utc[1]), what=wrong)


def _of_rounds(
    segment: VerifiedSegment, start: SegmentStart, former: VerifiedSegment
) -> Iterator[RecordFinding]:
    if start.round != former.round:
        what = f"its round is {start.round}; the segment before it ends in round {former.round}"
        yield replace(_at(segment, former.totals.utc[1]), what=what)


def _of_tails(
    start: SegmentStart, former: VerifiedSegment, known: BootState | None
) -> Iterator[RecordFinding]:
    if known is not None and known.name == start.first.name:
        return
    for at, tail in start.tails:
        wrong = place_error(tail, former.number, former.totals.size)
        if wrong:
            yield replace(at, what=wrong)


def _of_boots(
    segment: VerifiedSegment,
    start: SegmentStart,
    known: BootState | None,
    over: set[str],
    *,
    read: bool,
) -> Iterator[RecordFinding]:
    """Compare boots. `over` has the boots that have ended. `read` is false if the previous segment
    could not be read completely: another boot, and `tail` records, may be in it."""
    first = start.first
    at = _at(segment, 0)
    for name in over.intersection(segment.boots):
        yield replace(at, what=f"boot {name} was over")
    if known is not None and known.version > first.version:
        yield replace(at, what=f"version {first.version} after version {known.version}")
    if known is None or known.name != first.name:
        if start.inherits is not None and (segment.number == 1 or (known is not None and read)):
            yield replace(start.inherits, what=f"boot {first.name} does not begin with opened")
        return
    checks = (
        (known.version < first.version, at, "its version is another than before in its boot"),
        (
            bool(known.opened and first.opened and start.inherits is None),
            at,
            f"boot {first.name} was opened already, by record {known.opened}",
        ),
        (start.mono < known.mono, at, "its clock that only goes forward went back"),
        (
            start.durable < known.durable,
            at,
            "it says that less was on the disk than the record before it",
        ),
        (
            bool(first.certified and known.opened and first.certified != known.opened),
            at,
            f"the certificate is of a boot opened by record {first.certified}, not {known.opened}",
        ),
        (
            common_starts(known.starts, first.starts) is None,
            at,
            "its gaming days start at another time than before in its boot",
        ),
        (known.closed, start.other, "something follows on closed"),
        (
            known.unrecorded > 0 and read,
            at,
            f"no tail record tells of {known.unrecorded} bytes that were set aside",
        ),
    )
    for wrong, place, what in checks:
        if wrong and place is not None:
            yield replace(place, what=what)


_OTHER = "begins otherwise than what was retired ends"


class RetiredSegments:
    """The retirements of one record."""

    def __init__(self, record: Path, there: Sequence[int]) -> None:
        """Argument `there` has the numbers of the existing segments."""
        self.kept: list[RetirementFile] = retirement_files(record)
        self._last = self.kept[-1] if self.kept else None
        ends = 0 if self._last is None or self._last.said is None else self._last.number
        over = [number for number in there if 0 < number <= ends]
        cut = bool(over) and (there[0] > 1 or over[-1] != ends) and len(over) < len(there)
        self.left = [number for number in there if not cut or number not in over]
        """The segments that are the record."""
        self.over = over
        """Segments that should have been removed."""
        self.joins = 0 < ends == self.left[0] - 1
        """Whether the record begins after the last retirement."""
        self.before: RetiredPart | None = None
        """The retired part, after it was verified against the record."""

    @property
    def last(self) -> Retirement | None:
        return None if self._last is None else self._last.said

    @property
    def sizes(self) -> set[int]:
        """Tree sizes to check if all segments still exist."""
        return set() if self.last is None else {self.last.records[1]}

    @property
    def descriptions(self) -> tuple[str, ...]:
        return tuple(in_words(one.said) for one in self.kept if one.said is not None)

    @property
    def face_down(self) -> tuple[RetiredCard | None, tuple[RetiredCard, ...]]:
        """The cards that lie face down where the record begins."""
        return (self.last.hole, self.last.drawn) if self.joins and self.last else (None, ())

    @property
    def tails(self) -> set[str]:
        found = [one.said.tails for one in self.kept if one.said is not None]
        return {name for names in found for name in names}

    @property
    def remarks(self) -> Iterator[str]:
        if self.over and self._last is not None:
            first, last = self.over[0], self.over[-1]
            yield (
                f"segments {first} to {last} are left of what {self._last.name} tells of: "
                "`holecard audit retire` with its case removes them"
            )

    def verify(
        self, origin: str, key: str, begins: SegmentEdge | None, roots: dict[int, Hash], last: int
    ) -> Iterator[RecordFinding]:
        """Verify the retirements and yield the findings.

        `key` is the table's key in the record, `begins` the state before the first segment, if
        known, and `last` the record's last seq.
        """
        if self._last is None:
            return
        try:
            found = before(self.kept, origin, VerifierKey.parse(key))
        except (RetirementChanged, NoteProblem) as problem:
            yield RecordFinding(self._last.number, 0, 0, 0, str(problem), 0)
            return
        size = found.where.seq
        same = roots.get(size, found.roots[size]) == found.roots[size]
        if self.joins and begins is not None:
            same = (begins.where, begins.frontier) == (found.where, found.frontier)
        if not same:
            yield RecordFinding(found.segment + 1, 0, size + 1, 0, f"the record {_OTHER}", 0)
            return
        if found.signed > last:
            yield RecordFinding(
                found.segment + 1,
                0,
                last + 1,
                0,
                f"cut off: {self._last.name} tells of {found.signed} records, {last} are here",
                0,
            )
            return
        self.before = found
