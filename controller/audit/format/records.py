"""The records: kinds, entries to append, and their encoding and decoding."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType

from controller.procedure.model.state import State

VERSION: Final = 2
"""The version of the records that are written; version 1 is still read."""
VOCABULARY: Final = 1
"""The number of the kinds, fields and types that this software knows. Raised when one is added."""
MAX_RECORD_BYTES: Final = 65_535
"""Size limit of a record of version 2."""

Kind: TypeAlias = Literal[
    "snapshot",
    "opened",
    "certificate",
    "checkpoint",
    "decision",
    "refusal",
    "device",
    "link",
    "person",
    "clock",
    "tail",
    "witnessed",
    "unwitnessed",
    "fault",
    "note",
    "closed",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
OWN: Final[frozenset[Kind]] = frozenset(
    {"snapshot", "opened", "certificate", "checkpoint", "clock", "tail", "closed"}
)
"""Kinds that only the log itself writes."""

ClockQuality: TypeAlias = Literal["synced", "unsynced", "unknown"]
SHORT: Final = 16
"""Length of the shortened hashes in records of version 1, and in texts."""
NOT_COMPUTED: Final = "0" * 64
"""Stored in place of a hash that a program without an installation has not computed."""


class RecordActor(Struct, frozen=True, gc=False, omit_defaults=True):
    """Who caused a record: an actor of the procedure, or the controller."""

    role: str
    name: str
    seat: int = 0


CONTROLLER: Final = RecordActor("device", "controller")


class DeviceCursor(Struct, frozen=True, gc=False):
    """A position in a device's own log; stored in the same record, so atomically."""

    device: str
    epoch: int
    seq: int
    chain: str
    boot: int = 0
    t_us: int = 0


class RecordEntry(Struct, frozen=True, gc=False):
    """A record to append. The log adds time, seq and position."""

    kind: Kind
    by: RecordActor
    data: Any
    """Encoded as JSON with msgspec. Integers only, and nothing secret."""
    round: int = 0
    cause: int = 0
    """The seq of the record that caused it."""
    cursor: DeviceCursor | None = None
    state: State | None = None
    """The procedure's state after it; written to the next snapshot only."""
    sign: bool = False
    """Request a checkpoint right after it."""
    reserved: bool = False
    """It may use the last bytes of a segment that a full disk leaves for the end of a boot."""


class ChainPosition(Struct, frozen=True, gc=False):
    """A position in a record: its last seq and the chain there."""

    seq: int
    chain: bytes


class Moment(Struct, frozen=True, gc=False):
    """A reading of the clocks."""

    utc: int
    """Microseconds since 1970."""
    mono: int
    """Nanoseconds."""
    quality: ClockQuality = "unknown"


class BootIdentity(Struct, frozen=True):
    """Table and software of a boot. Hashes are full and in hexadecimal."""

    table: str
    software: str
    sw: str
    conf: str
    code: str
    game: bytes
    """The game of this table, as JSON."""
    hole: str = ""
    """Fingerprint of the key for hole card commitments; empty if the table deals no hole cards."""
    sealed_to: str = ""
    """Fingerprint of surveillance's key."""
    debuggable: bool = False
    """Whether other processes of the same user can read the memory of the controller."""
    release: str = NOT_COMPUTED
    """Hash of all files of the software."""
    dependencies: str = NOT_COMPUTED
    """Hash of all files of its dependencies."""
    runs: Literal["source", "compiled"] = "source"

    @property
    def proc(self) -> str:
        """The hash of the procedure: its code and the game."""
        return sha256(bytes.fromhex(self.code) + self.game).hexdigest()


class WrittenFirst(Struct, frozen=True):
    """The first fields of all records of a boot. Records are encoded in three parts, in this order;
    `seq` is inserted after the first."""

    v: int
    boot: str


class WrittenTime(Struct, frozen=True, gc=False):
    """The fields that all records of one write share."""

    day: str | UnsetType
    """The gaming day; left out if it is the date of `utc`."""
    utc: int
    mono: int
    clock: ClockQuality


