"""The life of a table between rounds: opened, shuffled, burned, wagered at, relieved, closed."""

from __future__ import annotations

from typing import Any

import pytest

from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.model.effects import Burned, DecksOut, Shuffler, Tell, Told, WagersLocked
from controller.procedure.model.events import (
    Actor,
    CardBurned,
    Cleared,
    CutCardSeen,
    DealerRelieved,
    DecksChanged,
    DeckSuspect,
    Event,
    FloorCalled,
    ShoeLoaded,
    ShuffleCalled,
    ShuffleDone,
    ShuffleStarted,
    TableClosed,
    TableOpened,
    WagerPlaced,
    WagerRemoved,
)
from controller.procedure.model.state import State, Step
from controller.rules.irregularities import Irregularity, Way
from tests.support.procedure.scenes import IN_ROUND, ROUND, SHUFFLED
from tests.support.procedure.table import HOUSES, Table

BURNS = {"default": (1, 1), "strict": (3, 2)}
"""Cards burned after a shuffle and for a new dealer."""
AFTER_CUT = {"default": 1, "strict": 0}
OPEN = TableOpened(FLOOR, 100, SECOND)
CLOSE = TableClosed(FLOOR, 100, SECOND)


def closed(game: str = "classic", house: str = "default", **options: Any) -> Table:
    return Table(game, house, start=State(), **options)


def play(t: Table) -> Table:
    """A whole round of seat 1."""
    t.bets(1000).deal(ROUND).finish()
    return t


# Opening


def test_the_floor_opens_with_a_second_person() -> None:
    t = closed()
    t.asks(Tell.OPEN_TABLE, to="floor")
    assert t.locked
    assert t.refuses(TableOpened(DEALER, 100, SECOND)) == "not_theirs"
    assert t.refuses(TableOpened(FLOOR, 100)) == "open_table"
    assert t.refuses(TableOpened(FLOOR, 100, Actor("dealer", FLOOR.name))) == "open_table"
    t.do(OPEN).at(Step.SHUFFLE_NEEDED)
    assert t.refuses(OPEN) == "already_open"


@pytest.mark.parametrize("house", HOUSES)
def test_from_closed_to_the_first_wager(house: str) -> None:
    t = closed(house=house).do(OPEN)
    t.asks(Tell.SHUFFLE, count=6)
    assert t.the(Shuffler).decks == 0
    t.do(ShuffleStarted(SHOE)).asks(Tell.AWAIT_SHUFFLE, count=6)
    assert t.the(Shuffler).decks == 6
    t.do(ShuffleDone(SHOE)).asks(Tell.LOAD_SHOE, count=312)
    assert t.the(Shuffler).decks == 0
    t.do(ShoeLoaded(SHOE, 312))
    for left in range(BURNS[house][0], 0, -1):
        t.asks(Tell.BURN, place="burn", count=left)
        assert not t.locked
        t.do(CardBurned(SHOE))
    assert t.facts_of(Burned) == [Burned()] * BURNS[house][0]
    t.asks(Tell.TAKE_WAGERS, choices=("main",), count=0)
    assert t.state == State(step=Step.WAGERING, shoe=t.state.shoe)
    assert t.state.shoe.loaded


def test_cards_are_shuffled_by_hand() -> None:
    t = closed(burn__on_shuffle=0).do(OPEN)
    assert t.refuses(ShoeLoaded(DEALER, 312)) == "no_shoe_wanted"
    t.do(ShuffleStarted(DEALER))
    assert t.refuses(ShoeLoaded(DEALER, 312)) == "no_shoe_wanted"
    t.do(ShuffleDone(DEALER), ShoeLoaded(DEALER, 312)).at(Step.WAGERING)


