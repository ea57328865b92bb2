"""What random play and reading the rows have found, each as the shortest way to it."""

from __future__ import annotations

import pytest

from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.model.effects import BankCounted, RoundVoid
from controller.procedure.model.events import (
    Actor,
    CardDrawn,
    CardUnreadable,
    ControllerRestarted,
    DealerCardMissed,
    DeckSuspect,
    DeviceBack,
    DeviceLost,
    ErrorCardDrawn,
    FeltConfirmed,
    FloorCalled,
    MisdealCalled,
    SeatMissed,
    ShuffleCalled,
    ShuffleDone,
    ShuffleStarted,
    Split,
    TableClosed,
    UnknownCardDrawn,
    Withdrawn,
)
from controller.procedure.model.felt import times_seen
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity, Way
from tests.support.procedure.random_games import GAMES
from tests.support.procedure.table import Table, card

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
        assert t.refuses(CardDrawn(SHOE, card(name))) == "hole_comes_face_down"
    t.deal("(8D)").at(Step.INSURANCE)


def test_a_duplicate_before_any_wager_does_not_stop_the_table() -> None:
    t = Table("maxtime", "silent").bets(1000).deal("9C 7D TH (9D)")
    t.finish("5C")
    t.deal("9C").held_for(Irregularity.DECK_SUSPECT, Way.DECKS_OUT, Way.RESUME)
    Table("maxtime", "silent", start=t.state).rule(Way.RESUME).at(Step.WAGERING).bets(1000)


def test_a_hidden_card_needs_a_commitment() -> None:
    assert Table().bets(1000).refuses(ErrorCardDrawn(SHOE, "")) == "error_card"


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
    assert t.refuses(spare) == "spare_not_wanted"
    assert times_seen(t.state, spare.card) == 1
    assert Table().refuses(spare) == "spare_not_wanted"


def test_the_hole_card_cannot_be_burned_for_being_unreadable() -> None:
    t = Table(house="silent").bets(1000).deal("9C 6D 9H (8D)").stand(1)
    t.do(CardUnreadable(SHOE, "smudged"))
    t.held_for(Irregularity.CARD_UNREADABLE, Way.ENTER_CARD, Way.VOID)


def test_at_a_table_of_hand_signals_a_station_takes_nothing_back() -> None:
    t = Table().bets(1000).deal("8C 6D 8H (8D)").do(Split(DEALER, 1, 0))
    assert t.refuses(Withdrawn(player(1))) == "not_theirs"
    t.do(Withdrawn(DEALER))


def test_the_bank_is_counted_twice_to_the_same_amount() -> None:
    t = Table()
    assert t.refuses(TableClosed(FLOOR, 5000, SECOND, 4900)) == "close_table"
    t.do(TableClosed(FLOOR, 5000, SECOND, 5000))
    assert t.facts == [BankCounted(5000, FLOOR.name, SECOND.name)]
