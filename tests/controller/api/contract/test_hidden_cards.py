"""A card that lies face down shows in nothing that the API says: the same round is played twice,
with two cards face down, and every word of it is the same until one of them is turned over."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st

from controller.procedure.model.state import Step
from controller.rules.cards import VALUE, Card
from controller.rules.hands import is_blackjack
from hil.table.robots import Robot, wire_name
from tests.support.api.at_api import ApiScreen, AtApi, at_api, run
from tests.support.api.hidden_cards import DEEP, Whims, shoe, swapped, up_and_hole

COMMITMENT: Final = re.compile(rb"[0-9a-f]{64}")


class Heard(NamedTuple):
    """All that the API has said, in order: what streams send, and what requests are answered."""

    hidden: list[bytes]
    """Before the card was turned over."""
    shown: list[bytes]
    """After it."""


async def _play(folder: Path, game: str, cards: list[Card], seed: int) -> Heard:
    heard = Heard([], [])
    turned_over = False

    def hears(text: bytes) -> None:
        said = COMMITMENT.sub(b"C", text)
        into = heard.shown if turned_over else heard.hidden
        if not into or into[-1] != said:
            into.append(said)

    async with at_api(folder, game) as at:
        screen = await at.dealing()
        names = tuple(wire_name(card) for card in cards)
        random = Random(seed)
        robot = Robot(at.room, ApiScreen(at, screen), Whims(random), cards=lambda: names)
        _listen(at, hears)
        at.api.views.subscribe(lambda: hears(at.api.views.now().body))
        while not _over(at):
            if at.state.hole and random.random() < 0.3:
                # Before their time, which tells nothing either.
                early = "RevealHole" if at.state.step is Step.CHECK else "CheckHole"
                await screen.act(early)
            await robot.step()
        turned_over = True
        if at.state.step is Step.REVEAL:
            await robot.step()
    return heard


def _over(at: AtApi) -> bool:
    return at.state.step in (Step.REVEAL, Step.CLEARING)


def _listen(at: AtApi, hears: object) -> None:
    async def hook(response: httpx.Response) -> None:
        hears(await response.aread())  # type: ignore[operator]

    at.client.http.event_hooks = {"response": [hook]}


def played(game: str, cards: list[Card], seed: int) -> Heard:
    found: list[Heard] = []

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            found.append(await _play(Path(folder), game, cards, seed))

    run(main())
    return found[0]


@pytest.mark.parametrize("game", ["classic", "mega"])
@settings(
    max_examples=4,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a round is none the smaller for less
)
@given(seed=st.integers(0, 2**32), deep=st.integers(*DEEP))
@example(seed=92383, deep=150)
def test_a_hole_card_shows_in_nothing(game: str, seed: int, deep: int) -> None:
    cards = shoe(game, seed)
    up, hole = up_and_hole(game, cards)
    other = cards[deep]
    assume(other != hole)
    # The check tells that one bit, and no more.
    assume(is_blackjack(up, hole) == is_blackjack(up, other))
    first = played(game, cards, seed)
    assert played(game, swapped(game, cards, deep), seed).hidden == first.hidden
    assert len(first.hidden) > 20


def test_a_card_that_is_turned_over_shows() -> None:
    """So that what is looked at above would show one."""
    cards = shoe("classic", 5)
    _, hole = up_and_hole("classic", cards)
    alike = (at for at in range(*DEEP) if VALUE[cards[at]] == VALUE[hole] and cards[at] != hole)
    first = played("classic", cards, 5)
    second = played("classic", swapped("classic", cards, next(alike)), 5)
    assert second.hidden == first.hidden
    assert second.shown != first.shown
    assert b'"HoleRevealed"' in b"".join(first.shown)
