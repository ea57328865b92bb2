"""Deals that went wrong, and players who left, cannot cover a bet, or wager too late."""

from typing import Any, Literal

import pytest

from controller.games import DEALER, player
from controller.procedure.model.effects import SeatDead, Settled, Tell, Told
from controller.procedure.model.events import (
    Confirmed,
    DealerCardMissed,
    Double,
    EvenMoney,
    InsuranceClosed,
    Insure,
    PlayerAbsent,
    SeatMissed,
    SeatShorted,
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


# Dealer missed his own first or second card: finish the players, then deal the dealer's cards


def missed(house: str, which: Literal[1, 2], names: str, **options: Any) -> Table:
    """Two seats; the dealer says so before seat 2 has its second card."""
    return (
        Table(house=house, **options)
        .bets(1000, 1000)
        .deal(names)
        .do(DealerCardMissed(DEALER, which))
        .ruled(Odd.DEALER_CARD_MISSED, Way.DEALER_LAST)
        .at(Step.DEALING)
    )


def test_dealer_missed_his_first_card(house: str) -> None:
    (
        missed(house, 1, "9C 8C 2H")  # the 2 was seat 1's second card, not the up card
        .asks(Tell.DEAL, seat=2, place="hand", count=2)
        .deal("KC")
        .at(Step.TURN)
        .hold("9C 2H", "8C KC")
        .remembers(dealer=())
        .hit(1, "9D")
        .stand(1)
        .stand(2)
        .asks(Tell.DEAL, place="dealer", count=1)
        .deal("8S")
        .asks(Tell.DEAL, place="dealer", count=2, total=8)
        .deal("TD")
        .ends({1: 1000, 2: 0})
    )


def test_dealer_missed_his_second_card(house: str) -> None:
    (
        missed(house, 2, "9C 8C 8S 2H")
        .deal("KC")
        .at(Step.TURN)
        .hit(1, "9D")
        .stand(1)
        .stand(2)
        .asks(Tell.DEAL, place="dealer", count=2, total=8)
        .deal("5D")
        .at(Step.DEALER_CARD)
        .ends({1: 1000, 2: 1000}, "KD")
    )


def test_dealer_missed_his_first_card_and_sees_it_when_all_have_two(house: str) -> None:
    (
        Table(house=house)
        .bets(1000, 1000)
        .deal("9C 8C 2H KC")
        .do(DealerCardMissed(DEALER, 1))
        .ruled(Odd.DEALER_CARD_MISSED, Way.DEALER_LAST)
        .at(Step.TURN)
        .hold("9C 2H", "8C KC")
        .hit(1, "9D")
        .ends({1: 1000, 2: 0}, "8S TD")
    )


def test_dealer_missed_his_second_card_and_sees_it_when_the_players_play(house: str) -> None:
    (
        Table(house=house)
        .bets(1000, 1000)
        .deal("9C 8C 8S 2H KC")
        .do(DealerCardMissed(DEALER, 2))
        .ruled(Odd.DEALER_CARD_MISSED, Way.DEALER_LAST)
        .at(Step.TURN)
        .hit(1, "9D")
        .ends({1: 1000, 2: 0}, "TD")
    )


@pytest.mark.parametrize(("late", "net"), [("AS KD", 0), ("9S KD", 1500), ("KS 6D", 1500)])
def test_a_blackjack_when_the_dealer_missed_his_first_card(house: str, late: str, net: int) -> None:
    t = (
        missed(house, 1, "AC 8C KH").deal("KC").asks(Tell.DECIDE, seat=2)
    )  # nobody knows yet whether seat 1's blackjack is tied
    t.ends({1: net, 2: -1000}, f"{late} 5D" if "6D" in late else late)


def test_a_lone_blackjack_waits_for_both_late_cards(house: str) -> None:
    for late, net in (("AS KD", 0), ("KS AD", 0), ("KS 9D", 1500)):
        (
            Table(house=house)
            .bets(1000)
            .deal("AC")
            .do(DealerCardMissed(DEALER, 1))
            .ruled(Odd.DEALER_CARD_MISSED, Way.DEALER_LAST)
            .deal("KH")
            .ends({1: net}, late)
        )


def test_a_blackjack_when_the_dealer_missed_his_second_card(house: str) -> None:
    missed(house, 2, "AC 8C KS KH").deal("KC").ends({1: 0, 2: -1000}, "AD")
    (
        missed(house, 2, "AC 8C 7S KH")
        .deal("KC")
        .asks(Tell.PAY, seat=1, why="blackjack", amount=1500)  # a 7 makes no blackjack
        .ends({1: 1500, 2: 1000}, "KD")
    )


def test_a_blackjack_is_not_pulled_back_by_a_late_dealers_bust(house: str) -> None:
    (
        Table("mega", house)
        .bets(1000, 1000)
        .deal("AC 8C TS KH")
        .do(DealerCardMissed(DEALER, 2))
        .ruled(Odd.DEALER_CARD_MISSED, Way.DEALER_LAST)
        .deal("KC")
        .ends({1: 3000, 2: 0}, "2D 3D 9D")
    )


@pytest.mark.parametrize(("late", "main", "insurance"), [("KD", -1000, 1000), ("6D KS", 0, -500)])
def test_insurance_when_the_dealer_missed_his_second_card(
    house: str, late: str, main: int, insurance: int
) -> None:
    """Nothing is checked that is not there; insurance, if it is taken, waits for the card."""
    t = missed(house, 2, "9C 8C AS 8H").deal("KC")
    insured = t.step is Step.INSURANCE
    if insured:
        t.insure(1, 500).decline(2).do(InsuranceClosed(DEALER))
    assert t.step is not Step.CHECK
    assert t.finish(late)[1] == main + insured * insurance


@pytest.mark.parametrize("up", ["TS", "AS"])
def test_no_surrender_while_the_dealer_may_have_an_unchecked_blackjack(house: str, up: str) -> None:
    """Surrender is allowed only after the dealer has checked."""
    (
        Table("maxtime", house)
        .bets(1000)
        .deal(f"9C {up}")
        .do(DealerCardMissed(DEALER, 2))
        .ruled(Odd.DEALER_CARD_MISSED, Way.DEALER_LAST)
        .deal("KC")
        .at(Step.TURN)
        .offers_not("surrender")
    )


def test_what_the_dealer_cannot_have_missed(house: str) -> None:
    (
        Table(house=house)
        .bets(1000, 1000)
        .refuses(DealerCardMissed(DEALER, 1), "not_in_the_deal")
        .deal("9C 8C 8S 2H KC (TD)")
        .refuses(DealerCardMissed(DEALER, 2), "not_in_the_deal")
    )


# A player got no cards: dead hand, wager back, in again next round


def test_a_player_who_got_no_cards(house: str) -> None:
    t = (
        Table(house=house)
        .bets(1000, 500, 1000)
        .deal("9C 8C")
        .do(SeatMissed(DEALER, 2))
        .ruled(Odd.SEAT_MISSED, Way.DEAD_HAND)
        .noted(SeatDead(2))
        .until(Step.DEALING)  # where the wager is handed back at once
        .asks(Tell.DEAL, place="up")
        .deal("8S 2H KC (TD)")
        .at(Step.TURN)
    )
    assert [hand.cards for hand in t.state.hands if hand.seat == 2] == [()]
    t.hit(1, "9D").ends({1: 1000, 2: 0, 3: 0})
    back = [each for each in t.facts_of(Settled) if each.seat == 2]
    assert [(each.bet, each.stake, each.returned) for each in back] == [("main", 500, 500)]
    t.bets(1000, 500).deal("9C 8C 8S 2H KC (TD)").ends({1: -1000, 2: 0})


def test_the_side_bets_of_a_dead_hand_go_back_too(house: str) -> None:
    t = (
        Table("mega", house)
        .bet(1, 1000)
        .bet(2, 500, buster=100, toke_main=50, toke_buster=20)
        .deal("9C")
        .do(SeatMissed(DEALER, 2))
        .ruled(Odd.SEAT_MISSED, Way.DEAD_HAND)
        .until(Step.DEALING)
        .deal("6S 9D (TD)")
        .ends({1: 1000, 2: 0}, "KD")
    )
    back = {each.bet: each.returned for each in t.facts_of(Settled) if each.seat == 2}
    assert back == {"main": 500, "buster": 100, "toke_main": 50, "toke_buster": 20}


def test_a_dead_hand_is_not_asked_for_insurance(house: str) -> None:
    (
        Table(house=house)
        .bets(1000, 500)
        .deal("9C")
        .do(SeatMissed(DEALER, 2))
        .ruled(Odd.SEAT_MISSED, Way.DEAD_HAND)
        .until(Step.DEALING)
        .deal("AS 9D (8D)")
        .decline(1)
        .at(Step.INSURANCE_CLOSE)
        .ends({1: -1000, 2: 0})
    )


def test_a_seat_that_cannot_have_been_missed(house: str) -> None:
    (
        Table(house=house)
        .bets(1000, 1000)
        .refuses(SeatMissed(DEALER, 1), "not_in_the_deal")
        .deal("9C")
        .refuses(SeatMissed(DEALER, 3), "seat_missed")
        .deal("8C 8S 2H KC")
        .refuses(SeatMissed(DEALER, 2), "seat_missed")  # the hole card is all that is left
        .deal("(TD)")
        .refuses(SeatMissed(DEALER, 2), "not_in_the_deal")
    )
    Table(house=house).bets(1000).deal("9C").refuses(SeatMissed(DEALER, 1), "seat_missed")


# A player got one card: second card after everyone else's


def test_a_player_who_got_one_card(house: str) -> None:
    (
        Table(house=house)
        .bets(1000, 1000)
        .deal("9C 8C 8S KC")
        .do(SeatShorted(DEALER, 1))
        .ruled(Odd.SEAT_SHORTED, Way.SECOND_CARD_LAST)
        .at(Step.DEALING)
        .hold("9C", "8C KC")  # the king went to seat 2
        .asks(Tell.DEAL, place="hole")
        .deal("(TD)")
        .asks(Tell.DEAL, seat=1, place="hand", count=2)
        .deal("2H")
        .at(Step.TURN)
        .hit(1, "9D")
        .ends({1: 1000, 2: 0})
    )


def test_two_players_who_got_one_card(house: str) -> None:
    (
        Table(house=house)
        .bets(1000, 1000)
        .deal("9C 8C 8S")
        .do(SeatShorted(DEALER, 1))
        .ruled(Odd.SEAT_SHORTED, Way.SECOND_CARD_LAST)
        .do(SeatShorted(DEALER, 2))
        .ruled(Odd.SEAT_SHORTED, Way.SECOND_CARD_LAST)
        .deal("(TD) 2H KC")
        .hold("9C 2H", "8C KC")
        .hit(1, "9D")
        .ends({1: 1000, 2: 0})
    )


def test_a_late_second_card_makes_a_blackjack(house: str) -> None:
    (
        Table(house=house)
        .bets(1000, 1000)
        .deal("AC 8C 8S KC")
        .do(SeatShorted(DEALER, 1))
        .ruled(Odd.SEAT_SHORTED, Way.SECOND_CARD_LAST)
        .deal("(TD) KH")
        .asks(Tell.PAY, seat=1, amount=1500)
        .ends({1: 1500, 2: 0})
    )


def test_a_late_second_card_under_an_ace(house: str) -> None:
    (
        Table(house=house)
        .bets(1000, 1000)
        .deal("9C 8C AS KC")
        .do(SeatShorted(DEALER, 1))
        .ruled(Odd.SEAT_SHORTED, Way.SECOND_CARD_LAST)
        .deal("(TD) KH")
        .insure(1, 500)
        .insure(2, 500)
        .ends({1: 0, 2: 0})
    )


def test_a_seat_that_cannot_be_one_card_short(house: str) -> None:
    (
        Table(house=house)
        .bets(1000, 1000)
        .refuses(SeatShorted(DEALER, 1), "not_in_the_deal")
        .deal("9C 8C 8S 2H KC")
        .refuses(SeatShorted(DEALER, 3), "seat_shorted")
        .deal("(TD)")
        .refuses(SeatShorted(DEALER, 2), "not_in_the_deal")
    )


def test_a_late_wager_does_not_open_a_missed_seat(house: str) -> None:
    (
        Table(house=house)
        .bets(1000)
        .deal("9C")
        .refuses(WagerPlaced(player(2), 2, "main", 1000), "late_wager")
        .refuses(SeatMissed(DEALER, 2), "seat_missed")
    )


# Player leaves or does not answer: hand stands, wagers stay, floor called


def left(t: Table, seat: int) -> Table:
    (
        t.do(PlayerAbsent(DEALER, seat))
        .ruled(Odd.PLAYER_ABSENT, Way.STAND_HAND)
        .noted_last(Told("floor", "player_absent", seat))
    )
    assert t.refusal_of(PlayerAbsent(DEALER, seat)) in ("player_absent", "nobody_waits_for_player")
    return t


@pytest.mark.parametrize("when", ["9C 8C", "9C 8C 8S 2H KC", DEAL])
@pytest.mark.parametrize("seat", [1, 2])
def test_player_leaves_before_the_turn_is_over(house: str, when: str, seat: int) -> None:
    (
        left(dealt(house, when), seat)
        .deal(DEAL[len(when) :])
        .at(Step.TURN)
        .asks(Tell.DECIDE, seat=3 - seat)
        .ends({1: -1000, 2: 0})
    )


def test_player_leaves_when_asked_for_insurance(house: str) -> None:
    (
        left(dealt(house, ACE_UP), 1)
        .asks(Tell.ASK_INSURANCE, seat=2)
        .do(Insure(DEALER, 2, 500))
        .then(left, 2)
        .at(Step.INSURANCE_CLOSE)  # the chips were not confirmed
        .ends({1: -1000, 2: -1000})
    )


def test_what_was_agreed_stays_when_the_player_leaves(house: str) -> None:
    t = (
        Table("mega", house)
        .bets(1000, 1000, 1000)
        .deal("AC 8C 7C AS KH KC 9H (KD)")
        .do(EvenMoney(player(1), 1))
        .insure(2, 500)
        .do(Insure(player(3), 3, 400))
    )
    left(left(t, 1), 2).asks(Tell.CONFIRM_INSURANCE, seat=3, amount=400)
    t.do(Confirmed(DEALER)).ends({1: 1000, 2: 0, 3: -200})


@pytest.mark.parametrize("ask", [Double, Split])
def test_player_leaves_before_the_chips_are_confirmed(house: str, ask: type[Double]) -> None:
    (
        dealt(house, "8C 9C 8S 8H KC (TD)")
        .do(ask(DEALER, 1, 0))
        .then(left, 1)
        .at(Step.TURN)
        .asks(Tell.DECIDE, seat=2)
        .ends({1: -1000, 2: 1000})
    )


def test_player_leaves_while_the_double_s_card_comes(house: str) -> None:
    (
        dealt(house)
        .do(Double(DEALER, 1, 0), Confirmed(DEALER))
        .then(left, 1)
        .deal("9D")
        .ends({1: 2000, 2: 0})
    )


def test_the_split_hands_of_a_player_who_left_stand(house: str) -> None:
    (
        dealt(house, "8C 9C 7S 8H KC (TD)")
        .split(1, "3C")
        .then(left, 1)
        .asks(Tell.DEAL, seat=1, hand=1)  # a hand of one card gets its second
        .deal("TC")
        .stand(2)
        .ends({1: 0, 2: 1000})
    )


def test_a_blackjack_of_a_player_who_left_is_paid(house: str) -> None:
    t = left(dealt(house, "AC 9C AS KC 8H (9D)"), 1).decline(2).ends({1: 1500, 2: -1000})
    t = Table(house=house, double__natural=True).bets(1000, 1000).deal("AC 9C 7S KC 8H (TD)")
    left(t.at(Step.NATURALS), 1).ends({1: 1500, 2: 0})


def test_a_seat_that_nobody_waits_for(house: str) -> None:
    dealt(house).refuses(PlayerAbsent(DEALER, 3), "player_absent")
    dealt(house).until(Step.REVEAL).refuses(PlayerAbsent(DEALER, 1), "nobody_waits_for_player")


# Player cannot cover a split or double: withdrawn before the dealer confirms it


@pytest.mark.parametrize("ask", [Double, Split])
def test_player_cannot_cover_a_split_or_double(house: str, ask: type[Double]) -> None:
    t = dealt(house, "8C 9C 8S 8H KC (TD)", decisions__by="both")
    before, shown = t.state, t.prompt
    t.do(ask(DEALER, 1, 0)).refuses(Withdrawn(player(2)), "withdrawn").do(Withdrawn(DEALER))
    assert (t.state, t.prompt) == (before, shown)
    t.do(ask(DEALER, 1, 0), Confirmed(DEALER)).refuses(Withdrawn(DEALER), "nothing_to_confirm")


def test_player_cannot_cover_the_insurance(house: str) -> None:
    t = dealt(house, ACE_UP, decisions__by="both")
    before = t.state
    (
        t.do(Insure(DEALER, 1, 500), Withdrawn(player(1)))
        .unchanged(before)
        .insure(1, 400)
        .refuses(Withdrawn(player(1)), "nothing_to_confirm")
    )


# Late wager, or wager without a main wager: refused, chips handed back


def test_late_wager_and_wager_without_a_main_wager(house: str) -> None:
    (
        Table("mega", house)
        .refuses(WagerPlaced(player(1), 1, "buster", 100), "without_main")
        .bets(1000)
        .deal("9C")
        .refuses(WagerPlaced(player(1), 1, "buster", 100), "late_wager")
        .refuses(WagerPlaced(player(2), 2, "main", 1000), "late_wager")
    )
