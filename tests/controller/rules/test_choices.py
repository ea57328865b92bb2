"""What each value of each option lets a hand do."""

from __future__ import annotations

import pytest

from controller.rules.hands import CHOICES, choices
from tests.support.rules.hands import hand
from tests.support.rules.options import ACE_IS_ONE, SURRENDER, options

ANY_CARDS: dict[str, object] = {"double__on": "any_cards"}
SPLIT: dict[str, object] = {"split": True}


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
    (ACE_IS_ONE, "AC KD", SPLIT, True),
    (ACE_IS_ONE, "KD AC", {}, True),
    (ACE_IS_ONE | ANY_CARDS, "AC 5D 5H", {}, False),
    # double.after_split
    ({}, "9C 2D", SPLIT, True),
    ({"double__after_split": False}, "9C 2D", SPLIT, False),
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
    ({"split__aces_one_card": True}, "AC 9D", SPLIT, False),
    ({"split__aces_one_card": True}, "AC 9D", {}, True),
    ({"split__aces_one_card": True}, "9C AD", SPLIT, True),
    ({"split__aces_one_card": False}, "AC 9D", SPLIT, True),
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
    ({}, "8C 8D", 3, SPLIT, True),
    ({}, "8C 8D", 4, SPLIT, False),
    ({"split__max_hands": 1}, "8C 8D", 1, {}, False),
    ({"split__max_hands": 2}, "8C 8D", 1, {}, True),
    ({"split__max_hands": 2}, "8C 8D", 2, SPLIT, False),
    # split.aces_again, split.aces_one_card
    ({}, "AC AD", 2, SPLIT, True),
    ({"split__aces_again": False}, "AC AD", 2, SPLIT, False),
    ({"split__aces_again": False}, "AC AD", 1, {}, True),
    ({"split__aces_again": False}, "8C 8D", 2, SPLIT, True),
    ({"split__aces_one_card": True}, "AC AD", 2, SPLIT, True),
    ({"split__aces_one_card": True, "split__aces_again": False}, "AC AD", 2, SPLIT, False),
    # A doubled hand is past splitting, also where it has two cards only while its card comes.
    ({"double__times": 3}, "8C 8D", 1, {"doubles": 1}, False),
)


@pytest.mark.parametrize(("changes", "names", "hands", "more", "expected"), SPLITS)
def test_splitting(
    changes: dict[str, object], names: str, hands: int, more: dict[str, object], expected: bool
) -> None:
    assert ("split" in may(changes, names, more, hands)) is expected


FIRST_TWO: dict[str, object] = SURRENDER | {"surrender__when": "first_two"}
SURRENDERS: tuple[Row, ...] = (
    ({}, "KC 6D", {}, False),
    (SURRENDER, "KC 6D", {}, True),
    (SURRENDER, "KC 3D 3H", {}, True),
    (SURRENDER, "KC 6D", SPLIT, True),
    (SURRENDER, "KC 3D 3H", {"doubles": 1}, True),
    (SURRENDER, "KC 3D 3H", {"doubles": 1, "split": True}, True),
    (FIRST_TWO, "KC 6D", {}, True),
    (FIRST_TWO, "KC 3D 3H", {}, False),
    (FIRST_TWO, "KC 6D", SPLIT, False),
    (FIRST_TWO, "KC 3D 3H", {"doubles": 1}, False),
)


@pytest.mark.parametrize(("changes", "names", "more", "expected"), SURRENDERS)
def test_surrendering(
    changes: dict[str, object], names: str, more: dict[str, object], expected: bool
) -> None:
    assert ("surrender" in may(changes, names, more)) is expected


HITS: tuple[Row, ...] = (
    ({}, "KC 6D", {}, True),
    ({}, "KC 9D AH", {}, True),
    ({}, "AC 9D", {}, True),
    ({}, "KC 9D 2H", {}, False),
    ({}, "AC KD", SPLIT, False),
    ({}, "KC 3D 3H", {"doubles": 1}, False),
    ({"double__times": 3}, "KC 3D 3H", {"doubles": 1}, False),
    ({"split__aces_one_card": True}, "AC 5D", SPLIT, False),
    ({"split__aces_one_card": False}, "AC 5D", SPLIT, True),
)


@pytest.mark.parametrize(("changes", "names", "more", "expected"), HITS)
def test_hitting(
    changes: dict[str, object], names: str, more: dict[str, object], expected: bool
) -> None:
    legal = may(changes, names, more)
    assert ("hit" in legal) is expected
    assert "stand" in legal
