"""Payments: in which order, in which chips, who sees them first, and that none is cut."""

from typing import Any

import pytest

from controller.games import DEALER, FLOOR, player
from controller.procedure.model.effects import Prompt, Settled, Tell, Tucked
from controller.procedure.model.events import (
    AllPaid,
    Confirmed,
    Double,
    EvenMoney,
    InsuranceClosed,
    Insure,
    Paid,
    PayDeclined,
    PaymentApproved,
    PayTaken,
    Split,
)
from controller.procedure.model.state import Step
from controller.rules.money import Odds
from tests.support.procedure.table import HOUSES, Table, cards

CHIPS = [
    {"name": "white", "value": 100},
    {"name": "red", "value": 500},
    {"name": "green", "value": 2500},
]
IN_CHIPS: dict[str, Any] = {"money__unit": 100, "chips": CHIPS}
DEAL = "9C 8C 8S 2H KC (TD)"
"""Seat 1 has 11, seat 2 has 18, the dealer 18."""


def prompts(t: Table) -> list[tuple[int, str, str, int]]:
    """Every payment prompt up to the end of the round: seat, what to do, bet, amount."""
    shown = []
    while t.step is Step.PAYING:
        p: Prompt = t.prompt
        shown.append((p.seat, p.tell.value, p.place, p.amount))
        t.pay()
    return shown


# The settling order


def three_seats(order: str) -> Table:
    return (
        Table("mega", settle__order=order)
        .bet(1, 1000, buster=100, toke_main=50)
        .bet(2, 500)
        .bet(3, 200, toke_main=10)
        .deal("9C TC 7C 8S KC 8C KD (TD)")
        .until(Step.PAYING)
    )


def test_the_last_seat_is_settled_first() -> None:
    assert prompts(three_seats("last_seat")) == [
        (3, "collect", "main", 200),
        (3, "collect", "toke_main", 10),
        (2, "give_back", "main", 500),
        (1, "pay", "main", 1000),
        (1, "pay", "toke_main", 50),
        (1, "collect", "buster", 100),
    ]


def test_the_first_seat_is_settled_first_where_the_house_wants_it() -> None:
    assert [seat for seat, *_ in prompts(three_seats("first_seat"))] == [1, 1, 1, 2, 3, 3]


def test_the_hands_of_a_seat_are_settled_in_their_order() -> None:
    t = (
        Table()
        .bets(1000)
        .deal("8C 6S 8D (TD)")
        .split(1, "TC")
        .stand(1)
        .deal("9D")
        .stand(1, 1)
        .until(Step.DEALER_CARD)
        .deal("KH")
    )
    assert [(p.hand, p.amount) for p in [t.prompt, t.pay().prompt]] == [(0, 1000), (1, 1000)]


def test_later_hands_of_a_seat_move_up_when_it_splits_again() -> None:
    t = Table().bets(1000, 500).deal("8C 9C 6S 8D KC (TD)").split(1, "8H").split(1, "3C")
    mine = [(hand.seat, hand.number, hand.wager) for hand in t.state.hands]
    assert mine == [(1, 0, 1000), (1, 1, 1000), (1, 2, 1000), (2, 0, 500)]
    (
        t.hold("8C 3C", "8H", "8D", "9C KC")
        .stand(1)
        .deal("2C")
        .stand(1, 1)
        .deal("4C")
        .stand(1, 2)
        .stand(2)
        .ends({1: 3000, 2: 500}, "KD")
    )


# What a prompt says


def test_a_payment_prompt_says_why_at_which_odds_and_how_in_chips() -> None:
    t = (
        Table("sf21x", **IN_CHIPS)
        .bets(2500)
        .deal("2C 6S 3C (TD)")
        .hit(1, "4C")
        .hit(1, "5C")
        .hit(1, "7D")
        .asks(
            Tell.PAY,
            to="dealer",
            seat=1,
            hand=0,
            why="instant21",
            stake=2500,
            amount=5000,
            odds=Odds(2, 1),
            chips=((2, "green"),),
            cards=cards("2C 3C 4C 5C 7D"),
        )
    )
    assert t.prompt.rule
    assert t.stations.lamps == ((1, "won"),)


