"""Strict decoding of many records at once, and validation of their `data`, as in FORMAT.md.

This software writes one encoding only, so records are re-encoded and compared, many in one
comparison. A record that differs is checked on its own: FORMAT.md allows several escapes of a
character, and no other freedom. The data of decisions and refusals are validated by their shape
only; replay checks the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from hashlib import sha256
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, Final, Literal, NoReturn, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from controller.audit.format.hole_cards import SEALED_TEXT
from controller.audit.format.notes import NoteProblem, VerifierKey, table_name
from controller.audit.format.records import (
    CONTROLLER,
    VERSION,
    ClockData,
    DeviceCursor,
    EmptyData,
    NoteData,
    OpenedData,
    Snapshot,
    TailData,
    utc_date,
)

LARGEST: Final = 2**63 - 1
Natural: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST)]
Number32: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
HEX: Final = re.compile("[0-9a-f]*+")
HEX16: Final = re.compile("[0-9a-f]{16}")
DAY: Final = re.compile("[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_SPACE: Final = re.compile(rb"[ \t\r\n]")
_BRACKET: Final = re.compile(rb"[\[{}\]]")
_DEEPEST: Final = 100
_MOST_DIGITS: Final = 100
_TOO_LONG: Final = re.compile(rb"[0-9]{101}")


class StrictBy(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    role: Literal["dealer", "floor", "player", "surveillance", "technician", "device"]
    name: str
    seat: Natural = 0


class StrictCursor(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    device: str
    epoch: Number32
    seq: Number32
    chain: str
    boot: Natural
    t_us: Natural

    def as_kept(self) -> DeviceCursor:
        return DeviceCursor(self.device, self.epoch, self.seq, self.chain, self.boot, self.t_us)


_CONTROLLER: Final = StrictBy("device", CONTROLLER.name)


class Strict(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A record of version 1 or 2 with its fields in the order of FORMAT.md; `data` stays encoded.
    Which fields a version has, `envelope_error` checks."""

    v: Literal[1, 2]
    table: str | UnsetType = UNSET
    boot: str
    seq: Natural
    day: str | UnsetType = UNSET
    utc: Natural
    mono: Natural
    clock: Literal["synced", "unsynced", "unknown"]
    round: Natural
    kind: str
    by: StrictBy | UnsetType = UNSET
    sw: str | UnsetType = UNSET
    conf: str | UnsetType = UNSET
    proc: str | UnsetType = UNSET
    cause: Natural | UnsetType = UNSET
    cursor: StrictCursor | UnsetType = UNSET
    data: Raw

    @property
    def bytes(self) -> bytes:
        """The encoded `data`."""
        return bytes(self.data)

    @property
    def who(self) -> StrictBy:
        return self.by or _CONTROLLER

    @property
    def gaming_day(self) -> str:
        return self.day or utc_date(self.utc)


class Extended(Strict, frozen=True, gc=False, kw_only=True):
    """A record with fields that this software does not know: right under a later vocabulary."""

    unknown: tuple[str, ...]


def envelope_error(row: Strict) -> str:
    """Why the fields of a record are not those of its version; empty if they are."""
    hashes = (row.sw, row.conf, row.proc)
    if row.v == 1:
        due = (row.table, row.day, row.by, *hashes)
        return "a record of version 1 without all of its fields" if UNSET in due else ""
    if any(one is not UNSET for one in (row.table, *hashes)):
        return "a record of version 2 with a field of version 1: table, sw, conf or proc"
    return "its gaming day is empty" if row.day == "" else ""


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Strict)


def read_all(records: Sequence[bytes]) -> Sequence[Strict | str]:
    """Decode each record, or return why it is invalid."""
    lines = b"\n".join(records)
    try:
        if not lines.isascii():
            lines.decode()
        found = _decoder.decode_lines(lines)
    except UNREADABLE:
        return [_read(record) for record in records]
    # A newline inside a record is not re-encoded, so each line is exactly one record.
    if len(found) == len(records) and _encoder.encode_lines(found) == lines + b"\n":
        return found
    return [_read(record) for record in records]


