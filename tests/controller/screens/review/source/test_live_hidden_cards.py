"""No card that lies face down is in anything that surveillance is shown of a running table: the
same random round is played twice, with two cards face down, and while they lie there every page,
picture, feed and file of its review is the same, whatever is looked for."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st

from controller.audit.format.records import KINDS
from controller.procedure.model.state import Step
from controller.rules.cards import NAMES, Card
from controller.rules.hands import is_blackjack
from controller.rules.irregularities import Irregularity
from controller.screens.review.source import source
from controller.screens.review.view.filters import FIELDS, HAPPENINGS
from controller.screens.review.web.app import FLOWS, PAGES
from hil.table.robots import Robot, wire_name
from tests.support.api.at_api import ApiScreen, run
from tests.support.api.hidden_cards import DEEP, Whims, shoe, swapped, up_and_hole
from tests.support.screens.at_pages import AtPages, Tab, at_pages
from tests.support.screens.live_review import BASE, comes_in
from tests.support.screens.threads_stand import threads_stand

SEARCHES: Final = 2
"""At each step."""
ASKED: Final = 4
"""Pages at each step, in turn."""
_CHANCE: Final = re.compile(
    r"[0-9a-f]{16,}"  # hashes, commitments
    r"|[A-Za-z0-9+/_-]{40,}=*"  # signatures, what is sealed, the words of a session
    r"|(?<=\+)[0-9a-f]{8}(?=\+)"  # which key it was
    r"|\d{8,}"  # a device's random epoch
    r'|(?<=session":)\d+|(?<=session"":)\d+'
)


def _search(random: Random, cards: tuple[Card, Card]) -> dict[str, str]:
    """Anything that somebody may look for: also either of the two cards."""
    choices = {
        "from": ("2026-01-01", "2000-01-01 10:00"),
        "to": ("2100-01-01", "2100-01-01T10:00"),
        "round": ("1", "1-3"),
        "seat": tuple("1234567"),
        "card": (*[NAMES[card] for card in cards] * 20, *NAMES),
        "dealer": ("Ann Lee", "nobody"),
        "person": ("Ann Lee", "Dee Faro"),
        "irregularity": tuple(one.value for one in Irregularity),
        "event": HAPPENINGS,
        "kind": KINDS,
        "least": ("0", "10", "$25"),
        "most": ("30", "1,000"),
        "problems": ("yes",),
    }
    assert set(choices) == set(FIELDS)
    names = random.sample(FIELDS, random.randint(1, 3))
    if random.random() < 0.4:
        names = [*names, "card"]
    return {name: random.choice(choices[name]) for name in sorted(set(names))}


def _pages() -> list[tuple[str, str, dict[str, str]]]:
    """Every page; but for the verification of all of the record, which is in other processes."""
    found: list[tuple[str, str, dict[str, str]]] = []
    for page in PAGES:
        path = page.path.format(round=1, seq=40, id="x")
        if page.method == "GET":
            found.append(("GET", path, {}))
            if "all" in page.fields:
                found.append(("GET", f"{path}?all=yes", {}))
    found += [("FLOW", f"{flow.path}?after=1", {}) for flow in FLOWS]
    found += [("POST", "/rounds/1/verify", said) for said in ({}, {"as": "proof"})]
    rows = {"all": "yes"}
    return [*found, *(("POST", "/export", {**rows, "format": kind}) for kind in ("csv", "jsonl"))]


class Looking:
    """Somebody looks at each step, and all that they are told."""

    def __init__(self, pages: AtPages, tab: Tab, random: Random, cards: tuple[Card, Card]) -> None:
        self._pages, self._tab = pages, tab
        self._random, self._cards = random, cards
        self._pages_left: list[tuple[str, str, dict[str, str]]] = []
        self.said: list[str] = []

    async def look(self, asked: int = ASKED) -> None:
        """Some pages, and searches."""
        self._pages.screens.source.update()  # what follows beside the table does
        for _ in range(asked):
            if not self._pages_left:
                self._pages_left = self._random.sample(_pages(), len(_pages()))
            await self._ask(*self._pages_left.pop())
        for _ in range(SEARCHES):
            query = urlencode(_search(self._random, self._cards))
            await self._ask("GET", f"/rounds?{query}", {})

    async def _ask(self, method: str, path: str, fields: dict[str, str]) -> None:
        if method == "FLOW":
            text = await self._flow(path)
        elif method == "POST":
            answer = await self._tab.post(f"{BASE}{path}", **fields)
            text = f"{answer.status_code} {answer.text}"
        else:
            answer = await self._tab.ask(method, f"{BASE}{path}")
            text = f"{answer.status_code} {answer.headers.get('location', '')} {answer.text}"
        self.said.append(f"{method} {path} {fields} {text}")

    async def _flow(self, path: str) -> str:
        async with self._tab.stream(f"{BASE}{path}") as stream:
            async with asyncio.timeout(60):
                while b"event: here" not in stream.data:
                    await asyncio.sleep(0.01)
        return stream.data.decode()


async def _play(
    folder: Path, game: str, cards: list[Card], seed: int, two: tuple[Card, Card]
) -> tuple[list[str], list[str]]:
    """What was told before the card was turned over, and after it."""
    async with at_pages(folder, game) as pages:
        dealer = await pages.at.dealing()
        names = tuple(wire_name(card) for card in cards)
        screen = ApiScreen(pages.at, dealer)
        robot = Robot(pages.at.room, screen, Whims(Random(seed)), cards=lambda: names)
        with threads_stand(), pytest.MonkeyPatch.context() as patched:
            # By the clock on the wall it follows now and then.
            patched.setattr(source, "REFRESH_INTERVAL", -1.0)
            looking = Looking(pages, await comes_in(pages), Random(seed + 1), two)
            while pages.at.state.step not in (Step.REVEAL, Step.CLEARING):
                await robot.step()
                if pages.at.state.hole:
                    # At first everything that there is.
                    await looking.look(ASKED if looking.said else len(_pages()))
            hidden, looking.said = looking.said, []
            while pages.at.state.step is Step.REVEAL:
                await robot.step()
            await looking.look(len(_pages()))
    return hidden, looking.said


def played(
    game: str, cards: list[Card], seed: int, two: tuple[Card, Card]
) -> tuple[list[str], list[str]]:
    found: list[tuple[list[str], list[str]]] = []

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            found.append(await _play(Path(folder), game, cards, seed, two))

    run(main())
    return found[0]


def _but_for_chance(said: list[str]) -> list[str]:
    return [_CHANCE.sub("<chance>", one) for one in said]


@settings(
    max_examples=1,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    game=st.sampled_from(["classic", "mega"]), seed=st.integers(0, 2**32), deep=st.integers(*DEEP)
)
@example(game="classic", seed=5, deep=150)
def test_a_hole_card_shows_in_nothing_of_the_review(game: str, seed: int, deep: int) -> None:
    cards = shoe(game, seed)
    up, hole = up_and_hole(game, cards)
    other = cards[deep]
    assume(other != hole)
    assume(is_blackjack(up, hole) == is_blackjack(up, other))
    two = min(hole, other), max(hole, other)
    first = played(game, cards, seed, two)
    second = played(game, swapped(game, cards, deep), seed, two)
    for one, same in zip(_but_for_chance(first[0]), _but_for_chance(second[0]), strict=True):
        assert one == same
    assert len(first[0]) > len(_pages()) + 10
    # What is compared does tell the card once it lies face up.
    alike = NAMES[hole] == NAMES[other]
    assert alike or _but_for_chance(first[1]) != _but_for_chance(second[1])
