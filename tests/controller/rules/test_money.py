"""Amounts are whole, odds are pairs, and one place rounds."""

from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.errors import UsageProblem
from controller.rules.money import (
    EVEN,
    Denomination,
    Money,
    Odds,
    Rounding,
    in_chips,
    parse_odds,
)

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
