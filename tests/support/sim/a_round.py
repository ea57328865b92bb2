"""A scripted round, to be bent into others."""

from __future__ import annotations

from copy import deepcopy
from typing import Any


def action(do: str, seat: int = 1, hand: int | None = 0, **more: object) -> dict[str, object]:
    insurance = do in ("insure", "decline", "even_money")
    made: dict[str, object] = {"phase": "insurance" if insurance else "play", "seat": seat}
    if not insurance:
        made["hand"] = hand
    return {**made, "do": do, **more}


def refused(do: str, seat: int = 1, hand: int = 0, **more: object) -> dict[str, object]:
    """An action that is to be refused."""
    return action(do, seat, hand, expect="rejected", **more)


# A stand on 20 against a dealer who makes 21: $10 lost.
ROUND: dict[str, Any] = {
    "id": "R-1",
    "title": "Stands on 20",
    "game": "classic",
    "seats": [{"seat": 1, "bets": {"main": 1000}}],
    "shoe": ["TC", "6C", "TD", "TS", "5D"],
    "actions": [action("stand")],
    "expect": {"seat_net": {"1": -1000}},
}


def changed(**changes: Any) -> dict[str, Any]:
    return {**deepcopy(ROUND), **changes}
