"""The review of a long record: its list of rounds and any round opened, beside the same rows asked
for by hand in SQLite. With --full the record has a million rounds.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import apsw
import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from controller.audit.index import to_read
from controller.audit.recorded_rounds import record_par
from controller.audit.recorder import Keys
from controller.audit.sealing import HoleKey
from controller.config.loader import load_game
from controller.screens.common.sessions import Links, Person, Sessions
from controller.screens.common.texts import load
from controller.screens.review.app import application, pages_of
from controller.screens.review.by_link import ByLink
from controller.screens.review.source import Beside
from controller.sim.games import default_jurisdiction, game_of
from hil.bench_lines import Line, Section
from hil.bench_record import scratch
from hil.contest import Pace

ROUNDS: Final = 20_000
FULL_ROUNDS: Final = 1_000_000
LOOKS: Final = 15
"""Pages of each kind."""
_MOST: Final = 0.5
"""Seconds."""
_USUAL: Final = Pace().slices * Pace().seconds
_PAGE: Final = 50
_MILLI: Final = 1e3
_LISTED: Final = "SELECT * FROM raw_rounds WHERE round <= ? ORDER BY round DESC LIMIT ?"
_OPENED: Final = (
    "SELECT * FROM raw_records WHERE seq BETWEEN (SELECT first_seq FROM raw_rounds WHERE round = ?)"
    " AND (SELECT last_seq FROM raw_rounds WHERE round = ?)"
)


def rounds_of(pace: Pace) -> int:
    if pace.full:
        return FULL_ROUNDS
    return max(100, round(ROUNDS * min(1.0, pace.slices * pace.seconds / _USUAL)))


def _timed(db: apsw.Connection, query: str, values: tuple[int, int]) -> float:
    begun = time.perf_counter()
    if not list(db.execute(query, values)):
        raise AssertionError(f"nothing is there: {query}")
    return time.perf_counter() - begun


async def _looked(record: Path, scratch: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds of each page, and of its rows."""
    source = Beside(record)
    source.begin(lambda words: None)
    links = Links()
    review = application(source, pages_of(load()), ByLink(Sessions(), links), scratch)
    review.house.prepare()
    times: dict[str, list[float]] = {
        name: [] for name in ("list", "list_sql", "round", "round_sql")
    }
    transport = httpx.ASGITransport(review.app)
    db = to_read(record)
    random = Random(7)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.get(f"/enter?word={links.make(Person('Bench'))}")

            async def page(path: str) -> float:
                begun = time.perf_counter()
                answer = await client.get(path)
                took = time.perf_counter() - begun
                if answer.status_code != 200:
                    raise AssertionError(f"{path} is not shown: {answer.status_code}")
                return took

            for _ in range(LOOKS):
                number = random.randint(1, rounds)
                times["list"].append(await page(f"/rounds?before={number + 1}"))
                listed = (_LISTED, (number, _PAGE))
                times["list_sql"].append(_timed(db, *listed))
                times["round"].append(await page(f"/rounds/{number}"))
                opened = (_OPENED, (number, number))
                times["round_sql"].append(_timed(db, *opened))
    finally:
        db.close()
        review.close()
    return times


def _measure(pace: Pace) -> list[Line]:
    rounds = rounds_of(pace)
    public = X25519PrivateKey.generate().public_key()
    keys = Keys(Ed25519PrivateKey.generate(), HoleKey(bytes(range(32))), public)
    game = game_of(load_game("mega"), default_jurisdiction())
    with scratch() as place:
        record_par(place / "record", game, rounds, lambda _: keys)
        times = asyncio.run(_looked(place / "record", place, rounds))
    middle = {name: median(found) for name, found in times.items()}
    lines = [Line("rounds", "rounds in the record", rounds, "rounds")]
    for name, text in (("list", "rounds listed"), ("round", "a round opened")):
        by_hand = middle[f"{name}_sql"]
        lines += [
            Line(name, f"{text}, page", middle[name] * _MILLI, "ms"),
            Line(f"{name}_longest", "  the longest", max(times[name]), "s", at_most=_MOST),
            Line(f"{name}_sql", f"{text}, rows by hand", by_hand * _MILLI, "ms"),
            Line(f"{name}_ratio", "  beside them", middle[name] / by_hand, "times"),
        ]
    return lines


REVIEW: Final = Section("review", "a long record reviewed, beside its rows by hand", _measure)
