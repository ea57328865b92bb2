"""The `data` of records, kind by kind, as FORMAT.md has it: its fields,
their types, how it is written.

What decisions and refusals say beyond their shape is for the rules, which make them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct, UnsetType

from controller.audit.format.decode import HEX16, LARGEST, UNREADABLE, Natural, wrong_form
from controller.audit.format.hole_cards import SEALED_TEXT
from controller.audit.format.notes import VerifierKey
from controller.audit.format.notes_forms import NoteProblem
from controller.audit.format.records import (
    ClockSet,
    Kind,
    NoteData,
    Nothing,
    Opened,
    Snapshot,
    TailSet,
)
from controller.audit.log.checkpoints import table_name

HEX64: Final = re.compile("[0-9a-f]{64}")
ORIGIN: Final = re.compile(r"holecard/([^\s+]+)/[0-9a-f]{16}")

_DIGITS: Final = 20
"""Of the longest integer that may stand there, and its sign."""
_LONG: Final = re.compile(rb"[0-9]{19}")
_SHOWN: Final = 40

_Simple: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=LARGEST)] | str | bool | None
_Nested: TypeAlias = _Simple | list[_Simple] | dict[str, _Simple]


class _Typed(Struct, frozen=True, gc=False):
    """An event or an effect, whatever it says beside what it is."""

    type: str


class _Decision(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    event: _Typed
    rows: tuple[str, ...]
    effects: tuple[_Typed, ...]
    sealed: Annotated[str, Meta(pattern=f"^{SEALED_TEXT}$")] | UnsetType = msgspec.UNSET


class _Refusal(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    event: _Typed
    id: str
    why: str


class _What(Struct, frozen=True, gc=False):
    """Of a device, a connection, a person: what, and fields of its own."""

    what: str


class _Unwitnessed(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    since: Natural


class _Fault(Struct, frozen=True, forbid_unknown_fields=True):
    what: str
    detail: Any


class _Text(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    text: str


SHAPES: Final[dict[Kind, type[Struct]]] = {
    "opened": Opened,
    "certificate": NoteData,
    "checkpoint": NoteData,
    "decision": _Decision,
    "refusal": _Refusal,
    "device": _What,
    "link": _What,
    "person": _What,
    "clock": ClockSet,
    "tail": TailSet,
    "witnessed": NoteData,
    "unwitnessed": _Unwitnessed,
    "fault": _Fault,
    "note": _Text,
    "closed": Nothing,
}
_DECODERS: Final = {kind: msgspec.json.Decoder(shape) for kind, shape in SHAPES.items()}
_PLAIN: Final = msgspec.json.Decoder(dict[str, _Nested])
_encode: Final = msgspec.json.Encoder().encode


class WrongData(Exception):
    """It is not the `data` of its kind."""


def check_data(kind: Kind, data: bytes) -> None:
    """WrongData unless it is the `data` of its kind. Not for snapshots."""
    try:
        found = _DECODERS[kind].decode(data)
    except UNREADABLE as problem:
        raise WrongData(str(problem)) from None
    if isinstance(found, ClockSet) and found.two and found.two[0] == found.two[1]:
        raise WrongData("two people say that a clock is right, and they are one")
    if isinstance(found, _What):
        usual = data.startswith(b'{"what":') and _is_plain(data)
    else:
        open_ = isinstance(found, _Decision | _Refusal | _Fault)
        usual = not open_ and _encode(found) == data
    wrong = "" if usual else wrong_form(data, SHAPES[kind]) or _too_large(data)
    if wrong:
        raise WrongData(wrong)


def _too_large(data: bytes) -> str:
    """Which integer of the JSON has more than 64 bits."""
    found: list[str] = []

    def integer(text: str) -> int:
        if len(text) > _DIGITS or not -LARGEST - 1 <= int(text) <= LARGEST:
            found.append(text[:_SHOWN])
        return 0

    if _LONG.search(data):
        json.loads(data, parse_int=integer)
    return f"{found[0]} is too large an integer" if found else ""


def _is_plain(data: bytes) -> bool:
    """Whether it holds no more than usual, and stands in the one form that we write."""
    try:
        return _encode(_PLAIN.decode(data)) == data
    except UNREADABLE:
        return False


def wrong_snapshot(data: bytes, said: Snapshot, seq: int) -> Iterator[str]:
    """Why no segment begins like this, as far as it alone can tell. `said` is what `data` says."""
    wrong = wrong_form(data, Snapshot, {"opened": Opened})
    if wrong:
        yield f"snapshot: {wrong}"
    if not ORIGIN.fullmatch(said.origin):
        yield f"the origin {said.origin!r} is none of a table's record"
    if not all(map(HEX64.fullmatch, (said.chain, *said.frontier))):
        yield "a hash in the snapshot that is not 64 digits 0 to 9 and a to f"
    if any(device != at.device for device, at in said.cursors.items()):
        yield "a cursor in the snapshot under another device's name"
    if not all(HEX16.fullmatch(at.chain) for at in said.cursors.values()):
        yield "the chain of a cursor in the snapshot that is not 16 digits 0 to 9 and a to f"
    begun = bool(said.opened), bool(said.certificate)
    if said.segment == 1 and (any(begun) or seq != 1):
        yield "segment 1 does not begin the record"


def wrong_opened(opened: Opened, seq: int) -> str:
    """Why a boot cannot begin like this, as far as the record `seq` alone can tell."""
    for name in ("sw", "conf", "proc", "code"):
        if not HEX64.fullmatch(getattr(opened, name)):
            return f"its {name} is no hash in hexadecimal"
    if sha256(bytes.fromhex(opened.code) + bytes(opened.game)).hexdigest() != opened.proc:
        return "its proc is not the hash of its code and its game"
    if not 0 <= opened.last < seq or opened.torn < 0:
        return f"it found {opened.last} records and {opened.torn} bytes behind them"
    try:
        key = VerifierKey.parse(opened.table_key)
    except NoteProblem as problem:
        return f"its table's key: {problem}"
    if key.name != table_name(opened.origin):
        return f"its table's key is that of {key.name}"
    return ""
