"""What stands in the record: its kinds, what is handed in, and one record as it is read back."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType

from controller.procedure.model.events import Actor
from controller.procedure.model.state import State

VERSION: Final = 1

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
"""Kinds that only the record itself writes."""

ClockQuality: TypeAlias = Literal["synced", "unsynced", "unknown"]
SHORT: Final = 16
"""Characters of a hash that every record carries."""


class RecordActor(Struct, frozen=True, gc=False, omit_defaults=True):
    """Who did it. An actor of the procedure, or the controller itself."""

    role: str
    name: str
    seat: int = 0


CONTROLLER: Final = RecordActor("device", "controller")


def record_actor(actor: Actor) -> RecordActor:
    return RecordActor(actor.role, actor.name, actor.seat)


class DeviceCursor(Struct, frozen=True, gc=False):
    """Where a device's own log stands: its record is taken together with ours."""

    device: str
    epoch: int
    seq: int
    chain: str
    boot: int = 0
    t_us: int = 0


class RecordEntry(Struct, frozen=True, gc=False):
    """Something to be recorded. Time, seq and place are the record's to say."""

    kind: Kind
    by: RecordActor
    data: Any
    """What msgspec can write as JSON. Integers only, and nothing that is not to be read."""
    round: int = 0
    cause: int = 0
    """The seq of the record that brought it about."""
    cursor: DeviceCursor | None = None
    state: State | None = None
    """The procedure's state after it; not written here, but into the next snapshot."""
    sign: bool = False
    """A checkpoint is wanted right after it."""


class ChainPosition(Struct, frozen=True, gc=False):
    """It is on the disk."""

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
    """Which table, and what runs it. The hashes are in hexadecimal, whole."""

    table: str
    software: str
    sw: str
    conf: str
    code: str
    game: bytes
    """The game as this table deals it, as JSON."""
    hole: str = ""
    """The fingerprint of the key that hole cards are bound with; empty: it deals none."""
    sealed_to: str = ""
    """That of surveillance's key."""

    @property
    def proc(self) -> str:
        """Of the procedure: its code, and the game it deals."""
        return sha256(bytes.fromhex(self.code) + self.game).hexdigest()


class WrittenFirst(Struct, frozen=True):
    """How all records of a boot begin. A record is written in three parts, in the order of its
    fields; its `seq` stands between the first two."""

    v: int
    table: str
    boot: str


class WrittenTime(Struct, frozen=True, gc=False):
    """What all records have that are written together."""

    day: str
    utc: int
    mono: int
    clock: ClockQuality


class WrittenRest(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known of a record before its turn has come."""

    round: int
    kind: Kind
    by: RecordActor
    sw: str
    conf: str
    proc: str
    cause: int | UnsetType = UNSET
    cursor: DeviceCursor | UnsetType = UNSET
    data: Any = UNSET


class Record(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A record as it is read; `data` is left as its bytes."""

    v: Literal[1]
    table: str
    boot: str
    seq: int
    day: str
    utc: int
    mono: int
    clock: ClockQuality
    round: int
    kind: Kind
    by: RecordActor
    sw: str
    conf: str
    proc: str
    data: msgspec.Raw
    cause: int = 0
    cursor: DeviceCursor | None = None


class OpenedData(Struct, frozen=True, forbid_unknown_fields=True):
    """A start of the controller."""

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
    """Fingerprints of keys; absent where earlier software wrote it."""


class NoteData(Struct, frozen=True, forbid_unknown_fields=True):
    """Of certificates, checkpoints and a witness's word: a signed note."""

    note: str


class ClockData(Struct, frozen=True, forbid_unknown_fields=True):
    utc_was: int
    mono: int
    two: tuple[str, str] | UnsetType = UNSET
    """Two people who said that the clock was right, where a boot began long before the record's
    end: in the record that accepts it, so that it never stands without them."""


class TailData(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bytes past the last good frame were set aside."""

    segment: int
    offset: int
    size: int
    sha256: str
    file: str
    verdict: Literal["torn", "accepted"]
    two: tuple[str, ...] = ()


class Snapshot(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a segment begins with. `state` is that of the procedure, as its bytes."""

    origin: str
    segment: int
    chain: str
    frontier: tuple[str, ...]
    opened: OpenedData | UnsetType = UNSET
    certificate: str | UnsetType = UNSET
    cursors: Mapping[str, DeviceCursor]
    state: msgspec.Raw


class EmptyData(Struct, frozen=True, forbid_unknown_fields=True):
    """An empty `data`."""


EMPTY_DATA: Final = EmptyData()

encode: Final = msgspec.json.Encoder().encode
_records: Final = msgspec.json.Decoder(Record)
read_record: Final = _records.decode
"""msgspec.ValidationError or DecodeError for what is no record."""


class RecordPosition(Struct, frozen=True, gc=False):
    """Where a frame lies."""

    segment: int
    offset: int
    seq: int

    def __str__(self) -> str:
        return f"segment {self.segment:08d}, offset {self.offset}, seq {self.seq}"