def test_chips_for_wagers_that_are_to_lie_there() -> None:
    (
        Table(**IN_CHIPS)
        .bets(3200, 500)
        .deal("8C 9C AS 8D KC (9D)")
        .do(Insure(DEALER, 1, 1600))
        .asks(Tell.CONFIRM_INSURANCE, amount=1600, chips=((3, "red"), (1, "white")))
        .do(Confirmed(DEALER))
        .decline(2)
        .until(Step.TURN)
        .do(Split(DEALER, 1, 0))
        .asks(Tell.CONFIRM_SPLIT, amount=3200, chips=((1, "green"), (1, "red"), (2, "white")))
        .do(Confirmed(DEALER))
        .deal("3D")
        .do(Double(DEALER, 1, 0))
        .asks(Tell.CONFIRM_DOUBLE, stake=3200, amount=3200)
    )


def test_no_chips_are_named_where_the_house_names_none() -> None:
    Table().bets(1000).deal("AC 6S KC (TD)").asks(Tell.PAY, amount=1500, chips=())


def test_odds_stay_as_the_sheet_writes_them() -> None:
    t = Table("sf21x", blackjack__pays="12:5").bets(500).deal("AC 6S KC (TD)")
    assert str(t.prompt.odds) == "12:5"
    t.ends({1: 1200})
    assert [str(each.odds) for each in t.facts_of(Settled)] == ["12:5"]


@pytest.mark.parametrize(
    ("rounding", "unit", "paid", "half"),
    [("floor", 1, 37, 12), ("half_up", 1, 38, 13), ("ceil", 1, 38, 13), ("floor", 5, 35, 10)],
)
def test_every_amount_handed_out_is_rounded_by_itself(
    rounding: str, unit: int, paid: int, half: int
) -> None:
    options: dict[str, Any] = {"money__rounding": rounding, "money__unit": unit}
    Table(**options).bets(25).deal("AC 6S KC (TD)").ends({1: paid})
    Table("maxtime", **options).bets(25).deal("9C 6S KC (TD)").surrender(1).ends({1: half - 25})


# Who sees it first


def test_a_large_payment_waits_for_the_floor() -> None:
    (
        Table(payout__floor_from=1500)
        .bets(999, 1000)
        .deal("AC AS 6S KC KD (TD)")
        .asks(Tell.FLOOR_FIRST, to="floor", seat=2, amount=1500)
        .refuses(Paid(DEALER), "floor_first")
        .refuses(AllPaid(DEALER), "pay_all")
        .refuses(PaymentApproved(DEALER), "not_theirs")
        .do(PaymentApproved(FLOOR))
        .asks(Tell.PAY, to="dealer", seat=2, amount=1500)
        .refuses(PaymentApproved(FLOOR), "approve_payment")
        .do(Paid(DEALER))
        .asks(Tell.PAY, seat=1, amount=1498)
        .refuses(PaymentApproved(FLOOR), "approve_payment")
        .ends({1: 1498, 2: 1500})
    )


def test_what_is_collected_or_given_back_waits_for_nobody() -> None:
    (
        Table(payout__floor_from=0)
        .bets(1000, 1000)
        .deal("7C 8C 8S KH KC (TD)")
        .until(Step.PAYING)
        .asks(Tell.GIVE_BACK, seat=2)
        .do(Paid(DEALER))
        .asks(Tell.COLLECT, seat=1)
        .do(Paid(DEALER))
        .ends({1: -1000, 2: 0})
    )


def test_the_cap_on_a_rounds_payout_never_cuts_a_payment() -> None:
    (
        Table(limits__table_payout=2000)
        .bets(1000, 1000)
        .deal("AC AS 6S KC KD (TD)")
        .asks(Tell.PAY, seat=2, amount=1500)
        .do(Paid(DEALER))
        .asks(Tell.FLOOR_FIRST, seat=1, amount=1500)
        .do(PaymentApproved(FLOOR), Paid(DEALER))
        .ends({1: 1500, 2: 1500})
    )


