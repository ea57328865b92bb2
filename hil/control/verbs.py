"""The verbs of the control socket: their names, fields and allowed values.

The control socket parses a line with `parse_request`. The command line and hil/CONTROL.md describe
the allowed values with the same texts.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct
from msgspec.inspect import (
    BoolType,
    Field,
    FloatType,
    IntType,
    LiteralType,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from firmware_protocol.device import control
from firmware_protocol.device.control import ControlRequest
from firmware_protocol.messages.enums import DeviceClass

Verbs = Mapping[str, type[ControlRequest]]
_PATTERNS: Final = {
    r"^([2-9TJQKA][cdhs]|cut)\Z": "a card: one of 23456789TJQKA and one of cdhs, or cut",
}
_BITS: Final = 64
"""Where nothing else is said, numbers are not larger."""
_FIELD: Final = re.compile(r" - at `\$\.?([a-z_]*).*`$")


class InvalidRequest(Exception):
    """A line that is no hand: what is wrong, where, and what is allowed there."""

    def __init__(self, what: str, where: str, allowed: str) -> None:
        super().__init__(f"{where}: {what}; allowed: {allowed}")
        self.what = what
        self.where = where
        self.allowed = allowed


def verbs_of(*unions: Any) -> Verbs:
    """The verbs of these unions of hands, in their order."""
    return {_verb(hand): hand for union in unions for hand in get_args(union)}


def _verb(hand: type[ControlRequest]) -> str:
    return str(hand.__struct_config__.tag)


ANYWHERE: Final = verbs_of(control.Anywhere)
BY_CLASS: Final = {
    DeviceClass.SHOE: verbs_of(control.Anywhere, control.AtShoe),
    DeviceClass.SHUFFLER: verbs_of(control.Anywhere, control.AtShuffler),
    DeviceClass.STATION: verbs_of(control.Anywhere, control.AtStation),
}
"""What can be done at a device of each class."""
ALL: Final = verbs_of(control.ControlRequest)


class RequestField(Struct, frozen=True):
    """One field of a hand."""

    name: str
    allowed: str
    default: str | None
    """As JSON; None if the field must be there."""
    many: bool
    """Whether it is a list."""
    textual: bool
    """Whether it is any text."""


def request_fields(hand: type[ControlRequest]) -> tuple[RequestField, ...]:
    info = type_info(hand)
    assert isinstance(info, StructType)
    return tuple(
        RequestField(
            field.name,
            _allowed(field.type),
            _default(field),
            many=isinstance(field.type, VarTupleType),
            textual=isinstance(field.type, StrType),
        )
        for field in info.fields
    )


def description(hand: type[ControlRequest]) -> str:
    """What it does, in one paragraph."""
    return " ".join(paragraphs(hand))


def paragraphs(hand: type[ControlRequest]) -> list[str]:
    """What it does."""
    doc = inspect.getdoc(hand) or ""
    return [" ".join(part.split()) for part in doc.split("\n\n")]


def _default(field: Field) -> str | None:
    return None if field.required else msgspec.json.encode(field.default).decode()


def _allowed(kind: Type) -> str:
    match kind:
        case BoolType() | NoneType():
            return "null" if isinstance(kind, NoneType) else "true or false"
        case IntType() | FloatType():
            number = "a whole number" if isinstance(kind, IntType) else "a number"
            return f"{number} from {kind.ge} to {kind.le}" if kind.ge is not None else number
        case StrType(pattern=str(pattern)):
            return _PATTERNS.get(pattern, f"text of the form {pattern}")
        case StrType(min_length=int(least), max_length=int(most)):
            return f"{least} to {most} characters"
        case StrType():
            return "text"
        case LiteralType(values=values):
            return ", ".join(map(str, values))
        case UnionType(types=types):
            return " or ".join(map(_allowed, types))
        case VarTupleType(item_type=item):
            return f"a list of: {_allowed(item)}"
        case _:
            raise TypeError(f"no words for {kind}")


def parse_request(line: bytes, verbs: Verbs) -> ControlRequest:
    """The hand that a line of JSON asks for. BadHand if it is none of these verbs."""
    try:
        raw = msgspec.json.decode(line)
        json.loads(line, object_pairs_hook=_each_once)
    except (msgspec.DecodeError, RecursionError, ValueError) as problem:
        raise InvalidRequest(f"no JSON: {problem}", "line", '{"do": VERB, ...}') from None
    if not isinstance(raw, dict):
        raise InvalidRequest("not an object", "line", '{"do": VERB, ...}')
    verb = raw.get("do")
    hand = verbs.get(verb) if isinstance(verb, str) else None
    if hand is None:
        what = f"{verb!r} cannot be done here" if "do" in raw else "is missing"
        raise InvalidRequest(what, "do", ", ".join(verbs))
    return _convert(raw, hand)


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    """Of a field that is there twice one would be done, and the other lost in silence."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise InvalidRequest("is there twice", name, "each field once")
        seen.add(name)


def _convert(raw: dict[str, Any], hand: type[ControlRequest]) -> ControlRequest:
    fields = {word.name: word for word in request_fields(hand)}
    for name, value in raw.items():
        if name == "do":
            continue
        if name not in fields:
            raise InvalidRequest(
                f"{_verb(hand)} has no such field", name, ", ".join(fields) or "none"
            )
        if isinstance(value, int) and value.bit_length() > _BITS:
            raise InvalidRequest(
                "too large a number", name, f"{fields[name].allowed}, of {_BITS} bits"
            )
        texts = value if isinstance(value, list) else [value]
        if not all(text.isprintable() for text in texts if isinstance(text, str)):
            raise InvalidRequest("holds characters that nobody sees", name, fields[name].allowed)
    for word in fields.values():
        if word.default is None and word.name not in raw:
            raise InvalidRequest("is missing", word.name, word.allowed)
    try:
        return msgspec.convert(raw, type=hand)
    except msgspec.ValidationError as problem:
        found = _FIELD.search(str(problem))
        name = found[1] if found else "line"
        what = _FIELD.sub("", str(problem)).replace("`", "")
        allowed = fields[name].allowed if name in fields else ", ".join(fields)
        raise InvalidRequest(what, name, allowed) from None
