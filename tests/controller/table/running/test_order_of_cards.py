"""Cards as they come: checked for an order, shuffled in batches that alternate, ended by the cut
card, and counted when the shoe closes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from controller.procedure.model import events
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from controller.table.intake import DeviceSettings
from drivers.devices import LinkState
from firmware_protocol.device import CannotDo, Draw, Load, Plug, Put
from hil.devices import shoe_cards
from hil.table.robots.robot import card_of, mechanism
from tests.support.asynchronous import in_turn, simulated, simulated_in
from tests.support.drivers.simulated import until
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.serving import FLOOR, SECOND, SHOE, room, whole
from tests.support.table.simulated.telling import (
    BURNED,
    CARDS,
    HOUSES,
    WAY_ON,
    Setting,
    Told,
    entered,
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
    await in_turn(
        t.to_step(Step.WAGERING),
        t.does("ShuffleCalled"),
        t.to(lambda s: s.step in (Step.LOADING, Step.HELD)),
    )


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


@simulated_in(opened, Setting(cards=RISING, wagers=THREE, plan={}))
async def test_a_card_that_lies_face_down_rings_no_alarm(t: Told) -> None:
    """It would be the seventh of its suit in a row: nobody is told before it is turned over."""
    await t.to_step(Step.REVEAL)
    assert "DeckSuspect" not in t.names()
    await t.reveals()
    assert t.names()[-2:] == ["HoleRevealed", "DeckSuspect"]
    await in_turn(
        t.shows(
            "Floor: rule on decks in doubt, factory order - decks out of play, or play on - "
            "bring a second person"
        ),
        t.ruled(Odd.DECK_SUSPECT, Way.RESUME),
        t.to_end(),
    )


@simulated
async def test_another_card_in_its_place_rings_none_at_all(tmp_path: Path) -> None:
    """The same cards, and a hole card that breaks the row: nothing in the record differs before."""
    cards = (*RISING[:7], "9h", *RISING[8:])
    async with opened(tmp_path, Setting(cards=cards, wagers=THREE, plan={})) as t:
        await t.to_step(Step.PAYING)
        await t.to_end()
        assert "DeckSuspect" not in t.names()


# --- the decks of the sheet, and batches that take turns ----------------------------------------


@simulated_in(opened, Setting(options={"decks": 8}))
async def test_the_shuffler_is_told_the_decks_of_the_sheet(t: Told) -> None:
    await t.to_step(Step.LOADING)
    assert [data["decks"] for data in t.data("device", "ShuffleStarted")] == [8]
    await t.shows("Cut, and load the shoe - 416 cards - 104 cards behind the cut card")
    done = t.data("device", "ShuffleDone")
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
@simulated_in(opened)
async def test_a_batch_that_is_not_the_decks_of_the_sheet(t: Told, put: Put, said: str) -> None:
    await in_turn(
        t.to_step(Step.SHUFFLE_NEEDED),
        t.asked(t.shuffler, put),
        t.does("ShuffleStarted"),
        t.comes_to(Step.HELD, 10),
    )
    assert (t.state.holds[-1].detail, t.state.holds[-1].what) == (said, Odd.DECK_SUSPECT)


BATCHES: Final = Setting(house=DeviceSettings(backs=(1, 2)), options=ONE)


@simulated_in(opened, BATCHES)
async def test_batches_of_two_backs_take_turns(t: Told) -> None:
    for back in (1, 2, 1):
        await a_round(t)
        assert t.table.table.now.memory.back == back
        await shuffled(t)
        await t.stands(Step.LOADING)
    assert "DeckSuspect" not in t.names()


@simulated_in(opened, BATCHES)
async def test_a_batch_that_is_not_the_other_one(t: Told) -> None:
    """The cards that were dealt came out of the shuffler at once: its lamp alone is not enough."""
    await in_turn(
        a_round(t),
        shuffled(t),
        t.to(lambda s: len(s.seats) == 2),
    )
    with batch(1):
        await t.draws()
    assert t.names()[-2:] == ["CardDrawn", "DeckSuspect"]
    await in_turn(
        t.stands(Step.HELD),
        t.ruled(Odd.DECK_SUSPECT, Way.DECKS_OUT),
        a_round(t),  # of other decks, whichever batch they are
    )
    assert t.names().count("DeckSuspect") == 1


@simulated
async def test_the_batch_before_is_known_over_a_start_of_the_controller(tmp_path: Path) -> None:
    """However long ago it was loaded."""
    at = BATCHES
    async with room(tmp_path, game_with("classic", ONE), stations=False, house=at.house) as made:
        made.segment = 32 * 1024
        async with telling(made, at.cards, at.wagers, at.plan) as t:
            await in_turn(
                a_long_round(t),
                shuffled(t),
                t.to(lambda s: len(s.seats) == 2),
            )
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
            await in_turn(
                a_long_round(t),
                shuffled(t),
                t.to_step(Step.REFILL),
                t.to(lambda s: s.step is not Step.REFILL),
                t.to_step(Step.TURN),
            )
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
        await t.shows("Deal seat 1, second card")  # it is nobody's card
        await t.ends({1: 1000, 2: 0})
        if house == "default":
            await t.shows("Take wagers: main - last round of this shoe")
            await a_round(t)
        assert t.state.round == (2 if house == "default" else 1)
        closed = t.data("device", "ShoeInventory")[0]
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
        await in_turn(
            t.shows(
                "Take wagers: main - last round of this shoe - 2 seats in, the first card "
                "locks them"
            ),
            a_round(t),
            t.won({1: 1000, 2: 0}),
        )
        shuffles = [one.event for one in t.made() if isinstance(one.event, events.ShuffleStarted)]
        assert len(shuffles) == 2
        assert t.state.round == 1


def counted(t: Told) -> list[dict[str, Any]]:
    """What the record has of each shoe that was closed, the shoe's number aside."""
    found = t.data("device", "ShoeInventory")
    return [{k: v for k, v in data.items() if k not in ("what", "shoe")} for data in found]


