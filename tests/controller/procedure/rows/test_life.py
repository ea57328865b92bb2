"""The life of a table between rounds, and what random play and reading the rows have found."""

from typing import Any

import pytest

from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.model.effects import (
    BankCounted,
    Burned,
    DecksOut,
    Tell,
    Told,
    WagersLocked,
)
from controller.procedure.model.events import (
    Actor,
    CardBurned,
    CardDrawn,
    CardUnreadable,
    Cleared,
    CutCardSeen,
    DealerCardMissed,
    DealerRelieved,
    DecksChanged,
    DeckSuspect,
    ErrorCardDrawn,
    Event,
    FloorCalled,
    SeatMissed,
    ShoeLoaded,
    ShuffleCalled,
    ShuffleDone,
    ShuffleStarted,
    Split,
    TableClosed,
    TableOpened,
    UnknownCardDrawn,
    WagerPlaced,
    WagerRemoved,
    Withdrawn,
)
from controller.procedure.model.felt import times_seen
from controller.procedure.model.state import State, Step
from controller.rules.irregularities import Irregularity, Way
from tests.support.procedure.random_games import GAMES
from tests.support.procedure.scenes import IN_ROUND, ROUND, SHUFFLED
from tests.support.procedure.table import HOUSES, Table, card

BURNS = {"default": (1, 1), "strict": (3, 2)}
"""Cards burned after a shuffle and for a new dealer."""
REST = {"dealing": "KC (9D)", "hand card": "9D", "dealer card": "TD"}
"""Cards that a round still needs after each phase, if any."""
AFTER_CUT = {"default": 1, "strict": 0}
OPEN = TableOpened(FLOOR, 100, SECOND)
CLOSE = TableClosed(FLOOR, 100, SECOND)


def closed(game: str = "classic", house: str = "default", **options: Any) -> Table:
    return Table(game, house, start=State(), **options)


def play(t: Table) -> Table:
    """A whole round of seat 1."""
    return t.bets(1000).deal(ROUND).ends()


# Opening


def test_the_floor_opens_with_a_second_person() -> None:
    (
        closed()
        .asks(Tell.OPEN_TABLE, to="floor")
        .shoe_locked()
        .refuses(TableOpened(DEALER, 100, SECOND), "not_theirs")
        .refuses(TableOpened(FLOOR, 100), "open_table")
        .refuses(TableOpened(FLOOR, 100, Actor("dealer", FLOOR.name)), "open_table")
        .do(OPEN)
        .at(Step.SHUFFLE_NEEDED)
        .refuses(OPEN, "already_open")
    )


@pytest.mark.parametrize("house", HOUSES)
def test_from_closed_to_the_first_wager(house: str) -> None:
    t = (
        closed(house=house)
        .do(OPEN)
        .asks(Tell.SHUFFLE, count=6)
        .shuffler_works_on(0)
        .do(ShuffleStarted(SHOE))
        .asks(Tell.AWAIT_SHUFFLE, count=6)
        .shuffler_works_on(6)
        .do(ShuffleDone(SHOE))
        .asks(Tell.LOAD_SHOE, count=312)
        .shuffler_works_on(0)
        .do(ShoeLoaded(SHOE, 312))
    )
    for left in range(BURNS[house][0], 0, -1):
        t.asks(Tell.BURN, place="burn", count=left).shoe_open().do(CardBurned(SHOE))
    t.noted(*[Burned()] * BURNS[house][0]).asks(Tell.TAKE_WAGERS, choices=("main",), count=0)
    assert t.state == State(step=Step.WAGERING, shoe=t.state.shoe)
    assert t.state.shoe.loaded


def test_cards_are_shuffled_by_hand() -> None:
    (
        closed(burn__on_shuffle=0)
        .do(OPEN)
        .refuses(ShoeLoaded(DEALER, 312), "no_shoe_wanted")
        .do(ShuffleStarted(DEALER))
        .refuses(ShoeLoaded(DEALER, 312), "no_shoe_wanted")
        .do(ShuffleDone(DEALER), ShoeLoaded(DEALER, 312))
        .at(Step.WAGERING)
    )


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
    (
        t.do(event)
        .ruled(Irregularity.DECK_SUSPECT, Way.DECKS_OUT)
        .at(Step.SHUFFLE_NEEDED)
        .asks(Tell.CHANGE_DECKS)
        .told("floor", "surveillance")
    )
    assert {told.what for told in t.facts_of(Told)} == {"deck_suspect"}
    (
        t.noted(DecksOut())
        .refuses(ShuffleStarted(SHOE), "start_shuffle")
        .refuses(DecksChanged(DEALER, SECOND), "not_theirs")
        .refuses(DecksChanged(FLOOR), "change_decks")
        .do(DecksChanged(FLOOR, SECOND))
        .asks(Tell.SHUFFLE)
        .refuses(DecksChanged(FLOOR, SECOND), "change_decks")
        .shuffle()
        .then(play)
    )