class WrittenRest(Struct, frozen=True, gc=False, omit_defaults=True):
    """The fields that are known before the record is appended."""

    round: int
    kind: Kind
    by: RecordActor = CONTROLLER
    cause: int | UnsetType = UNSET
    cursor: DeviceCursor | UnsetType = UNSET
    data: Any = UNSET


class Record(Struct, frozen=True, gc=False):
    """A decoded record of version 1 or 2; `data` stays encoded."""

    v: Literal[1, 2]
    boot: str
    seq: int
    utc: int
    mono: int
    clock: ClockQuality
    round: int
    kind: str
    data: msgspec.Raw
    by: RecordActor = CONTROLLER
    cause: int = 0
    cursor: DeviceCursor | None = None
    written_day: str = msgspec.field(default="", name="day")
    table: str = ""
    """In records of version 1, as `sw`, `conf` and `proc`."""
    sw: str = ""
    conf: str = ""
    proc: str = ""

    @property
    def day(self) -> str:
        """The gaming day."""
        return self.written_day or utc_date(self.utc)


class OpenedData(Struct, frozen=True):
    """Data of a boot's first record."""

    origin: str
    software: str
    sw: str
    conf: str
    proc: str
    code: str
    game: msgspec.Raw
    table_key: str
    last: int
    torn: int
    readback: Literal["direct", "cached"]
    hole: str | UnsetType = UNSET
    sealed_to: str | UnsetType = UNSET
    """Fingerprints of keys; absent if the table deals no hole cards."""
    vocabulary: int | UnsetType = UNSET
    """Absent in records of version 1, as all of the following."""
    release: str | UnsetType = UNSET
    dependencies: str | UnsetType = UNSET
    runs: Literal["source", "compiled"] | UnsetType = UNSET
    debuggable: bool | UnsetType = UNSET
    """True: other processes of the user can read the controller's memory. Absent otherwise."""


class NoteData(Struct, frozen=True):
    """Data with a signed note: certificates, checkpoints, cosignatures."""

    note: str


class ClockData(Struct, frozen=True):
    utc_was: int
    mono: int
    two: tuple[str, str] | UnsetType = UNSET
    """Two people who confirmed the clock, if a boot began long before the record's last time. In
    the same record as the change, so that it is never accepted without them."""


class TailData(Struct, frozen=True, omit_defaults=True):
    """Data of a `tail` record: trailing bytes were quarantined."""

    segment: int
    offset: int
    size: int
    sha256: str
    file: str
    verdict: Literal["torn", "accepted"]
    two: tuple[str, ...] = ()


class Snapshot(Struct, frozen=True, kw_only=True):
    """Data of a segment's first record. `state` is the encoded state of the procedure."""

    origin: str
    segment: int
    chain: str
    frontier: tuple[str, ...]
    opened: OpenedData | UnsetType = UNSET
    certificate: str | UnsetType = UNSET
    cursors: Mapping[str, DeviceCursor]
    state: msgspec.Raw


class EmptyData(Struct, frozen=True):
    """Empty `data`."""


EMPTY_DATA: Final = EmptyData()


DAY_US: Final = 86_400_000_000


@lru_cache(maxsize=8)
def _date(number: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=number)).isoformat()


def utc_date(utc: int) -> str:
    """The date of a UTC time in microseconds; empty after the year 9999."""
    try:
        return _date(utc // DAY_US)
    except OverflowError:
        return ""


def table_of(origin: str) -> str:
    """The name of the table in the origin of its record."""
    return origin.removeprefix("holecard/").rpartition("/")[0]


encode: Final = msgspec.json.Encoder().encode
_records: Final = msgspec.json.Decoder(Record)
read_record: Final = _records.decode
"""Raises msgspec.ValidationError or DecodeError for an invalid record."""


class RecordPosition(Struct, frozen=True, gc=False):
    """The position of a frame."""

    segment: int
    offset: int
    seq: int

    def __str__(self) -> str:
        return f"segment {self.segment:08d}, offset {self.offset}, seq {self.seq}"