def of(out: int, seen: int, **more: Any) -> dict[str, Any]:
    """Out of the shoe, seen of them, and what is wrong."""
    right = {"extra": [], "foreign": 0, "missing": 0, "beyond": 0}
    return {"out": out, "seen": seen, "unseen": out - seen, **right, **more}


# --- counted when it closes -------------------------------------------------------------------


@simulated_in(opened)
async def test_a_shoe_is_counted_when_it_is_taken_out(t: Told) -> None:
    """The burned card was seen by nobody; all others were."""
    await a_round(t)
    assert counted(t) == []  # never while it is live
    await shuffled(t)
    assert counted(t) == [of(8, 7)]
    assert t.at(Step.LOADING)
    assert "DeckSuspect" not in t.names()


@simulated_in(opened, Setting(options=ONE, plan={}))
async def test_a_duplicate_that_the_floor_let_pass_is_counted(t: Told) -> None:
    """It was told when it came, and is not told again."""
    top = (BURNED[0], "9c", "8c", "8s", "9c", "Kc", "Td")
    t.robot.cards = lambda: whole(t.room, top)[:52]
    await in_turn(
        t.to_deal(3),
        t.draws(),
        t.ruled(Odd.DECK_SUSPECT, Way.RESUME),
        t.to_end(),
        shuffled(t),
    )
    assert counted(t) == [of(7, 6, extra=[card_of("9c")])]
    assert t.at(Step.LOADING)


@simulated_in(opened)
async def test_a_foreign_back_that_the_floor_let_pass_is_counted(t: Told) -> None:
    await t.to_card(1)
    with batch(2):
        await t.draws()
    await in_turn(
        t.shows(
            "Floor: rule on decks in doubt, foreign back - decks out of play, or play on - "
            "bring a second person"
        ),
        t.ruled(Odd.DECK_SUSPECT, Way.RESUME),
        t.to_end(),
        shuffled(t),
    )
    assert counted(t) == [of(8, 7, foreign=1)]
    assert t.at(Step.LOADING)


