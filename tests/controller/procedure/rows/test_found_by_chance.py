"""What random play has found, each as the shortest way to it."""

from __future__ import annotations

import pytest

from controller.games import DEALER, FLOOR, SECOND, SHOE
from controller.procedure.model import events
from controller.procedure.model.effects import Settled
from controller.procedure.model.events import Actor
from controller.procedure.model.row import Refused
from controller.procedure.model.state import Step
from tests.support.procedure.by_hand import ByHand
from tests.support.procedure.random_games import GAMES


def _settled(table: ByHand, bet: str) -> list[Settled]:
    return [due for due in table.effects if isinstance(due, Settled) and due.bet == bet]


# A card beside the shoe


def test_a_card_read_from_the_felt_before_any_wager_does_not_stop_the_table() -> None:
    table = ByHand("classic")
    table.does(events.CardUnreadable(SHOE, "smudged"))
    if table.at(Step.CARD_ENTRY):
        table.does(events.CardEntered(DEALER, 3), events.CardConfirmed(FLOOR))
    while table.at(Step.HELD):
        table.rules(table.state.holds[-1].options[0].value)
    if table.at(Step.CLEARING):
        table.does(events.Cleared(DEALER))
    table.wagers(1)


@pytest.mark.parametrize("name", GAMES)
def test_a_card_that_was_named_when_none_was_due_does_not_stop_the_next_round(name: str) -> None:
    table = ByHand(name)
    table.wagers(1)
    table.cards("9C TD 9H 8D")
    table.does(events.UnknownCardDrawn(SHOE))
    table.rules("enter_card")
    table.does(events.CardEntered(DEALER, 3), events.CardConfirmed(FLOOR))
    table.checks() if table.at(Step.CHECK) else None
    table.stands(1)
    table.reveals()
    table.finishes()
    table.wagers(1)


def test_the_hole_card_is_not_the_card_that_was_named_before() -> None:
    table = ByHand("classic")
    table.wagers(1)
    table.cards("9C 6D 9H 8D")
    table.does(events.UnknownCardDrawn(SHOE))
    table.rules("enter_card")
    table.does(events.CardEntered(DEALER, 3), events.CardConfirmed(FLOOR))
    table.stands(1)
    table.reveals()


def test_no_card_beside_the_shoe_outlives_a_shuffle() -> None:
    table = ByHand("classic")
    table.does(events.ErrorCardDrawn(SHOE, "hidden"))
    assert table.state.spare is not None
    table.does(events.ShuffleCalled(DEALER))
    table.loads()
    assert table.state.spare is None


def test_no_wager_is_taken_back_once_the_first_card_was_seen() -> None:
    table = ByHand("classic")
    table.wagers(1, 2)
    table.does(events.CardUnreadable(SHOE, "smudged"))
    table.does(events.CardEntered(DEALER, 3), events.CardConfirmed(FLOOR))
    table.refused(events.WagerPlaced(DEALER, 1, "main", 500))
    table.refused(events.WagerRemoved(DEALER, 1, "main"))


def test_a_duplicate_is_a_duplicate_also_while_a_card_waits_beside_the_shoe() -> None:
    table = ByHand("maxtime")
    table.wagers(1)
    table.cards("9C 6D 9H 8D")
    table.cards("2C")
    assert table.state.spare is not None
    table.does(events.CardDrawn(SHOE, 8))
    assert "duplicate_card" in table.rows


def test_a_card_that_comes_face_up_for_the_hole_card_does_not_stop_the_deal() -> None:
    """Neither one that the decks do not hold any more nor another one."""
    table = ByHand("maxtime", jurisdiction="strict")
    table.wagers(1)
    table.cards("9C AD 9H")
    for card in (13, 7):
        answer = table.procedure.step(table.state, events.CardDrawn(SHOE, card))
        assert isinstance(answer, Refused)
        assert "beside the shoe" not in answer.why
    table.cards("8D")
    assert table.at(Step.INSURANCE)


def test_a_duplicate_before_any_wager_does_not_stop_the_table() -> None:
    table = ByHand("maxtime", jurisdiction="silent")
    table.wagers(1)
    table.cards("9C 7D TH 9D")
    table.stands(1)
    table.reveals()
    table.cards("5C")
    table.finishes()
    table.does(events.CardDrawn(SHOE, 8))
    assert table.at(Step.HELD)
    for way in table.state.holds[-1].options:
        again = ByHand("maxtime", jurisdiction="silent", state=table.state)
        again.rules(way.value)
        if again.at(Step.WAGERING):
            again.wagers(1)


def test_a_hidden_card_needs_a_commitment() -> None:
    table = ByHand("classic")
    table.wagers(1)
    table.refused(events.ErrorCardDrawn(SHOE, ""))


