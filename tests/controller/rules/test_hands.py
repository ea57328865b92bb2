"""Cards and their names; a hand's total, and what each option lets it do."""

from itertools import product

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
    Card,
    card_names,
    parse_card,
)
from controller.rules.hands import (
    CHOICES,
    DOUBLE,
    HIT,
    SPLIT,
    STAND,
    SURRENDER,
    Hand,
    Verdict,
    ace_and_ten,
    before_last,
    choices,
    doubled,
    instant,
    is_blackjack,
    judge,
    plus,
    total_of,
    with_card,
)
from controller.rules.options import Options
from tests.support.rules.hands import cards, hand
from tests.support.rules.options import ACE_IS_ONE, INSTANT, options
from tests.support.rules.options import SURRENDER as SURRENDERS

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


HELD = st.lists(st.sampled_from(DECK), min_size=1, max_size=12).map(tuple)


def by_trying(held: tuple[Card, ...]) -> tuple[int, bool]:
    """Total and softness from trying every ace as 1 and as 11."""
    worth = {"A": (1, 11), "T": (10,), "J": (10,), "Q": (10,), "K": (10,)}
    ways = [worth.get(name[0]) or (int(name[0]),) for name in card_names(held)]
    totals = [(sum(way), 11 in way) for way in product(*ways)]
    whole = [way for way in totals if way[0] <= 21]
    return max(whole) if whole else min(totals)


# Totals


@given(HELD)
def test_the_total_is_the_best_that_any_counting_gives(held: tuple[Card, ...]) -> None:
    assert total_of(held) == by_trying(held)


@given(HELD, st.randoms(use_true_random=False))
def test_the_order_of_the_cards_changes_no_total(held: tuple[Card, ...], rng: object) -> None:
    mixed = list(held)
    rng.shuffle(mixed)  # type: ignore[attr-defined]
    assert total_of(tuple(mixed)) == total_of(held)


@given(HELD)
def test_a_hand_counts_as_its_cards_come(held: tuple[Card, ...]) -> None:
    built = Hand(3, 25, 25)
    for card in held:
        built = with_card(built, card)
    assert (built.cards, built.total, built.soft) == (held, *by_trying(held))
    assert built.busted == (built.total > 21)
    assert (built.seat, built.wager, built.bet) == (3, 25, 25)


@pytest.mark.parametrize(
    ("names", "total", "soft"),
    [
        ("AS", 11, True),
        ("AS AD", 12, True),
        ("AS AD 9C", 21, True),
        ("AS AD 9C KH", 21, False),
        ("AS 6D", 17, True),
        ("AS 6D KH", 17, False),
        ("AS 5D 5H AC", 12, False),
        ("9C 8D 4H", 21, False),
        ("TC JD 2S", 22, False),
        ("AC AD AH AS 7C", 21, True),
        (" ".join(["AC"] * 21), 21, False),
        (" ".join(["AC"] * 22), 22, False),
    ],
)
def test_totals_by_hand(names: str, total: int, soft: bool) -> None:
    assert total_of(cards(names)) == (total, soft)


def test_one_card_more() -> None:
    for total, soft, name, made in (
        (16, True, "TH", (16, False)),
        (10, False, "AH", (21, True)),
        (11, False, "AH", (12, False)),
    ):
        assert plus(total, soft, parse_card(name, "here")) == made


def test_a_blackjack_is_an_ace_and_a_ten() -> None:
    for first, second in product(DECK, DECK):
        ranks = {NAMES[first][0], NAMES[second][0]}
        expected = "A" in ranks and bool(ranks & set("TJQK"))
        assert is_blackjack(first, second) == expected


def test_three_cards_of_21_are_no_ace_and_ten() -> None:
    names = ("AS KD", "QS AD", "AS 5C 5D", "KS KD", "AS")
    assert [held for held in names if ace_and_ten(hand(held))] == ["AS KD", "QS AD"]


# What a double makes of the hand


def test_a_double_stakes_the_hand_once_more() -> None:
    twice = doubled(hand("5C 6D"), 10)
    assert (twice.wager, twice.bet, twice.doubles) == (20, 10, 1)
    again = doubled(twice, 20)
    assert (again.wager, again.bet, again.doubles) == (40, 10, 2)
    assert doubled(hand("5C 6D"), 4).wager == 14


