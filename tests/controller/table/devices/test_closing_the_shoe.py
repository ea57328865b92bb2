"""The cards of a shoe, counted when it closes: missing, too many, there twice, of another batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from controller.procedure.model import events
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from drivers.devices import LinkState
from firmware_protocol.device import CannotDo, Draw, Load, Plug
from hil.devices import shoe_cards
from hil.table.robots.robot import card_of, mechanism
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import until
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.serving import whole
from tests.support.table.simulated.simulated_table import FLOOR, SECOND, SHOE, room
from tests.support.table.simulated.telling import (
    BURNED,
    WAY_ON,
    Setting,
    Told,
    entered,
    opened,
    telling,
)

ONE: Final = {"decks": 1}


def counted(t: Told) -> list[dict[str, Any]]:
    """What the record has of each shoe that was closed, the shoe's number aside."""
    found = [data for data in t.data("device") if data["what"] == "ShoeInventory"]
    return [{k: v for k, v in data.items() if k not in ("what", "shoe")} for data in found]


def of(out: int, seen: int, **more: Any) -> dict[str, Any]:
    """Out of the shoe, seen of them, and what is wrong."""
    right = {"extra": [], "foreign": 0, "missing": 0, "beyond": 0}
    return {"out": out, "seen": seen, "unseen": out - seen, **right, **more}


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


# --- counted when it closes -------------------------------------------------------------------


@simulated
async def test_a_shoe_is_counted_when_it_is_taken_out(tmp_path: Path) -> None:
    """The burned card was seen by nobody; all others were."""

    async with opened(tmp_path) as t:
        await a_round(t)
        assert counted(t) == []  # never while it is live
        await shuffled(t)
        assert counted(t) == [of(8, 7)]
        assert t.at(Step.LOADING)
        assert "DeckSuspect" not in t.names()


@simulated
async def test_a_duplicate_that_the_floor_let_pass_is_counted(tmp_path: Path) -> None:
    """It was told when it came, and is not told again."""

    async with opened(tmp_path, Setting(options=ONE, plan={})) as t:
        top = (BURNED[0], "9c", "8c", "8s", "9c", "Kc", "Td")
        t.robot.cards = lambda: whole(t.room, top)[:52]
        await t.to_deal(3)
        await t.draws()
        await t.ruled(Odd.DECK_SUSPECT, Way.RESUME)
        await t.to_end()
        await shuffled(t)
        assert counted(t) == [of(7, 6, extra=[card_of("9c")])]
        assert t.at(Step.LOADING)


@simulated
async def test_a_foreign_back_that_the_floor_let_pass_is_counted(tmp_path: Path) -> None:
    async with opened(tmp_path) as t:
        await t.to_card(1)
        with batch(2):
            await t.draws()
        t.shows(
            "Floor: rule on decks in doubt, foreign back - decks out of play, or play on - "
            "bring a second person"
        )
        await t.ruled(Odd.DECK_SUSPECT, Way.RESUME)
        await t.to_end()
        await shuffled(t)
        assert counted(t) == [of(8, 7, foreign=1)]
        assert t.at(Step.LOADING)


@simulated
async def test_a_shoe_that_runs_out_too_early(tmp_path: Path) -> None:
    """It was loaded with fifty-two cards, and not all of them have come."""

    async with opened(tmp_path, Setting(options=ONE)) as t:
        await t.to_card(1)
        await t.does("ShoeRanOut")
        t.shows(
            "Floor: rule on decks in doubt, cards missing - decks out of play, or play on - "
            "bring a second person"
        )
        assert counted(t) == [of(7, 5, missing=45)]
        suspect = t.made()[-1].event
        assert isinstance(suspect, events.DeckSuspect)
        assert (suspect.actor.name, suspect.why) == ("shoe", "short")
        await t.ruled(Odd.DECK_SUSPECT, Way.DECKS_OUT)
        await t.to_end()
        assert t.nets() == {1: 0, 2: 0}


