"""The four games have exactly the options that were agreed; jurisdictions rule on everything."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from controller.config import files, load_game, load_jurisdiction
from controller.config.loader import read_jurisdiction
from controller.config.options import LEAVES, OPTION_TEXT, plain
from controller.errors import UsageProblem
from controller.rules.irregularities import FIXED, WAYS, Irregularity, Way
from controller.rules.option_constraints import ALWAYS_THERE, FEATURES, off_features

GAMES = ("maxtime", "sf21x", "classic", "mega")
NONE: object = None

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
    "bonus.buster.pays": (NONE, NONE, NONE, {"4": 6, "5": 10, "6": 15, "7": 50, "8": 250}),
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
    assert (sheet.name, sheet.decks_allowed) == (game, DECKS[game])


@pytest.mark.parametrize("game", GAMES)
def test_a_game_has_nothing_of_a_feature_that_is_off(game: str) -> None:
    sheet = load_game(game)
    for path in FEATURES:
        if off_features(path, sheet.options):
            assert sheet.origin[path].value == LEAVES[path].default


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


INSTALLED = ("default", "strict")

# What the default rules, typed in by hand.
DEFAULT = {
    "face_up_card": "discard",
    "error_card": "use_next",
    "error_card_exposed": "deal_on",
    "dealer_overdrew": "burn",
    "dealer_card_missed": "dealer_last",
    "shoe_ran_out": "reshuffle",
    "seat_missed": "dead_hand",
    "seat_shorted": "second_card_last",
    "card_unreadable": "enter_card",
    "deck_suspect": "decks_out",
    "wrong_payment": "correct",
    "hole_exposed": "floor_decides",
    "hole_unchecked": "floor_decides",
    "out_of_turn": "floor_decides",
    "insurance_dispute": "floor_decides",
    "misdeal": "floor_decides",
    "device_lost": "device_check",
    "restarted": "felt_check",
    "player_absent": "stand_hand",
    "cannot_cover": "withdraw",
    "hole_mismatch": "floor_decides",
    "unknown_card": "floor_decides",
    "late_wager": "refuse",
    "dealer_relieved": "burn",
    "floor_called": "floor_decides",
}


def test_these_come_with_the_house() -> None:
    assert tuple(files.installed("jurisdiction")) == INSTALLED


def test_what_the_default_rules() -> None:
    ways = load_jurisdiction("default").ways
    assert {name: ruling.way.value for name, ruling in ways.items()} == DEFAULT


@pytest.mark.parametrize("name", INSTALLED)
def test_ours_rule_everything_in_words(name: str) -> None:
    found = read_jurisdiction(name)
    assert (found.silent, found.rulings.name) == ((), name)
    for what in Irregularity:
        ruling = found.rulings.ruling(what)
        assert ruling.text
        assert ruling.way is Way.FLOOR_DECIDES or ruling.way in WAYS[what]
        assert set(ruling.options) <= set(WAYS[what])
        assert bool(ruling.options) == (ruling.way is Way.FLOOR_DECIDES)


def test_the_strict_house_leaves_more_to_the_floor() -> None:
    def decided(name: str) -> set[str]:
        ways = load_jurisdiction(name).ways
        return {what for what, ruling in ways.items() if ruling.way is Way.FLOOR_DECIDES}

    assert decided("default") < decided("strict")
    strict = read_jurisdiction("strict")
    assert strict.rulings.declare_payments
    assert strict.rulings.rounds_after_cut == 0
    assert strict.layer.values == {
        "burn.on_shuffle": 3,
        "burn.on_dealer": 2,
        "payout.floor_from": 100000,
    }


def test_where_a_file_is_silent_the_floor_decides_among_all_ways(tmp_path: Path) -> None:
    file = tmp_path / "silent.toml"
    file.write_text(
        'schema = 1\n[jurisdiction]\nname = "silent"\ntitle = "Silent"\n'
        '[ways.error_card]\nway = "burn"\n[ways.misdeal]\nway = "floor_decides"\n'
    )
    found = read_jurisdiction(file)
    assert "error_card" not in found.silent
    assert len(found.silent) == len(Irregularity) - 2
    assert found.rulings.ways["error_card"].way is Way.BURN
    for what in Irregularity:
        if what is not Irregularity.ERROR_CARD and what not in FIXED:
            assert found.rulings.ruling(what).way is Way.FLOOR_DECIDES
            assert found.rulings.ruling(what).options == WAYS[what]
    assert found.rulings.rounds_after_cut == 1
    assert not found.rulings.declare_payments


MUST = ("void", "correct", "pairing", "counters")
"""What takes two different people in every house, typed in by hand."""


def _house(place: Path, two_people: str) -> Path:
    file = place / "house.toml"
    file.write_text(f'schema = 1\n[jurisdiction]\nname = "house"\ntitle = "House"\n{two_people}\n')
    return file


@pytest.mark.parametrize("name", MUST)
def test_no_house_takes_away_what_needs_two_people(tmp_path: Path, name: str) -> None:
    file = _house(tmp_path, f"two_people = {[one for one in MUST if one != name]}")
    with pytest.raises(UsageProblem) as caught:
        read_jurisdiction(file)
    assert caught.value.where == f"{file}: jurisdiction.two_people"
    assert caught.value.what == f"it is without {name}"
    assert str(caught.value).endswith("; always in it: void, correct, pairing, counters")


def test_a_house_may_ask_two_people_for_more(tmp_path: Path) -> None:
    more = read_jurisdiction(_house(tmp_path, f"two_people = {[*MUST, 'burn']}"))
    assert more.rulings.two_people == (*MUST, "burn")
    assert read_jurisdiction(_house(tmp_path, "")).rulings.two_people == (*MUST, "decks_out")


@pytest.mark.parametrize("name", INSTALLED)
def test_ours_name_all_that_needs_two_people(name: str) -> None:
    assert set(MUST) <= set(load_jurisdiction(name).two_people)
