"""Amounts, odds and chips; what hands and side bets are paid, against an independent reading."""

from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.errors import UsageProblem
from controller.rules.cards import DECK, RANK, SUIT, Card, card_names
from controller.rules.money import (
    EVEN,
    Denomination,
    Money,
    Odds,
    Rounding,
    in_chips,
    parse_odds,
)
from controller.rules.options import Options
from controller.rules.payouts import (
    against_dealer,
    blackjack_odds,
    buster_odds,
    can_push,
    could_be_blackjack,
    dealer_draws,
    dealer_pushes,
    in_diamonds,
    surrendered,
    win_odds,
    wins_insurance,
)
from tests.support.rules.hands import cards, hand
from tests.support.rules.options import SURRENDER, options

NUMBERS = st.integers(1, 1000)
UNITS = st.sampled_from([1, 5, 25, 50, 100, 500, 2500])


@pytest.mark.parametrize(
    ("rounding", "stake", "odds", "unit", "winnings"),
    [
        ("floor", 1000, Odds(3, 2), 1, 1500),
        ("floor", 500, Odds(3, 2), 100, 700),
        ("half_up", 500, Odds(3, 2), 100, 800),
        ("ceil", 500, Odds(3, 2), 100, 800),
        ("floor", 500, Odds(6, 5), 100, 600),
        ("floor", 700, Odds(6, 5), 100, 800),
        ("half_up", 700, Odds(6, 5), 100, 800),
        ("ceil", 700, Odds(6, 5), 100, 900),
        ("floor", 101, Odds(12, 5), 1, 242),
        ("half_up", 101, Odds(12, 5), 1, 242),
        ("ceil", 101, Odds(12, 5), 1, 243),
        ("floor", 500, Odds(300, 1), 100, 150000),
        ("floor", 0, Odds(3, 2), 100, 0),
    ],
)
def test_winnings(rounding: Rounding, stake: int, odds: Odds, unit: int, winnings: int) -> None:
    assert Money(rounding, unit).winnings(stake, odds) == winnings


@pytest.mark.parametrize(
    ("rounding", "stake", "half"), [("floor", 5, 2), ("half_up", 5, 3), ("ceil", 5, 3)]
)
def test_half_of_an_odd_wager(rounding: Rounding, stake: int, half: int) -> None:
    assert Money(rounding).half(stake) == half


@given(amount=st.integers(0, 10**9), times=NUMBERS, over=NUMBERS, unit=UNITS)
def test_a_fraction_is_whole_units_around_the_exact_value(
    amount: int, times: int, over: int, unit: int
) -> None:
    exact = Fraction(amount * times, over * unit)
    assert Money("floor", unit).fraction(amount, times, over) == floor(exact) * unit
    assert Money("ceil", unit).fraction(amount, times, over) == ceil(exact) * unit
    half_up = floor(exact + Fraction(1, 2))
    assert Money("half_up", unit).fraction(amount, times, over) == half_up * unit


@given(units=st.integers(0, 10**6), unit=UNITS, rounding=st.sampled_from(["floor", "ceil"]))
def test_even_money_on_whole_units_is_never_rounded(
    units: int, unit: int, rounding: Rounding
) -> None:
    assert Money(rounding, unit).winnings(units * unit, EVEN) == units * unit


@given(pays=st.integers(1, 999_999), on=st.integers(1, 999_999))
def test_odds_are_kept_as_they_are_written(pays: int, on: int) -> None:
    odds = parse_odds(f"{pays}:{on}", "here")
    assert (odds.pays, odds.on) == (pays, on)
    assert str(odds) == f"{pays}:{on}"


