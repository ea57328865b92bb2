"""The result of verifying one segment; it is passed from a worker process to the verifier."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.merkle import Hash
from controller.audit.format.notes import Certificate
from controller.audit.format.records import (
    DAY_US,
    ChainPosition,
    DeviceCursor,
    RecordPosition,
    TailData,
)
from controller.audit.format.validation import UNREADABLE
from controller.audit.read.reader import ScannedFrames

RunHashes: TypeAlias = tuple[str, str, str]
"""First digits of the hashes of software, configuration and procedure, as records of version 1 have
them; empty in version 2."""
CodeVersion: TypeAlias = tuple[str, str]
"""Name and version of a software, and the hash of its procedure's code."""

SECOND: Final = 1_000_000_000
"""Limit, in units of `mono`, after which a record without a signature counts as late."""
MAX_FINDINGS: Final = 50
"""Limit of findings of one segment that are listed."""


class RecordFinding(Struct, frozen=True, order=True):
    """An error in a record. Findings are ordered by position."""

    segment: int
    offset: int
    seq: int
    round: int
    what: str
    since: int
    """utc of the last record before it: everything until then is valid."""

    @property
    def place(self) -> RecordPosition:
        return RecordPosition(self.segment, self.offset, self.seq)

    def __str__(self) -> str:
        return f"{self.place}, round {self.round}: {self.what}"


class FaceDownDecision(Struct, frozen=True):
    """A decision about a card that lay face down."""

    at: RecordFinding
    """Its position; `what` is empty."""
    table: str
    cursor: DeviceCursor | None
    data: bytes


class VerifyScope(NamedTuple):
    """What is checked."""

    replay: bool = True
    """Whether decisions are replayed."""
    sizes: tuple[int, ...] = ()
    """Tree sizes whose roots are requested, in order."""


class ClockReading(Struct, frozen=True, gc=False):
    """The clocks of one record."""

    boot: str
    utc: int
    mono: int
    clock: bool
    """The record reports that the clock was set."""


DayStarts: TypeAlias = tuple[int, int]
"""The first and the last microsecond after midnight at which the gaming day may start."""
_MINUTE_US: Final = 60_000_000
ANY_START: Final = (0, DAY_US - 1)