@simulated_in(opened, Setting(options=ONE))
async def test_a_shoe_that_runs_out_too_early(t: Told) -> None:
    """It was loaded with fifty-two cards, and not all of them have come."""
    await in_turn(
        t.to_card(1),
        t.does("ShoeRanOut"),
        t.shows(
            "Floor: rule on decks in doubt, cards missing - decks out of play, or play on - "
            "bring a second person"
        ),
    )
    assert counted(t) == [of(7, 5, missing=45)]
    suspect = t.made()[-1].event
    assert isinstance(suspect, events.DeckSuspect)
    assert (suspect.actor.name, suspect.why) == ("shoe", "short")
    await t.ruled(Odd.DECK_SUSPECT, Way.DECKS_OUT)
    await t.ends({1: 0, 2: 0})


@simulated_in(opened)
async def test_a_table_that_closes_counts_its_shoe(t: Told) -> None:
    """What is wrong with it stands in the record; a closed table is held for nobody."""
    await t.to_card(1)
    with batch(2):
        await t.draws()
    await in_turn(
        t.ruled(Odd.DECK_SUSPECT, Way.RESUME),
        t.to_end(),
        t.does("TableClosed", FLOOR, SECOND, bank=0),
    )
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
        await in_turn(
            t.to_card(1),
            t.draws(read=read, confidence=60),
            entered(t, "9d"),
            t.ends({1: 1000, 2: 0}),
        )
        faces = t.table.table.now.memory.faces
        assert (8, card_of("9d")) in [(face.pos, face.card) for face in faces]
        await shuffled(t)
        assert counted(t) == [of(8, 7)]
        assert t.at(Step.LOADING)


@simulated
async def test_an_unsure_hole_card_is_counted_once(tmp_path: Path) -> None:
    cards = ("Jd", "8c", "8s", "2h", "Kc", "Td", "9d")
    async with opened(tmp_path, Setting(options=ONE, cards=cards, plan={})) as t:
        await in_turn(
            t.to_deal(5),
            t.draws(read="wrong", confidence=60),  # for the jack that seat 1 has
            t.to_step(Step.REVEAL),
            t.reveals(),
            entered(t, "Td"),
            t.to_end(),
            shuffled(t),
        )
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
            await in_turn(
                t.comes_to(Step.FELT, 20),
                t.does("FeltConfirmed"),
                entered(t, "9d"),
                t.to_end(),
                shuffled(t),
            )
            assert counted(t) == [of(8, 7)]


# --- cards that are put in --------------------------------------------------------------------


@simulated_in(opened, Setting(options=ONE))
async def test_a_shoe_that_was_loaded_while_its_cable_was_out(t: Told) -> None:
    """What it held is not what it holds: people look, and the count begins anew."""
    await in_turn(
        t.to_step(Step.TURN),
        t.asked(t.room.shoe, Plug(connected=False), Load(decks=1, seed=9), Plug(connected=True)),
        until(lambda: t.whats("device")[-1] == "ShoeLoaded", 10),
        t.shows(f"Stop dealing - device lost, cards were put in{WAY_ON}"),
        until(lambda: t.table.supervisor(SHOE).state is LinkState.READY, 10),
        t.refused("felt_not_asked", "FeltConfirmed"),
    )
    with pytest.raises(CannotDo, match="locked"):
        t.room.shoe.request(Draw())
    await in_turn(
        t.does("CountersAccepted", FLOOR, SECOND),
        t.to_step(Step.TURN),
        t.does("RoundVoided", FLOOR, SECOND, reason="another shoe"),
        t.to_end(),
    )
    assert (t.nets(), mechanism(t.room.shoe)["loading"]) == ({1: 0, 2: 0}, 2)
