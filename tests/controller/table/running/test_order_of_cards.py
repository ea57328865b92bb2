"""Cards as they come: watched for an order, shuffled in batches that take turns, and ended by the
cut card."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from controller.procedure.model import events
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from controller.table.intake import DeviceSettings
from firmware_protocol.device import Put
from hil.devices import shoe_cards
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import until
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.serving import whole
from tests.support.table.simulated.simulated_table import FLOOR, room
from tests.support.table.simulated.telling import (
    BURNED,
    CARDS,
    HOUSES,
    Setting,
    Told,
    opened,
    telling,
)

ONE: Final = {"decks": 1}


@contextmanager
def batch(back: int) -> Iterator[None]:
    """Cards with this back are pulled over the reader."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shoe_cards, "back_of", lambda inside: back)
        yield


async def shuffled(t: Told) -> None:
    """The cards are taken out of the shoe and shuffled."""
    await t.to_step(Step.WAGERING)
    await t.does("ShuffleCalled")
    await t.to(lambda s: s.step in (Step.LOADING, Step.HELD))


async def a_round(t: Told) -> None:
    await t.to_step(Step.TURN)
    await t.to_end()


async def a_long_round(t: Told) -> None:
    """So many records that what came before lies in former segments."""
    await a_round(t)
    for _ in range(40):
        await t.does("FloorCalled")
        await t.does("FloorRuled", FLOOR, way="resume")


# --- the order in which cards come --------------------------------------------------------------

RISING: Final = ("Kc", "2c", "3c", "4c", "5c", "6c", "7c", "8c", "Th", "Ts", "9d")
THREE: Final = tuple((seat, "main", 1000) for seat in (1, 2, 3))


@simulated
async def test_a_card_that_lies_face_down_rings_no_alarm(tmp_path: Path) -> None:
    """It would be the seventh of its suit in a row: nobody is told before it is turned over."""

    async with opened(tmp_path, Setting(cards=RISING, wagers=THREE, plan={})) as t:
        await t.to_step(Step.REVEAL)
        assert "DeckSuspect" not in t.names()
        await t.reveals()
        assert t.names()[-2:] == ["HoleRevealed", "DeckSuspect"]
        t.shows(
            "Floor: rule on decks in doubt, factory order - decks out of play, or play on - "
            "bring a second person"
        )
        await t.ruled(Odd.DECK_SUSPECT, Way.RESUME)
        await t.to_end()


@simulated
async def test_another_card_in_its_place_rings_none_at_all(tmp_path: Path) -> None:
    """The same cards, and a hole card that breaks the row: nothing in the record differs before."""
    cards = (*RISING[:7], "9h", *RISING[8:])
    async with opened(tmp_path, Setting(cards=cards, wagers=THREE, plan={})) as t:
        await t.to_step(Step.PAYING)
        await t.to_end()
        assert "DeckSuspect" not in t.names()


# --- the decks of the sheet, and batches that take turns ----------------------------------------


@simulated
async def test_the_shuffler_is_told_the_decks_of_the_sheet(tmp_path: Path) -> None:
    async with opened(tmp_path, Setting(options={"decks": 8})) as t:
        await t.to_step(Step.LOADING)
        begun = [data for data in t.data("device") if data["what"] == "ShuffleStarted"]
        assert [data["decks"] for data in begun] == [8]
        t.shows("Cut, and load the shoe - 416 cards - 104 cards behind the cut card")
        done = [data for data in t.data("device") if data["what"] == "ShuffleDone"]
        assert [(data["count"], data["missing"], data["extra"]) for data in done] == [(416, 0, 0)]


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (Put(decks=2), "208 missing, 0 extra"),
        (Put(decks=8), "0 missing, 104 extra"),
        (Put(decks=6, remove=("Ac",)), "1 missing, 0 extra"),
        (Put(decks=6, add=("Ac",)), "0 missing, 1 extra"),
        (Put(decks=6, remove=("Ac",), add=("Kd",)), "1 missing, 1 extra"),
    ],
    ids=["two decks", "eight decks", "311 cards", "313 cards", "another card"],
)
@simulated
async def test_a_batch_that_is_not_the_decks_of_the_sheet(
    put: Put, said: str, tmp_path: Path
) -> None:
    async with opened(tmp_path) as t:
        await t.to_step(Step.SHUFFLE_NEEDED)
        assert t.room.shuffler is not None
        t.room.shuffler.request(put)
        await t.does("ShuffleStarted")
        await until(lambda: t.at(Step.HELD), 10)
        assert t.state.holds[-1].detail == said
        assert t.state.holds[-1].what is Odd.DECK_SUSPECT


BATCHES: Final = Setting(house=DeviceSettings(backs=(1, 2)), options=ONE)


@simulated
async def test_batches_of_two_backs_take_turns(tmp_path: Path) -> None:
    async with opened(tmp_path, BATCHES) as t:
        for back in (1, 2, 1):
            await a_round(t)
            assert t.table.table.now.memory.back == back
            await shuffled(t)
            assert t.at(Step.LOADING)
        assert "DeckSuspect" not in t.names()