def test_decks_that_went_out_stay_out_over_a_closing() -> None:
    (
        Table()
        .do(DeckSuspect(FLOOR, "foreign_back"))
        .ruled(Irregularity.DECK_SUSPECT, Way.DECKS_OUT)
        .asks(Tell.CHANGE_DECKS)
        .do(CLOSE, OPEN)
        .asks(Tell.CHANGE_DECKS)
    )


# The cut card, and other ends of a shoe


def lasts(t: Table, rounds: int) -> Table:
    """That many whole rounds can be begun before a shuffle is called for."""
    for _ in range(rounds):
        play(t.at(Step.WAGERING))
    return t.at(Step.SHUFFLE_NEEDED)


@pytest.mark.parametrize("phase", IN_ROUND)
@pytest.mark.parametrize("house", HOUSES)
def test_the_cut_card_in_a_round(house: str, phase: str) -> None:
    t = IN_ROUND[phase](Table(house=house).bets(1000))
    before = t.step
    t.do(CutCardSeen(SHOE)).at(before)
    assert t.refusal_of(CutCardSeen(SHOE)).startswith("cut_card")
    t.ends(cards=REST.get(phase, "")).then(lasts, AFTER_CUT[house])


@pytest.mark.parametrize("house", HOUSES)
def test_the_cut_card_between_rounds_lets_one_more_be_dealt(house: str) -> None:
    (
        Table(house=house)
        .do(CutCardSeen(SHOE))
        .asks(Tell.TAKE_WAGERS, warn="last_round")
        .then(lasts, 1)
    )


def test_the_cut_card_comes_while_cards_are_burned() -> None:
    closed().do(OPEN, *SHUFFLED, CutCardSeen(SHOE)).until(Step.WAGERING).then(lasts, 1)


def test_the_last_round_is_announced() -> None:
    play(t := Table().do(CutCardSeen(SHOE))).at(Step.SHUFFLE_NEEDED)
    (
        t.refuses(CutCardSeen(SHOE), "no_shoe_no_cut_card")
        .shuffle()
        .asks(Tell.TAKE_WAGERS, warn="")
        .bets(1000)
        .deal(ROUND)
        .do(CutCardSeen(SHOE))
        .ends()
        .asks(Tell.TAKE_WAGERS, warn="last_round")
    )


def test_no_more_rounds_than_the_house_deals_from_a_shoe() -> None:
    lasts(Table(shuffle__max_rounds=3), 3)
    Table(shuffle__max_rounds=1).then(play).shuffle().then(lasts, 1)


def test_a_shuffle_is_called_between_rounds_only() -> None:
    (
        Table()
        .bets(1000)
        .refuses(ShuffleCalled(DEALER), "call_shuffle")
        .do(WagerRemoved(player(1), 1, "main"), ShuffleCalled(DEALER))
        .at(Step.SHUFFLE_NEEDED)
        .refuses(ShuffleCalled(DEALER), "no_shuffle_now")
        .shuffle()
        .bets(1000)
        .deal("9C")
        .refuses(ShuffleCalled(DEALER), "no_shuffle_now")
    )


def test_a_hidden_card_beside_the_shoe_goes_into_the_shuffle() -> None:
    (
        Table()
        .bets(1000)
        .deal(ROUND)
        .slip("5H")
        .ends()
        .do(ShuffleCalled(DEALER))
        .shuffle()
        .then(play)  # its first card comes from the shoe
    )


# Wagers


def test_a_wager_is_placed_changed_and_taken_back() -> None:
    (
        Table("mega")
        .bet(3, 1000, buster=100, toke_main=50)
        .asks(Tell.TAKE_WAGERS, count=1)
        .bet(3, 2000)
        .bet(1, 500)
        .wagers({1: 500, 3: 2000})
        .wagers({1: 0, 3: 100}, "buster")
        .refuses(WagerRemoved(player(1), 1, "buster"), "remove_wager")
        .do(WagerRemoved(player(3), 3, "buster"))
        .wagers({1: 0, 3: 0}, "buster")
        .do(WagerRemoved(player(3), 3, "main"))
        .wagers({1: 500})
        .refuses(WagerRemoved(player(3), 3, "toke_main"), "remove_wager")
    )


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
    (
        Table("mega", **LIMITS)
        .bet(1, 500)
        .bet(3, 5000, buster=300)
        .bet(3, 5000, buster=100)
        .refuses(WagerPlaced(DEALER, seat, bet, amount), refusal)  # type: ignore[arg-type]
    )