@pytest.mark.parametrize(
    ("third", "total"), [("KC", 21), ("AC", 12), ("9C", 20), ("2C", 13), ("5C", 16)]
)
def test_an_ace_and_a_ten_double_as_eleven_for_good(third: str, total: int) -> None:
    held = with_card(doubled(hand("AS KD", split=True), 10), parse_card(third, "here"))
    assert (held.total, held.soft) == (total, False)


def test_a_redouble_and_any_other_double_leave_the_total_alone() -> None:
    soft = doubled(hand("AS 6D"), 10)
    assert (soft.total, soft.soft) == (17, True)
    twice = doubled(with_card(doubled(hand("AS KD"), 10), parse_card("9C", "here")), 20)
    assert (twice.total, twice.soft, twice.doubles) == (20, False, 2)


# What a card made of the hand


@pytest.mark.parametrize(
    ("names", "more", "expected"),
    [
        ("5C 5D 5H 6S", {}, None),
        ("2C 3D 5H 5S 6C", {}, Verdict.INSTANT_21),
        ("2C 3D 5H 5S 5C AC", {}, Verdict.INSTANT_21),
        ("2C 3D 2H 3S 2S 6C", {}, Verdict.INSTANT_COUNT),
        ("2C 3D 2H 3S 2S 2D 4C", {}, Verdict.INSTANT_COUNT),
        ("2C 3D 5H 5S 5C", {}, None),
        ("2C 3D 5H 5S 6C", {"split": True}, Verdict.INSTANT_21),
        ("2C 3D 5H 5S 6C", {"doubles": 1}, None),
        ("2C 3D 2H 3S 2S 6C", {"doubles": 1}, None),
    ],
)
def test_instant_winners(names: str, more: dict[str, object], expected: Verdict | None) -> None:
    assert instant(options(**INSTANT), hand(names, **more)) is expected


def test_instant_winners_only_where_the_house_pays_them() -> None:
    five, six = "2C 3D 5H 5S 6C", "2C 3D 2H 3S 2S 6C"
    unsplit = options(**INSTANT | {"instant__on_split": False})
    only_21 = options(**INSTANT | {"instant__pays_count": None, "instant__cards_count": None})
    for o, held, verdict in (
        (options(), hand(five), None),
        (options(), hand(six), None),
        (unsplit, hand(five, split=True), None),
        (unsplit, hand(six, split=True), None),
        (unsplit, hand(five), Verdict.INSTANT_21),
        (only_21, hand(six), None),
        (only_21, hand("2C 3D 2H 3S 2S 9C"), Verdict.INSTANT_21),
    ):
        assert instant(o, held) is verdict, (o.instant, held)


REDOUBLES: dict[str, object] = {"double__times": 3, "double__on": "any_cards", **SURRENDERS}


@pytest.mark.parametrize(
    ("changes", "names", "more", "verdict", "legal"),
    [
        ({}, "KC 6D 9H", {}, Verdict.BUST, 0),
        ({}, "KC 6D 5H", {}, Verdict.STANDS, 0),
        ({}, "KC 6D 2H", {}, Verdict.PLAYS, HIT | STAND),
        ({}, "5C 6D", {}, Verdict.PLAYS, HIT | STAND | DOUBLE),
        ({}, "5C 6D 9H", {"doubles": 1}, Verdict.STANDS, 0),
        # 21 waits where it may still be doubled ...
        ({}, "AC KD", {"split": True}, Verdict.PLAYS, STAND | DOUBLE),
        ({"double__max_total": 20}, "AC KD", {"split": True}, Verdict.STANDS, 0),
        ({"double__on": "any_cards"}, "5C 6D KH", {}, Verdict.PLAYS, STAND | DOUBLE),
        # ... or was doubled where surrender is open to it, but not for surrender alone.
        (SURRENDERS, "5C 6D KH", {}, Verdict.STANDS, 0),
        (SURRENDERS, "5C 6D KH", {"doubles": 1}, Verdict.PLAYS, STAND | SURRENDER),
        (REDOUBLES, "5C 6D KH", {"doubles": 1}, Verdict.PLAYS, STAND | SURRENDER | DOUBLE),
        (REDOUBLES, "5C 4D KH", {"doubles": 2}, Verdict.PLAYS, STAND | SURRENDER | DOUBLE),
        (REDOUBLES, "5C 4D KH", {"doubles": 3}, Verdict.PLAYS, STAND | SURRENDER),
        (REDOUBLES, "5C 7D KH", {"doubles": 1}, Verdict.BUST, 0),
        ({"split__aces_one_card": True}, "AC 9D", {"split": True}, Verdict.STANDS, 0),
        ({"split__aces_one_card": True}, "AC AD", {"split": True}, Verdict.PLAYS, STAND | SPLIT),
        (INSTANT, "2C 3D 5H 5S 6C", {}, Verdict.INSTANT_21, 0),
    ],
)
def test_the_verdict_on_a_card(
    changes: dict[str, object], names: str, more: dict[str, object], verdict: Verdict, legal: int
) -> None:
    assert judge(options(**changes), hand(names, **more), 1) == (verdict, legal)


