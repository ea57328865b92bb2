"""The life of a table between rounds, and what random play and reading the rows have found."""

from __future__ import annotations

from typing import Any

import pytest

from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.model.effects import (
    BankCounted,
    Burned,
    DecksOut,
    RoundVoid,
    Shuffler,
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
    ControllerRestarted,
    CutCardSeen,
    DealerCardMissed,
    DealerRelieved,
    DecksChanged,
    DeckSuspect,
    DeviceBack,
    DeviceLost,
    ErrorCardDrawn,
    Event,
    FeltConfirmed,
    FloorCalled,
    MisdealCalled,
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
    t.refuses(TableOpened(DEALER, 100, SECOND), "not_theirs")
    t.refuses(TableOpened(FLOOR, 100), "open_table")
    t.refuses(TableOpened(FLOOR, 100, Actor("dealer", FLOOR.name)), "open_table")
    t.do(OPEN).at(Step.SHUFFLE_NEEDED).refuses(OPEN, "already_open")


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
    t.refuses(ShoeLoaded(DEALER, 312), "no_shoe_wanted").do(ShuffleStarted(DEALER))
    t.refuses(ShoeLoaded(DEALER, 312), "no_shoe_wanted")
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
    t.refuses(ShuffleStarted(SHOE), "start_shuffle")
    t.refuses(DecksChanged(DEALER, SECOND), "not_theirs")
    t.refuses(DecksChanged(FLOOR), "change_decks")
    t.do(DecksChanged(FLOOR, SECOND)).asks(Tell.SHUFFLE)
    t.refuses(DecksChanged(FLOOR, SECOND), "change_decks")
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
    assert t.refusal_of(CutCardSeen(SHOE)).startswith("cut_card")
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
    t.refuses(CutCardSeen(SHOE), "no_shoe_no_cut_card").shuffle().asks(Tell.TAKE_WAGERS, warn="")
    t.bets(1000).deal(ROUND).do(CutCardSeen(SHOE)).finish()
    t.asks(Tell.TAKE_WAGERS, warn="last_round")


def test_no_more_rounds_than_the_house_deals_from_a_shoe() -> None:
    assert rounds_to_shuffle(Table(shuffle__max_rounds=3)) == 3
    t = Table(shuffle__max_rounds=1)
    play(t)
    assert rounds_to_shuffle(t.shuffle()) == 1


def test_a_shuffle_is_called_between_rounds_only() -> None:
    t = Table().bets(1000)
    t.refuses(ShuffleCalled(DEALER), "call_shuffle")
    t.do(WagerRemoved(player(1), 1, "main"), ShuffleCalled(DEALER))
    t.at(Step.SHUFFLE_NEEDED).refuses(ShuffleCalled(DEALER), "no_shuffle_now")
    t.shuffle().bets(1000).deal("9C").refuses(ShuffleCalled(DEALER), "no_shuffle_now")


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
    t.refuses(WagerRemoved(player(1), 1, "buster"), "remove_wager")
    t.do(WagerRemoved(player(3), 3, "buster"))
    assert t.state.seats[1].buster == 0
    t.do(WagerRemoved(player(3), 3, "main"))
    assert [seat.number for seat in t.state.seats] == [1]
    t.refuses(WagerRemoved(player(3), 3, "toke_main"), "remove_wager")


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
    t.refuses(WagerPlaced(DEALER, seat, bet, amount), refusal)  # type: ignore[arg-type]


def test_a_player_wagers_at_the_own_seat() -> None:
    t = Table().bets(1000)
    t.refuses(WagerPlaced(player(2), 1, "main", 2000), "other_seat")
    t.refuses(WagerRemoved(player(2), 1, "main"), "other_seat")
    t.do(WagerPlaced(DEALER, 2, "main", 1000))


def test_with_the_first_card_wagers_are_locked() -> None:
    t = Table("mega", limits__table_payout=100000)
    t.bet(1, 1000, buster=100).bet(2, 500, toke_main=50).deal("9C")
    assert t.facts_of(WagersLocked) == [WagersLocked(1, 1650, 100000)]
    t.at(Step.DEALING).refuses(WagerPlaced(player(1), 1, "main", 2000), "late_wager")
    t.refuses(WagerPlaced(player(3), 3, "main", 2000), "late_wager")
    t.refuses(WagerRemoved(player(1), 1, "main"), "wagers_locked")
    t.refuses(WagerRemoved(player(1), 1, "buster"), "wagers_locked")


def test_no_wager_at_a_closed_table() -> None:
    closed().refuses(WagerPlaced(player(1), 1, "main", 1000), "closed_no_wagers")


def test_the_first_rounds_bonus_is_open_on_the_first_round_only() -> None:
    t = Table("maxtime").bet(1, 1000, diamond=100)
    t.asks(Tell.TAKE_WAGERS, choices=("main", "diamond")).deal(ROUND).finish()
    t.bet(1, 1000).asks(Tell.TAKE_WAGERS, choices=("main",))
    t.refuses(WagerPlaced(player(1), 1, "diamond", 100), "first_round_only")
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
    t.refuses(DealerRelieved(FLOOR), "not_theirs")


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
    t.refuses(TableClosed(FLOOR, 100), "close_table")
    t.refuses(TableClosed(FLOOR, 100, Actor("surveillance", FLOOR.name)), "close_table")
    t.refuses(TableClosed(DEALER, 100, SECOND), "not_theirs").do(CLOSE).at(Step.CLOSED)
    t.refuses(CLOSE, "table_closed_already")
    assert play(t.do(OPEN).shuffle()).state.round == 1


def test_the_table_does_not_close_over_a_wager() -> None:
    t = Table().bets(1000)
    t.refuses(CLOSE, "close_table").do(WagerRemoved(player(1), 1, "main"), CLOSE).at(Step.CLOSED)


@pytest.mark.parametrize("phase", IN_ROUND)
def test_in_a_round_the_table_closes_when_it_is_over(phase: str) -> None:
    t = IN_ROUND[phase](Table().bets(1000))
    before = t.step
    assert t.refusal_of(TableClosed(FLOOR, 100)).startswith("close_after_round")
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
    Table().do(FloorCalled(DEALER), CLOSE).rule(Way.RESUME).at(Step.CLOSED)


SHUFFLER = Actor("device", "shuffler")


@pytest.mark.parametrize("name", GAMES)
def test_a_card_that_was_named_when_none_was_due_does_not_stop_the_next_round(name: str) -> None:
    t = Table(name).bets(1000).deal("9C TD 9H (8D)").do(UnknownCardDrawn(SHOE))
    t.rule(Way.ENTER_CARD).enter("4C").finish()
    t.at(Step.WAGERING).bets(1000)


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
    t = Table("maxtime", "silent").bets(1000).deal("9C 7D TH (9D)")
    t.finish("5C")
    t.deal("9C").held_for(Irregularity.DECK_SUSPECT, Way.DECKS_OUT, Way.RESUME)
    Table("maxtime", "silent", start=t.state).rule(Way.RESUME).at(Step.WAGERING).bets(1000)


def test_a_hidden_card_needs_a_commitment() -> None:
    Table().bets(1000).refuses(ErrorCardDrawn(SHOE, ""), "error_card")


def test_a_deal_that_is_complete_without_the_seat_that_was_missed_goes_on() -> None:
    t = Table().bets(1000, 1000, 1000).deal("9C").do(DealerCardMissed(DEALER, 1))
    t.deal("9D 9H 8C").do(SeatMissed(DEALER, 3)).pay().at(Step.TURN)


# Devices


def test_a_wrong_device_is_not_taken_for_the_lost_one() -> None:
    t = Table().do(DeviceLost(SHUFFLER, "shuffler", "no answer"))
    t.do(DeviceBack(SHUFFLER, "shuffler", False))
    assert t.state.lost == ("shuffler",)


def test_the_shuffler_that_is_lost_during_another_stop_is_waited_for() -> None:
    t = Table().do(ShuffleCalled(DEALER), ShuffleStarted(SHOE), ControllerRestarted(SHOE))
    t.do(DeviceLost(SHUFFLER, "shuffler", "no answer")).at(Step.DEVICE)
    t.do(DeviceBack(SHUFFLER, "shuffler", True), FeltConfirmed(DEALER)).at(Step.FELT)


# Void rounds, and decks that go out


def test_a_void_says_so_where_a_hand_was_dealt_and_only_there() -> None:
    t = Table().bets(1000).deal("9C TD 9H (8D)").do(MisdealCalled(DEALER)).rule(Way.VOID)
    t.finish()
    t.do(ShuffleCalled(DEALER), ShuffleStarted(SHOE), ShuffleDone(SHOE, 1)).rule(Way.DECKS_OUT)
    assert [void.round for void in t.facts_of(RoundVoid)] == [1]


def test_a_table_that_is_to_close_closes_when_its_decks_go_out() -> None:
    t = Table().bets(1000).do(FloorCalled(DEALER), TableClosed(FLOOR, 0, SECOND)).rule(Way.RESUME)
    t.do(DeckSuspect(DEALER, "foreign_back")).rule(Way.DECKS_OUT).until(Step.CLOSED)


# What is refused


def test_a_card_from_beside_the_shoe_is_never_counted_twice() -> None:
    spare = CardDrawn(SHOE, card("2S"), True)
    t = Table().bets(1000).deal("9C 6D 9H (8D)").deal("2S")
    t.refuses(spare, "spare_not_wanted")
    assert times_seen(t.state, spare.card) == 1
    Table().refuses(spare, "spare_not_wanted")


def test_the_hole_card_cannot_be_burned_for_being_unreadable() -> None:
    t = Table(house="silent").bets(1000).deal("9C 6D 9H (8D)").stand(1)
    t.do(CardUnreadable(SHOE, "smudged"))
    t.held_for(Irregularity.CARD_UNREADABLE, Way.ENTER_CARD, Way.VOID)


def test_at_a_table_of_hand_signals_a_station_takes_nothing_back() -> None:
    t = Table().bets(1000).deal("8C 6D 8H (8D)").do(Split(DEALER, 1, 0))
    t.refuses(Withdrawn(player(1)), "not_theirs").do(Withdrawn(DEALER))


def test_the_bank_is_counted_twice_to_the_same_amount() -> None:
    t = Table()
    t.refuses(TableClosed(FLOOR, 5000, SECOND, 4900), "close_table")
    t.do(TableClosed(FLOOR, 5000, SECOND, 5000))
    assert t.facts == [BankCounted(5000, FLOOR.name, SECOND.name)]
