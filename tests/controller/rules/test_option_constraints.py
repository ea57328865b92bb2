"""Each combination that no table can deal is refused, and its lawful neighbour is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.rules.money import Denomination, Odds
from controller.rules.option_constraints import (
    COMMON,
    FEATURES,
    RANGES,
    Impossible,
    Range,
    impossible,
    off_features,
    value_at,
)
from tests.support.rules.options import ACE_IS_ONE, INSTANT, PLAIN, SURRENDER, options


def paths(changes: dict[str, object]) -> list[str]:
    return [problem.path for problem in impossible(options(**changes))]


INSURED: dict[str, object] = {
    "insurance__offered": True,
    "insurance__pays": Odds(2, 1),
    "insurance__max": "half",
}
EVEN: dict[str, object] = {**INSURED, "even_money__offered": True}
UNSEEN: dict[str, object] = {"dealer__peek": (), "dealer__no_peek_takes": "all"}
CHIPS = (Denomination("white", 100), Denomination("red", 500))
TABLE: dict[str, object] = {"money__unit": 100, "chips": CHIPS}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        INSURED,
        EVEN,
        INSTANT,
        SURRENDER,
        ACE_IS_ONE,
        UNSEEN,
        TABLE,
        {**UNSEEN, "dealer__peek": ("A",)},
        {**UNSEEN, "dealer__peek": ("A",), **INSURED},
        {**UNSEEN, "dealer__peek": ("T",), "dealer__no_peek_takes": "original_bets"},
        {"blackjack__tie": "player_wins"},
        {"blackjack__ten_up": "pay_first"},
        {"blackjack__paid": "at_settlement"},
        {"dealer__push_bust_cards": 3},
        {**INSTANT, "instant__cards_21": 6},
        {"double__for_less": True},
        {"double__times": 3},
        {**ACE_IS_ONE, "double__after_split": False, "double__natural": True},
        {"bonus__buster__pays": {3: 1, 4: 2}},
        {"bonus__buster__pays": {4: 6}},
        {**TABLE, "limits__main__min": 500, "limits__main__max": 500, "limits__main__step": 100},
        {"shuffle__cut_cards_behind": 299},
        {"split__max_hands": 1},
    ],
)
def test_what_can_be_dealt(changes: dict[str, object]) -> None:
    assert impossible(options(**changes)) == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({**UNSEEN, **SURRENDER}, "surrender.when"),
        ({**UNSEEN, **SURRENDER, "dealer__peek": ("A",)}, "surrender.when"),
        ({**UNSEEN, "dealer__peek": ("T",), "surrender__when": "first_two"}, "surrender.when"),
        ({**UNSEEN, "dealer__peek": ("T",), **INSURED}, "insurance.offered"),
        ({"even_money__offered": True}, "even_money.offered"),
        ({**EVEN, "blackjack__tie": "player_wins"}, "even_money.offered"),
        ({**EVEN, "blackjack__pays": Odds(1, 1)}, "even_money.offered"),
        ({**EVEN, "blackjack__pays": Odds(4, 5)}, "even_money.offered"),
        ({**EVEN, "blackjack__pays_diamonds": Odds(2, 2)}, "even_money.offered"),
        (
            {"blackjack__tie": "player_wins", "blackjack__ten_up": "pay_first"},
            "blackjack.ten_up",
        ),
        (
            {"blackjack__tie": "player_wins", "blackjack__paid": "at_settlement"},
            "blackjack.paid",
        ),
        ({"blackjack__ten_up": "pay_first", "blackjack__paid": "at_settlement"}, "blackjack.paid"),
        ({"dealer__push_bust_cards": 1}, "dealer.push_bust_cards"),
        ({"dealer__push_bust_cards": 2}, "dealer.push_bust_cards"),
        ({"dealer__push_bust_cards": -1}, "dealer.push_bust_cards"),
        ({**INSTANT, "instant__cards_21": None}, "instant.cards_21"),
        ({**INSTANT, "instant__cards_21": 2}, "instant.cards_21"),
        ({**INSTANT, "instant__cards_count": None}, "instant.cards_count"),
        (
            {"instant__pays_count": Odds(1, 1), "instant__cards_count": 2},
            "instant.cards_count",
        ),
        ({**INSTANT, "instant__cards_21": 7}, "instant.cards_21"),
        ({"bonus__buster__pays": {2: 1, 3: 1}}, "bonus.buster.pays"),
        ({"bonus__buster__pays": {4: 6, 6: 15}}, "bonus.buster.pays"),
        ({"bonus__buster__pays": {}}, "bonus.buster.pays"),
        ({"bonus__buster__pays": {4: 0}}, "bonus.buster.pays"),
        ({"bonus__buster__pays": {23: 1}}, "bonus.buster.pays"),
        ({"double__for_less": True, "double__times": 2}, "double.for_less"),
        ({**ACE_IS_ONE, "double__max_total": 21}, "double.ace_is_one_with_ten"),
        ({**ACE_IS_ONE, "double__after_split": False}, "double.ace_is_one_with_ten"),
        ({"split__max_hands": 0}, "split.max_hands"),
        ({"split__max_hands": 5}, "split.max_hands"),
        ({"double__times": 0}, "double.times"),
        ({"double__max_total": 22}, "double.max_total"),
        ({"decks": 3}, "decks"),
        ({"dealer__peek": ("A",)}, "dealer.no_peek_takes"),
        ({"dealer__no_peek_takes": "all"}, "dealer.no_peek_takes"),
        ({"dealer__peek": ("A", "A", "T")}, "dealer.peek"),
        ({"surrender__of_doubled": "half_total"}, "surrender.of_doubled"),
        ({"instant__cards_21": 5}, "instant.cards_21"),
        ({"instant__cards_count": 6}, "instant.cards_count"),
        ({"instant__on_split": False}, "instant.on_split"),
        ({"insurance__pays": Odds(2, 1)}, "insurance.pays"),
        ({"insurance__max": "half"}, "insurance.max"),
        ({"bonus__diamond__first_round_only": False}, "bonus.diamond.first_round_only"),
        ({"bonus__diamond__pays": 0}, "bonus.diamond.pays"),
        ({"limits__diamond__min": 1}, "limits.diamond.min"),
        ({"limits__buster__max": 1}, "limits.buster.max"),
        ({"limits__toke_main__step": 1}, "limits.toke_main.step"),
        ({"toke__allowed": True, "limits__toke_buster__min": 1}, "limits.toke_buster.min"),
        ({"money__unit": 0}, "money.unit"),
        ({"money__unit": 100, "limits__main__min": 150}, "limits.main.min"),
        ({"money__unit": 100, "limits__main__max": 150}, "limits.main.max"),
        ({"money__unit": 100, "limits__main__step": 50}, "limits.main.step"),
        ({"money__unit": 100, "limits__table_payout": 150}, "limits.table_payout"),
        ({"limits__main__min": -1}, "limits.main.min"),
        ({"limits__main__max": 0}, "limits.main.max"),
        ({"limits__main__min": 6, "limits__main__max": 5}, "limits.main.min"),
        (
            {"limits__main__min": 501, "limits__main__max": 999, "limits__main__step": 500},
            "limits.main.step",
        ),
        ({**TABLE, "money__unit": 50}, "chips"),
        ({**TABLE, "money__unit": 200}, "chips"),
        ({"chips": (Denomination("a", 1), Denomination("a", 5))}, "chips"),
        ({"chips": (Denomination("a", 1), Denomination("b", 1))}, "chips"),
        ({"chips": (Denomination("a", 0), Denomination("b", 1))}, "chips"),
        ({"shuffle__cut_cards_behind": 12}, "shuffle.cut_cards_behind"),
        ({"shuffle__cut_cards_behind": 300}, "shuffle.cut_cards_behind"),
        (
            {"shuffle__cut_cards_behind": 299, "burn__on_shuffle": 1},
            "shuffle.cut_cards_behind",
        ),
        ({"shuffle__max_rounds": 0}, "shuffle.max_rounds"),
        ({"burn__on_shuffle": 27}, "burn.on_shuffle"),
        ({"burn__on_dealer": -1}, "burn.on_dealer"),
        ({"payout__floor_from": -1}, "payout.floor_from"),
    ],
)
def test_what_cannot(changes: dict[str, object], path: str) -> None:
    assert paths(changes) == [path]


def test_a_game_is_dealt_from_its_own_numbers_of_decks() -> None:
    assert impossible(PLAIN, decks_allowed=(6, 8)) == []
    assert impossible(PLAIN, decks_allowed=(1, 2)) == [
        Impossible("decks", "the game is not dealt from 6", "1, 2")
    ]


def test_everything_is_told_at_once() -> None:
    assert paths({**SURRENDER, **INSURED, "dealer__peek": (), "double__times": 0}) == [
        "double.times",
        "surrender.when",
        "insurance.offered",
        "dealer.no_peek_takes",
    ]


def test_what_has_a_value_in_every_game_is_refused_only_where_somebody_set_it() -> None:
    alone = options(split__max_hands=1)
    assert impossible(alone) == []
    assert [problem.path for problem in impossible(alone, {"split.match"})] == ["split.match"]
    assert impossible(alone, {"split.aces_one_card"}) == []  # false where nothing splits


def test_the_options_that_clash_are_named() -> None:
    (problem,) = impossible(options(**EVEN, blackjack__tie="player_wins"))
    assert problem.others == ("blackjack.tie",)
    assert "even money" in problem.message
    assert problem.allowed == "false, or blackjack.tie = push"


def test_ranges_in_words() -> None:
    assert str(RANGES["dealer.push_bust_cards"]) == "0, or 3 to 22"
    assert str(Range(1, 4)) == "1 to 4"
    assert [value in RANGES["dealer.push_bust_cards"] for value in (0, 1, 2, 3)] == [
        True,
        False,
        False,
        True,
    ]


def test_what_is_common_hangs_on_a_feature() -> None:
    assert set(COMMON) <= set(FEATURES)
    assert off_features("instant.on_split", PLAIN)
    assert not off_features("decks", PLAIN)


NUMBERS = [path for path in RANGES if path not in FEATURES]


@given(path=st.sampled_from(NUMBERS), data=st.data())
def test_numbers_are_taken_in_their_range_only(path: str, data: st.DataObject) -> None:
    low, high, also = RANGES[path]
    value = data.draw(
        st.one_of(st.integers(low - 2, low + 2), st.integers(high - 2, high + 2), st.integers())
    )
    changed = options(**{path.replace(".", "__"): value})
    assert value_at(changed, path) == value
    refused = path in [problem.path for problem in impossible(changed)]
    if not (low <= value <= high or value in also):
        assert refused
    elif path not in ("shuffle.cut_cards_behind", "split.max_hands", "bonus.diamond.pays"):
        assert not refused
