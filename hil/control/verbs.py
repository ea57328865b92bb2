"""The verbs of the control socket: their names, fields and allowed values.

The socket's errors, the command line and hil/CONTROL.md use the same texts for allowed values.
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

from firmware_protocol.device import Anywhere, ControlRequest
from hil.devices import CLASSES

Verbs = Mapping[str, type[ControlRequest]]
_PATTERNS: Final = {
    r"^([2-9TJQKA][cdhs]|cut)\Z": "a card: one of 23456789TJQKA and one of cdhs, or cut",
}
_BITS: Final = 64
"""Limit of a number without limits in its type."""
_FIELD: Final = re.compile(r" - at `\$\.?([a-z_]*).*`$")


class InvalidRequest(Exception):
    """A line that is no valid request: the error, the field, and what is allowed there."""

    def __init__(self, what: str, where: str, allowed: str) -> None:
        super().__init__(f"{where}: {what}; allowed: {allowed}")
        self.what = what
        self.where = where
        self.allowed = allowed


def verbs_of(*unions: Any) -> Verbs:
    """The verbs of these unions of requests, in their order."""
    return {_verb(request): request for union in unions for request in get_args(union)}


def _verb(request: type[ControlRequest]) -> str:
    return str(request.__struct_config__.tag)


BY_CLASS: Final = {one.device_class: verbs_of(Anywhere, one.requests) for one in CLASSES.values()}
ALL: Final = verbs_of(ControlRequest)


class RequestField(Struct, frozen=True):
    name: str
    allowed: str
    default: str | None
    """As JSON; None if the field is required."""
    many: bool
    """Whether it is a list."""
    textual: bool
    """Whether it is any text."""


def request_fields(request: type[ControlRequest]) -> tuple[RequestField, ...]:
    info = type_info(request)
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


def description(request: type[ControlRequest]) -> str:
    """The docstring of a request, in one paragraph."""
    return " ".join(paragraphs(request))


def paragraphs(request: type[ControlRequest]) -> list[str]:
    """The paragraphs of a request's docstring."""
    doc = inspect.getdoc(request) or ""
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
            raise TypeError(f"no text for {kind}")


def parse_request(line: bytes, verbs: Verbs) -> ControlRequest:
    """Parse a line of JSON. Raises InvalidRequest if it is not a request of these verbs."""
    try:
        raw = msgspec.json.decode(line)
        json.loads(line, object_pairs_hook=_each_once)
    except (msgspec.DecodeError, RecursionError, ValueError) as problem:
        raise InvalidRequest(f"no JSON: {problem}", "line", '{"do": VERB, ...}') from None
    if not isinstance(raw, dict):
        raise InvalidRequest("not an object", "line", '{"do": VERB, ...}')
    verb = raw.get("do")
    request = verbs.get(verb) if isinstance(verb, str) else None
    if request is None:
        what = f"{verb!r} cannot be done here" if "do" in raw else "is missing"
        raise InvalidRequest(what, "do", ", ".join(verbs))
    return _convert(raw, request)


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    """Raises InvalidRequest for a repeated field, which JSON decoders silently drop."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise InvalidRequest("is given twice", name, "each field once")
        seen.add(name)


def _convert(raw: dict[str, Any], request: type[ControlRequest]) -> ControlRequest:
    fields = {field.name: field for field in request_fields(request)}
    for name, value in raw.items():
        if name == "do":
            continue
        if name not in fields:
            raise InvalidRequest(
                f"{_verb(request)} has no such field", name, ", ".join(fields) or "none"
            )
        if isinstance(value, int) and value.bit_length() > _BITS:
            raise InvalidRequest(
                "too large a number", name, f"{fields[name].allowed}, of {_BITS} bits"
            )
        texts = value if isinstance(value, list) else [value]
        if not all(text.isprintable() for text in texts if isinstance(text, str)):
            raise InvalidRequest(
                "has characters that cannot be printed", name, fields[name].allowed
            )
    for field in fields.values():
        if field.default is None and field.name not in raw:
            raise InvalidRequest("is missing", field.name, field.allowed)
    try:
        return msgspec.convert(raw, type=request)
    except msgspec.ValidationError as problem:
        found = _FIELD.search(str(problem))
        name = found[1] if found else "line"
        what = _FIELD.sub("", str(problem)).replace("`", "")
        allowed = fields[name].allowed if name in fields else ", ".join(fields)
        raise InvalidRequest(what, name, allowed) from None
