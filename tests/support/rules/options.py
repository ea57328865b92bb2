"""Options with changes, as tests write them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from controller.rules.money import Odds
from controller.rules.options import Blackjack, Options

PLAIN = Options(decks=6, blackjack=Blackjack(pays=Odds(3, 2)))


def options(**changes: object) -> Options:
    """Plain options with these changes; a path's dots are written as two underscores."""
    result: Any = PLAIN
    for name, value in changes.items():
        result = _set(result, name.split("__"), value)
    assert isinstance(result, Options)
    return result


def _set(struct: Any, names: list[str], value: object) -> Any:
    first, *rest = names
    return replace(struct, **{first: _set(getattr(struct, first), rest, value) if rest else value})


INSTANT: dict[str, object] = {
    "instant__pays_21": Odds(2, 1),
    "instant__cards_21": 5,
    "instant__pays_count": Odds(1, 1),
    "instant__cards_count": 6,
    "instant__on_split": True,
}


SURRENDER: dict[str, object] = {
    "surrender__when": "any_time",
    "surrender__of_doubled": "half_total",
}


ACE_IS_ONE: dict[str, object] = {"double__ace_is_one_with_ten": True, "double__max_total": 20}