@given(held=HELD.filter(lambda held: len(held) > 1), doubles=st.integers(0, 3), split=st.booleans())
@pytest.mark.parametrize("changes", [{}, INSTANT, SURRENDERS, REDOUBLES | INSTANT])
def test_a_hand_that_plays_has_more_than_one_choice(
    changes: dict[str, object], held: tuple[Card, ...], doubles: int, split: bool
) -> None:
    o: Options = options(**changes)
    total, soft = by_trying(held)
    judged = Hand(1, 10, 10, cards=held, total=total, soft=soft, doubles=doubles, split=split)
    verdict, legal = judge(o, judged, 1)
    assert (verdict is Verdict.BUST) == (total > 21)
    assert (verdict is Verdict.PLAYS) == bool(legal)
    if legal:
        assert legal == choices(o, judged, 1)
        assert legal & STAND
        assert legal != STAND
        assert legal < 1 << len(CHOICES)
    if total == 21:
        assert not legal & HIT


@pytest.mark.parametrize("doubles", [0, 1, 2])
@pytest.mark.parametrize("held", ["AS KD", "AS 6D", "5C 6D", "AS"])
def test_without_its_last_card_a_hand_is_as_it_was(held: str, doubles: int) -> None:
    before = hand(held)
    for _ in range(doubles):
        before = doubled(before, 10)
    for card in DECK:
        assert before_last(with_card(before, card)) == (before, card)


ANY_CARDS: dict[str, object] = {"double__on": "any_cards"}
OF_SPLIT: dict[str, object] = {"split": True}


def may(
    changes: dict[str, object], names: str, more: dict[str, object], hands: int = 1
) -> set[str]:
    legal = choices(options(**changes), hand(names, **more), hands)
    return {word for bit, word in CHOICES.items() if legal & bit}


Row = tuple[dict[str, object], str, dict[str, object], bool]

DOUBLES: tuple[Row, ...] = (
    ({}, "9C 2D", {}, True),
    ({}, "9C 2D 2H", {}, False),
    (ANY_CARDS, "9C 2D 2H", {}, True),
    (ANY_CARDS, "9C 2D 2H 2S 2C", {}, True),
    # double.max_total
    ({}, "AC KD", {}, True),
    ({"double__max_total": 20}, "AC KD", {}, False),
    ({"double__max_total": 20}, "KC QD", {}, True),
    ({"double__max_total": 11}, "9C 2D", {}, True),
    ({"double__max_total": 11}, "9C 3D", {}, False),
    ({"double__max_total": 11}, "AC 2D", {}, False),
    ({"double__max_total": 11} | ANY_CARDS, "AC KD", {}, False),
    (ANY_CARDS, "7C 7D 7H", {}, True),
    # double.ace_is_one_with_ten
    (ACE_IS_ONE, "AC KD", OF_SPLIT, True),
    (ACE_IS_ONE, "KD AC", {}, True),
    (ACE_IS_ONE | ANY_CARDS, "AC 5D 5H", {}, False),
    # double.after_split
    ({}, "9C 2D", OF_SPLIT, True),
    ({"double__after_split": False}, "9C 2D", OF_SPLIT, False),
    ({"double__after_split": False}, "9C 2D", {}, True),
    # double.times
    ({}, "9C 2D 2H", {"doubles": 1}, False),
    ({"double__times": 3}, "9C 2D 2H", {"doubles": 1}, True),
    ({"double__times": 3}, "9C 2D 2H 2S", {"doubles": 2}, True),
    ({"double__times": 3}, "9C 2D 2H 2S 2C", {"doubles": 3}, False),
    ({"double__times": 3}, "9C 2D KH", {"doubles": 1}, True),
    ({"double__times": 3, "double__max_total": 20}, "9C 2D KH", {"doubles": 1}, False),
    ({"double__times": 3, "double__max_total": 20}, "9C 2D 9H", {"doubles": 1}, True),
    # split.aces_one_card: then no double on them
    ({"split__aces_one_card": True}, "AC 9D", OF_SPLIT, False),
    ({"split__aces_one_card": True}, "AC 9D", {}, True),
    ({"split__aces_one_card": True}, "9C AD", OF_SPLIT, True),
    ({"split__aces_one_card": False}, "AC 9D", OF_SPLIT, True),
)


