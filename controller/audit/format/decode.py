"""Strict decoding of many records at once, as FORMAT.md requires.

This software writes one encoding only, so records are re-encoded and compared, many in one
comparison. A record that differs is checked on its own: FORMAT.md allows several escapes of a
character, and no other freedom.
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
"""Exceptions of a decoder for malformed bytes."""

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
    """A record with its fields in the order of FORMAT.md; `data` stays encoded."""

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
        """The encoded `data`."""
        return bytes(self.data)


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
        wrong = wrong_form(record, Strict, {"by": StrictBy, "cursor": StrictCursor})
        if wrong:
            return wrong
    return found


def wrong_form(
    data: bytes, shape: type[Struct], within: Mapping[str, type[Struct]] | None = None
) -> str:
    """Why the encoding of JSON of type `shape` is invalid: whitespace, non-integers, duplicate
    names, wrong order. Empty if it is valid."""
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
    """The decoded object, or why a record may not contain it."""
    try:
        found = json.loads(
            data.decode(),
            object_pairs_hook=_members,
            parse_float=_no_integer,
            parse_constant=_no_integer,
        )
        if b"\\u" in data:  # an escaped lone surrogate is not text
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as problem:
        return f"no JSON of a record: {problem}"
    if not isinstance(found, dict):
        return "no JSON object"
    if _SPACE.search(_STRING.sub(b"", data)):
        return "spaces between its tokens"
    return found


def _in_order(found: Mapping[str, Any], shape: type[Struct]) -> bool:
    """Whether names are in the order of `shape`; other names may follow."""
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
