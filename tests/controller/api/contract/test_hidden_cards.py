"""A card that lies face down shows in nothing that the API says: the same round is played twice,
with two cards face down, and every word of it is the same until one of them is turned over."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Final

import httpx
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from controller.procedure.model.state import Step
from controller.rules.cards import Card
from hil.table.robots import Robot, wire_name
from tests.support.api.at_api import ApiScreen, AtApi, at_api
from tests.support.api.hidden_cards import (
    DEEP,
    Heard,
    Whims,
    are_twins,
    deep_alike,
    few_rounds,
    twins,
)

COMMITMENT: Final = re.compile(r"[0-9a-f]{64}")


async def play(
    folder: Path, game: str, cards: list[Card], seed: int, two: tuple[Card, Card]
) -> Heard:
    heard = Heard([], [])
    turned_over = False

    def hears(text: bytes) -> None:
        said = COMMITMENT.sub("C", text.decode())
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


@pytest.mark.parametrize("game", ["classic", "mega"])
@few_rounds(4)
@given(seed=st.integers(0, 2**32), deep=st.integers(*DEEP))
@example(seed=92383, deep=150)
def test_a_hole_card_shows_in_nothing(game: str, seed: int, deep: int) -> None:
    assume(are_twins(game, seed, deep))
    first, second = twins(play, game, seed, deep)
    assert second.hidden == first.hidden
    assert len(first.hidden) > 20


def test_a_card_that_is_turned_over_shows() -> None:
    """So that what is looked at above would show one."""
    first, second = twins(play, "classic", 5, deep_alike("classic", 5))
    assert second.hidden == first.hidden
    assert second.shown != first.shown
    assert '"HoleRevealed"' in "".join(first.shown)