@pytest.mark.parametrize(("changes", "names", "more", "expected"), DOUBLES)
def test_doubling(
    changes: dict[str, object], names: str, more: dict[str, object], expected: bool
) -> None:
    assert ("double" in may(changes, names, more)) is expected


SPLITS: tuple[tuple[dict[str, object], str, int, dict[str, object], bool], ...] = (
    ({}, "8C 8D", 1, {}, True),
    ({}, "8C 9D", 1, {}, False),
    ({}, "8C 8D 8H", 1, {}, False),
    # split.match
    ({}, "TC KD", 1, {}, True),
    ({"split__match": "rank"}, "TC KD", 1, {}, False),
    ({"split__match": "rank"}, "KC KD", 1, {}, True),
    ({"split__match": "rank"}, "AC AD", 1, {}, True),
    # split.max_hands
    ({}, "8C 8D", 3, OF_SPLIT, True),
    ({}, "8C 8D", 4, OF_SPLIT, False),
    ({"split__max_hands": 1}, "8C 8D", 1, {}, False),
    ({"split__max_hands": 2}, "8C 8D", 1, {}, True),
    ({"split__max_hands": 2}, "8C 8D", 2, OF_SPLIT, False),
    # split.aces_again, split.aces_one_card
    ({}, "AC AD", 2, OF_SPLIT, True),
    ({"split__aces_again": False}, "AC AD", 2, OF_SPLIT, False),
    ({"split__aces_again": False}, "AC AD", 1, {}, True),
    ({"split__aces_again": False}, "8C 8D", 2, OF_SPLIT, True),
    ({"split__aces_one_card": True}, "AC AD", 2, OF_SPLIT, True),
    ({"split__aces_one_card": True, "split__aces_again": False}, "AC AD", 2, OF_SPLIT, False),
    # A doubled hand is past splitting, also where it has two cards only while its card comes.
    ({"double__times": 3}, "8C 8D", 1, {"doubles": 1}, False),
)


@pytest.mark.parametrize(("changes", "names", "hands", "more", "expected"), SPLITS)
def test_splitting(
    changes: dict[str, object], names: str, hands: int, more: dict[str, object], expected: bool
) -> None:
    assert ("split" in may(changes, names, more, hands)) is expected


FIRST_TWO: dict[str, object] = SURRENDERS | {"surrender__when": "first_two"}
SURRENDERING: tuple[Row, ...] = (
    ({}, "KC 6D", {}, False),
    (SURRENDERS, "KC 6D", {}, True),
    (SURRENDERS, "KC 3D 3H", {}, True),
    (SURRENDERS, "KC 6D", OF_SPLIT, True),
    (SURRENDERS, "KC 3D 3H", {"doubles": 1}, True),
    (SURRENDERS, "KC 3D 3H", {"doubles": 1, "split": True}, True),
    (FIRST_TWO, "KC 6D", {}, True),
    (FIRST_TWO, "KC 3D 3H", {}, False),
    (FIRST_TWO, "KC 6D", OF_SPLIT, False),
    (FIRST_TWO, "KC 3D 3H", {"doubles": 1}, False),
)


@pytest.mark.parametrize(("changes", "names", "more", "expected"), SURRENDERING)
def test_surrendering(
    changes: dict[str, object], names: str, more: dict[str, object], expected: bool
) -> None:
    assert ("surrender" in may(changes, names, more)) is expected


HITS: tuple[Row, ...] = (
    ({}, "KC 6D", {}, True),
    ({}, "KC 9D AH", {}, True),
    ({}, "AC 9D", {}, True),
    ({}, "KC 9D 2H", {}, False),
    ({}, "AC KD", OF_SPLIT, False),
    ({}, "KC 3D 3H", {"doubles": 1}, False),
    ({"double__times": 3}, "KC 3D 3H", {"doubles": 1}, False),
    ({"split__aces_one_card": True}, "AC 5D", OF_SPLIT, False),
    ({"split__aces_one_card": False}, "AC 5D", OF_SPLIT, True),
)


@pytest.mark.parametrize(("changes", "names", "more", "expected"), HITS)
def test_hitting(
    changes: dict[str, object], names: str, more: dict[str, object], expected: bool
) -> None:
    legal = may(changes, names, more)
    assert ("hit" in legal) is expected
    assert "stand" in legal