@simulated
async def test_a_batch_that_is_not_the_other_one(tmp_path: Path) -> None:
    """The cards that were dealt came out of the shuffler at once: its lamp alone is not enough."""
    async with opened(tmp_path, BATCHES) as t:
        await a_round(t)
        await shuffled(t)
        await t.to(lambda s: len(s.seats) == 2)
        with batch(1):
            await t.draws()
        assert t.names()[-2:] == ["CardDrawn", "DeckSuspect"]
        assert t.at(Step.HELD)
        await t.ruled(Odd.DECK_SUSPECT, Way.DECKS_OUT)
        await a_round(t)  # of other decks, whichever batch they are
        assert t.names().count("DeckSuspect") == 1


@simulated
async def test_the_batch_before_is_known_over_a_start_of_the_controller(tmp_path: Path) -> None:
    """However long ago it was loaded."""
    at = BATCHES
    game = game_with("classic", ONE)
    async with room(tmp_path, game, stations=False, house=at.house) as made:
        made.segment = 32 * 1024
        async with telling(made, at.cards, at.wagers, at.plan) as t:
            await a_long_round(t)
            await shuffled(t)
            await t.to(lambda s: len(s.seats) == 2)
            known = t.table.table.now.memory
        assert known.former == 1
        async with telling(made, at.cards, at.wagers, at.plan) as t:
            assert t.table.table.now.memory == known


@simulated
async def test_a_batch_that_goes_back_in_is_known_over_a_start_of_the_controller(
    tmp_path: Path,
) -> None:
    """The shoe ran out in a round: its discards have the same backs, and come after the same
    batch."""
    seats = tuple((seat, "main", 1000) for seat in range(1, 8))
    at = BATCHES._replace(cards=(), wagers=seats, plan={})
    async with room(tmp_path, game_with("classic", ONE), stations=False, house=at.house) as made:
        made.segment = 32 * 1024
        async with telling(made, at.cards, at.wagers, at.plan) as t:
            await a_long_round(t)
            await shuffled(t)
            await t.to_step(Step.REFILL)
            await t.to(lambda s: s.step is not Step.REFILL)
            await t.to_step(Step.TURN)
            known = t.table.table.now.memory
            assert (known.again, known.back, known.former) == (True, 2, 1)
            assert known.faces
        async with telling(made, at.cards, at.wagers, at.plan) as t:
            assert t.table.table.now.memory == known
            await t.to_step(Step.SHUFFLE_NEEDED)
            assert "DeckSuspect" not in t.names()


# --- the cut card ---------------------------------------------------------------------------------


@pytest.mark.parametrize("house", HOUSES)
@simulated
async def test_the_cut_card_comes_in_a_round(house: str, tmp_path: Path) -> None:
    """The round after it is the last one; in the strict house it is that round itself."""
    async with opened(tmp_path, house=house) as t:
        burned = BURNED[: t.room.game.options.burn.on_shuffle]
        cards = list(whole(t.room, (*burned, *CARDS)))
        t.robot.cards = lambda: (*cards[: len(burned) + 3], "cut", *cards[len(burned) + 3 :])
        await t.to_deal(3)
        await t.draws()
        assert t.names()[-1] == "CutCardSeen"
        t.shows("Deal seat 1, second card")  # it is nobody's card
        await t.to_end()
        assert t.nets() == {1: 1000, 2: 0}
        if house == "default":
            t.shows("Take wagers: main - last round of this shoe")
            await a_round(t)
        assert t.state.round == (2 if house == "default" else 1)
        closed = next(data for data in t.data("device") if data["what"] == "ShoeInventory")
        assert closed["out"] == last_place(t, closed["shoe"]) - 1  # the cut card has one too


def last_place(t: Told, loading: int) -> int:
    """The last position of a card that came out of this loading."""
    cards = [data for data in t.data("device") if data.get("shoe") == loading and "pos" in data]
    return max(int(data["pos"]) for data in cards)


@pytest.mark.parametrize("house", HOUSES)
@simulated
async def test_the_cut_card_comes_before_a_round(house: str, tmp_path: Path) -> None:
    """The round that is about to begin is dealt, and is the last one."""

    async with opened(tmp_path, house=house) as t:
        burned = BURNED[: t.room.game.options.burn.on_shuffle]
        cards = list(whole(t.room, (*burned, *CARDS)))
        t.robot.cards = lambda: (*cards[: len(burned)], "cut", *cards[len(burned) :])
        await t.to(lambda s: len(s.seats) == 2)
        await t.draws()
        assert t.names()[-1] == "CutCardSeen"
        t.shows("Take wagers: main - last round of this shoe - 2 seats in, the first card "
                "locks them")  # fmt: skip
        await a_round(t)
        assert t.nets() == {1: 1000, 2: 0}
        shuffles = [one.event for one in t.made() if isinstance(one.event, events.ShuffleStarted)]
        assert len(shuffles) == 2
        assert t.state.round == 1