@pytest.mark.parametrize(
    "text", ["", "3", "3:", ":2", "0:1", "1:0", "-1:2", "3/2", "1.5:1", "3:2 ", "03:2", "1000000:1"]
)
def test_what_are_no_odds(text: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_odds(text, "file: blackjack.pays")
    assert caught.value.where == "file: blackjack.pays"
    assert caught.value.allowed == 'two whole numbers such as "3:2"'


CHIPS = (
    Denomination("white", 100),
    Denomination("red", 500),
    Denomination("green", 2500),
    Denomination("black", 10000),
)


@pytest.mark.parametrize(
    ("amount", "chips"),
    [
        (5000, ((2, "green"),)),
        (13100, ((1, "black"), (1, "green"), (1, "red"), (1, "white"))),
        (400, ((4, "white"),)),
        (0, ()),
        (150, ()),
    ],
)
def test_an_amount_in_chips(amount: int, chips: tuple[tuple[int, str], ...]) -> None:
    assert in_chips(amount, CHIPS) == chips


def test_no_chips_no_advice() -> None:
    assert in_chips(500, ()) == ()


@given(units=st.integers(1, 10**5), order=st.permutations(CHIPS))
def test_chips_make_the_amount_largest_first(units: int, order: list[Denomination]) -> None:
    value = {chip.name: chip.value for chip in CHIPS}
    cut = in_chips(units * 100, tuple(order))
    assert sum(count * value[name] for count, name in cut) == units * 100
    values = [value[name] for _, name in cut]
    assert values == sorted(values, reverse=True)
    assert all(count > 0 for count, _ in cut)


Changes = dict[str, object]
PUSH_22: Changes = {"dealer__push_22": True}
PUSH_4: Changes = {"dealer__push_bust_cards": 4}
WINS_TIES: Changes = {"blackjack__tie": "player_wins"}
MEGA: Changes = {"wins__pays_21": Odds(3, 2), **PUSH_4}

# The player's hand, the dealer's total, cards and blackjack; the outcome and its odds.
AGAINST: tuple[tuple[Changes, str, Changes, tuple[int, int, bool], str, str | None], ...] = (
    ({}, "KC 9D", {}, (18, 2, False), "win", "1:1"),
    ({}, "KC 9D", {}, (19, 2, False), "push", None),
    ({}, "KC 9D", {}, (20, 2, False), "lose", None),
    ({}, "2C 2D", {}, (22, 3, False), "win", "1:1"),
    ({}, "KC 5D 6H", {}, (21, 3, False), "push", None),
    ({}, "KC 5D 6H", {}, (20, 3, False), "win", "1:1"),
    # A blackjack outranks a 21 of three or more cards, on either side.
    ({}, "KC 5D 6H", {}, (21, 2, True), "lose", None),
    ({}, "AC KD", {"natural": True}, (21, 3, False), "blackjack", "3:2"),
    ({}, "AC KD", {"natural": True}, (17, 2, False), "blackjack", "3:2"),
    ({}, "AC KD", {"natural": True}, (21, 2, True), "push", None),
    (WINS_TIES, "AC KD", {"natural": True}, (21, 2, True), "blackjack", "3:2"),
    (WINS_TIES, "KC 5D 6H", {}, (21, 2, True), "lose", None),
    # An ace and a ten after a split, or one whose pay was declined, are 21.
    ({}, "AC KD", {"split": True}, (21, 3, False), "push", None),
    ({}, "AC KD", {"split": True}, (20, 3, False), "win", "1:1"),
    ({}, "AC KD", {}, (21, 2, True), "lose", None),
    # The dealer's 22 pushes what is unresolved; 23 is a plain bust.
    (PUSH_22, "KC 9D", {}, (22, 3, False), "push", None),
    (PUSH_22, "KC 9D", {}, (23, 5, False), "win", "1:1"),
    (PUSH_22, "AC KD", {"natural": True}, (22, 3, False), "push", None),
    # A bust of four cards or more pushes; one of three does not.
    (PUSH_4, "KC 9D", {}, (22, 3, False), "win", "1:1"),
    (PUSH_4, "KC 9D", {}, (22, 4, False), "push", None),
    (PUSH_4, "KC 9D", {}, (26, 5, False), "push", None),
    (PUSH_4, "KC 9D", {}, (20, 4, False), "lose", None),
    (PUSH_4, "AC KD", {"natural": True}, (24, 4, False), "push", None),
    # A winning 21 has its own odds, also split or doubled, whatever the number of cards.
    (MEGA, "AC KD", {"split": True}, (20, 2, False), "win", "3:2"),
    (MEGA, "5C 6D KH", {"doubles": 1}, (20, 2, False), "win", "3:2"),
    (MEGA, "5C 6D KH", {}, (25, 3, False), "win", "3:2"),
    (MEGA, "5C 6D KH", {}, (25, 4, False), "push", None),
    (MEGA, "5C 6D KH", {}, (21, 4, False), "push", None),
    (MEGA, "5C 6D 9H", {}, (25, 3, False), "win", "1:1"),
)


@pytest.mark.parametrize(("changes", "names", "more", "dealer", "outcome", "odds"), AGAINST)
def test_a_hand_against_the_dealers(
    changes: Changes,
    names: str,
    more: Changes,
    dealer: tuple[int, int, bool],
    outcome: str,
    odds: str | None,
) -> None:
    total, count, blackjack = dealer
    o, held = options(**changes), hand(names, **more)
    made, at = against_dealer(o, held, total, count, blackjack=blackjack)
    assert (made, None if at is None else str(at)) == (outcome, odds)


@given(
    mine=st.integers(4, 21),
    total=st.integers(17, 26),
    count=st.integers(2, 10),
    push_22=st.booleans(),
    push_cards=st.sampled_from([0, 3, 4, 5]),
)
def test_a_plain_hand_wins_loses_or_pushes_by_the_totals(
    mine: int, total: int, count: int, push_22: bool, push_cards: int
) -> None:
    o = options(dealer__push_22=push_22, dealer__push_bust_cards=push_cards)
    outcome, odds = against_dealer(o, hand("2C 2D 2H", total=mine), total, count, blackjack=False)
    if total > 21:
        pushes = (push_22 and total == 22) or (push_cards and count >= push_cards)
        assert outcome == ("push" if pushes else "win")
    else:
        assert outcome == ("win" if mine > total else "push" if mine == total else "lose")
    assert odds == (EVEN if outcome == "win" else None)
    assert dealer_pushes(o, total, count) == (total > 21 and outcome == "push")


def test_whether_a_bust_can_push() -> None:
    pushes = [can_push(options(**changes)) for changes in ({}, PUSH_22, PUSH_4)]
    assert pushes == [False, True, True]


# Odds


@pytest.mark.parametrize(
    ("names", "odds"), [("AD KD", "2:1"), ("AD KC", "3:2"), ("AC KD", "3:2"), ("AS KS", "3:2")]
)
def test_a_blackjack_in_diamonds_has_its_own_odds(names: str, odds: str) -> None:
    assert str(blackjack_odds(options(blackjack__pays_diamonds=Odds(2, 1)), cards(names))) == odds
    assert str(blackjack_odds(options(), cards(names))) == "3:2"


def test_odds_stay_as_the_sheet_writes_them() -> None:
    odd = options(blackjack__pays=Odds(12, 5), wins__pays_21=Odds(6, 4))
    assert str(blackjack_odds(odd, cards("AC KD"))) == "12:5"
    assert str(win_odds(odd, hand("7C 7D 7H"))) == "6:4"
    outcome, odds = against_dealer(odd, hand("7C 7D 7H"), 20, 2, blackjack=False)
    assert (outcome, str(odds)) == ("win", "6:4")
    assert odds != Odds(3, 2)
    assert str(buster_odds(BUSTER, 22, 4)) == "6:1"


def test_in_diamonds() -> None:
    assert [in_diamonds(cards(names)) for names in ("AD KD", "AD KH")] == [True, False]


BUSTER = options(bonus__buster__pays={4: 6, 5: 10, 6: 15, 7: 50, 8: 250})


@pytest.mark.parametrize(
    ("total", "count", "to_one"),
    [
        (22, 3, None),
        (22, 4, 6),
        (26, 5, 10),
        (24, 6, 15),
        (23, 7, 50),
        (22, 8, 250),
        (22, 9, 250),
        (22, 22, 250),
        (21, 8, None),
        (17, 4, None),
        (21, 2, None),
    ],
)
def test_the_buster_table(total: int, count: int, to_one: int | None) -> None:
    assert buster_odds(BUSTER, total, count) == (None if to_one is None else Odds(to_one, 1))
    assert buster_odds(options(), total, count) is None


def test_a_buster_table_may_pay_for_three_cards() -> None:
    low = options(bonus__buster__pays={3: 1, 4: 2})
    assert [buster_odds(low, 22, count) for count in (3, 4, 5)] == [
        Odds(1, 1),
        Odds(2, 1),
        Odds(2, 1),
    ]


# Surrender

HALF: Options = options(**SURRENDER)
ORIGINAL: Options = options(**SURRENDER | {"surrender__of_doubled": "original_bet"})


@pytest.mark.parametrize(
    ("o", "wager", "bet", "doubles", "back"),
    [
        (HALF, 10, 10, 0, 5),
        (HALF, 20, 10, 1, 10),
        (HALF, 80, 10, 3, 40),
        (HALF, 14, 10, 1, 7),
        (ORIGINAL, 10, 10, 0, 5),
        (ORIGINAL, 20, 10, 1, 10),
        (ORIGINAL, 80, 10, 3, 70),
        (ORIGINAL, 14, 10, 1, 4),
        (options(money__unit=5, **SURRENDER), 15, 15, 0, 5),
        (options(money__unit=5, money__rounding="ceil", **SURRENDER), 15, 15, 0, 10),
        (options(money__unit=5, money__rounding="half_up", **SURRENDER), 15, 15, 0, 10),
    ],
)
def test_what_a_surrender_gives_back(
    o: Options, wager: int, bet: int, doubles: int, back: int
) -> None:
    assert surrendered(o, hand("KC 6D", wager=wager, bet=bet, doubles=doubles)) == back


# The dealer


@pytest.mark.parametrize("rule", ["hit", "stand"])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("total", range(4, 27))
def test_when_the_dealer_draws(total: int, soft: bool, rule: str) -> None:
    expected = total <= 16 or (total == 17 and soft and rule == "hit")
    assert dealer_draws(options(dealer__soft_17=rule), total, soft=soft) == expected


def test_which_up_cards_can_be_half_of_a_blackjack() -> None:
    assert [value for value in range(11) if could_be_blackjack(value)] == [0, 1, 10]


@given(st.sampled_from(DECK), st.sampled_from(DECK))
def test_insurance_wins_with_an_ace_up_and_a_ten_down(up: Card, hole: Card) -> None:
    first, second = card_names((up, hole))
    assert wins_insurance(up, hole) == (first[0] == "A" and second[0] in "TJQK")
    assert RANK[up] == "A23456789TJQK".index(first[0])
    assert SUIT[up] == "CDHS".index(first[1])