@pytest.mark.parametrize(
    "event",
    [ShuffleDone(SHOE, 1), ShuffleDone(SHOE, 0, 1), ShoeLoaded(SHOE, 311), ShoeLoaded(SHOE, 313)],
    ids=["card missing", "card too many", "311 cards", "313 cards"],
)
@pytest.mark.parametrize("house", HOUSES)
def test_a_count_that_is_not_the_decks(house: str, event: ShuffleDone | ShoeLoaded) -> None:
    t = closed(house=house).do(OPEN, ShuffleStarted(SHOE))
    if isinstance(event, ShoeLoaded):
        t.do(ShuffleDone(SHOE))
    t.do(event)
    t.ruled(Irregularity.DECK_SUSPECT, Way.DECKS_OUT).at(Step.SHUFFLE_NEEDED)
    t.asks(Tell.CHANGE_DECKS)
    assert [told.who for told in t.facts_of(Told)] == ["floor", "surveillance"]
    assert {told.what for told in t.facts_of(Told)} == {"deck_suspect"}
    assert t.facts_of(DecksOut) == [DecksOut()]
    assert t.refuses(ShuffleStarted(SHOE)) == "start_shuffle"
    assert t.refuses(DecksChanged(DEALER, SECOND)) == "not_theirs"
    assert t.refuses(DecksChanged(FLOOR)) == "change_decks"
    t.do(DecksChanged(FLOOR, SECOND)).asks(Tell.SHUFFLE)
    assert t.refuses(DecksChanged(FLOOR, SECOND)) == "change_decks"
    play(t.shuffle())


def test_decks_that_went_out_stay_out_over_a_closing() -> None:
    t = Table().do(DeckSuspect(FLOOR, "foreign_back"))
    t.ruled(Irregularity.DECK_SUSPECT, Way.DECKS_OUT).asks(Tell.CHANGE_DECKS)
    t.do(CLOSE, OPEN).asks(Tell.CHANGE_DECKS)


# The cut card, and other ends of a shoe


def rounds_to_shuffle(t: Table) -> int:
    """How many whole rounds can be begun before a shuffle is called for."""
    for rounds in range(9):
        if t.step is not Step.WAGERING:
            t.at(Step.SHUFFLE_NEEDED)
            return rounds
        play(t)
    raise AssertionError("the shoe never ends")


@pytest.mark.parametrize("phase", IN_ROUND)
@pytest.mark.parametrize("house", HOUSES)
def test_the_cut_card_in_a_round(house: str, phase: str) -> None:
    t = IN_ROUND[phase](Table(house=house).bets(1000))
    before = t.state.step
    t.do(CutCardSeen(SHOE))
    assert t.state.step is before
    assert t.refuses(CutCardSeen(SHOE)).startswith("cut_card")
    t.finish({"dealing": "KC (9D)", "hand card": "9D", "dealer card": "TD"}.get(phase, ""))
    assert rounds_to_shuffle(t) == AFTER_CUT[house]


@pytest.mark.parametrize("house", HOUSES)
def test_the_cut_card_between_rounds_lets_one_more_be_dealt(house: str) -> None:
    t = Table(house=house).do(CutCardSeen(SHOE))
    t.asks(Tell.TAKE_WAGERS, warn="last_round")
    assert rounds_to_shuffle(t) == 1


def test_the_cut_card_comes_while_cards_are_burned() -> None:
    t = closed().do(OPEN, *SHUFFLED, CutCardSeen(SHOE)).until(Step.WAGERING)
    assert rounds_to_shuffle(t) == 1


def test_the_last_round_is_announced() -> None:
    play(t := Table().do(CutCardSeen(SHOE))).at(Step.SHUFFLE_NEEDED)
    assert t.refuses(CutCardSeen(SHOE)) == "no_shoe_no_cut_card"
    t.shuffle().asks(Tell.TAKE_WAGERS, warn="")
    t.bets(1000).deal(ROUND).do(CutCardSeen(SHOE)).finish()
    t.asks(Tell.TAKE_WAGERS, warn="last_round")


def test_no_more_rounds_than_the_house_deals_from_a_shoe() -> None:
    assert rounds_to_shuffle(Table(shuffle__max_rounds=3)) == 3
    t = Table(shuffle__max_rounds=1)
    play(t)
    assert rounds_to_shuffle(t.shuffle()) == 1


def test_a_shuffle_is_called_between_rounds_only() -> None:
    t = Table().bets(1000)
    assert t.refuses(ShuffleCalled(DEALER)) == "call_shuffle"
    t.do(WagerRemoved(player(1), 1, "main"), ShuffleCalled(DEALER))
    t.at(Step.SHUFFLE_NEEDED)
    assert t.refuses(ShuffleCalled(DEALER)) == "no_shuffle_now"
    t.shuffle().bets(1000).deal("9C")
    assert t.refuses(ShuffleCalled(DEALER)) == "no_shuffle_now"


def test_a_hidden_card_beside_the_shoe_goes_into_the_shuffle() -> None:
    t = Table().bets(1000).deal(ROUND).slip("5H")
    t.finish()
    play(t.do(ShuffleCalled(DEALER)).shuffle())  # its first card comes from the shoe


