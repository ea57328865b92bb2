"""The four games have exactly the options that were agreed, and every sentence of their sheets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pytest

from controller.config import files, load_game
from controller.config.options import LEAVES, OPTION_TEXT, plain
from controller.rules.option_constraints import ALWAYS_THERE, FEATURES, off_features

GAMES = ("maxtime", "sf21x", "classic", "mega")
NONE: object = None
BUSTER = {"4": 6, "5": 10, "6": 15, "7": 50, "8": 250}

# A row for each option: maxtime, sf21x, classic, mega. The agreed table, typed in by hand.
TABLE: Mapping[str, tuple[object, object, object, object]] = {
    "decks": (1, 6, 6, 6),
    "decisions.by": ("both", "both", "signals", "both"),
    "dealer.soft_17": ("hit", "hit", "hit", "hit"),
    "dealer.peek": (["A", "T"], ["A", "T"], ["A", "T"], ["A", "T"]),
    "dealer.push_22": (False, True, False, False),
    "dealer.push_bust_cards": (0, 0, 0, 4),
    "blackjack.pays": ("1:1", "5:2", "3:2", "3:1"),
    "blackjack.pays_diamonds": ("2:1", NONE, NONE, NONE),
    "blackjack.tie": ("player_wins", "player_wins", "push", "push"),
    "blackjack.ten_up": ("check_first", "check_first", "check_first", "check_first"),
    "blackjack.paid": ("at_check", "at_check", "at_check", "at_check"),
    "wins.pays_21": ("1:1", "1:1", "1:1", "3:2"),
    "split.max_hands": (4, 4, 4, 4),
    "split.match": ("value", "value", "value", "value"),
    "split.aces_one_card": (False, False, True, True),
    "split.aces_again": (True, True, True, True),
    "double.on": ("any_cards", "any_cards", "two_cards", "two_cards"),
    "double.max_total": (20, 21, 21, 21),
    "double.ace_is_one_with_ten": (True, False, False, False),
    "double.times": (1, 3, 1, 1),
    "double.after_split": (True, True, True, True),
    "double.natural": (False, False, False, False),
    "double.for_less": (False, False, False, False),
    "surrender.when": ("any_time", "any_time", "never", "never"),
    "surrender.of_doubled": ("half_total", "half_total", NONE, NONE),
    "instant.pays_21": ("2:1", "2:1", NONE, NONE),
    "instant.cards_21": (5, 5, NONE, NONE),
    "instant.pays_count": ("1:1", "1:1", NONE, NONE),
    "instant.cards_count": (6, 6, NONE, NONE),
    "instant.on_split": (True, True, NONE, NONE),
    "insurance.offered": (True, True, True, True),
    "insurance.pays": ("2:1", "2:1", "2:1", "2:1"),
    "insurance.max": ("half", "half", "half", "half"),
    "even_money.offered": (False, False, False, True),
    "bonus.diamond.pays": (300, 250, NONE, NONE),
    "bonus.diamond.first_round_only": (True, False, NONE, NONE),
    "bonus.buster.pays": (NONE, NONE, NONE, BUSTER),
    "toke.allowed": (False, False, False, True),
    "money.rounding": ("floor", "floor", "floor", "floor"),
    "money.unit": (1, 1, 1, 1),
    "shuffle.cut_cards_behind": (20, NONE, NONE, NONE),
    "shuffle.max_rounds": (3, NONE, NONE, NONE),
    "burn.on_shuffle": (0, 0, 0, 0),
    "burn.on_dealer": (0, 0, 0, 0),
    "settle.order": ("last_seat", "last_seat", "last_seat", "last_seat"),
    "payout.floor_from": (NONE, NONE, NONE, NONE),
    "dealer.no_peek_takes": (NONE, NONE, NONE, NONE),
    "chips": ([], [], [], []),
    "limits.table_payout": (NONE, NONE, NONE, NONE),
    **{
        f"limits.{bet}.{bound}": (NONE, NONE, NONE, NONE)
        for bet in ("main", "diamond", "buster", "toke_main", "toke_buster")
        for bound in ("min", "max", "step")
    },
}
DECKS = {"maxtime": (1,), "sf21x": (2, 6, 8), "classic": (1, 2, 4, 6, 8), "mega": (6, 8)}

# How many sentences each rule sheet has, and the digest of them all, one a line, compared with
# the sheet when they were copied. A letter that changes here changes what a casino agreed to.
SENTENCES = {
    "maxtime": (23, "897fd5b75294c18d"),
    "sf21x": (24, "726d9f2d1c56fb3b"),
    "classic": (32, "3ec8bfdff6ac5eca"),
    "mega": (37, "8f040bfd0a26f583"),
}


def test_the_table_names_every_option() -> None:
    assert set(TABLE) == set(LEAVES)


def test_every_option_has_a_sentence_for_people() -> None:
    assert set(OPTION_TEXT) == set(LEAVES)
    assert all(text.endswith(".") for text in OPTION_TEXT.values())


def test_what_hangs_on_features_are_options() -> None:
    known = set(LEAVES)
    assert set(FEATURES) <= known
    assert set(ALWAYS_THERE) <= set(FEATURES)
    for features in FEATURES.values():
        assert all(set(feature.paths) <= known for feature in features)
    # What can be absent and what cannot are told apart rightly.
    for path in FEATURES:
        assert LEAVES[path].optional == (path not in ALWAYS_THERE)


def test_all_installed_games_are_these() -> None:
    assert sorted(files.installed("game")) == sorted(GAMES)


@pytest.mark.parametrize("game", GAMES)
def test_a_game_has_the_agreed_options(game: str) -> None:
    sheet = load_game(game)
    got = {path: plain(origin.value) for path, origin in sheet.origin.items()}
    assert got == {path: values[GAMES.index(game)] for path, values in TABLE.items()}
    assert sheet.name == game
    assert sheet.decks_allowed == DECKS[game]


@pytest.mark.parametrize("game", GAMES)
def test_a_game_has_nothing_of_a_feature_that_is_off(game: str) -> None:
    sheet = load_game(game)
    for path in FEATURES:
        if off_features(path, sheet.options):
            assert sheet.origin[path].value == LEAVES[path].default


@pytest.mark.parametrize("game", GAMES)
def test_the_sentences_are_those_of_the_sheet(game: str) -> None:
    clauses = load_game(game).clauses
    digest = hashlib.sha256("\n".join(clauses.values()).encode()).hexdigest()
    assert (len(clauses), digest[:16]) == SENTENCES[game]
    assert all(name.startswith(f"{game}.") for name in clauses)


@pytest.mark.parametrize("game", GAMES)
def test_sentences_give_values_that_the_sheet_sets(game: str) -> None:
    sheet = load_game(game)
    for path, clauses in sheet.because.items():
        assert sheet.origin[path].layer == "sheet", path
        assert set(clauses) <= set(sheet.clauses), path


def test_an_option_of_mega_is_traced_to_its_sentence() -> None:
    sheet = load_game("mega")
    assert [sheet.clauses[name] for name in sheet.because["dealer.soft_17"]] == [
        "Dealer hits on soft 17."
    ]