def _read(record: bytes) -> Strict | str:
    try:
        record.decode()
        found = _decoder.decode(record)
    except UNREADABLE as problem:
        return f"no record: {problem}"
    if _encoder.encode(found) != record:
        wrong = _wrong_form(record)
        if wrong:
            return wrong
        unknown = _unknown(record, Strict)
        if unknown:
            return Extended(unknown=unknown, **msgspec.structs.asdict(found))
    return found


def _unknown(data: bytes, shape: type[Struct]) -> tuple[str, ...]:
    """The names in a JSON object that are no fields of `shape`."""
    known = shape.__struct_encode_fields__
    return tuple(name for name in json.loads(data) if name not in known)


def _wrong_form(record: bytes) -> str:
    """Why the encoding of a record is invalid: form, or order of fields. Empty if it is valid."""
    found = wrong_json(record)
    if isinstance(found, str):
        return found
    for name, shape in (("", Strict), ("by", StrictBy), ("cursor", StrictCursor)):
        if not _in_order(found.get(name, {}) if name else found, shape):
            return f"the fields of the record{name and f' in {name}'} are not in their order"
    return ""


def wrong_json(data: bytes, around: int = 0) -> dict[str, Any] | str:
    """The decoded object, or why a record may not contain it within `around` other objects."""
    wrong = _wrong_tokens(_STRING.sub(b'"', data), around)
    if wrong:
        return wrong
    try:
        found = json.loads(
            data.decode(),
            object_pairs_hook=_members,
            parse_float=_no_integer,
            parse_constant=_no_integer,
        )
        if b"\\u" in data:  # an escaped lone surrogate is not text
            json.dumps(found, ensure_ascii=False).encode()
    except ValueError as problem:
        return f"no JSON of a record: {problem}"
    if not isinstance(found, dict):
        return "no JSON object"
    return found


def _wrong_tokens(bare: bytes, depth: int) -> str:
    """Why JSON without the contents of its strings is invalid in a record; empty if it is not."""
    if _SPACE.search(bare):
        return "spaces between its tokens"
    if b"-0" in bare or _TOO_LONG.search(bare):
        return f"an integer is -0, or has more than {_MOST_DIGITS} digits"
    for bracket in _BRACKET.findall(bare):
        depth += 1 if bracket in b"[{" else -1
        if depth > _DEEPEST:
            return f"it is nested more than {_DEEPEST} deep"
    return ""


def same_value(data: bytes | Raw, other: bytes) -> bool:
    """Whether `data` is JSON that a record may contain, with the value of `other`, which this
    software encoded. The order of fields, and escapes, may differ."""
    if bytes(data) == other:
        return True
    found, ours = (wrong_json(b'{"":%b}' % bytes(one)) for one in (data, other))
    both = isinstance(found, dict) and isinstance(ours, dict)
    return both and _in_one_form(found) == _in_one_form(ours)


def _in_one_form(value: object) -> str:
    """Unlike ==, this distinguishes 1 from true."""
    return json.dumps(value, sort_keys=True)


def _in_order(found: Mapping[str, Any], shape: type[Struct]) -> bool:
    """Whether names are in the order of `shape`; other names may follow."""
    order = {name: at for at, name in enumerate(shape.__struct_fields__)}
    places = [order.get(name, len(order)) for name in found]
    return places == sorted(places)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is repeated in one object")
    return found


def _no_integer(text: str) -> NoReturn:
    raise ValueError(f"{text[:40]} is no integer")


HEX64: Final = re.compile("[0-9a-f]{64}")
ORIGIN: Final = re.compile(r"holecard/([^\s+]+)/[0-9a-f]{16}")

_DIGITS: Final = 20
"""Length of the longest 64-bit integer with its sign."""
_LONG: Final = re.compile(rb"[0-9]{19}")
_SHOWN: Final = 40

_Simple: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=LARGEST)] | str | bool | None
_Nested: TypeAlias = _Simple | list[_Simple] | dict[str, _Simple]


class _Typed(Struct, frozen=True, gc=False):
    """An event or an effect; only its type is checked."""

    type: str