# Wagers


def test_a_wager_is_placed_changed_and_taken_back() -> None:
    t = Table("mega").bet(3, 1000, buster=100, toke_main=50)
    t.asks(Tell.TAKE_WAGERS, count=1).bet(3, 2000).bet(1, 500)
    assert [(seat.number, seat.main) for seat in t.state.seats] == [(1, 500), (3, 2000)]
    assert t.state.seats[1].buster == 100
    assert t.refuses(WagerRemoved(player(1), 1, "buster")) == "remove_wager"
    t.do(WagerRemoved(player(3), 3, "buster"))
    assert t.state.seats[1].buster == 0
    t.do(WagerRemoved(player(3), 3, "main"))
    assert [seat.number for seat in t.state.seats] == [1]
    assert t.refuses(WagerRemoved(player(3), 3, "toke_main")) == "remove_wager"


LIMITS: dict[str, Any] = {
    "money__unit": 100,
    "limits__main__min": 500,
    "limits__main__max": 5000,
    "limits__main__step": 500,
    "limits__buster__min": 100,
    "limits__buster__max": 300,
}


@pytest.mark.parametrize(
    ("seat", "bet", "amount", "refusal"),
    [
        (0, "main", 1000, "no_such_seat"),
        (8, "main", 1000, "no_such_seat"),
        (1, "diamond", 100, "bet_not_offered"),
        (2, "buster", 100, "without_main"),
        (2, "toke_main", 100, "without_main"),
        (1, "main", 0, "not_an_amount"),
        (1, "main", -500, "not_an_amount"),
        (1, "main", 550, "not_an_amount"),
        (1, "main", 400, "below_minimum"),
        (1, "main", 5500, "above_maximum"),
        (1, "main", 700, "off_step"),
        (1, "buster", 50, "not_an_amount"),
        (1, "buster", 400, "above_maximum"),
    ],
)
def test_a_wager_that_is_not_taken(seat: int, bet: str, amount: int, refusal: str) -> None:
    t = Table("mega", **LIMITS).bet(1, 500).bet(3, 5000, buster=300).bet(3, 5000, buster=100)
    wager = WagerPlaced(DEALER, seat, bet, amount)  # type: ignore[arg-type]
    assert t.refuses(wager) == refusal


def test_a_player_wagers_at_the_own_seat() -> None:
    t = Table().bets(1000)
    assert t.refuses(WagerPlaced(player(2), 1, "main", 2000)) == "other_seat"
    assert t.refuses(WagerRemoved(player(2), 1, "main")) == "other_seat"
    t.do(WagerPlaced(DEALER, 2, "main", 1000))


def test_with_the_first_card_wagers_are_locked() -> None:
    t = Table("mega", limits__table_payout=100000)
    t.bet(1, 1000, buster=100).bet(2, 500, toke_main=50).deal("9C")
    assert t.facts_of(WagersLocked) == [WagersLocked(1, 1650, 100000)]
    t.at(Step.DEALING)
    assert t.refuses(WagerPlaced(player(1), 1, "main", 2000)) == "late_wager"
    assert t.refuses(WagerPlaced(player(3), 3, "main", 2000)) == "late_wager"
    assert t.refuses(WagerRemoved(player(1), 1, "main")) == "wagers_locked"
    assert t.refuses(WagerRemoved(player(1), 1, "buster")) == "wagers_locked"


def test_no_wager_at_a_closed_table() -> None:
    assert closed().refuses(WagerPlaced(player(1), 1, "main", 1000)) == "closed_no_wagers"


def test_the_first_rounds_bonus_is_open_on_the_first_round_only() -> None:
    t = Table("maxtime").bet(1, 1000, diamond=100)
    t.asks(Tell.TAKE_WAGERS, choices=("main", "diamond")).deal(ROUND).finish()
    t.bet(1, 1000).asks(Tell.TAKE_WAGERS, choices=("main",))
    assert t.refuses(WagerPlaced(player(1), 1, "diamond", 100)) == "first_round_only"
    t.do(WagerRemoved(player(1), 1, "main"), ShuffleCalled(DEALER))
    t.shuffle().bet(1, 1000, diamond=100)


def test_the_bonus_of_every_round_is_open_on_every_round() -> None:
    play(Table("sf21x")).bet(1, 1000, diamond=100).asks(
        Tell.TAKE_WAGERS, choices=("main", "diamond")
    )