def test_a_deal_that_is_complete_without_the_seat_that_was_missed_goes_on() -> None:
    table = ByHand("classic")
    table.wagers(1, 2, 3)
    table.cards("9C")
    table.does(events.DealerCardMissed(DEALER, 1))
    table.cards("9D 9H 8C")
    answer = table.procedure.step(table.state, events.SeatMissed(DEALER, 3))
    if isinstance(answer, Refused):
        return
    table.does(events.SeatMissed(DEALER, 3))
    table.does(events.Paid(DEALER))
    assert table.at(Step.TURN)


def test_a_card_named_while_the_hole_card_is_due_does_not_stop_the_deal() -> None:
    table = ByHand("classic", jurisdiction="strict")
    table.wagers(1)
    table.cards("9C 7D TH")
    table.does(events.CardUnreadable(SHOE, "smudged"))
    assert table.at(Step.HELD)
    if isinstance(table.procedure.step(table.state, events.UnknownCardDrawn(SHOE)), Refused):
        return
    table.does(events.UnknownCardDrawn(SHOE))
    if table.may_rule("enter_card"):
        table.rules("enter_card")
        table.does(events.CardEntered(DEALER, 40), events.CardConfirmed(FLOOR))
    else:
        table.rules("discard")
    table.rules("burn")
    table.cards("8D")
    assert table.at(Step.TURN)


# Burning


def test_decks_that_go_out_while_the_new_dealer_burns_do_not_stop_the_table() -> None:
    table = ByHand("classic")
    table.does(events.DealerRelieved(Actor("dealer", "dealer-2")))
    assert table.at(Step.RELIEF_BURN)
    table.does(events.DeckSuspect(DEALER, "foreign_back"))
    if table.at(Step.HELD):
        table.rules("decks_out")
    if table.at(Step.RELIEF_BURN):
        table.does(events.CardBurned(SHOE))
    assert table.at(Step.SHUFFLE_NEEDED)


def test_a_void_does_not_spare_the_burn() -> None:
    table = ByHand("classic", jurisdiction="strict")
    table.does(events.ShuffleCalled(DEALER))
    table.loads()
    assert table.at(Step.BURNING)
    table.does(events.FloorCalled(DEALER))
    table.rules("void" if table.may_rule("void") else "resume")
    if table.at(Step.CLEARING):
        table.does(events.Cleared(DEALER))
    assert table.at(Step.BURNING)


# Insurance


def _asked(name: str = "mega", *seats: int, **bets: int) -> ByHand:
    """Every seat has a 9 and a 9, or the last one a blackjack in mega; an ace is up."""
    table = ByHand(name)
    table.wagers(*(seats or (1, 2)), **bets)
    return table


def test_a_check_that_nobody_can_make_is_not_asked_for() -> None:
    table = _asked("classic", 1)
    table.cards("9C AD")
    table.does(events.DealerCardMissed(DEALER, 2))
    table.cards("9H")
    if table.at(Step.INSURANCE):
        table.declines(1)
    if table.at(Step.INSURANCE_CLOSE):
        table.does(events.InsuranceClosed(DEALER))
    assert table.at(Step.TURN)


def test_insurance_without_a_check_is_settled_when_the_dealer_has_the_cards() -> None:
    table = _asked("classic", 1)
    table.cards("9C AD")
    table.does(events.DealerCardMissed(DEALER, 2))
    table.cards("9H")
    if table.at(Step.INSURANCE):
        table.does(
            events.Insure(DEALER, 1, 50), events.Confirmed(DEALER), events.InsuranceClosed(DEALER)
        )
    assert table.at(Step.TURN)
    table.stands(1)
    table.cards("7S")
    table.finishes()
    assert len(_settled(table, "insurance")) == (1 if "insure" in table.rows else 0)


def test_a_player_who_leaves_takes_nobody_elses_insurance_along() -> None:
    table = _asked("classic", 1, 2)
    table.cards("9C 9D AD 9H 9S 5C")
    table.does(
        events.Insure(DEALER, 1, 50), events.PlayerAbsent(DEALER, 2), events.Confirmed(DEALER)
    )
    assert table.state.seats[0].insurance == 50


def test_even_money_is_final_also_when_its_player_leaves() -> None:
    table = _asked("mega", 1, 2)
    table.cards("AC 9D AD TH 9S 5C")
    table.does(events.EvenMoney(DEALER, 1), events.PlayerAbsent(DEALER, 1))
    table.declines(2)
    table.does(events.InsuranceClosed(DEALER))
    assert table.at(Step.PAYING)
    assert table.state.due[0].outcome == "even_money"


def test_insurance_that_stands_stays_when_its_player_leaves() -> None:
    table = _asked("classic", 1, 2)
    table.cards("9C 9D AD 9H 9S 5C")
    table.does(
        events.Insure(DEALER, 1, 50), events.Confirmed(DEALER), events.PlayerAbsent(DEALER, 1)
    )
    assert table.state.seats[0].answer == "insured"
    assert table.state.seats[0].insurance == 50