class _TypedEvent(_Typed, frozen=True, gc=False):
    actor: Any = UNSET
    """In records of version 1 only."""


class _Decision(Struct, frozen=True, gc=False):
    event: _TypedEvent
    rows: tuple[str, ...]
    effects: tuple[_Typed, ...]
    sealed: Annotated[str, Meta(pattern=f"^{SEALED_TEXT}$")] | UnsetType = msgspec.UNSET


class _Refusal(Struct, frozen=True, gc=False):
    event: _TypedEvent
    id: str
    why: str


class _What(Struct, frozen=True, gc=False):
    """Data of a device, link or person record: `what`, and fields that depend on it."""

    what: str


class _Unwitnessed(Struct, frozen=True, gc=False):
    since: Natural


class _Fault(Struct, frozen=True):
    what: str
    detail: Any


class _Text(Struct, frozen=True, gc=False):
    text: str


SHAPES: Final[dict[str, type[Struct]]] = {
    "opened": OpenedData,
    "certificate": NoteData,
    "checkpoint": NoteData,
    "decision": _Decision,
    "refusal": _Refusal,
    "device": _What,
    "link": _What,
    "person": _What,
    "clock": ClockData,
    "tail": TailData,
    "witnessed": NoteData,
    "unwitnessed": _Unwitnessed,
    "fault": _Fault,
    "note": _Text,
    "closed": EmptyData,
}
_DECODERS: Final = {kind: msgspec.json.Decoder(shape) for kind, shape in SHAPES.items()}
_PLAIN: Final = msgspec.json.Decoder(dict[str, _Nested])
_encode: Final = msgspec.json.Encoder().encode


class WrongData(Exception):
    """Not valid `data` of its kind."""


def check_data(kind: str, data: bytes, version: int = VERSION) -> str:
    """Raise WrongData unless `data` is valid for its kind. Not for snapshots.

    Returns what this software does not know: the kind, or fields. Right only under a later
    vocabulary.
    """
    if kind not in SHAPES:
        _check_json(data)
        return f"kind {kind}"
    try:
        found = _DECODERS[kind].decode(data)
    except UNREADABLE as problem:
        raise WrongData(str(problem)) from None
    if isinstance(found, OpenedData) and not _game_follows_code(data, found):
        raise WrongData("its game does not follow its code")
    if isinstance(found, _Decision | _Refusal) and (found.event.actor is UNSET) != (version > 1):
        raise WrongData("an event has an actor in records of version 1, and only there")
    if isinstance(found, ClockData) and found.two and found.two[0] == found.two[1]:
        raise WrongData("two people say that a clock is right, and they are one")
    if isinstance(found, _What):
        usual = data.startswith(b'{"what":') and _is_plain(data)
    else:
        open_ = isinstance(found, _Decision | _Refusal | _Fault | OpenedData)
        usual = not open_ and _encode(found) == data
    if usual:
        return ""
    _check_json(data)
    if isinstance(found, _What):
        return ""
    return ", ".join(f"{kind}.{name}" for name in _unknown(data, SHAPES[kind]))


def _check_json(data: bytes) -> None:
    """Raise WrongData if the JSON is none of a record."""
    found = wrong_json(data, 1)
    wrong = found if isinstance(found, str) else too_large(data)
    if wrong:
        raise WrongData(wrong)


def _game_follows_code(data: bytes, opened: OpenedData) -> bool:
    """Whether the bytes of `game`, which are hashed, can be found without decoding."""
    return data.count(b'"code":"%b","game":' % opened.code.encode()) == 1


def too_large(data: bytes) -> str:
    """Why an integer in the JSON is out of range; empty if none is."""
    found: list[str] = []

    def integer(text: str) -> int:
        if len(text) > _DIGITS or not -LARGEST - 1 <= int(text) <= LARGEST:
            found.append(text[:_SHOWN])
        return 0

    if _LONG.search(data):
        json.loads(data, parse_int=integer)
    return f"{found[0]} is too large an integer" if found else ""


