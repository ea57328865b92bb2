"""Records read as strictly as FORMAT.md has them, many at once.

What we write has one form only, so what is read is written again and compared, many records in one
comparison. What comes out in another form is looked at by itself: the page allows more than one
way to write a letter, and no other freedom.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NoReturn, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from controller.audit.format.records import DeviceCursor, Kind

LARGEST: Final = 2**63 - 1
Natural: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST)]
Number32: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
HEX: Final = re.compile("[0-9a-f]*+")
HEX16: Final = re.compile("[0-9a-f]{16}")
DAY: Final = re.compile("[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for bytes that are not what they should be."""

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_SPACE: Final = re.compile(rb"[ \t\r\n]")


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


class Strict(
    Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A record, its fields in the order of the page; `data` is left as its bytes."""

    v: Literal[1]
    table: str
    boot: str
    seq: Natural
    day: str
    utc: Natural
    mono: Natural
    clock: Literal["synced", "unsynced", "unknown"]
    round: Natural
    kind: Kind
    by: StrictBy
    sw: str
    conf: str
    proc: str
    cause: Natural | UnsetType = UNSET
    cursor: StrictCursor | UnsetType = UNSET
    data: Raw

    @property
    def bytes(self) -> bytes:
        """Of `data`."""
        return bytes(self.data)


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Strict)


def read_all(records: Sequence[bytes]) -> Sequence[Strict | str]:
    """Each of them, or why it is none."""
    lines = b"\n".join(records)
    try:
        if not lines.isascii():
            lines.decode()
        found = _decoder.decode_lines(lines)
    except UNREADABLE:
        return [_read(record) for record in records]
    # A newline within a record does not come out again, so each line is one record, whole.
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
        wrong = wrong_form(record, Strict, {"by": StrictBy, "cursor": StrictCursor})
        if wrong:
            return wrong
    return found


def wrong_form(
    data: bytes, shape: type[Struct], within: Mapping[str, type[Struct]] | None = None
) -> str:
    """How JSON, which is that of `shape` by its types, is not written as the page has it: spaces,
    numbers that are no integers, names twice or in another order. Empty where it is."""
    found = wrong_json(data)
    if isinstance(found, str):
        return found
    if not _in_order(found, shape):
        return "its fields are not in their order"
    for name, part in (within or {}).items():
        if name in found and not _in_order(found[name], part):
            return f"the fields of {name} are not in their order"
    return ""


def wrong_json(data: bytes) -> dict[str, Any] | str:
    """The object that it is, or why it is none that stands in a record."""
    try:
        found = json.loads(
            data.decode(),
            object_pairs_hook=_members,
            parse_float=_no_integer,
            parse_constant=_no_integer,
        )
        if b"\\u" in data:  # half a character, escaped, is no text
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as problem:
        return f"no JSON of a record: {problem}"
    if not isinstance(found, dict):
        return "no JSON object"
    if _SPACE.search(_STRING.sub(b"", data)):
        return "spaces between its tokens"
    return found


def _in_order(found: Mapping[str, Any], shape: type[Struct]) -> bool:
    """Fields that the shape does not name may follow on those that it names."""
    order = {name: at for at, name in enumerate(shape.__struct_fields__)}
    places = [order.get(name, len(order)) for name in found]
    return places == sorted(places)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _no_integer(text: str) -> NoReturn:
    raise ValueError(f"{text[:40]} is no integer")
