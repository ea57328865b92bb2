"""The rules by which scripted rounds are played and judged."""

import json
from typing import Any

import pytest

from controller.rules.option_constraints import MAX_MONEY
from tests.controller.sim.conftest import Run
from tests.support.sim.a_round import ROUND, action, changed, refused


def result(run: Run, **changes: Any) -> Any:
    answer = run(changed(**changes), options=("--json",))
    made = json.loads(answer.out)["rounds"][0]
    assert answer.code == (0 if made["ok"] else 1)
    return made


def wagers(seat: int = 1, **bets: int) -> list[dict[str, object]]:
    return [{"seat": seat, "bets": bets}]


BUSTS: dict[str, Any] = {"shoe": ["TC", "6C", "6D", "TS", "KD"], "expect": {}}
ACE_UP: dict[str, Any] = {"shoe": ["TC", "AC", "8D", "7S"], "expect": {}}
BY_THIRD_21: dict[str, Any] = {"shoe": ["TC", "6C", "6D", "TS", "5H", "5D"], "expect": {}}
WAITS_AT_21 = {**BY_THIRD_21, "game": "sf21x", "config": {"dealer.push_22": False}}
"""21 may be doubled there, so it waits."""
UNDEALT: dict[str, Any] = {"shoe": [], "actions": [], "expect": {}}

HOLDS: dict[str, dict[str, Any]] = {
    "a stand is skipped for a hand that stood by itself": {
        **BY_THIRD_21,
        "actions": [action("hit"), action("stand")],
    },
    "what is implicit is skipped for a hand that ended by itself": {
        **BUSTS,
        "actions": [
            action("hit"),
            action("hit", implicit=True),
            action("stand", implicit=True),
        ],
    },
    "a hand at 21 stands when no action is left": {**WAITS_AT_21, "actions": [action("hit")]},
    "a hand at 21 stands when the next action is not for it": {
        **WAITS_AT_21,
        "actions": [action("hit"), refused("hit")],
    },
    "a seat without an insurance action declines": ACE_UP,
    "the burn of a config burns nothing": {"config": {"burn.on_shuffle": 3}},
    "a shoe that is to be shuffled afterwards ends the round all the same": {
        "config": {"shuffle.max_rounds": 1}
    },
    "null odds are expected": {"expect": {"hands": [{"odds": None}]}},
    "absent fields are not judged": {"expect": {"hands": [{}]}},
}


@pytest.mark.parametrize("changes", HOLDS.values(), ids=HOLDS)
def test_what_holds(run: Run, changes: dict[str, Any]) -> None:
    assert result(run, **changes)["failures"] == []


FAILS: dict[str, tuple[dict[str, Any], str]] = {
    "a card left over": ({"shoe": [*ROUND["shoe"], "2C", "3C"]}, "shoe: 2 left over: 2C, 3C"),
    "a card too few, and what for": (
        {"shoe": ROUND["shoe"][:-1], "expect": {}},
        "shoe: one too few: Dealer has hard 16 - draw the third card",
    ),
    "a missing decision": (
        {"shoe": ["TC", "6C", "6D", "TS"], "actions": [], "expect": {}},
        "actions: seat 1 hand 0 waits for a decision with 16; none left",
    ),
    "a decision of somebody who does not play": (
        {"actions": [action("stand", seat=5)], "expect": {}},
        "actions: seat 1 hand 0 waits for a decision with 20; the next, actions[0], is for another",
    ),
    "a refusal without the mark": (
        {"actions": [action("surrender"), action("stand")]},
        "actions[0]: surrender of seat 1 refused: ",
    ),
    "an acceptance with the mark": (
        {"actions": [refused("stand")]},
        "actions[0]: stand of seat 1 was to be refused",
    ),
    "a stand for a hand that ended by a bust": (
        {**BUSTS, "actions": [action("hit"), action("stand")]},
        "actions[1]: stand of seat 1 refused",
    ),
    "a stand for a hand that the script ended": (
        {"actions": [action("stand"), action("stand")]},
        "actions[1]: stand of seat 1 refused",
    ),
    "what is implicit, for a hand that the script ended": (
        {"actions": [action("stand"), action("stand", implicit=True)]},
        "actions[1]: stand of seat 1 refused",
    ),
    # It would prove nothing to have a hit refused because insurance is open.
    "a decision that is to be refused waits for its phase": (
        {**ACE_UP, "actions": [refused("hit"), action("stand")]},
        "actions[0]: hit of seat 1 was to be refused and was accepted",
    ),
    "odds that are expected and were not paid": (
        {"expect": {"hands": [{"odds": "1:1"}]}},
        'hands[0].odds: expected "1:1", got null',
    ),
    "a list of another length": (
        {"expect": {"hands": [], "side_bets": []}},
        "hands: expected 0 of them, got 1: ",
    ),
}


@pytest.mark.parametrize(("changes", "failure"), FAILS.values(), ids=FAILS)
def test_what_fails(run: Run, changes: dict[str, Any], failure: str) -> None:
    assert result(run, **changes)["failures"][0].startswith(failure)


@pytest.mark.parametrize("amount", [0, -5, MAX_MONEY + 1])
def test_a_wager_of_nothing_or_too_much_is_refused(run: Run, amount: int) -> None:
    made = result(run, seats=wagers(main=amount), **UNDEALT | {"expect": {"seat_net": {"1": 0}}})
    assert made["ok"]
    assert (made["rejected_bets"][0]["amount"], made["hands"]) == (amount, [])


def test_the_largest_wager_is_settled_to_the_cent(run: Run) -> None:
    assert result(run, seats=wagers(main=MAX_MONEY), expect={"seat_net": {"1": -MAX_MONEY}})["ok"]


def test_with_no_main_wager_anywhere_no_card_is_dealt(run: Run) -> None:
    seats, play = wagers(2, buster=100, toke_main=100), [refused("hit", seat=2)]
    made = result(run, game="mega", seats=seats, **UNDEALT | {"actions": play})
    assert made["ok"]
    assert [bet["bet"] for bet in made["rejected_bets"]] == ["buster", "toke_main"]
    assert (made["rejected_actions"], made["seat_net"]) == ([0], {"2": 0})


def test_a_decision_is_refused_amid_the_insurance_where_it_is_listed_there(run: Run) -> None:
    actions = [refused("hit"), action("insure", amount=500), action("stand")]
    made = result(run, **ACE_UP, actions=actions)
    assert made["ok"]
    assert (made["rejected_actions"], made["side_bets"][0]["outcome"]) == ([0], "lose")


def test_actions_listed_after_the_round_are_refused_there(run: Run) -> None:
    actions = [action("stand"), refused("split"), refused("insure", amount=5)]
    made = result(run, actions=actions)
    assert made["ok"]
    assert made["rejected_actions"] == [1, 2]
