"""What is said of one segment, to be held against the others: it goes from process to process."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.certificates import Certificate
from controller.audit.format.decode import UNREADABLE
from controller.audit.format.merkle import Hash
from controller.audit.format.records import ChainPosition, DeviceCursor, RecordPosition, TailData
from controller.audit.read.scan import ScannedFrames
from controller.audit.verify.finding import RecordFinding
from controller.audit.verify.hole_cards import FaceDownDecision

RunHashes: TypeAlias = tuple[str, str, str]
"""The beginnings of the hashes of software, configuration and procedure."""
CodeVersion: TypeAlias = tuple[str, str]
"""Name and version of a software, and the hash of its procedure's code."""

SECOND: Final = 1_000_000_000
"""Of `mono`: for no longer anything stands without a signature over it."""
MAX_FINDINGS: Final = 50
"""Of one segment that are told one by one."""


class VerifyScope(NamedTuple):
    """What is to be looked at."""

    replay: bool = True
    """Every decision is made again."""
    sizes: tuple[int, ...] = ()
    """Roots that are asked for, in order."""


class ClockReading(Struct, frozen=True, gc=False):
    """What the clocks said in a record."""

    boot: str
    utc: int
    mono: int
    clock: bool
    """It tells that the clock was set."""


class BootState(Struct, frozen=True):
    """How a boot stands where a segment ends. What stands before the segment is not known here."""

    name: str
    mono: int
    durable: int
    opened: int = 0
    """Seq of its `opened` in this segment."""
    certified: int = 0
    """Seq of the `opened` that its certificate is for."""
    closed: bool = False
    untold: int = 0
    """Bytes that it set aside and no `tail` record tells of yet."""
    signed: int = -1
    """`mono` of its first checkpoint in this segment; -1 where there is none."""
    unsigned: int = -1
    """`mono` of the first record since its last checkpoint; -1 where there is none."""


class SegmentStart(Struct, frozen=True):
    """How a segment begins, to be held against how the one before it ends."""

    first: BootState
    """The boot of its first record, how it stands where it is over or the segment ends."""
    mono: int
    durable: int
    """What its first record says."""
    inherits: RecordFinding | None = None
    """The first record of that boot that its `opened` must stand before, where it is not in this
    segment; and nothing found yet."""
    other: RecordFinding | None = None
    """The first record of it that may not follow on `closed`, and nothing found yet."""
    tails: tuple[tuple[RecordFinding, TailData], ...] = ()
    """What `tail` records of it tell of the segment before, with their places."""
    tick: ClockReading | None = None
    """Of the first record that is no snapshot, whatever boot it is of."""


class SegmentEdge(Struct, frozen=True):
    """How things stand before a segment, as it says, or after it, as was found."""

    where: ChainPosition
    frontier: tuple[Hash, ...]
    cursors: dict[str, DeviceCursor]
    opened: bytes
    """The data of the last `opened` record; empty before the first."""
    certificate: str
    state: bytes
    """Of the procedure, as JSON; empty where it is not known."""
    decided: bool
    """There was a decision, so that there is a state."""


class DeferredCheckpoint(Struct, frozen=True):
    """A checkpoint that is told of where its records are not at hand."""

    at: RecordFinding
    """Its place, and nothing found yet."""
    size: int
    root: bytes


class VerifiedSegment(Struct, frozen=True):
    """What came of one segment."""

    number: int
    findings: list[RecordFinding]
    more: int = 0
    """Findings that are not told one by one."""
    whole: bool = False
    """It could be read to its end."""
    origin: str = ""
    before: SegmentEdge | None = None
    """None where the segment cannot be read at all."""
    start: SegmentStart | None = None
    after: SegmentEdge | None = None
    boot: BootState | None = None
    tick: ClockReading | None = None
    """Of the last record that is no snapshot."""
    end: int = 0
    """Where its last record ends."""
    boots: tuple[str, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    hidden: list[FaceDownDecision] = []
    held: list[DeferredCheckpoint] = []
    kinds: dict[str, int] = {}
    records: int = 0
    checkpoints: int = 0
    signed: int = 0
    """Seq of the last record that a right checkpoint is over."""
    again: int = 0
    """Decisions and refusals that were made again."""
    taken: dict[CodeVersion, int] = {}
    """Those of other code, which could not be."""
    unread: int = 0
    """Those that nobody asked to be made again."""
    late: int = 0
    """How often something stood without a signature for more than a second."""
    longest: int = 0
    """Nanoseconds."""
    roots: dict[int, Hash] = {}
    """Those that were asked for, by size."""
    told: frozenset[str] = frozenset()
    """Files of bytes that were set aside."""
    torn: str = ""
    """What is left of a write that was cut off, in words."""
    utc: tuple[int, int] = (0, 0)
    """Of its first and its last record."""


class RecordGlance(Struct, frozen=True, gc=False):
    """What a finding needs of a record."""

    utc: int = 0
    mono: int = 0
    round: int = 0


_glance: Final = msgspec.json.Decoder(RecordGlance).decode


def read_glance(record: bytes) -> RecordGlance:
    """Zeros where it is no record."""
    try:
        return _glance(record)
    except UNREADABLE:
        return RecordGlance()


class SegmentFindings:
    """The findings of one segment, and the record that is looked at now."""

    def __init__(self, number: int, base: int, scanned: ScannedFrames) -> None:
        """`base`: seq of the last record before the segment."""
        self._number, self._base, self._scanned = number, base, scanned
        self.index = 0
        """Of the record at hand, from 0."""
        self.findings: list[RecordFinding] = []
        self.more = 0
        """Findings beyond those."""

    @property
    def seq(self) -> int:
        """That the record at hand must have."""
        return self._base + 1 + self.index

    @property
    def record(self) -> bytes:
        return self._scanned.records[self.index]

    @property
    def place(self) -> RecordPosition:
        return RecordPosition(self._number, self._scanned.offsets[self.index], self.seq)

    def at(self) -> RecordFinding:
        """The place of the record at hand, and nothing found yet."""
        place = self.place
        since = read_glance(self._scanned.records[self.index - 1]).utc if self.index else 0
        turn = read_glance(self.record).round
        return RecordFinding(place.segment, place.offset, place.seq, turn, "", since)

    def say(self, what: str) -> None:
        """Something is wrong with the record at hand."""
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(replace(self.at(), what=what))
        else:
            self.more += 1

    def say_at_the_end(self, what: str) -> None:
        """Something is wrong with what stands behind the last record."""
        scanned = self._scanned
        self.index = len(scanned.records) - 1
        since = read_glance(self.record).utc
        at = replace(self.at(), offset=scanned.end, seq=scanned.where.seq + 1, since=since)
        self.findings.append(replace(at, what=what))
