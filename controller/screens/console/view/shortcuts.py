"""Keyboard shortcuts: for each button the preferred key, or a free one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from string import ascii_lowercase, digits
from typing import Final

from msgspec.structs import replace

from controller.screens.console.view.allowed_acts import ActButton
from controller.screens.console.view.wagers import WagerPanel

RESERVED: Final = {"sheet": "x", "sign": "i", "keys": "?"}
"""Keys of the page itself."""
_ALL: Final = ascii_lowercase + digits


def with_keys(
    main: tuple[ActButton, ...], aside: tuple[ActButton, ...], wagers: WagerPanel | None
) -> tuple[tuple[ActButton, ...], tuple[ActButton, ...], WagerPanel | None]:
    """Returns the buttons with their keys; earlier ones choose first."""
    seats = () if wagers is None else wagers.seats
    enter = [action for seat in seats for action in seat.enter]
    named = dict(_named((*aside, *main, *enter)))

    def keyed(actions: tuple[ActButton, ...]) -> tuple[ActButton, ...]:
        return tuple(replace(one, key=named[one.id]) for one in actions)

    if wagers is not None:
        # Buttons that take back a wager have none: a key would not name the seat.
        changed = (replace(seat, enter=keyed(seat.enter)) for seat in wagers.seats)
        wagers = replace(wagers, seats=tuple(changed))
    return keyed(main), keyed(aside), wagers


def _named(actions: Iterable[ActButton]) -> Iterator[tuple[str, str]]:
    every = tuple(actions)
    taken = set(RESERVED.values())
    wished: dict[str, str] = {}
    for one in every:
        if one.wish and one.wish not in taken:
            wished[one.id] = one.wish
            taken.add(one.wish)
    for one in every:
        key = wished.get(one.id) or _free(one.label, taken)
        taken.add(key)
        yield one.id, key


def _free(label: str, taken: set[str]) -> str:
    """Returns the first free letter of the label, or any free key; empty if all are taken."""
    free = (one for one in f"{label.lower()}{_ALL}" if one in _ALL and one not in taken)
    return next(free, "")
