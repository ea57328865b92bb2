"""Players who left, cannot cover what they asked for, or wager when nobody may."""

from __future__ import annotations

import pytest

from controller.games import DEALER, player
from controller.procedure.model.effects import Tell, Told
from controller.procedure.model.events import (
    Confirmed,
    Double,
    EvenMoney,
    Insure,
    PlayerAbsent,
    Split,
    WagerPlaced,
    Withdrawn,
)
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from tests.support.procedure.scenes import ACE_UP, DEAL, dealt
from tests.support.procedure.table import HOUSES, Table

pytestmark = pytest.mark.parametrize("house", HOUSES)

# Player leaves or does not answer: hand stands, wagers stay, floor called


def left(t: Table, seat: int) -> Table:
    t.do(PlayerAbsent(DEALER, seat)).ruled(Odd.PLAYER_ABSENT, Way.STAND_HAND)
    assert t.heard(Told)[-1] == Told("floor", "player_absent", seat)
    assert t.refuses(PlayerAbsent(DEALER, seat)) in ("player_absent", "nobody_waits_for_player")
    return t


@pytest.mark.parametrize("when", ["9C 8C", "9C 8C 8S 2H KC", DEAL])
@pytest.mark.parametrize("seat", [1, 2])
def test_player_leaves_before_the_turn_is_over(house: str, when: str, seat: int) -> None:
    t = left(dealt(house, when), seat).deal(DEAL[len(when) :])
    t.at(Step.TURN).asks(Tell.DECIDE, seat=3 - seat)
    assert t.finish() == {1: -1000, 2: 0}


def test_player_leaves_when_asked_for_insurance(house: str) -> None:
    t = left(dealt(house, ACE_UP), 1)
    t.asks(Tell.ASK_INSURANCE, seat=2)
    t.do(Insure(DEALER, 2, 500))
    left(t, 2).at(Step.INSURANCE_CLOSE)  # the chips were not confirmed
    assert t.finish() == {1: -1000, 2: -1000}


def test_what_was_agreed_stays_when_the_player_leaves(house: str) -> None:
    t = Table("mega", house).bets(1000, 1000, 1000).deal("AC 8C 7C AS KH KC 9H (KD)")
    t.do(EvenMoney(player(1), 1)).insure(2, 500).do(Insure(player(3), 3, 400))
    left(left(t, 1), 2).asks(Tell.CONFIRM_INSURANCE, seat=3, amount=400)
    t.do(Confirmed(DEALER))
    assert t.finish() == {1: 1000, 2: 0, 3: -200}


@pytest.mark.parametrize("ask", [Double, Split])
def test_player_leaves_before_the_chips_are_confirmed(house: str, ask: type[Double]) -> None:
    t = dealt(house, "8C 9C 8S 8H KC (TD)").do(ask(DEALER, 1, 0))
    left(t, 1).at(Step.TURN).asks(Tell.DECIDE, seat=2)
    assert t.finish() == {1: -1000, 2: 1000}


def test_player_leaves_while_the_double_s_card_comes(house: str) -> None:
    t = dealt(house).do(Double(DEALER, 1, 0), Confirmed(DEALER))
    assert left(t, 1).deal("9D").finish() == {1: 2000, 2: 0}


def test_the_split_hands_of_a_player_who_left_stand(house: str) -> None:
    t = dealt(house, "8C 9C 7S 8H KC (TD)").split(1, "3C")
    left(t, 1).asks(Tell.DEAL, seat=1, hand=1)  # a hand of one card gets its second
    assert t.deal("TC").stand(2).finish() == {1: 0, 2: 1000}


def test_a_blackjack_of_a_player_who_left_is_paid(house: str) -> None:
    t = left(dealt(house, "AC 9C AS KC 8H (9D)"), 1).decline(2)
    assert t.finish() == {1: 1500, 2: -1000}
    t = Table(house=house, double__natural=True).bets(1000, 1000).deal("AC 9C 7S KC 8H (TD)")
    assert left(t.at(Step.NATURALS), 1).finish() == {1: 1500, 2: 0}


def test_a_seat_that_nobody_waits_for(house: str) -> None:
    assert dealt(house).refuses(PlayerAbsent(DEALER, 3)) == "player_absent"
    revealing = dealt(house).until(Step.REVEAL)
    assert revealing.refuses(PlayerAbsent(DEALER, 1)) == "nobody_waits_for_player"


# Player cannot cover a split or double: withdrawn before the dealer confirms it


@pytest.mark.parametrize("ask", [Double, Split])
def test_player_cannot_cover_a_split_or_double(house: str, ask: type[Double]) -> None:
    t = dealt(house, "8C 9C 8S 8H KC (TD)", decisions__by="both")
    before, shown = t.state, t.prompt
    t.do(ask(DEALER, 1, 0))
    assert t.refuses(Withdrawn(player(2))) == "withdrawn"
    t.do(Withdrawn(DEALER))
    assert (t.state, t.prompt) == (before, shown)
    t.do(ask(DEALER, 1, 0), Confirmed(DEALER))
    assert t.refuses(Withdrawn(DEALER)) == "nothing_to_confirm"


def test_player_cannot_cover_the_insurance(house: str) -> None:
    t = dealt(house, ACE_UP, decisions__by="both")
    before = t.state
    assert t.do(Insure(DEALER, 1, 500), Withdrawn(player(1))).state == before
    t.insure(1, 400)
    assert t.refuses(Withdrawn(player(1))) == "nothing_to_confirm"


# Late wager, or wager without a main wager: refused, chips handed back


def test_late_wager_and_wager_without_a_main_wager(house: str) -> None:
    t = Table("mega", house)
    assert t.refuses(WagerPlaced(player(1), 1, "buster", 100)) == "without_main"
    t.bets(1000).deal("9C")
    assert t.refuses(WagerPlaced(player(1), 1, "buster", 100)) == "late_wager"
    assert t.refuses(WagerPlaced(player(2), 2, "main", 1000)) == "late_wager"
