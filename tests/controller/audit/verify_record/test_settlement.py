"""The stand-alone verifier settles rounds again: it accepts what tables record, and no other."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from controller.audit import verify_record
from controller.audit.verify import INVALID, verify
from tests.long.torture.altered_rounds import of_a_table
from tests.support.audit.record.forging import (
    Original,
    at_effect,
    at_event,
    forged,
    original,
    read,
)
from tests.support.audit.record.resigning import Json
from tests.support.audit.settling import Independent, dealt, game_of_record
from tests.support.audit.verifying import read_independently
from tests.support.procedure.random_games import some_game

Change = Callable[[list[Json]], object]
GAMES = ("classic", "maxtime", "mega", "sf21x")


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("seed", range(3))
def test_random_rounds_settle_as_they_were_recorded(name: str, seed: int) -> None:
    """Of the sheet as it is and with other options; with irregularities, voids and corrections."""
    game, what = some_game(Random(f"{name} {seed}"), name)
    ours = Independent(game_of_record(game))
    for entry in dealt(game, f"{name} {seed}", rounds=8, wrong=0.08):
        assert ours.wrong(entry) == "", (what, entry)
    counts = ours.settlement.counts
    assert counts["rounds"] >= 1
    assert counts["hands"] >= 1
    assert counts["amounts"] > counts["hands"] + counts["side bets"]


@pytest.mark.parametrize("name", GAMES)
def test_altered_values_of_decisions_are_found_by_both_verifiers(name: str) -> None:
    """The torture part `settlement` does the same some 40,000 times."""
    game, _ = some_game(Random(name), name)
    counted = of_a_table(game, f"altered {name}", per_entry=4)
    found: Counter[str] = Counter()
    for (verdict, _), count in counted.items():
        found[verdict] += count
    assert found["both"] > 40


def effect(name: str, field: str, value: Any, nth: int = 0) -> Change:
    """Sets a field of the nth effect of a type; a function is applied to what it was."""

    def change(records: list[Json]) -> None:
        _, found = at_effect(records, name, nth)
        found[field] = value(found[field]) if callable(value) else value

    return change


def event(name: str, field: str, value: Any, nth: int = 0) -> Change:
    def change(records: list[Json]) -> None:
        found = records[at_event(records, name, nth)]["data"]["event"]
        found[field] = value(found[field]) if callable(value) else value

    return change


def prompt(tell: str, field: str, value: Any) -> Change:
    def change(records: list[Json]) -> None:
        prompts = [one for record in records for one in record["data"].get("effects", ())]
        found = next(one for one in prompts if one.get("tell") == tell)
        found[field] = value(found[field]) if callable(value) else value

    return change


def effects_of(name: str, change: Callable[[list[Json], int], object]) -> Change:
    """Changes the list of effects in which the first effect of a type is."""

    def do(records: list[Json]) -> None:
        index, found = at_effect(records, name)
        effects = records[index]["data"]["effects"]
        change(effects, effects.index(found))

    return do


def all_of(*changes: Change) -> Change:
    return lambda records: [change(records) for change in changes]


def more(amount: int) -> int:
    return amount + 100


CHANGES: dict[str, Change] = {
    "the amount returned": effect("Settled", "returned", more),
    "the amount returned and the winnings": all_of(
        effect("Settled", "returned", more, 1), effect("RoundOver", "won", more, 1)
    ),
    "the stake": effect("Settled", "stake", more),
    "the odds": effect("Settled", "odds", {"pays": 3, "on": 2}, 1),
    "the outcome": effect("Settled", "outcome", "push"),
    "the reason": effect("Settled", "why", "dealer_busts"),
    "settled before the reveal": effect("Settled", "instant", lambda was: not was),
    "the bet": effect("Settled", "bet", "buster"),
    "the hand": effect("Settled", "hand", 1),
    "a seat that does not play": effect("Settled", "seat", 7),
    "the cards of a payment": effect("Settled", "cards", lambda cards: [*cards[:-1], 0]),
    "a payment that is missing": effects_of("Settled", lambda effects, at: effects.pop(at)),
    "a payment that is there twice": effects_of(
        "Settled", lambda effects, at: effects.insert(at, dict(effects[at]))
    ),
    "a field that is not known": effects_of(
        "Settled", lambda effects, at: effects[at].update(bonus=1)
    ),
    "the amount to pay": prompt("pay", "amount", more),
    "the stake of what is to be paid": prompt("pay", "stake", more),
    "the odds to pay": prompt("pay", "odds", {"pays": 2, "on": 1}),
    "the seat to pay": prompt("pay", "seat", 6),
    "the amount to collect": prompt("collect", "amount", more),
    "the amount of a double": prompt("confirm_double", "amount", more),
    "the wager that is shown": prompt("decide", "stake", more),
    "the wager": event("WagerPlaced", "amount", more),
    "the wager and the total": all_of(
        event("WagerPlaced", "amount", more), effect("WagersLocked", "total", more)
    ),
    "the seat of the wager": event("WagerPlaced", "seat", 2),
    "the total": effect("WagersLocked", "total", more),
    "the cap": effect("WagersLocked", "cap", 100),
    "the winnings of a round": effect("RoundOver", "won", more),
    "another decision": event("Stand", "type", "Hit"),
    "a decision that is not among the choices": event("Double", "type", "Surrender"),
    "another hand's decision": event("Stand", "hand", 1),
    "the chips of a double": event("Double", "amount", 1),
    "another card": event("CardDrawn", "card", lambda card: (card + 1) % 13),
    "the bank": effect("BankCounted", "bank", more),
}


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return original(tmp_path_factory.mktemp("original"))


@pytest.mark.parametrize("name", CHANGES)
def test_both_verifiers_find_what_was_changed_and_signed_again(
    name: str, rounds: Original, tmp_path: Path
) -> None:
    def change(records: list[Json]) -> None:
        CHANGES[name](records)

    place = forged(rounds.place, tmp_path / "changed", change, rounds.keys)
    assert read(place) != read(rounds.place)
    found = read_independently(place)
    assert (found["exit"], verify(place).code) == (INVALID, INVALID)
    assert not any(words in found["wrong"]["what"] for words in ("signature", "root", "cannot be"))


@pytest.mark.parametrize(
    "state",
    [
        {"step": 5},
        {"seats": 5},
        {"seats": [5]},
        {"seats": [{"bets": 5}]},
        {"seats": [{"bets": [5]}]},
        {"dealer": [10**12]},
        {"hands": [{"cards": ["AD"]}]},
        {"spare": {"card": 10**12}},
        {"holds": [{"card": 52}]},
        {"spare": 1},
        {"shoe": []},
        {"read": True},
        {"quiet": [None]},
        {"seen": "0"},
    ],
)
def test_a_state_of_wrong_types_is_wrong_and_ends_no_verification(state: Json) -> None:
    game, _ = some_game(Random("types"), "mega")
    opened = {"proc": "", "game": game_of_record(game)}
    with pytest.raises(verify_record.Wrong, match="the snapshot's state"):
        verify_record.Settlement().begin(opened, state)


def test_what_it_does_not_know_is_named_and_not_judged() -> None:
    known = game_of_record(some_game(Random("later"), "classic")[0])
    opened: Json = {"proc": "", "game": known}
    strange: Json = {**known["options"], "jokers": {"wild": True}}
    for other, words in (
        ({**known, "options": strange}, "options are unknown here or missing: jokers.wild"),
        ({**known, "options": {}}, "options are unknown here or missing: blackjack.pays"),
        ({"options": 1}, "has no options and jurisdiction"),
    ):
        settlement = verify_record.Settlement()
        settlement.begin({**opened, "game": other}, None)
        assert words in settlement.judge({"data": {"event": {"type": "Hit"}}})
    later = verify_record.Settlement()
    later.begin(opened, {"format": 3})
    assert "format 3 is not known" in later.why
    later.begin(opened, None)
    later.compare(opened, {"format": 3})
    assert "format 3 is not known" in later.judge({"data": {"event": {"type": "Hit"}}})
    later.begin({**opened, "vocabulary": verify_record.VOCABULARY + 1}, None)
    event = {"type": "Whistled", "actor": {"role": "dealer", "name": "Al"}}
    record = {"kind": "decision", "by": event["actor"], "data": {"event": event, "effects": []}}
    assert later.judge(record) == "a later vocabulary has the event Whistled"
    later.begin(opened, None)
    with pytest.raises(verify_record.Wrong, match="the page does not know the event Whistled"):
        later.judge(record)
