"""For every message three samples: all fields at their least, at their most, and in between."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import IntFlag
from typing import Any, Final

from firmware_protocol import messages
from firmware_protocol.generate import INTEGER_SIZES, Catalogue, Field, array, camel
from firmware_protocol.messages import Payload

WHICH: Final = ("least", "most", "between")


def some_bytes(name: str, size: int) -> bytes:
    """Bytes that look random and are always the same."""
    return hashlib.shake_256(f"TableLink vector {name}".encode()).digest(size)


def some_number(name: str, below: int) -> int:
    return int.from_bytes(some_bytes(name, 16), "little") % below


def samples(
    catalogue: Catalogue, kind: type[Payload], name: str, fields: tuple[Field, ...]
) -> Iterator[Payload]:
    """The three samples of a message, or the only one that a message without fields has."""
    real = [field for field in fields if not field.type.startswith("zero")]
    for which in WHICH if real else WHICH[:1]:
        values = {one.name: _value(catalogue, one, which, f"{name}.{one.name}") for one in real}
        yield kind(**values)


def _value(catalogue: Catalogue, one: Field, which: str, name: str) -> Any:
    form = array(one.type)
    if form:
        return _array(*form, which, name)
    if one.type == "bool":
        return which != "least"
    if one.type in catalogue.sets:
        members: list[Any] = list(getattr(messages, camel(one.type)))
        if one.type in catalogue.is_flags:
            return _flags(members, which, name)
        members = [member for member in members if member >= (one.min or 0)]
        return members[_index(len(members), which, name)]
    numbers = (one.min or 0, (1 << 8 * INTEGER_SIZES[one.type]) - 1 if one.max is None else one.max)
    if which == "most" and one.also:
        return one.also[-1]
    return numbers[0] + _index(numbers[1] - numbers[0] + 1, which, name)


def _index(count: int, which: str, name: str) -> int:
    if which == "between":
        return some_number(name, count)
    return 0 if which == "least" else count - 1


def _flags(members: list[IntFlag], which: str, name: str) -> IntFlag:
    out = type(members[0])(0)
    for member in members:
        if which == "most" or (which == "between" and some_number(name + str(member.name), 2)):
            out |= member
    return out


def _array(form: str, size: int, which: str, name: str) -> bytes | str:
    if form == "bytes":
        return {
            "least": bytes(size),
            "most": b"\xff" * size,
            "between": some_bytes(name, size),
        }[which]
    if which == "least":
        return "A"
    if which == "most":
        return "Z" * size
    return "Ace-21.x" if form == "word" else "Ace & Sons 21"
