"""What a demo shows when nobody says otherwise."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

TABLES: Final = {
    "maxtime": "maxtime-1",
    "sf21x": "superfun-1",
    "classic": "blackjack-1",
    "mega": "mega-1",
}
GAMES: Final = tuple(TABLES)
ROUNDS: Final = 2
MOST_ROUNDS: Final = 1000
SEATS: Final = 4
SEEDS: Final = {"maxtime": 29, "sf21x": 331, "classic": 413, "mega": 291}
"""With the usual rounds and seats these show much of each game; test_demo says what."""


class Plan(Struct, frozen=True):
    games: tuple[str, ...] = GAMES
    rounds: int = ROUNDS
    seats: int = SEATS
    seed: int | None = None
