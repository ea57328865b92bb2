"""The review's pages of a long record, beside the same rows queried directly in SQLite.

Pages: the list of rounds, a round, searches by card and by dealer and amount. With --full the
record has a million rounds.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import urlencode

import apsw
import httpx

from controller.audit.index import open_index
from controller.audit.simulate import record_par
from controller.rules.cards import DECK
from controller.rules.cards import NAMES as CARDS
from controller.screens.common.sessions import LinkSessions, LoginLinks, PageUser
from controller.screens.common.texts import load
from controller.screens.review.source import FileSource
from controller.screens.review.web import LinkLogin, application, pages_of
from hil.bench.measure import Line, Pace, Samples, Section, ratio, scratch
from hil.bench.verify import bench_game, recorder_keys

ROUNDS: Final = 20_000
FULL_ROUNDS: Final = 1_000_000
LOOKS: Final = 15
"""Pages of each kind."""
_MAX_SECONDS: Final = 0.5
_PAGE: Final = 50
Value: TypeAlias = int | str
_MILLI: Final = 1e3
_LISTED: Final = "SELECT * FROM raw_rounds WHERE round <= ? ORDER BY round DESC LIMIT ?"
_OPENED: Final = (
    "SELECT * FROM raw_records WHERE seq BETWEEN (SELECT first_seq FROM raw_rounds WHERE round = ?)"
    " AND (SELECT last_seq FROM raw_rounds WHERE round = ?)"
)
_OF_ROUND: Final = "w.seq BETWEEN r.first_seq AND r.last_seq"
_NEWEST: Final = "AND r.round <= ? ORDER BY r.round DESC LIMIT ?"
_BY_CARD: Final = (
    "SELECT * FROM raw_rounds r WHERE EXISTS "
    f"(SELECT 1 FROM raw_cards w WHERE w.card = ? AND {_OF_ROUND}) {_NEWEST}"
)
_BY_AMOUNT: Final = (
    "SELECT * FROM raw_rounds r WHERE EXISTS (SELECT 1 FROM raw_amounts w JOIN raw_records d "
    f"ON d.seq = w.seq WHERE {_OF_ROUND} AND w.amount >= ? "
    f"AND d.dealer = (SELECT id FROM words WHERE word = ?)) {_NEWEST}"
)
_DEALER: Final = "SELECT word FROM words WHERE id = (SELECT dealer FROM raw_shifts LIMIT 1)"
_AMOUNT: Final = (
    "SELECT amount FROM raw_amounts GROUP BY amount HAVING count(*) > ? "
    "ORDER BY amount DESC LIMIT 1"
)
"""The largest amount that occurs more often than _RARE."""
_RARE: Final = 0.01
"""Part of the rounds."""
NAMES: Final = {
    "list": "rounds listed",
    "round": "a round opened",
    "card": "rounds looked for by card",
    "amount": "rounds looked for by dealer and amount",
}


class _Search(NamedTuple):
    """A page, and the query for its rows."""

    path: str
    query: str
    values: tuple[Value, ...]


def _searches(db: apsw.Connection, random: Random, rounds: int) -> dict[str, _Search]:
    """Returns one page of each kind, up to a random round."""
    number, card = random.randint(1, rounds), random.choice(DECK)
    before = f"before={number + 1}"
    dealer = str(db.execute(_DEALER).get)
    amount = db.execute(_AMOUNT, (round(rounds * _RARE),)).get or 0
    sought = {"dealer": dealer, "least": str(amount)}
    return {
        "list": _Search(f"/rounds?{before}", _LISTED, (number, _PAGE)),
        "round": _Search(f"/rounds/{number}", _OPENED, (number, number)),
        "card": _Search(f"/rounds?card={CARDS[card]}&{before}", _BY_CARD, (card, number, _PAGE)),
        "amount": _Search(
            f"/rounds?{urlencode(sought)}&{before}", _BY_AMOUNT, (amount, dealer, number, _PAGE)
        ),
    }


def rounds_of(pace: Pace) -> int:
    if pace.full:
        return FULL_ROUNDS
    return max(100, round(ROUNDS * pace.share))


async def _times(record: Path, folder: Path, rounds: int) -> Samples:
    """Returns the seconds of each page, and of its rows."""
    source = FileSource(record)
    source.begin(lambda words: None)
    links = LoginLinks()
    review = application(source, pages_of(load()), LinkLogin(LinkSessions(), links), folder)
    review.house.prepare()
    times: dict[str, list[float]] = {name: [] for one in NAMES for name in (one, f"{one}_sql")}
    rows: Counter[str] = Counter()
    transport = httpx.ASGITransport(review.app)
    db = open_index(record)
    random = Random(7)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.get(f"/enter?word={links.make(PageUser('Bench'))}")

            async def page(path: str) -> float:
                begun = time.perf_counter()
                answer = await client.get(path)
                took = time.perf_counter() - begun
                if answer.status_code != 200:
                    raise AssertionError(f"{path} is not shown: {answer.status_code}")
                return took

            for _ in range(LOOKS):
                for name, one in _searches(db, random, rounds).items():
                    times[name].append(await page(one.path))
                    begun = time.perf_counter()
                    found = list(db.execute(one.query, one.values))
                    times[f"{name}_sql"].append(time.perf_counter() - begun)
                    rows[name] += len(found)
    finally:
        db.close()
        review.close()
    if empty := [name for name in NAMES if not rows[name]]:
        raise AssertionError(f"no rows were found for: {', '.join(empty)}")
    return Samples(times)


def _measure(pace: Pace) -> list[Line]:
    rounds, keys = rounds_of(pace), recorder_keys()
    with scratch() as place:
        record_par(place / "record", bench_game(), rounds, lambda _: keys)
        took = asyncio.run(_times(place / "record", place, rounds))
    lines = [Line("rounds", "rounds in the record", rounds, "rounds")]
    for name, text in NAMES.items():
        page, by_hand = took.median(name), took.median(f"{name}_sql")
        longest = max(took.by_name[name])
        lines += [
            Line(name, f"{text}, page", page * _MILLI, "ms"),
            Line(f"{name}_longest", "  the longest", longest, "s", at_most=_MAX_SECONDS),
            Line(f"{name}_sql", f"{text}, rows by hand", by_hand * _MILLI, "ms"),
            ratio(f"{name}_ratio", "  beside them", page / by_hand),
        ]
    return lines


REVIEW: Final = Section("review", "a long record reviewed, beside its rows by hand", _measure)
