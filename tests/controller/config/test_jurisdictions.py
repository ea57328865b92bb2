"""What the jurisdictions that come with the house rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.config import files, load_jurisdiction
from controller.config.loader import read_jurisdiction
from controller.errors import UsageProblem
from controller.rules.irregularities import FIXED, WAYS, Irregularity, Way

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
    assert found.silent == ()
    assert found.rulings.name == name
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
    allowed = "; always in it: void, correct, pairing, counters"
    assert str(caught.value).endswith(allowed)


def test_a_house_may_ask_two_people_for_more(tmp_path: Path) -> None:
    more = read_jurisdiction(_house(tmp_path, f"two_people = {[*MUST, 'burn']}"))
    assert more.rulings.two_people == (*MUST, "burn")
    silent = read_jurisdiction(_house(tmp_path, ""))
    assert silent.rulings.two_people == (*MUST, "decks_out")


@pytest.mark.parametrize("name", INSTALLED)
def test_ours_name_all_that_needs_two_people(name: str) -> None:
    assert set(MUST) <= set(load_jurisdiction(name).two_people)