def test_the_cap_is_shown_before_wagers_are_locked() -> None:
    t = Table(limits__table_payout=2000).bets(1000)
    shown = [getattr(effect, name) for effect in t.effects for name in effect.__struct_fields__]
    assert 2000 in shown


# Declared, then compared


def test_a_declared_payment_is_compared() -> None:
    (
        Table(house="strict")
        .bets(1000, 500)
        .deal("AC 8C 6S KH KC (TD)")
        .asks(Tell.PAY, amount=1500)
        .refuses(Paid(DEALER), "declared_wrong")
        .refuses(Paid(DEALER, 1000), "declared_wrong")
        .refuses(Paid(DEALER, 2500), "declared_wrong")
        .refuses(AllPaid(DEALER), "pay_all")
        .do(Paid(DEALER, 1500))
        .at(Step.TURN)
    )


def test_what_is_declared_for_a_loss_and_for_a_tie() -> None:
    (
        Table(house="strict")
        .bets(1000, 500)
        .deal("7C 8C 8S KH KC (TD)")
        .until(Step.PAYING)
        .refuses(Paid(DEALER, 0), "declared_wrong")
        .do(Paid(DEALER, 500), Paid(DEALER, 1000))
        .at(Step.CLEARING)
    )


def test_a_declaration_is_compared_where_nobody_asked_for_it() -> None:
    (
        Table()
        .bets(1000)
        .deal("AC 6S KH (TD)")
        .refuses(Paid(DEALER, 1000), "declared_wrong")
        .do(Paid(DEALER, 1500))
        .at(Step.REVEAL)
    )


# All at once


def test_all_payments_at_once() -> None:
    (
        three_seats("last_seat")
        .do(AllPaid(DEALER))
        .at(Step.CLEARING)
        .noted_times(Settled, 6)
        .ends({1: 950, 2: 0, 3: -210})
    )


def test_all_at_once_after_the_floor_has_seen_the_first() -> None:
    (
        Table(payout__floor_from=1500)
        .bets(1000, 500)
        .deal("AC AS 6S KC KD (TD)")
        .refuses(AllPaid(DEALER), "pay_all")
        .do(Paid(DEALER), PaymentApproved(FLOOR), AllPaid(DEALER))
        .ends({1: 1500, 2: 750})
    )
    (
        Table(payout__floor_from=1500)
        .bets(1000, 1000)
        .deal("AC AS 6S KC KD (TD)")
        .do(PaymentApproved(FLOOR))
        .refuses(AllPaid(DEALER), "pay_all")  # one was seen
        .do(Paid(DEALER))
        .refuses(Paid(DEALER), "floor_first")
    )


def test_nothing_is_paid_when_nothing_is_due() -> None:
    t = Table().bets(1000).deal("9C 8S 2H (TD)")
    for event in (Paid(DEALER), AllPaid(DEALER), PaymentApproved(FLOOR)):
        t.refuses(event, "nothing_due")


# What the record learns


@pytest.mark.parametrize("house", HOUSES)
def test_a_busted_hand_is_tucked_under_a_live_buster_wager(house: str) -> None:
    (
        Table("mega", house)
        .bet(1, 1000, buster=100)
        .bet(2, 1000, toke_buster=50)
        .deal("9C 8C 6S 2H KC (TD)")
        .hit(1, "4D")
        .hit(1, "TD")
        .pay()
        .noted(Tucked(1, 0, cards("9C 2H 4D TD")))
        .hit(2, "9D")
        .pay()
        .noted_times(Tucked, 1)
        .ends({1: -1100, 2: -1050}, "KD")  # a bust of three cards
    )


def test_a_settled_hand_says_what_and_when() -> None:
    t = (
        Table()
        .bets(1000, 500)
        .deal("AC 8C 6S KH KC (TD)")
        .pay()
        .noted(
            Settled(
                1,
                1,
                0,
                "main",
                "blackjack",
                Odds(3, 2),
                1000,
                2500,
                "blackjack",
                True,
                cards("AC KH"),
            )
        )
    )
    assert t.finish("KD")[2] == 500
    assert [each.instant for each in t.facts_of(Settled)] == [True, False]


