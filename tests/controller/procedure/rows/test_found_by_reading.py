"""What reading the rows has found, each as the shortest way to it."""

from __future__ import annotations

from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.model import events
from controller.procedure.model.effects import BankCounted, RoundVoid, Shuffler
from controller.procedure.model.felt import discards, times_seen
from controller.procedure.model.state import Step
from controller.rules.cards import parse_card
from tests.support.procedure.by_hand import ByHand


def _voids(table: ByHand) -> list[int]:
    return [each.round for each in table.effects if isinstance(each, RoundVoid)]


def test_a_void_says_so_where_a_hand_was_dealt_and_only_there() -> None:
    table = ByHand("classic")
    table.wagers(1)
    table.cards("9C TD 9H 8D")
    table.does(events.MisdealCalled(DEALER))
    table.rules("void")
    assert _voids(table) == [1]
    table.finishes()
    table.does(
        events.ShuffleCalled(DEALER), events.ShuffleStarted(SHOE), events.ShuffleDone(SHOE, 1)
    )
    table.rules("decks_out")
    assert _voids(table) == [1]


def test_a_card_from_beside_the_shoe_is_never_counted_twice() -> None:
    table = ByHand("classic")
    table.wagers(1)
    table.cards("9C 6D 9H 8D")
    table.cards("2S")
    card = parse_card("2S", "a test")
    assert table.state.spare is not None
    table.refused(events.CardDrawn(SHOE, card, True))
    assert times_seen(table.state, card) == 1
    bare = ByHand("classic")
    bare.refused(events.CardDrawn(SHOE, card, True))


def test_the_hole_card_cannot_be_burned_for_being_unreadable() -> None:
    table = ByHand("classic", jurisdiction="silent")
    table.wagers(1)
    table.cards("9C 6D 9H 8D")
    table.stands(1)
    table.does(events.CardUnreadable(SHOE, "smudged"))
    assert not table.may_rule("burn")
    assert table.may_rule("enter_card")


def test_at_a_table_of_hand_signals_a_station_takes_nothing_back() -> None:
    table = ByHand("classic")
    table.wagers(1)
    table.cards("8C 6D 8H 8D")
    table.does(events.Split(DEALER, 1, 0))
    table.refused(events.Withdrawn(player(1)))
    table.does(events.Withdrawn(DEALER))


def test_the_round_that_a_cut_card_opens_is_dealt_and_is_the_last() -> None:
    table = ByHand("classic", jurisdiction="strict")
    table.does(events.CutCardSeen(SHOE))
    table.wagers(1)
    table.cards("9C 6D 9H 8D")
    table.stands(1)
    table.reveals()
    table.cards("TC")
    table.finishes_as_the_house_wants()
    assert table.at(Step.SHUFFLE_NEEDED)


def test_a_table_that_is_to_close_closes_when_its_decks_go_out() -> None:
    table = ByHand("classic")
    table.wagers(1)
    table.does(events.FloorCalled(DEALER), events.TableClosed(FLOOR, 0, SECOND))
    table.rules("resume")
    table.does(events.DeckSuspect(DEALER, "foreign_back"))
    table.rules("decks_out")
    while table.at(Step.PAYING):
        table.does(events.Paid(DEALER))
    assert table.at(Step.CLOSED)


def test_a_refill_leaves_tucked_cards_where_they_are_and_the_shuffler_idle() -> None:
    table = ByHand("mega")
    table.wagers(1, main=100, buster=100)
    table.wagers(2)
    table.cards("TC 9C 8S 6C 2D 7H")
    table.does(events.Hit(DEALER, 1, 0))
    table.cards("KD")
    table.does(events.Paid(DEALER), events.Hit(DEALER, 2, 0), events.ShoeRanOut(SHOE))
    assert discards(table.procedure.game, table.state) == 312 - 7
    table.does(events.ShoeLoaded(SHOE, 312 - 7))
    shown = [x for x in table.procedure.shows(table.state) if isinstance(x, Shuffler)]
    assert shown == [Shuffler(0)]


def test_the_bank_is_counted_twice_to_the_same_amount() -> None:
    table = ByHand("classic")
    table.refused(events.TableClosed(FLOOR, 5000, SECOND, 4900))
    table.does(events.TableClosed(FLOOR, 5000, SECOND, 5000))
    assert table.effects[0] == BankCounted(5000, FLOOR.name, SECOND.name)