@simulated
async def test_a_table_that_closes_counts_its_shoe(tmp_path: Path) -> None:
    """What is wrong with it stands in the record; a closed table is held for nobody."""

    async with opened(tmp_path) as t:
        await t.to_card(1)
        with batch(2):
            await t.draws()
        await t.ruled(Odd.DECK_SUSPECT, Way.RESUME)
        await t.to_end()
        await t.does("TableClosed", FLOOR, SECOND, bank=0)
        assert counted(t) == [of(8, 7, foreign=1)]
        assert t.at(Step.CLOSED)


@pytest.mark.parametrize("read", ["unreadable", "wrong"])
@simulated
async def test_what_people_have_read_is_counted_not_what_the_shoe_took_it_for(
    read: Any, tmp_path: Path
) -> None:
    """The nine of diamonds, which the shoe takes for a ten: and the ten comes as well."""

    cards = ("9c", "8c", "8s", "2h", "Kc", "Td", "9d")
    async with opened(tmp_path, Setting(options=ONE, cards=cards)) as t:
        await t.to_card(1)
        await t.draws(read=read, confidence=60)
        await entered(t, "9d")
        await t.to_end()
        assert t.nets() == {1: 1000, 2: 0}
        faces = t.table.table.now.memory.faces
        assert (8, card_of("9d")) in [(face.pos, face.card) for face in faces]
        await shuffled(t)
        assert counted(t) == [of(8, 7)]
        assert t.at(Step.LOADING)


@simulated
async def test_an_unsure_hole_card_is_counted_once(tmp_path: Path) -> None:
    cards = ("Jd", "8c", "8s", "2h", "Kc", "Td", "9d")
    async with opened(tmp_path, Setting(options=ONE, cards=cards, plan={})) as t:
        await t.to_deal(5)
        await t.draws(read="wrong", confidence=60)  # for the jack that seat 1 has
        await t.to_step(Step.REVEAL)
        await t.reveals()
        await entered(t, "Td")
        await t.to_end()
        await shuffled(t)
        assert counted(t) == [of(7, 6)]
        assert t.at(Step.LOADING)


@simulated
async def test_the_count_goes_on_over_a_start_of_the_controller(tmp_path: Path) -> None:
    """All that is known of the cards is in the record."""

    at = Setting()
    async with room(tmp_path, game_with("classic", {}), stations=False) as made:
        async with telling(made, at.cards, at.wagers, at.plan) as t:
            await t.to_card(1)
            await t.draws(read="unreadable")
            known = t.table.table.now.memory
        async with telling(made, at.cards, at.wagers, {}) as t:
            assert t.table.table.now.memory == known
            await until(lambda: t.at(Step.FELT), 20)
            await t.does("FeltConfirmed")
            await entered(t, "9d")
            await t.to_end()
            await shuffled(t)
            assert counted(t) == [of(8, 7)]


# --- cards that are put in --------------------------------------------------------------------


@simulated
async def test_a_shoe_that_was_loaded_while_its_cable_was_out(tmp_path: Path) -> None:
    """What it held is not what it holds: people look, and the count begins anew."""

    async with opened(tmp_path, Setting(options=ONE)) as t:
        await t.to_step(Step.TURN)
        t.room.shoe.request(Plug(connected=False))
        t.room.shoe.request(Load(decks=1, seed=9))
        t.room.shoe.request(Plug(connected=True))
        await until(lambda: t.whats("device")[-1] == "ShoeLoaded", 10)
        t.shows(f"Stop dealing - device lost, cards were put in{WAY_ON}")
        await until(lambda: t.table.supervisor(SHOE).state is LinkState.READY, 10)
        assert await t.refuses("FeltConfirmed") == "felt_not_asked"
        with pytest.raises(CannotDo, match="locked"):
            t.room.shoe.request(Draw())
        await t.does("CountersAccepted", FLOOR, SECOND)
        await t.to_step(Step.TURN)
        await t.does("RoundVoided", FLOOR, SECOND, reason="another shoe")
        await t.to_end()
        assert t.nets() == {1: 0, 2: 0}
        assert mechanism(t.room.shoe)["loading"] == 2