def _is_plain(data: bytes) -> bool:
    """Whether the object is nested at most once and encoded as this software encodes it."""
    try:
        return _encode(_PLAIN.decode(data)) == data
    except UNREADABLE:
        return False


class _WithOpened(Struct, frozen=True):
    opened: Raw = Raw()


class _SnapshotRecord(Struct, frozen=True):
    data: _WithOpened


def opened_in(snapshot: bytes) -> bytes:
    """The bytes of `opened` in a snapshot's record; empty if it is absent."""
    return bytes(msgspec.json.decode(snapshot, type=_SnapshotRecord).data.opened)


def unknown_in_snapshot(data: bytes) -> str:
    return ", ".join(f"snapshot.{name}" for name in _unknown(data, Snapshot))


class _Cursors(Struct, frozen=True, gc=False):
    cursors: dict[str, StrictCursor]


_CURSORS: Final = msgspec.json.Decoder(_Cursors)


def wrong_snapshot(data: bytes, said: Snapshot, seq: int) -> Iterator[str]:
    """Yield the errors of a segment's snapshot that can be seen in it alone. `said` is the decoded
    `data`."""
    if isinstance(found := wrong_json(data, 1), str):
        yield f"snapshot: {found}"
    if not ORIGIN.fullmatch(said.origin):
        yield f"the origin {said.origin!r} is none of a table's record"
    if not all(map(HEX64.fullmatch, (said.chain, *said.frontier))):
        yield "a hash in the snapshot that is not 64 digits 0 to 9 and a to f"
    if any(device != at.device for device, at in said.cursors.items()):
        yield "a cursor in the snapshot under another device's name"
    try:
        _CURSORS.decode(data)
    except UNREADABLE as problem:
        yield f"snapshot: a cursor of a device: {problem}"
    if not all(HEX16.fullmatch(at.chain) for at in said.cursors.values()):
        yield "the chain of a cursor in the snapshot that is not 16 digits 0 to 9 and a to f"
    if said.opened:
        if not _game_follows_code(data, said.opened):
            yield "snapshot: the game of opened does not follow its code"
        version = 1 if said.opened.vocabulary is UNSET else 2
        if wrong := wrong_opened(said.opened, seq, version):
            yield f"snapshot: opened: {wrong}"
    begun = bool(said.opened), bool(said.certificate)
    first = seq == 1 and not any(begun) and bytes(said.state) == b"null"
    if said.segment == 1 and not first:
        yield "segment 1 does not begin the record"


def wrong_opened(opened: OpenedData, seq: int, version: int) -> str:
    """Why the data of a boot's `opened` record is invalid, as far as it alone shows; empty if
    valid."""
    if wrong := _wrong_software(opened, version):
        return wrong
    for name in ("sw", "conf", "proc", "code"):
        if not HEX64.fullmatch(getattr(opened, name)):
            return f"its {name} is no hash in hexadecimal"
    if sha256(bytes.fromhex(opened.code) + bytes(opened.game)).hexdigest() != opened.proc:
        return "its proc is not the hash of its code and its game"
    if not 0 <= opened.last < seq or opened.torn < 0:
        return f"it found {opened.last} records and {opened.torn} bytes behind them"
    if opened.debuggable is False:
        return "its debuggable is false: only true is recorded"
    try:
        key = VerifierKey.parse(opened.table_key)
    except NoteProblem as problem:
        return f"its table's key: {problem}"
    if key.name != table_name(opened.origin):
        return f"its table's key is that of {key.name}"
    return ""


def _wrong_software(opened: OpenedData, version: int) -> str:
    """Why the fields that version 2 added are invalid; empty if valid."""
    added = [opened.vocabulary, opened.release, opened.dependencies, opened.runs]
    if version == 1:
        absent = [*added, opened.debuggable].count(UNSET) == len(added) + 1
        return "" if absent else "it has a field that version 1 does not have"
    if UNSET in added:
        return "it has not all of vocabulary, release, dependencies and runs"
    if not isinstance(opened.vocabulary, int) or not 1 <= opened.vocabulary <= LARGEST:
        return f"its vocabulary is {opened.vocabulary}"
    if not all(HEX64.fullmatch(str(one)) for one in (opened.release, opened.dependencies)):
        return "its release or dependencies is no hash in hexadecimal"
    return ""


