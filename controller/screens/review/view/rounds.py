"""The list of rounds: its search form, whose fields are parsed and written back, and its words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from msgspec import Struct

from controller.audit.format.records import KINDS
from controller.audit.index import RecordQuery, RoundRow, check_query, parse_amount, parse_time
from controller.errors import UsageProblem, printable
from controller.procedure.engine import EVENTS
from controller.procedure.prompts import BETS, WHY, AmountFormat
from controller.rules.cards import parse_card
from controller.rules.irregularities import Irregularity
from controller.screens.common.access import shown


def seconds_of(found: RoundRow) -> float:
    """From the first wager to the cleared felt, of a round that is over."""
    return max(0.0, (found.over_utc - found.first_utc) / 1e6)


def bet_name(name: str) -> str:
    return BETS.get(name, printable(name))


def why_short(key: str) -> str:
    """The reason of a payment in short; the timeline has the cards."""
    words = WHY.get(key, printable(key).replace("_", " "))
    return key.replace("_", " ") if "{" in words else words


FIELDS: Final = (
    "from",
    "to",
    "round",
    "seat",
    "card",
    "dealer",
    "person",
    "irregularity",
    "event",
    "kind",
    "least",
    "most",
    "problems",
)
BEFORE: Final = "before"
"""The field of the next page: rounds before this one."""
HAPPENINGS: Final = tuple(event.__name__ for event in EVENTS if event.__name__ != "Go")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}")
_ROUNDS: Final = re.compile(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?")
_MOST_SEAT: Final = 1_000
_YES: Final = "yes"


class Filters(Struct, frozen=True):
    """A validated search."""

    wanted: RecordQuery
    fields: dict[str, str]
    """The fields as typed."""

    def address(self, path: str, **more: object) -> str:
        """Returns the URL of a page with these filters."""
        pairs = {**self.fields, **{name: str(value) for name, value in more.items() if value}}
        return f"{path}?{urlencode(pairs)}" if pairs else path

    def __str__(self) -> str:
        """As text for the access log."""
        return ", ".join(f"{name} {value}" for name, value in self.fields.items()) or "all rounds"


def filters_of(fields: Mapping[str, str], money: AmountFormat) -> Filters:
    """Parse the fields. Raises UsageProblem that names the field."""
    given = {name: fields[name] for name in FIELDS if name in fields}
    found: dict[str, Any] = {}
    for name, text in given.items():
        if name in _READS:
            found[_NAMES.get(name, name)] = _READS[name](name, text)
        elif name in ("least", "most"):
            found[name] = parse_amount(name, text, money)
        else:
            found[name] = text
    for low, high, words in _ENDS:
        first, last = (found.get(_NAMES.get(name, name)) for name in (low, high))
        if first is not None and last is not None and last < first:
            raise UsageProblem(
                high,
                f"{shown(given[high])} is {words} {shown(given[low])}",
                f"{given[low]} or more",
            )
    wanted = RecordQuery(**found)
    check_query(wanted)
    return Filters(wanted, given)


def typed(fields: Mapping[str, str]) -> Filters:
    """Returns the fields as typed, to be corrected, without a search."""
    return Filters(RecordQuery(), {name: fields[name] for name in FIELDS if name in fields})


def number_of(name: str, text: str, most: int = 10**18 - 1) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > most:
        raise UsageProblem(name, f"{shown(text)} is no number", f"1 to {most}")
    return int(text)


def rounds_of(name: str, text: str) -> tuple[int, int]:
    found = _ROUNDS.fullmatch(text)
    first = int(found[1]) if found else 0
    last = int(found[2] or found[1]) if found else 0
    if not 1 <= first <= last:
        raise UsageProblem(name, f"{shown(text)} is no round", "N, or N-M with M not less than N")
    return first, last


def _yes(name: str, text: str) -> bool:
    return one_of(name, text, (_YES,)) == _YES


def one_of(name: str, text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise UsageProblem(name, f"{shown(text)} is not known", ", ".join(allowed))
    return text


def _upper_card(name: str, text: str) -> int:
    """Parse a card; 10H and th are TH."""
    tidy = text.upper().replace("10", "T", 1)
    if len(text) > 3:
        raise UsageProblem(name, f"{shown(text)} is no card", "AD, TH and the like")
    return parse_card(tidy, name)


_READS: Final[dict[str, Callable[[str, str], Any]]] = {
    "from": parse_time,
    "to": lambda name, text: parse_time(name, text, end=True),
    "round": rounds_of,
    "seat": lambda name, text: number_of(name, text, _MOST_SEAT),
    "card": _upper_card,
    "irregularity": lambda name, text: one_of(name, text, tuple(i.value for i in Irregularity)),
    "event": lambda name, text: one_of(name, text, HAPPENINGS),
    "kind": lambda name, text: one_of(name, text, KINDS),
    "problems": _yes,
}
_ENDS: Final = (("from", "to", "before"), ("least", "most", "less than"))
"""The fields of ranges, and the error if they are reversed."""
_NAMES: Final = {"from": "since", "to": "until", "round": "rounds", "problems": "problem"}
"""Fields with another name in the search."""