# Another dealer


@pytest.mark.parametrize("house", HOUSES)
def test_a_dealer_relieved_between_rounds_burns(house: str) -> None:
    t = Table(house=house).bets(1000).do(DealerRelieved(Actor("dealer", "bo")))
    t.at(Step.RELIEF_BURN)
    for left in range(BURNS[house][1], 0, -1):
        t.asks(Tell.BURN, count=left)
        assert not t.locked
        t.do(CardBurned(SHOE))
    t.at(Step.WAGERING)
    assert t.state.seats[0].main == 1000
    assert t.facts_of(Burned) == [Burned()] * BURNS[house][1]
    assert [told.what for told in t.facts_of(Told)] == ["dealer_relieved"]
    assert t.deal(ROUND).finish() == {1: 1000}


def test_a_dealer_relieved_where_nothing_is_burned_for_it() -> None:
    t = Table(burn__on_dealer=0).do(DealerRelieved(Actor("dealer", "bo")))
    t.at(Step.WAGERING)
    assert t.facts_of(Told) == [Told("floor", "dealer_relieved", 0, "bo")]


@pytest.mark.parametrize("phase", IN_ROUND)
def test_a_dealer_relieved_in_a_round_burns_nothing(phase: str) -> None:
    t = IN_ROUND[phase](Table().bets(1000))
    before = t.state
    t.do(DealerRelieved(Actor("dealer", "bo")))
    assert t.state == before
    assert t.facts_of(Told) == [Told("floor", "dealer_relieved", 0, "bo")]
    assert t.refuses(DealerRelieved(FLOOR)) == "not_theirs"


def test_a_relief_burn_ends_when_the_decks_go_out() -> None:
    t = Table().do(DealerRelieved(DEALER), DeckSuspect(FLOOR, "foreign_back"))
    t.ruled(Irregularity.DECK_SUSPECT, Way.DECKS_OUT)
    t.at(Step.SHUFFLE_NEEDED)
    play(t.shuffle()).at(Step.WAGERING)


# Closing


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (ShuffleStarted(SHOE),),
        (ShuffleStarted(SHOE), ShuffleDone(SHOE)),
        SHUFFLED,
        (*SHUFFLED, CardBurned(SHOE)),
    ],
    ids=["shuffle needed", "shuffling", "loading", "burning", "wagering"],
)
def test_without_a_wager_the_table_closes_at_once(steps: tuple[Event, ...]) -> None:
    t = closed().do(OPEN, *steps)
    assert t.refuses(TableClosed(FLOOR, 100)) == "close_table"
    assert t.refuses(TableClosed(FLOOR, 100, Actor("surveillance", FLOOR.name))) == "close_table"
    assert t.refuses(TableClosed(DEALER, 100, SECOND)) == "not_theirs"
    t.do(CLOSE).at(Step.CLOSED)
    assert t.refuses(CLOSE) == "table_closed_already"
    assert play(t.do(OPEN).shuffle()).state.round == 1


def test_the_table_does_not_close_over_a_wager() -> None:
    t = Table().bets(1000)
    assert t.refuses(CLOSE) == "close_table"
    t.do(WagerRemoved(player(1), 1, "main"), CLOSE).at(Step.CLOSED)


@pytest.mark.parametrize("phase", IN_ROUND)
def test_in_a_round_the_table_closes_when_it_is_over(phase: str) -> None:
    t = IN_ROUND[phase](Table().bets(1000))
    before = t.step
    assert t.refuses(TableClosed(FLOOR, 100)).startswith("close_after_round")
    assert t.do(CLOSE).step is before
    t.finish({"dealing": "KC (9D)", "hand card": "9D", "dealer card": "TD"}.get(phase, ""))
    t.at(Step.CLOSED)
    assert t.state.round == 1
    t.do(OPEN).shuffle()
    assert play(t).state.round == 2


def test_a_table_that_closes_does_not_ask_for_a_shuffle() -> None:
    t = Table(house="strict").bets(1000).deal(ROUND).do(CutCardSeen(SHOE), CLOSE)
    t.until(Step.CLEARING).do(Cleared(DEALER))
    t.at(Step.CLOSED)


def test_a_table_that_is_held_between_rounds_closes_when_the_floor_lets_it_go() -> None:
    t = Table().do(FloorCalled(DEALER), CLOSE).rule(Way.RESUME)
    t.at(Step.CLOSED)