def _disputed(table: ByHand, seat: int = 1) -> None:
    """The seat disputes the insurance; the floor opens it again where that is offered."""
    table.does(events.InsuranceDisputed(DEALER, seat))
    if "reopen_insurance" in [way.value for way in table.state.holds[-1].options]:
        table.rules("reopen_insurance")
    else:
        table.rules("resume")


def test_insurance_is_not_opened_again_under_a_ten() -> None:
    table = _asked("classic", 1)
    table.cards("9C TD 9H 8D")
    _disputed(table)
    assert table.at(Step.CHECK)


def test_insurance_is_not_opened_again_where_it_was_never_offered() -> None:
    table = ByHand("classic", {"insurance.offered": False})
    table.wagers(1)
    table.cards("9C AD 9H 8D")
    _disputed(table)
    assert table.at(Step.CHECK)


def test_a_dead_hand_is_not_asked_once_more() -> None:
    table = _asked("classic", 1, 2)
    table.cards("9C AD")
    table.does(events.SeatMissed(DEALER, 2))
    if table.at(Step.HELD):
        table.rules("dead_hand")
    while table.at(Step.PAYING):
        table.does(events.Paid(DEALER))
    table.cards("9H 5C")
    table.declines(1)
    table.does(events.InsuranceClosed(DEALER))
    _disputed(table, 2)
    assert table.at(Step.CHECK)


def test_even_money_that_was_paid_is_not_asked_about_once_more() -> None:
    table = _asked("mega", 1)
    table.cards("AC AD TH 5C")
    table.does(events.EvenMoney(DEALER, 1), events.InsuranceClosed(DEALER), events.Paid(DEALER))
    assert table.at(Step.CHECK)
    _disputed(table)
    assert table.at(Step.CHECK)


def test_insurance_is_settled_also_when_the_check_was_wrong() -> None:
    table = _asked("classic", 1)
    table.cards("9C AD 9H 5C")
    table.does(
        events.Insure(DEALER, 1, 50), events.Confirmed(DEALER), events.InsuranceClosed(DEALER)
    )
    table.does(events.HoleChecked(SHOE, True))
    table.reveals()
    assert table.at(Step.HELD)
    table.rules("resume")
    while not table.at(Step.CLEARING):
        if table.at(Step.TURN):
            table.stands(1)
        elif table.at(Step.DEALER_CARD):
            table.cards("7S")
        elif table.at(Step.REVEAL):
            table.reveals()
        else:
            table.does(events.Paid(DEALER))
    assert [due.outcome for due in _settled(table, "insurance")] == ["lose"]


def test_a_seat_that_cannot_insure_is_not_offered_to() -> None:
    table = _asked("classic", 1, main=1)
    table.cards("9C AD 9H 5C")
    for effect in table.procedure.shows(table.state):
        assert "insure" not in getattr(effect, "choices", ())


# Devices


def test_a_wrong_device_is_not_taken_for_the_lost_one() -> None:
    table = ByHand("classic")
    shuffler = Actor("device", "shuffler")
    table.does(events.DeviceLost(shuffler, "shuffler", "no answer"))
    lost = table.state.lost
    assert "shuffler" in lost
    table.does(events.DeviceBack(shuffler, "shuffler", False))
    assert table.state.lost == lost


def test_the_shuffler_that_is_lost_during_another_stop_is_waited_for() -> None:
    table = ByHand("classic")
    table.does(events.ShuffleCalled(DEALER), events.ShuffleStarted(SHOE))
    controller, shuffler = Actor("device", "controller"), Actor("device", "shuffler")
    table.does(events.ControllerRestarted(controller))
    table.does(events.DeviceLost(shuffler, "shuffler", "no answer"))
    if table.at(Step.FELT):
        table.does(events.FeltConfirmed(DEALER))
    assert not table.at(Step.SHUFFLING)


# Words and bounds


def test_a_void_between_rounds_ends_no_round() -> None:
    table = ByHand("classic")
    table.does(events.FloorCalled(DEALER))
    table.rules("void" if table.may_rule("void") else "resume")
    if table.at(Step.CLEARING):
        table.does(events.Cleared(DEALER))
    assert not [x for x in table.effects if type(x).__name__ == "RoundOver"]


def test_floor_and_second_person_are_two() -> None:
    table = ByHand("classic")
    table.wagers(1)
    table.cards("9C")
    table.refused(events.RoundVoided(FLOOR, "no", None))
    table.refused(events.RoundVoided(FLOOR, "no", FLOOR))
    table.does(events.RoundVoided(FLOOR, "no", SECOND))
