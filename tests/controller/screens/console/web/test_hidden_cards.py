"""No card that lies face down, and no secret, is in anything that the console answers or streams:
the same random round is played twice, with two cards face down, and every word is the same."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st

from controller.procedure.model.state import Step
from controller.rules.cards import VALUE, Card
from controller.rules.hands import is_blackjack
from hil.table.robots import Robot, wire_name
from tests.support.api.at_api import ApiScreen, run
from tests.support.api.hidden_cards import DEEP, Whims, shoe, swapped, up_and_hole
from tests.support.screens.at_pages import AtPages, Reader, Tab, at_pages
from tests.support.table.simulated.house import PINS

PATHS: Final = ("/", "/stream", "/review", "/review/", "/review/enter", "/nothing", "/act")
ACTS: Final = ("CheckHole", "RevealHole", "Cleared", "LaySpare", "TableOpened")
_CHANCE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""A session's words."""


class Heard(NamedTuple):
    hidden: list[str]
    """Before the card was turned over."""
    shown: list[str]
    """After it."""
    secrets: frozenset[str]


async def _walk(pages: AtPages, tab: Tab, random: Random) -> list[str]:
    """Every route, and an act that is not for now."""
    said = []
    for path in PATHS:
        if path != "/stream":
            answer = await tab.ask("GET", path)
            said.append(f"{path} {answer.status_code} {answer.text}")
    await tab.open()
    answer = await tab.act(random.choice(ACTS))
    said.append(answer.text)
    answer = await tab.act("ErrorCardExposed", card=100)  # none that there is
    said.append(answer.text)
    return said


async def _play(folder: Path, game: str, cards: list[Card], seed: int) -> Heard:
    heard = Heard([], [], frozenset())
    async with at_pages(folder, game) as pages:
        dealer = await pages.at.dealing()
        watch = pages.tab()
        await watch.open()
        random = Random(seed)
        names = tuple(wire_name(card) for card in cards)
        robot = Robot(
            pages.at.room, ApiScreen(pages.at, dealer), Whims(random), cards=lambda: names
        )
        async with watch.stream() as stream:
            while pages.at.state.step not in (Step.REVEAL, Step.CLEARING):
                await robot.step()
                if pages.at.state.hole:
                    heard.hidden.extend(await _walk(pages, watch, random))
            heard.hidden.append(_streamed(stream))
            if pages.at.state.step is Step.REVEAL:
                await robot.step()
            heard.shown.extend(await _walk(pages, watch, random))
        secrets = {secret for one in pages.screens.browsers for secret in (one.token, one.id)}
    return Heard(heard.hidden, heard.shown, frozenset(secrets))


def _streamed(stream: Reader) -> str:
    return stream.data.decode()


def played(game: str, cards: list[Card], seed: int) -> Heard:
    found: list[Heard] = []

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            found.append(await _play(Path(folder), game, cards, seed))

    run(main())
    return found[0]


def _but_for_chance(said: list[str]) -> list[str]:
    return [_CHANCE.sub("<chance>", one) for one in said]


@pytest.mark.parametrize("game", ["classic", "mega"])
@settings(
    max_examples=2,
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
    second = played(game, swapped(game, cards, deep), seed)
    assert _but_for_chance(first.hidden) == _but_for_chance(second.hidden)
    assert len(first.hidden) > 20


def test_a_card_that_is_turned_over_shows_and_no_secret_does() -> None:
    """So that what is looked at above would show one."""
    cards = shoe("classic", 5)
    _, hole = up_and_hole("classic", cards)
    alike = (at for at in range(*DEEP) if VALUE[cards[at]] == VALUE[hole] and cards[at] != hole)
    first = played("classic", cards, 5)
    second = played("classic", swapped("classic", cards, next(alike)), 5)
    assert _but_for_chance(first.hidden) == _but_for_chance(second.hidden)
    assert _but_for_chance(first.shown) != _but_for_chance(second.shown)
    text = "".join((*first.hidden, *first.shown))
    assert len(first.secrets) == 2
    assert not [one for one in (*first.secrets, *PINS.values()) if one in text]
    assert re.search(r"[0-9a-f]{64}", text) is None  # no commitment, no key