def common_starts(one: DayStarts, other: DayStarts) -> DayStarts | None:
    """None if no whole minute is in both."""
    found = max(one[0], other[0]), min(one[1], other[1])
    return found if -(-found[0] // _MINUTE_US) <= found[1] // _MINUTE_US else None


class BootState(Struct):
    """The state of a boot at the end of a segment, without what is only in earlier segments."""

    name: str = ""
    version: int = 0
    mono: int = 0
    durable: int = 0
    opened: int = 0
    """Seq of its `opened` in this segment."""
    certified: int = 0
    """Seq of the `opened` that its certificate names."""
    closed: bool = False
    unrecorded: int = 0
    """Quarantined bytes for which no `tail` record was found yet."""
    signed: int = -1
    """`mono` of its first checkpoint in this segment; -1 if missing."""
    unsigned: int = -1
    """`mono` of the first record since its last checkpoint; -1 if missing."""
    starts: DayStarts = ANY_START
    """When its gaming day may start, as its records say."""


class SegmentStart(Struct, frozen=True):
    """How a segment starts, to be compared with the end of the previous segment."""

    first: BootState
    """State of the first record's boot, at its end or at the end of the segment."""
    mono: int
    durable: int
    """`durable` of the first record."""
    inherits: RecordFinding | None = None
    """Position of the first record of that boot that must come after its `opened`, if that is not
    in this segment."""
    other: RecordFinding | None = None
    """Position of the first record of that boot that may not follow `closed`."""
    tails: tuple[tuple[RecordFinding, TailData], ...] = ()
    """Its `tail` records about the previous segment, with their positions."""
    tick: ClockReading | None = None
    """Clocks of the first record that is no snapshot, of any boot."""
    round: int = 0
    """That of the snapshot."""
    jumps: dict[str, RecordFinding] = {}
    """First cursors of devices that do not follow that of the snapshot; right only if the log of
    the device was adopted at the end of the previous segments."""


class SegmentEdge(Struct, frozen=True):
    """The state before a segment, from its snapshot, or after it, as it was computed."""

    where: ChainPosition
    frontier: tuple[Hash, ...]
    cursors: dict[str, DeviceCursor]
    opened: bytes
    """The data of the last `opened` record; empty before the first."""
    certificate: str
    state: bytes
    """State of the procedure as JSON; empty if it is unknown."""
    decided: bool
    """Whether there was a decision, so that there is a state."""


class DeferredCheckpoint(Struct, frozen=True):
    """A checkpoint over records of earlier segments, which is verified later."""

    at: RecordFinding
    """Its position; `what` is empty."""
    size: int
    root: bytes


class RecordTotals(Struct, frozen=True):
    """What was counted in one segment, or in consecutive ones."""

    origin: str = ""
    segments: tuple[int, int] = (0, 0)
    """The first and the last of them."""
    records: int = 0
    last: int = 0
    """Seq of the last record."""
    size: int = 0
    """Bytes of the segments that are written."""
    kinds: dict[str, int] = {}
    boots: int = 0
    checkpoints: int = 0
    signed: int = 0
    """Seq of the last record that a valid checkpoint covers."""
    again: int = 0
    """Decisions and refusals that were replayed with the same result."""
    unread: int = 0
    """Those that were not replayed: not requested, or after an error."""
    opened: int = 0
    """Hole cards whose opening matches the commitment; counted over a whole record only."""
    utc: tuple[int, int] = (0, 0)
    """utc of the first and the last record."""

    def followed_by(self, segment: RecordTotals) -> RecordTotals:
        """The totals including the next segment. The caller counts boots and hole cards."""
        return RecordTotals(
            origin=self.origin or segment.origin,
            segments=(self.segments[0] or segment.segments[0], segment.segments[1]),
            records=self.records + segment.records,
            last=segment.last,
            size=self.size + segment.size,
            kinds=dict(Counter(self.kinds) + Counter(segment.kinds)),
            checkpoints=self.checkpoints + segment.checkpoints,
            signed=max(self.signed, segment.signed),
            again=self.again + segment.again,
            unread=self.unread + segment.unread,
            utc=(self.utc[0] or segment.utc[0], segment.utc[1]),
        )


class VerifiedSegment(Struct, frozen=True):
    """The result of one segment."""

    number: int
    findings: list[RecordFinding]
    more: int = 0
    """Number of findings that are not listed."""
    whole: bool = False
    """Whether it could be read to its end."""
    totals: RecordTotals = RecordTotals()
    before: SegmentEdge | None = None
    """None if the segment cannot be read at all."""
    start: SegmentStart | None = None
    after: SegmentEdge | None = None
    boot: BootState | None = None
    tick: ClockReading | None = None
    """Clocks of the last record that is no snapshot."""
    boots: tuple[str, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    hidden: list[FaceDownDecision] = []
    deferred: list[DeferredCheckpoint] = []
    unknown: dict[str, int] = {}
    """Kinds and fields of a later vocabulary, with how often they were found."""
    other_code: dict[CodeVersion, int] = {}
    """Number of decisions and refusals that could not be replayed, by software version."""
    late: int = 0
    """How often a record was without a signature for more than a second."""
    longest: int = 0
    """Nanoseconds."""
    roots: dict[int, Hash] = {}
    """The requested roots, by size."""
    tail_files: frozenset[str] = frozenset()
    """Quarantine files that `tail` records name."""
    torn: str = ""
    """Description of an incomplete write at the end."""
    odd_if_closed: bool = False
    """That write follows a checkpoint, and another boot did not begin it: nothing explains it if
    the boot was closed."""
    round: int = 0
    """That of the last record."""
    adopted: frozenset[str] = frozenset()
    """Devices whose log was adopted in it, without a cursor since."""
    moved: frozenset[str] = frozenset()
    """Devices with a cursor in it."""


class RecordGlance(Struct, frozen=True, gc=False):
    """The fields of a record that a finding needs."""

    utc: int = 0
    mono: int = 0
    round: int = 0


_glance: Final = msgspec.json.Decoder(RecordGlance).decode


def read_glance(record: bytes) -> RecordGlance:
    """Decode them; zeros if it is no record."""
    try:
        return _glance(record)
    except UNREADABLE:
        return RecordGlance()


class SegmentFindings:
    """The findings of one segment, and the current record."""

    def __init__(self, number: int, base: int, scanned: ScannedFrames) -> None:
        """Argument `base` is the seq of the last record before the segment."""
        self._number, self._base, self._scanned = number, base, scanned
        self.index = 0
        """Index of the current record, from 0."""
        self.findings: list[RecordFinding] = []
        self.more = 0
        """Number of findings that are not listed."""

    @property
    def seq(self) -> int:
        """The seq that the current record must have."""
        return self._base + 1 + self.index

    @property
    def record(self) -> bytes:
        return self._scanned.records[self.index]

    @property
    def place(self) -> RecordPosition:
        return RecordPosition(self._number, self._scanned.offsets[self.index], self.seq)

    def at(self) -> RecordFinding:
        """The position of the current record, with an empty `what`."""
        place = self.place
        since = read_glance(self._scanned.records[self.index - 1]).utc if self.index else 0
        return RecordFinding(
            place.segment, place.offset, place.seq, read_glance(self.record).round, "", since
        )

    def report(self, what: str) -> None:
        """Report an error in the current record."""
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(replace(self.at(), what=what))
        else:
            self.more += 1

    def report_if(self, wrong: object, what: str) -> None:
        """Report an error in the current record if `wrong` is true."""
        if wrong:
            self.report(what)

    def report_at_end(self, what: str) -> None:
        """Report an error after the last record."""
        scanned = self._scanned
        self.index = len(scanned.records) - 1
        since = read_glance(self.record).utc
        at = replace(self.at(), offset=scanned.end, seq=scanned.where.seq + 1, since=since)
        self.findings.append(replace(at, what=what))
