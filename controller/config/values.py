"""Validation of values: each check parses one kind of value and describes what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from controller.errors import UsageProblem, printable, shown
from controller.rules.money import Denomination, Odds, parse_odds
from controller.rules.option_constraints import MAX_BUST_CARDS, MAX_MONEY, MAX_ODDS, Range

T = TypeVar("T")

MAX_CHIPS: Final = 40
MAX_TEXT: Final = 2000
_COUNT: Final = re.compile(r"[1-9][0-9]?")


class InvalidValue(Exception):
    """A value is invalid; the caller adds where it is and what is allowed."""


class ValueCheck(NamedTuple, Generic[T]):
    allowed: str
    read: Callable[[object], T]
    """Returns the parsed value. Raises InvalidValue."""


def invalid(value: object) -> InvalidValue:
    return InvalidValue(f"{shown(value)} is not valid here")


def either(words: tuple[object, ...]) -> str:
    """one, two or three"""
    *most, last = map(str, words)
    return f"{', '.join(most)} or {last}" if most else last


def whole_number(range_: Range) -> ValueCheck[int]:
    def read(value: object) -> int:
        # TOML's true is an int in Python.
        if isinstance(value, bool) or not isinstance(value, int) or value not in range_:
            raise invalid(value)
        return value

    return ValueCheck(str(range_), read)


def choice(values: tuple[T, ...]) -> ValueCheck[T]:
    def read(value: object) -> T:
        for known in values:
            if type(value) is type(known) and value == known:
                return known
        raise invalid(value)

    return ValueCheck(either(values), read)


def text(max_length: int = MAX_TEXT) -> ValueCheck[str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise invalid(value)
        if not value.isprintable():
            raise InvalidValue(f"{shown(value)} has characters that cannot be printed")
        if len(value) > max_length:
            raise InvalidValue(f"{shown(value)} is too long")
        return value

    return ValueCheck(f"text of 1 to {max_length} characters in one line", read)


def matching(pattern: str, allowed: str) -> ValueCheck[str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise invalid(value)
        return value

    return ValueCheck(allowed, read)


def list_of(
    item: ValueCheck[T], *, min_length: int = 0, max_length: int = 1000, always: tuple[T, ...] = ()
) -> ValueCheck[tuple[T, ...]]:
    """Checks a list; `always`: items that it must have."""

    def read(value: object) -> tuple[T, ...]:
        if not isinstance(value, list | tuple):
            raise invalid(value)
        if not min_length <= len(value) <= max_length:
            raise InvalidValue(f"it has {len(value)} entries")
        items = tuple(map(item.read, value))
        for place, one in enumerate(items):
            if one in items[:place]:
                raise InvalidValue(f"{shown(one)} is in it twice")
        missing = [str(one) for one in always if one not in items]
        if missing:
            raise InvalidValue(f"it is without {', '.join(missing)}")
        return items

    must = f"; always in it: {', '.join(map(str, always))}" if always else ""
    return ValueCheck(f"a list of {item.allowed}{must}", read)


def _read_truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise invalid(value)
    return value


def _read_odds(value: object) -> Odds:
    if not isinstance(value, str):
        raise invalid(value)
    try:
        return parse_odds(value, "")
    except UsageProblem:
        raise invalid(value) from None


def read_count(key: object) -> int:
    """Parse a number of cards, the key of a pay table."""
    if not _COUNT.fullmatch(str(key)):
        raise invalid(key)
    return int(str(key))


TRUTH: Final = ValueCheck("true or false", _read_truth)
ODDS: Final = ValueCheck('odds of two whole numbers, such as "3:2"', _read_odds)
NAME: Final = matching(
    "[a-z0-9][a-z0-9_-]{0,39}", "a name of small letters, digits, - and _, at most 40"
)
TO_ONE: Final = whole_number(Range(1, MAX_ODDS))
CHIP_NAME: Final = text(30)
CHIP_VALUE: Final = whole_number(Range(1, MAX_MONEY))


def _read_pays(value: object) -> dict[int, int]:
    if not isinstance(value, Mapping):
        raise invalid(value)
    pays: dict[int, int] = {}
    for key, odds in value.items():
        try:
            pays[read_count(key)] = TO_ONE.read(odds)
        except InvalidValue as wrong:
            raise InvalidValue(f"{printable(key)}: {wrong}") from None
    return dict(sorted(pays.items()))


def _read_chip(value: object) -> Denomination:
    if not isinstance(value, Mapping) or set(value) != {"name", "value"}:
        raise InvalidValue(f"{shown(value)} is not a chip")
    return Denomination(CHIP_NAME.read(value["name"]), CHIP_VALUE.read(value["value"]))


PAYS: Final = ValueCheck(
    f"a table of cards in the dealer's bust hand (3 to {MAX_BUST_CARDS}) to n (1 to {MAX_ODDS})",
    _read_pays,
)
CHIPS: Final = list_of(
    ValueCheck('chips, each { name = "red", value = 500 }', _read_chip), max_length=MAX_CHIPS
)