def test_a_player_wagers_at_the_own_seat() -> None:
    (
        Table()
        .bets(1000)
        .refuses(WagerPlaced(player(2), 1, "main", 2000), "other_seat")
        .refuses(WagerRemoved(player(2), 1, "main"), "other_seat")
        .do(WagerPlaced(DEALER, 2, "main", 1000))
    )


def test_with_the_first_card_wagers_are_locked() -> None:
    (
        Table("mega", limits__table_payout=100000)
        .bet(1, 1000, buster=100)
        .bet(2, 500, toke_main=50)
        .deal("9C")
        .noted(WagersLocked(1, 1650, 100000))
        .at(Step.DEALING)
        .refuses(WagerPlaced(player(1), 1, "main", 2000), "late_wager")
        .refuses(WagerPlaced(player(3), 3, "main", 2000), "late_wager")
        .refuses(WagerRemoved(player(1), 1, "main"), "wagers_locked")
        .refuses(WagerRemoved(player(1), 1, "buster"), "wagers_locked")
    )


def test_no_wager_at_a_closed_table() -> None:
    closed().refuses(WagerPlaced(player(1), 1, "main", 1000), "closed_no_wagers")


def test_the_first_rounds_bonus_is_open_on_the_first_round_only() -> None:
    (
        Table("maxtime")
        .bet(1, 1000, diamond=100)
        .asks(Tell.TAKE_WAGERS, choices=("main", "diamond"))
        .deal(ROUND)
        .ends()
        .bet(1, 1000)
        .asks(Tell.TAKE_WAGERS, choices=("main",))
        .refuses(WagerPlaced(player(1), 1, "diamond", 100), "first_round_only")
        .do(WagerRemoved(player(1), 1, "main"), ShuffleCalled(DEALER))
        .shuffle()
        .bet(1, 1000, diamond=100)
    )


def test_the_bonus_of_every_round_is_open_on_every_round() -> None:
    play(Table("sf21x")).bet(1, 1000, diamond=100).asks(
        Tell.TAKE_WAGERS, choices=("main", "diamond")
    )


# Another dealer


@pytest.mark.parametrize("house", HOUSES)
def test_a_dealer_relieved_between_rounds_burns(house: str) -> None:
    t = Table(house=house).bets(1000).do(DealerRelieved(Actor("dealer", "bo"))).at(Step.RELIEF_BURN)
    for left in range(BURNS[house][1], 0, -1):
        t.asks(Tell.BURN, count=left).shoe_open().do(CardBurned(SHOE))
    t.at(Step.WAGERING).wagers({1: 1000}).noted(*[Burned()] * BURNS[house][1])
    assert [told.what for told in t.facts_of(Told)] == ["dealer_relieved"]
    t.deal(ROUND).ends({1: 1000})


def test_a_dealer_relieved_where_nothing_is_burned_for_it() -> None:
    (
        Table(burn__on_dealer=0)
        .do(DealerRelieved(Actor("dealer", "bo")))
        .at(Step.WAGERING)
        .noted(Told("floor", "dealer_relieved", 0, "bo"))
    )


@pytest.mark.parametrize("phase", IN_ROUND)
def test_a_dealer_relieved_in_a_round_burns_nothing(phase: str) -> None:
    t = IN_ROUND[phase](Table().bets(1000))
    before = t.state
    (
        t.do(DealerRelieved(Actor("dealer", "bo")))
        .unchanged(before)
        .noted(Told("floor", "dealer_relieved", 0, "bo"))
        .refuses(DealerRelieved(FLOOR), "not_theirs")
    )


def test_a_relief_burn_ends_when_the_decks_go_out() -> None:
    (
        Table()
        .do(DealerRelieved(DEALER), DeckSuspect(FLOOR, "foreign_back"))
        .ruled(Irregularity.DECK_SUSPECT, Way.DECKS_OUT)
        .at(Step.SHUFFLE_NEEDED)
        .shuffle()
        .then(play)
        .at(Step.WAGERING)
    )


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
    (
        closed()
        .do(OPEN, *steps)
        .refuses(TableClosed(FLOOR, 100), "close_table")
        .refuses(TableClosed(FLOOR, 100, Actor("surveillance", FLOOR.name)), "close_table")
        .refuses(TableClosed(DEALER, 100, SECOND), "not_theirs")
        .do(CLOSE)
        .at(Step.CLOSED)
        .refuses(CLOSE, "table_closed_already")
        .do(OPEN)
        .shuffle()
        .then(play)
        .remembers(round=1)
    )


def test_the_table_does_not_close_over_a_wager() -> None:
    (
        Table()
        .bets(1000)
        .refuses(CLOSE, "close_table")
        .do(WagerRemoved(player(1), 1, "main"), CLOSE)
        .at(Step.CLOSED)
    )


