"""What may stand in the `data` of a record, looked at before it is written down.

JSON has other numbers than integers, and what writes it makes text or null of much that is neither.
A record has none of that: what is read back is what was handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from operator import attrgetter
from types import NoneType
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

LEAST: Final = -(2**63)
LARGEST: Final = 2**63 - 1
MOST_DEEP: Final = 64
"""Values within values: so deep is nothing that is meant."""
_ALLOWED: Final = "text, integers of 64 bits, true, false, null, lists, objects with names"
_SIMPLE: Final[set[type]] = {str, bool, NoneType, UnsetType}
"""Kinds of which all are plain; enums of such come to them as they are seen."""


class BadData(TypeError):
    """It cannot stand in a record. Nothing is repeated of it: it may be a card that lies face
    down."""

    def __init__(self, what: str, way: tuple[str, ...] = ()) -> None:
        super().__init__(f"{'.'.join(('data', *way))} {what}; allowed: {_ALLOWED}")
        self._what, self._way = what, way

    def within(self, name: object) -> BadData:
        """The same, told from further out."""
        return BadData(self._what, (str(name), *self._way))


def check_plain(value: object) -> None:
    """BadData unless a record can hold it as it is."""
    if not _all_plain((value,), 0):
        _find(value, 0)


def _all_plain(values: Iterable[Any], deep: int) -> bool:
    """Whether all of them are. Quick: everything that is recorded comes by."""
    if deep > MOST_DEEP:
        return False
    for value in values:
        kind = type(value)
        if kind in _SIMPLE:
            continue
        if kind is int:
            if not LEAST <= value <= LARGEST:
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
"""What gives the fields of a kind of which one was seen."""


def _inner(value: object) -> Iterable[object] | None:
    """What stands in it; None where it cannot stand in a record, or has to be looked at slowly."""
    if type(value) is dict:
        return value.values() if all(type(name) is str for name in value) else None
    if isinstance(value, Enum):
        if all(type(one.value) in _SIMPLE for one in type(value)):
            _SIMPLE.add(type(value))
        return (value.value,)
    if not isinstance(value, Struct):
        return None
    names = value.__struct_fields__
    if len(names) > 1:  # of one it does not give a tuple
        _FIELDS[type(value)] = attrgetter(*names)
    return tuple(getattr(value, name) for name in names)


# --- what is wrong with it, and where: slowly -------------------------------------------------


def _find(value: object, deep: int) -> None:
    """BadData unless it is plain, or written already."""
    if deep > MOST_DEEP:
        raise BadData(f"is nested more than {MOST_DEEP} deep")
    if isinstance(value, Raw):
        value = _read(value)
    if isinstance(value, Enum):
        value = value.value
    if type(value) in _SIMPLE:
        return
    if type(value) is int:
        if not LEAST <= value <= LARGEST:
            raise BadData("is an integer of more than 64 bits")
        return
    for name, inner in _parts(value):
        try:
            _find(inner, deep + 1)
        except BadData as bad:
            raise bad.within(name) from None


def _parts(value: object) -> Iterable[tuple[object, object]]:
    """What stands in it, by its names. BadData where it is nothing that has parts."""
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


def _read(written: Raw) -> object:
    try:
        found: object = msgspec.json.decode(written)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadData("is no JSON") from None
    return found