MIN_INTEGER: Final = -(2**63)
MAX_DEPTH: Final = 64
"""Maximum nesting; no valid data is deeper."""
_ALLOWED: Final = "text, integers of 64 bits, true, false, null, lists, objects with names"
_SIMPLE: Final[set[type]] = {str, bool, NoneType, UnsetType}
"""Types whose values need no check; enums of plain values are added when first seen."""


class BadData(TypeError):
    """The value cannot be recorded. The message never quotes it: it may be a face-down card."""

    def __init__(self, what: str, way: tuple[str, ...] = ()) -> None:
        super().__init__(f"{'.'.join(('data', *way))} {what}; allowed: {_ALLOWED}")
        self._what, self._way = what, way

    def within(self, name: object) -> BadData:
        """The same error with an outer name prepended to its path."""
        return BadData(self._what, (str(name), *self._way))


def check_plain(value: object) -> None:
    """Raise BadData unless a record can contain the value unchanged."""
    if not _all_plain((value,), 0):
        _find(value, 0)


def _all_plain(values: Iterable[Any], deep: int) -> bool:
    """Fast check of many values; on the append path."""
    if deep > MAX_DEPTH:
        return False
    for value in values:
        kind = type(value)
        if kind in _SIMPLE:
            continue
        if kind is int:
            if not MIN_INTEGER <= value <= LARGEST:
                return False
        elif kind is tuple or kind is list:
            if value and not _all_plain(value, deep + 1):
                return False
        else:
            fields = _FIELDS.get(kind)
            inner = _inner(value) if fields is None else fields(value)
            if inner is None or not _all_plain(inner, deep + 1):
                return False
    return True


_FIELDS: Final[dict[type, Callable[[Any], Iterable[object]]]] = {}
"""Cache: the field getter of each struct type that was seen."""


def _inner(value: object) -> Iterable[object] | None:
    """The values inside `value`; None if it is not plain or needs the slow check."""
    if type(value) is dict:
        return value.values() if all(type(name) is str for name in value) else None
    if isinstance(value, Enum):
        if all(type(one.value) in _SIMPLE for one in type(value)):
            _SIMPLE.add(type(value))
        return (value.value,)
    if not isinstance(value, Struct):
        return None
    names = value.__struct_fields__
    if len(names) > 1:  # attrgetter of one name returns no tuple
        _FIELDS[type(value)] = attrgetter(*names)
    return tuple(getattr(value, name) for name in names)


# --- what is wrong with it, and where: slowly -------------------------------------------------


def _find(value: object, deep: int) -> None:
    """Slow check: raise BadData with the path of the first bad value. Decodes Raw values."""
    if deep > MAX_DEPTH:
        raise BadData(f"is nested more than {MAX_DEPTH} deep")
    if isinstance(value, Raw):
        value = _decoded_raw(value)
    if isinstance(value, Enum):
        value = value.value
    if type(value) in _SIMPLE:
        return
    if type(value) is int:
        if not MIN_INTEGER <= value <= LARGEST:
            raise BadData("is an integer of more than 64 bits")
        return
    for name, inner in _parts(value):
        try:
            _find(inner, deep + 1)
        except BadData as bad:
            raise bad.within(name) from None


def _parts(value: object) -> Iterable[tuple[object, object]]:
    """The named parts of a container. Raises BadData for any other type."""
    if isinstance(value, dict):
        for name in value:
            if type(name) is not str:
                raise BadData(f"has a name that is a {type(name).__name__}")
        return value.items()
    if isinstance(value, list | tuple):
        return enumerate(value)
    if isinstance(value, Struct):
        names = value.__struct_fields__
        parts = ((name, getattr(value, name)) for name in names)
        return [(name, inner) for name, inner in parts if inner is not UNSET]
    raise BadData(f"is a {type(value).__name__}")


def _decoded_raw(written: Raw) -> object:
    try:
        found: object = msgspec.json.decode(written)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadData("is no JSON") from None
    return found
