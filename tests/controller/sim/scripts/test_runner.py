"""The rules by which scripted rounds are played and judged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.rules.option_constraints import MAX_MONEY
from tests.controller.sim.conftest import Run
from tests.support.sim.a_round import ROUND, action, changed, refused


def result(run: Run, script: dict[str, Any]) -> Any:
    code, out, _ = run(script, options=("--json",))
    made = json.loads(out)["rounds"][0]
    assert code == (0 if made["ok"] else 1)
    return made


def test_a_card_left_over_fails(run: Run) -> None:
    made = result(run, changed(shoe=[*ROUND["shoe"], "2C", "3C"]))
    assert made["failures"] == ["shoe: 2 left over: 2C, 3C"]


def test_a_card_too_few_fails_and_says_what_for(run: Run) -> None:
    made = result(run, changed(shoe=ROUND["shoe"][:-1], expect={}))
    assert made["failures"] == ["shoe: one too few: Dealer has hard 16 - draw the third card"]


def test_a_missing_decision_fails(run: Run) -> None:
    made = result(run, changed(shoe=["TC", "6C", "6D", "TS"], actions=[], expect={}))
    assert made["failures"] == [
        "actions: seat 1 hand 0 waits for a decision with 16; none left",
    ]


def test_a_decision_of_somebody_who_does_not_play_fails(run: Run) -> None:
    waits = "seat 1 hand 0 waits for a decision with 20"
    made = result(run, changed(actions=[action("stand", seat=5)], expect={}))
    assert made["failures"] == [
        f"actions: {waits}; the next, actions[0], is for another hand",
    ]


def test_a_refusal_without_the_mark_fails_and_so_does_an_acceptance_with_it(run: Run) -> None:
    made = result(run, changed(actions=[action("surrender"), action("stand")]))
    assert made["rejected_actions"] == [0]
    assert made["failures"][0].startswith("actions[0]: surrender of seat 1 refused: ")
    made = result(run, changed(actions=[refused("stand")]))
    assert made["failures"][0].startswith("actions[0]: stand of seat 1 was to be refused")


@pytest.mark.parametrize("amount", [0, -5])
def test_a_wager_of_nothing_or_less_is_refused(run: Run, amount: int) -> None:
    seats = [{"seat": 1, "bets": {"main": amount}}]
    made = result(run, changed(seats=seats, shoe=[], actions=[], expect={"seat_net": {"1": 0}}))
    assert made["ok"]
    assert made["rejected_bets"][0]["amount"] == amount
    assert made["hands"] == []


def test_the_largest_wager_is_settled_to_the_cent_and_no_larger_one_is_taken(run: Run) -> None:
    seats = [{"seat": 1, "bets": {"main": MAX_MONEY}}]
    made = result(run, changed(seats=seats, expect={"seat_net": {"1": -MAX_MONEY}}))
    assert made["ok"]
    seats = [{"seat": 1, "bets": {"main": MAX_MONEY + 1}}]
    refused = result(run, changed(seats=seats, shoe=[], actions=[], expect={}))
    assert refused["rejected_bets"][0]["amount"] == MAX_MONEY + 1
    assert refused["hands"] == []


def test_with_no_main_wager_anywhere_no_card_is_dealt(run: Run) -> None:
    seats = [{"seat": 2, "bets": {"buster": 100, "toke_main": 100}}]
    play = [refused("hit", seat=2)]
    made = result(run, changed(game="mega", seats=seats, shoe=[], actions=play, expect={}))
    assert made["ok"]
    assert [bet["bet"] for bet in made["rejected_bets"]] == ["buster", "toke_main"]
    assert made["rejected_actions"] == [0]
    assert made["seat_net"] == {"2": 0}


BUSTS = {"shoe": ["TC", "6C", "6D", "TS", "KD"], "expect": {}}


def test_a_stand_is_skipped_for_a_hand_that_stood_by_itself(run: Run) -> None:
    shoe = ["TC", "6C", "6D", "TS", "5H", "5D"]  # 21 by the third card
    made = result(run, changed(shoe=shoe, actions=[action("hit"), action("stand")], expect={}))
    assert made["ok"]


def test_a_stand_is_not_skipped_for_a_hand_that_ended_otherwise(run: Run) -> None:
    made = result(run, changed(**BUSTS, actions=[action("hit"), action("stand")]))
    assert made["failures"][0].startswith("actions[1]: stand of seat 1 refused")
    made = result(run, changed(actions=[action("stand"), action("stand")]))
    assert made["failures"][0].startswith("actions[1]: stand of seat 1 refused")


def test_what_is_implicit_is_skipped_for_a_hand_that_ended_by_itself(run: Run) -> None:
    more = [action("hit", implicit=True), action("stand", implicit=True)]
    assert result(run, changed(**BUSTS, actions=[action("hit"), *more]))["ok"]
    made = result(run, changed(actions=[action("stand"), action("stand", implicit=True)]))
    assert not made["ok"]


def test_a_hand_at_21_stands_when_the_next_action_is_not_for_it(run: Run) -> None:
    game = {"game": "sf21x", "config": {"dealer.push_22": False}, "expect": {}}
    shoe = ["TC", "6C", "6D", "TS", "5H", "5D"]  # 21 may be doubled there, so it waits
    assert result(run, changed(**game, shoe=shoe, actions=[action("hit")]))["ok"]
    never = refused("hit")
    assert result(run, changed(**game, shoe=shoe, actions=[action("hit"), never]))["ok"]


ACE_UP = {"shoe": ["TC", "AC", "8D", "7S"], "expect": {}}


def test_a_seat_without_an_insurance_action_declines(run: Run) -> None:
    assert result(run, changed(**ACE_UP))["ok"]


def test_a_decision_that_is_to_be_refused_waits_for_its_phase(run: Run) -> None:
    """It would prove nothing to have a hit refused because insurance is open."""
    made = result(run, changed(**ACE_UP, actions=[refused("hit"), action("stand")]))
    assert any("was to be refused and was accepted" in text for text in made["failures"])


def test_a_decision_is_refused_amid_the_insurance_where_it_is_listed_there(run: Run) -> None:
    actions = [refused("hit"), action("insure", amount=500), action("stand")]
    made = result(run, changed(**ACE_UP, actions=actions))
    assert made["ok"]
    assert made["rejected_actions"] == [0]
    assert made["side_bets"][0]["outcome"] == "lose"


def test_actions_listed_after_the_round_are_refused_there(run: Run) -> None:
    actions = [action("stand"), refused("split"), refused("insure", amount=5)]
    made = result(run, changed(actions=actions))
    assert made["ok"]
    assert made["rejected_actions"] == [1, 2]


def test_the_burn_of_a_config_burns_nothing(run: Run) -> None:
    assert result(run, changed(config={"burn.on_shuffle": 3}))["ok"]


def test_a_shoe_that_is_to_be_shuffled_afterwards_ends_the_round_all_the_same(run: Run) -> None:
    assert result(run, changed(config={"shuffle.max_rounds": 1}))["ok"]


def test_null_odds_are_expected_and_absent_ones_are_not_judged(run: Run) -> None:
    assert result(run, changed(expect={"hands": [{"odds": None}]}))["ok"]
    assert result(run, changed(expect={"hands": [{}]}))["ok"]
    made = result(run, changed(expect={"hands": [{"odds": "1:1"}]}))
    assert made["failures"] == ['hands[0].odds: expected "1:1", got null']


def test_a_list_must_have_its_length(run: Run) -> None:
    made = result(run, changed(expect={"hands": [], "side_bets": []}))
    assert made["failures"][0].startswith("hands: expected 0 of them, got 1: ")
    assert len(made["failures"]) == 1