# Options that change what a hand is paid


def test_a_double_for_less() -> None:
    t = Table(double__for_less=True, money__unit=100).bets(1000).deal("9C 6S 2H (TD)")
    for amount in (0, -100, 1100, 150):
        t.refuses(Double(DEALER, 1, 0, amount), "double_stake")
    t.double(1, "KH", amount=300).stakes(1300).ends({1: 1300}, "KD")
    Table().bets(1000).deal("9C 6S 2H (TD)").refuses(Double(DEALER, 1, 0, 300), "double_stake")


def test_redoubles_double_the_whole_wager() -> None:
    (
        Table("sf21x")
        .bets(1000)
        .deal("2C 6S 3H (TD)")
        .double(1, "2D")
        .double(1, "2H")
        .refuses(Double(player(1), 1, 0, 1000), "double_stake")
        .double(1, "9D")
        .asks(Tell.DECIDE, stake=8000, choices=("stand", "surrender"))
        .surrender(1)
        .ends({1: -4000})
    )


def test_a_blackjack_may_decline_its_pay_and_double() -> None:
    (
        Table(double__natural=True)
        .bets(1000, 500)
        .deal("AC 9C 6S KH KC (TD)")
        .at(Step.NATURALS)
        .asks(Tell.ASK_NATURAL, seat=1, choices=("take_pay", "decline_pay"))
        .refuses(PayTaken(DEALER, 2), "natural_not_asked")
        .do(PayDeclined(DEALER, 1))
        .asks(Tell.DECIDE, seat=1, choices=("stand", "double"))
        .double(1, "5D")
        .at(Step.TURN)
        .ends({1: 2000, 2: 500}, "KD")
    )
    (
        Table(double__natural=True)
        .bets(1000)
        .deal("AC 6S KH (TD)")
        .do(PayTaken(DEALER, 1))
        .ends({1: 1500})
    )


def test_a_blackjack_that_waits_for_the_settlement_is_pushed_like_the_others() -> None:
    (
        Table("mega", blackjack__paid="at_settlement", even_money__offered=False)
        .bets(1000)
        .deal("AC 5S KH (2D)")
        .ends({1: 0}, "3D 2H TH")  # a bust of five cards
    )
    (
        Table("mega", blackjack__paid="at_settlement", even_money__offered=False)
        .bets(1000)
        .deal("AC 5S KH (TD)")
        .ends({1: 3000}, "9D")
    )


def test_limits_hold_for_the_first_wager_only() -> None:
    (
        Table(limits__main__max=1000)
        .bets(1000)
        .deal("8C 6S 8D (KH)")
        .split(1, "3C")
        .double(1, "9C")
        .stakes(2000, 1000)
    )


def test_even_money_is_paid_before_the_check() -> None:
    (
        Table("mega")
        .bet(1, 1000, buster=100)
        .deal("AC AS KH (9D)")
        .do(EvenMoney(player(1), 1))
        .do(InsuranceClosed(DEALER))
        .asks(Tell.PAY, why="even_money", amount=1000)
        .pay()
        .asks(Tell.CHECK_HOLE)
        .ends({1: 900})
    )


ORIGINAL: dict[str, Any] = {
    "dealer__peek": [],
    "dealer__no_peek_takes": "original_bets",
    "insurance__offered": False,
}


@pytest.mark.parametrize(("takes", "net"), [("original_bets", -1000), ("all", -3000)])
def test_an_unchecked_blackjack_takes_what_the_house_says(takes: str, net: int) -> None:
    (
        Table(**ORIGINAL | {"dealer__no_peek_takes": takes})
        .bets(1000)
        .deal("8C KS 8D (AD)")
        .split(1, "3C")
        .double(1, "9C")
        .deal("TH")
        .stand(1, 1)
        .ends({1: net})
    )
