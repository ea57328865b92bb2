"""Which layer gives an option its value, and what goes with a feature that is turned off."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.config import load_game, load_jurisdiction, load_table
from controller.config.options import GROUPS, LEAVES, Layer, OptionOrigin, merge, read_layer
from controller.errors import UsageProblem, each
from controller.rules.money import Odds
from controller.rules.option_constraints import impossible

GAMES = ("maxtime", "sf21x", "classic", "mega")


def refused(game: str, overrides: Mapping[str, object]) -> dict[str, str]:
    with pytest.raises(UsageProblem) as caught:
        load_game(game, overrides)
    problems = each(caught.value)
    for problem in problems:
        assert problem.allowed
        assert str(problem).isprintable()
    return {problem.where: problem.what for problem in problems}


def test_an_override_outranks_the_sheet_and_says_so() -> None:
    sheet = load_game("sf21x", {"blackjack.tie": "push", "decks": 2}, overrides_from="round 3")
    assert sheet.options.blackjack.tie == "push"
    assert sheet.origin["decks"] == OptionOrigin(2, "round 3", "override")
    assert sheet.origin["dealer.push_22"] == OptionOrigin(True, "configs/games/sf21x.toml", "sheet")
    assert sheet.origin["payout.floor_from"] == OptionOrigin(None, "default", "default")
    assert list(sheet.origin) == list(LEAVES)


def test_overrides_may_be_nested_as_in_a_file() -> None:
    nested = {"blackjack": {"tie": "push", "pays": "2:1"}, "bonus": {"diamond": {"pays": 100}}}
    dotted = {"blackjack.tie": "push", "blackjack.pays": "2:1", "bonus.diamond.pays": 100}
    assert load_game("sf21x", nested) == load_game("sf21x", dotted)


def test_without_a_table_nothing_is_laid_out() -> None:
    options = load_game("maxtime").options
    assert (options.chips, options.money.unit, options.burn.on_shuffle) == ((), 1, 0)
    assert options.limits.main.max is None
    assert load_game("maxtime", jurisdiction="default").options.burn.on_shuffle == 1


def test_the_layers_of_a_table() -> None:
    table = load_table("maxtime-1", {"burn.on_dealer": 3})
    layers = {
        "dealer.soft_17": "sheet",
        "burn.on_shuffle": "jurisdiction",
        "limits.main.min": "table",
        "burn.on_dealer": "override",
        "payout.floor_from": "default",
    }
    assert {path: table.sheet.origin[path].layer for path in layers} == layers
    assert table.sheet.origin["limits.main.min"].source == "configs/tables/maxtime-1.toml"
    assert table.sheet.origin["burn.on_shuffle"].source == "configs/jurisdictions/default.toml"


@pytest.mark.parametrize("name", ["blackjack-1", "maxtime-1", "superfun-1", "mega-1"])
def test_our_example_tables(name: str) -> None:
    table = load_table(name)
    assert (table.name, table.seats, table.currency.code) == (name, 7, "USD")
    assert table.jurisdiction == load_jurisdiction("default")
    assert min(chip.value for chip in table.sheet.options.chips) == table.sheet.options.money.unit
    assert impossible(table.sheet.options) == []


# --- features -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "off", "gone"),
    [
        ("maxtime", {"surrender.when": "never"}, ["surrender.of_doubled"]),
        ("maxtime", {"instant.pays_21": None}, ["instant.cards_21"]),
        ("maxtime", {"instant.pays_count": None}, ["instant.cards_count"]),
        (
            "sf21x",
            {"instant.pays_21": None, "instant.pays_count": "none"},
            ["instant.cards_21", "instant.cards_count", "instant.on_split"],
        ),
        ("classic", {"insurance.offered": False}, ["insurance.pays", "insurance.max"]),
        ("sf21x", {"bonus.diamond.pays": None}, ["bonus.diamond.first_round_only"]),
    ],
)
def test_what_hangs_on_a_feature_goes_with_it(
    game: str, off: Mapping[str, object], gone: list[str]
) -> None:
    sheet = load_game(game, off)
    for path in gone:
        assert sheet.origin[path].value is None
        assert sheet.origin[path].source.startswith("left out: ")
    assert impossible(sheet.options) == []


def test_limits_go_with_their_bet() -> None:
    options = load_table("mega-1", {"bonus.buster.pays": None}).sheet.options
    assert (options.limits.buster.min, options.limits.toke_buster.max) == (None, None)
    assert options.limits.toke_main.max == 10000
    options = load_table("mega-1", {"toke.allowed": False}).sheet.options
    assert (options.limits.toke_main.max, options.limits.buster.max) == (None, 10000)


def test_no_splits_at_all() -> None:
    sheet = load_game("maxtime", {"split.max_hands": 1, "split.aces_again": False})
    assert sheet.options.split.max_hands == 1
    assert sheet.origin["split.match"].source == "left out: split.max_hands is 1"


@pytest.mark.parametrize(
    ("game", "overrides", "where"),
    [
        ("classic", {"surrender.of_doubled": "half_total"}, "surrender.of_doubled"),
        (
            "maxtime",
            {"surrender.when": "never", "surrender.of_doubled": "half_total"},
            "surrender.of_doubled",
        ),
        ("classic", {"instant.cards_21": 5}, "instant.cards_21"),
        ("classic", {"instant.cards_count": 6}, "instant.cards_count"),
        ("classic", {"instant.on_split": False}, "instant.on_split"),
        ("classic", {"insurance.offered": False, "insurance.pays": "2:1"}, "insurance.pays"),
        ("mega", {"bonus.diamond.first_round_only": True}, "bonus.diamond.first_round_only"),
        ("classic", {"limits.diamond.max": 100}, "limits.diamond.max"),
        ("classic", {"limits.toke_buster.max": 100}, "limits.toke_buster.max"),
        ("classic", {"dealer.no_peek_takes": "all"}, "dealer.no_peek_takes"),
        ("classic", {"split.max_hands": 1, "split.match": "rank"}, "split.match"),
        ("classic", {"split.max_hands": 1, "split.aces_again": True}, "split.aces_again"),
    ],
)
def test_an_option_whose_feature_is_off_is_refused(
    game: str, overrides: Mapping[str, object], where: str
) -> None:
    problems = refused(game, overrides)
    assert list(problems) == [f"overrides: {where}"]
    assert problems[f"overrides: {where}"].startswith("it is set, but ")


def test_a_feature_that_a_later_layer_turns_on_brings_what_is_common() -> None:
    sheet = load_game("classic", {"surrender.when": "any_time"})
    assert sheet.options.surrender.of_doubled == "half_total"
    assert sheet.origin["surrender.of_doubled"] == OptionOrigin("half_total", "default", "default")
    sheet = load_game("classic", {"instant.pays_21": "2:1", "instant.cards_21": 5})
    assert sheet.options.instant.on_split is True
    assert load_game("mega", {"bonus.diamond.pays": 9}).options.bonus.diamond == (
        load_game("sf21x", {"bonus.diamond.pays": 9}).options.bonus.diamond
    )
    assert load_game("mega", {"insurance.pays": None}).options.insurance.pays == Odds(2, 1)


def test_a_feature_turned_off_and_on_again(tmp_path: Path) -> None:
    table = tmp_path / "table.toml"
    table.write_text(
        'schema = 1\n[table]\nname = "t"\ngame = "maxtime"\n[options]\nsurrender.when = "never"\n'
    )
    assert load_table(table).sheet.options.surrender.of_doubled is None
    options = load_table(table, {"surrender.when": "first_two"}).sheet.options
    assert options.surrender.of_doubled == "half_total"


def test_a_payout_without_its_count_is_refused_whoever_says_it() -> None:
    assert list(refused("classic", {"instant.pays_21": "2:1"})) == ["overrides: instant.cards_21"]


def test_the_file_to_mend_is_the_last_that_had_a_say() -> None:
    assert refused("mega", {"blackjack.tie": "player_wins"}) == {
        "overrides: even_money.offered": "even money spares a tie, and blackjack.tie is player_wins"
    }


# --- the Buster pay table -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "pays"),
    [
        ({"bonus.buster.pays.3": 1}, {3: 1, 4: 6, 5: 10, 6: 15, 7: 50, 8: 250}),
        ({"bonus.buster.pays.8": 200}, {4: 6, 5: 10, 6: 15, 7: 50, 8: 200}),
        ({"bonus.buster.pays.8": None}, {4: 6, 5: 10, 6: 15, 7: 50}),
        ({"bonus.buster.pays": {"5": 2, "4": 1}}, {4: 1, 5: 2}),
        ({"bonus.buster.pays.6": 3, "bonus.buster.pays": {5: 2}}, {5: 2, 6: 3}),
        ({"bonus.buster.pays": None}, None),
    ],
)
def test_one_count_of_the_buster_table(
    overrides: Mapping[str, object], pays: dict[int, int] | None
) -> None:
    assert load_game("mega", overrides).options.bonus.buster.pays == pays


def test_a_single_count_makes_a_table() -> None:
    assert load_game("classic", {"bonus.buster.pays.4": 6}).options.bonus.buster.pays == {4: 6}


@pytest.mark.parametrize(
    ("path", "value", "key", "what"),
    [
        ("bonus.buster.pays.x", 1, "bonus.buster.pays.x", "'x' is not valid here"),
        ("bonus.buster.pays.4", "6:1", "bonus.buster.pays.4", "'6:1' is not valid here"),
        ("bonus.buster.pays.4", 0, "bonus.buster.pays.4", "0 is not valid here"),
        ("bonus.buster.pays.2", 1, "bonus.buster.pays", "a bust has three cards or more"),
        ("bonus.buster.pays.6", None, "bonus.buster.pays", "it skips 6"),
        ("bonus.buster.pays.10", 500, "bonus.buster.pays", "it skips 9"),
        ("bonus.buster.pays", {}, "bonus.buster.pays", "it pays for nothing"),
    ],
)
def test_a_count_that_cannot_be(path: str, value: object, key: str, what: str) -> None:
    assert refused("mega", {path: value}) == {f"overrides: {key}": what}


# --- anything -----------------------------------------------------------------------------------


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UsageProblem, match=r"^x: blackjack\.pays: is missing; allowed: odds"):
        merge([Layer("sheet", "x", {"decks": 6})], (6,))


def test_the_keys_of_each_table_are_known() -> None:
    assert GROUPS["bonus"] == ("diamond", "buster")
    assert GROUPS["limits.main"] == ("min", "max", "step")


WORDS = (
    *("none", "1:1", "3:2", "2:1", "0:1"),
    *("never", "any_time", "push", "player_wins", "pay_first", "at_settlement", "all", "rank"),
    *("original_bets", "half", "half_total", "signals", "stand"),
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 60),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(["A", "T", "K"]), max_size=3),
    st.dictionaries(st.integers(0, 9).map(str), st.integers(0, 9), max_size=4),
    st.just([{"name": "x", "value": 1}]),
    st.dictionaries(st.sampled_from(["tie", "pays", "when"]), st.booleans(), max_size=2),
)
PATHS = st.one_of(
    st.sampled_from([*LEAVES, *GROUPS, "bonus.buster.pays.3", "bonus.buster.pays.x"]),
    st.text(max_size=12),
)


@settings(max_examples=600)
@given(
    game=st.sampled_from(GAMES), overrides=st.dictionaries(PATHS, VALUES, min_size=1, max_size=6)
)
def test_any_overrides_are_refused_or_can_be_dealt(game: str, overrides: dict[str, object]) -> None:
    try:
        sheet = load_game(game, overrides)
    except UsageProblem:
        refused(game, overrides)
    else:
        assert impossible(sheet.options, (), sheet.decks_allowed) == []


LIKELY: Mapping[str, tuple[object, ...]] = {
    "dealer.peek": ([], ["A"], ["T"], ["A", "T"]),
    "dealer.no_peek_takes": ("all", "original_bets", None),
    "surrender.when": ("never", "first_two", "any_time"),
    "surrender.of_doubled": ("half_total", "original_bet", None),
    "insurance.offered": (True, False),
    "insurance.pays": ("2:1", "3:1", None),
    "even_money.offered": (True, False),
    "instant.pays_21": ("2:1", None),
    "instant.cards_21": (5, 6, None),
    "instant.pays_count": ("1:1", None),
    "instant.cards_count": (5, 7, None),
    "instant.on_split": (True, False, None),
    "bonus.diamond.pays": (300, None),
    "bonus.diamond.first_round_only": (True, False, None),
    "split.max_hands": (1, 2),
    "split.match": ("rank", "value"),
    "double.after_split": (True, False),
    "double.times": (1, 2),
    "double.for_less": (True, False),
    "double.max_total": (11, 21),
    "blackjack.tie": ("push", "player_wins"),
    "blackjack.paid": ("at_check", "at_settlement"),
    "blackjack.pays": ("1:1", "3:2"),
}


@settings(max_examples=400)
@given(game=st.sampled_from(GAMES), data=st.data())
def test_likely_overrides(game: str, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(sorted(LIKELY)), unique=True, max_size=6))
    overrides = {path: data.draw(st.sampled_from(LIKELY[path])) for path in chosen}
    try:
        sheet = load_game(game, overrides)
    except UsageProblem:
        assert all(where.startswith("overrides: ") for where in refused(game, overrides))
        return
    # What somebody set and nobody refused is what is dealt.
    problems: list[UsageProblem] = []
    asked = read_layer("override", "", overrides, problems).values
    for path, value in asked.items():
        if value is not None and sheet.origin[path].layer == "override":
            assert sheet.origin[path].value == value
        else:
            assert value in (None, False)
