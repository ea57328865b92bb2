"""Cards are numbers inside and names outside, and the two never disagree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.errors import UsageProblem
from controller.rules.cards import (
    ACE,
    DECK,
    DIAMONDS,
    NAMES,
    RANK,
    RANKS,
    SUIT,
    SUITS,
    VALUE,
    card_names,
    parse_card,
)

PIPS = {"A": 1, "T": 10, "J": 10, "Q": 10, "K": 10, **{str(n): n for n in range(2, 10)}}


def test_a_deck_has_52_different_cards() -> None:
    assert list(DECK) == list(range(52))
    assert len(set(NAMES)) == 52
    assert {name[0] for name in NAMES} == set("A23456789TJQK")
    assert {name[1] for name in NAMES} == set("CDHS")


@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "AC"), (8, "9C"), (9, "TC"), (12, "KC"), (13, "AD"), (26, "AH"), (39, "AS"), (51, "KS")],
)
def test_the_numbers_are_those_of_the_wire(number: int, name: str) -> None:
    assert NAMES[number] == name
    assert parse_card(name, "here") == number


@pytest.mark.parametrize("number", DECK)
def test_a_card_is_its_name(number: int) -> None:
    name = NAMES[number]
    assert parse_card(name, "here") == number
    assert name == RANKS[RANK[number]] + SUITS[SUIT[number]]
    assert VALUE[number] == PIPS[name[0]]
    assert (SUIT[number] == DIAMONDS) == (name[1] == "D")
    assert (VALUE[number] == ACE) == (name[0] == "A")


def test_several_names_keep_their_order() -> None:
    assert card_names((51, 0, 13)) == ("KS", "AC", "AD")
    assert card_names(()) == ()


@pytest.mark.parametrize("text", ["", "A", "10H", "AX", "1C", "ac", "AC ", " AC", "CA", "JOKER"])
def test_what_is_no_card(text: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_card(text, "rounds[3].shoe[1]")
    assert caught.value.where == "rounds[3].shoe[1]"
    assert repr(text) in caught.value.what
    assert caught.value.allowed is not None
    assert "A23456789TJQK" in caught.value.allowed


@given(st.text(max_size=3).filter(lambda text: text not in NAMES))
def test_no_other_text_is_a_card(text: str) -> None:
    with pytest.raises(UsageProblem):
        parse_card(text, "here")