@pytest.mark.parametrize("phase", IN_ROUND)
def test_in_a_round_the_table_closes_when_it_is_over(phase: str) -> None:
    t = IN_ROUND[phase](Table().bets(1000))
    before = t.step
    assert t.refusal_of(TableClosed(FLOOR, 100)).startswith("close_after_round")
    (
        t.do(CLOSE)
        .at(before)
        .ends(cards=REST.get(phase, ""))
        .at(Step.CLOSED)
        .remembers(round=1)
        .do(OPEN)
        .shuffle()
        .then(play)
        .remembers(round=2)
    )


def test_a_table_that_closes_does_not_ask_for_a_shuffle() -> None:
    (
        Table(house="strict")
        .bets(1000)
        .deal(ROUND)
        .do(CutCardSeen(SHOE), CLOSE)
        .until(Step.CLEARING)
        .do(Cleared(DEALER))
        .at(Step.CLOSED)
    )


def test_a_table_that_is_held_between_rounds_closes_when_the_floor_lets_it_go() -> None:
    Table().do(FloorCalled(DEALER), CLOSE).rule(Way.RESUME).at(Step.CLOSED)


@pytest.mark.parametrize("name", GAMES)
def test_a_card_that_was_named_when_none_was_due_does_not_stop_the_next_round(name: str) -> None:
    (
        Table(name)
        .bets(1000)
        .deal("9C TD 9H (8D)")
        .do(UnknownCardDrawn(SHOE))
        .rule(Way.ENTER_CARD)
        .enter("4C")
        .ends()
        .at(Step.WAGERING)
        .bets(1000)
    )


def test_a_duplicate_is_a_duplicate_also_while_a_card_waits_beside_the_shoe() -> None:
    t = Table("maxtime").bets(1000).deal("9C 6D 9H (8D)").deal("2C")
    assert t.state.spare is not None
    assert "duplicate_card" in t.deal("9C").rows


def test_a_card_that_comes_face_up_for_the_hole_card_does_not_stop_the_deal() -> None:
    """Neither one that the decks do not hold any more nor another one."""
    t = Table("maxtime", "strict").bets(1000).deal("9C AD 9H")
    for name in ("AD", "8C"):
        t.refuses(CardDrawn(SHOE, card(name)), "hole_comes_face_down")
    t.deal("(8D)").at(Step.INSURANCE)


def test_a_duplicate_before_any_wager_does_not_stop_the_table() -> None:
    t = (
        Table("maxtime", "silent")
        .bets(1000)
        .deal("9C 7D TH (9D)")
        .ends(cards="5C")
        .deal("9C")
        .held_for(Irregularity.DECK_SUSPECT, Way.DECKS_OUT, Way.RESUME)
    )
    Table("maxtime", "silent", start=t.state).rule(Way.RESUME).at(Step.WAGERING).bets(1000)


def test_a_hidden_card_needs_a_commitment() -> None:
    Table().bets(1000).refuses(ErrorCardDrawn(SHOE, ""), "error_card")


def test_a_deal_that_is_complete_without_the_seat_that_was_missed_goes_on() -> None:
    (
        Table()
        .bets(1000, 1000, 1000)
        .deal("9C")
        .do(DealerCardMissed(DEALER, 1))
        .deal("9D 9H 8C")
        .do(SeatMissed(DEALER, 3))
        .pay()
        .at(Step.TURN)
    )


# What is refused


def test_a_card_from_beside_the_shoe_is_never_counted_twice() -> None:
    spare = CardDrawn(SHOE, card("2S"), True)
    t = Table().bets(1000).deal("9C 6D 9H (8D)").deal("2S").refuses(spare, "spare_not_wanted")
    assert times_seen(t.state, spare.card) == 1
    Table().refuses(spare, "spare_not_wanted")


def test_the_hole_card_cannot_be_burned_for_being_unreadable() -> None:
    (
        Table(house="silent")
        .bets(1000)
        .deal("9C 6D 9H (8D)")
        .stand(1)
        .do(CardUnreadable(SHOE, "smudged"))
        .held_for(Irregularity.CARD_UNREADABLE, Way.ENTER_CARD, Way.VOID)
    )


def test_at_a_table_of_hand_signals_a_station_takes_nothing_back() -> None:
    (
        Table()
        .bets(1000)
        .deal("8C 6D 8H (8D)")
        .do(Split(DEALER, 1, 0))
        .refuses(Withdrawn(player(1)), "not_theirs")
        .do(Withdrawn(DEALER))
    )


def test_the_bank_is_counted_twice_to_the_same_amount() -> None:
    t = (
        Table()
        .refuses(TableClosed(FLOOR, 5000, SECOND, 4900), "close_table")
        .do(TableClosed(FLOOR, 5000, SECOND, 5000))
    )
    assert t.facts == [BankCounted(5000, FLOOR.name, SECOND.name)]
