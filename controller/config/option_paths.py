"""The options by dotted path, derived from the structs of controller.rules.options.

No path is written here: a new field there is a new option.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo

from controller.config import values as checks
from controller.config.values import ValueCheck
from controller.rules.money import Denomination, Odds
from controller.rules.option_constraints import RANGES, SHOES
from controller.rules.options import Options

_NONE: Final = type(None)
TAKEN_AWAY: Final = "none"
"""Represents null, which TOML does not have."""


class Leaf(Struct, frozen=True):
    path: str
    check: ValueCheck[Any]
    optional: bool
    required: bool
    default: object

    @property
    def allowed(self) -> str:
        return f"{self.check.allowed}, or none" if self.optional else self.check.allowed

    def read(self, raw: object) -> object:
        """Parse a value of this option. Raises InvalidValue."""
        if raw is None or raw == TAKEN_AWAY:
            if self.optional:
                return None
            raise checks.InvalidValue("it cannot be taken away")
        return self.check.read(raw)


def _check(path: str, hint: object) -> ValueCheck[Any]:
    if path == "decks":
        return checks.choice(SHOES)
    if path in RANGES:
        return checks.whole_number(RANGES[path])
    if hint is bool:
        return checks.TRUTH
    if hint is Odds:
        return checks.ODDS
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return checks.choice(parts)
    if origin is dict:
        return checks.PAYS
    if origin is tuple and parts[0] is Denomination:
        return checks.CHIPS
    if origin is tuple and get_origin(parts[0]) is Literal:
        return _some_of(get_args(parts[0]))
    raise TypeError(f"{path}: no way to read {hint}")


def _some_of(known: tuple[str, ...]) -> ValueCheck[tuple[str, ...]]:
    """Checks a list of known words; returns them in the order of the option."""
    listed = checks.list_of(checks.choice(known))

    def read(value: object) -> tuple[str, ...]:
        given = listed.read(value)
        return tuple(word for word in known if word in given)

    return ValueCheck(f"a list with {', '.join(known)}, all, some or none of them", read)


@cache
def _fields(shape: type[Struct]) -> tuple[tuple[FieldInfo, Any], ...]:
    hints = get_type_hints(shape)
    return tuple((field, hints[field.name]) for field in msgspec.structs.fields(shape))


def _walk(shape: type[Struct], prefix: str) -> Iterator[Leaf]:
    for field, hint in _fields(shape):
        path = prefix + field.name
        if _is_group(hint):
            yield from _walk(hint, path + ".")
            continue
        optional = get_origin(hint) in (Union, types.UnionType)
        some = next(part for part in get_args(hint) if part is not _NONE) if optional else hint
        default = None if field.required else field.default
        yield Leaf(path, _check(path, some), optional, field.required, default)


def _is_group(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct) and hint not in (Odds, Denomination)


def _tables(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    keys: dict[str, dict[str, None]] = {}
    for path in paths:
        names = path.split(".")
        for depth, name in enumerate(names):
            keys.setdefault(".".join(names[:depth]), {})[name] = None
    return {table: tuple(names) for table, names in keys.items()}


LEAVES: Final[dict[str, Leaf]] = {leaf.path: leaf for leaf in _walk(Options, "")}
GROUPS: Final[dict[str, tuple[str, ...]]] = _tables(LEAVES)
"""Each table of options and its keys; "" is the root."""

COUNTED: Final = "bonus.buster.pays"
"""The only option whose entries can be set singly: `bonus.buster.pays.4`."""


def count_of(path: str) -> str | None:
    """Returns the count in `bonus.buster.pays.4`, or None for any other path."""
    group, _, count = path.rpartition(".")
    return count if group == COUNTED else None


def keys_of(table: str) -> str:
    keys = ", ".join(GROUPS[table])
    return f"in {table}: {keys}" if table else keys


def keys_near(path: str) -> str:
    """Returns the path nearest to an unknown one, and the keys of its table."""
    table = path.rpartition(".")[0]
    while table not in GROUPS:
        table = table.rpartition(".")[0]
    near = nearest(path, [*LEAVES, *filter(None, GROUPS)])
    return f"{near}{keys_of(table)}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Returns the nearest known word, as a prefix for the list of known words; may be empty."""
    near = difflib.get_close_matches(word[:100], list(known), n=1)
    return f"{near[0]}? " if near else ""


S = TypeVar("S", bound=Struct)


def build(values: Mapping[str, object]) -> Options:
    """Returns options with these values, and defaults for all others."""
    return _build(Options, "", values)


def _build(shape: type[S], prefix: str, values: Mapping[str, object]) -> S:
    given: dict[str, object] = {}
    for field, hint in _fields(shape):
        path = prefix + field.name
        if _is_group(hint):
            given[field.name] = _build(hint, path + ".", values)
        elif path in values:
            given[field.name] = values[path]
    return shape(**given)
