"""Every prompt and fact has words, and the words are those that a dealer needs."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from controller.procedure.model.effects import (
    BankCounted,
    Burned,
    Corrected,
    DecksOut,
    Discarded,
    Effect,
    Fact,
    Prompt,
    RoundOver,
    RoundVoid,
    Ruled,
    SeatDead,
    Settled,
    Tell,
    Told,
    Tucked,
    WagersLocked,
)
from controller.procedure.model.events import Event
from controller.procedure.model.game import BETS, WHYS
from controller.procedure.model.row import Decision, Refused
from controller.procedure.prompts import MoneyFormat, PromptTerms, catalogue, fact, say
from controller.rules.cards import NAMES, Card
from controller.rules.hands import CHOICES
from controller.rules.irregularities import WAYS, Irregularity, Way
from controller.rules.money import EVEN, Odds, parse_odds
from controller.sim.scripts.format import read_scripts
from controller.sim.scripts.runner import play_script
from tests.support.paths import SCRIPT_FILES

SCRIPTS = sorted(SCRIPT_FILES.glob("*.json"))
DOLLARS = MoneyFormat()


def cards(names: str) -> tuple[Card, ...]:
    return tuple(NAMES.index(name) for name in names.split())


# --- amounts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("currency", "amount", "text"),
    [
        (DOLLARS, 2500, "$25"),
        (DOLLARS, 1250, "$12.50"),
        (DOLLARS, 1205, "$12.05"),
        (DOLLARS, 0, "$0"),
        (DOLLARS, 7, "$0.07"),
        (DOLLARS, 123456700, "$1,234,567"),
        (DOLLARS, -1250, "-$12.50"),
        (MoneyFormat("CHF", 2), 2500, "CHF 25"),
        (MoneyFormat("¥", 0), 2500, "¥2,500"),
        (MoneyFormat("KD", 3), 2500, "KD 2.500"),
    ],
)
def test_amounts_are_written_as_people_read_them(
    currency: MoneyFormat, amount: int, text: str
) -> None:
    assert currency.amount(amount) == text


# --- prompts, word for word --------------------------------------------------------------------


def read_prompt(fields: dict[str, Any]) -> Prompt:
    """A prompt as prompts.toml writes it."""
    given = {**fields, "tell": Tell(fields["tell"])}
    for name in ("choices", "near"):
        given[name] = tuple(fields.get(name, ()))
    given["cards"] = cards(fields.get("cards", ""))
    if "odds" in fields:
        given["odds"] = parse_odds(fields["odds"], "odds")
    chips = fields.get("chips", "")
    pairs = [chip.split() for chip in chips.split(", ") if chip]
    given["chips"] = tuple((int(count), name) for count, name in pairs)
    return Prompt(**given)


PROMPTS = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
GOLDEN = tuple((text, read_prompt(fields)) for text, fields in PROMPTS.items())


@pytest.mark.parametrize(("text", "prompt"), GOLDEN, ids=[text for text, _ in GOLDEN])
def test_the_prompt_reads(text: str, prompt: Prompt) -> None:
    assert say(prompt, DOLLARS) == text


def test_each_kind_of_prompt_has_a_golden_line() -> None:
    assert {prompt.tell for _, prompt in GOLDEN} == set(Tell)


def test_each_warning_stands_in_a_golden_line() -> None:
    assert {prompt.warn for _, prompt in GOLDEN} >= set(catalogue.WARNS)


def test_the_first_hand_of_several_is_named_too() -> None:
    prompt = Prompt(Tell.DECIDE, seat=3, hand=0, choices=("hit", "stand"), total=12)
    assert say(prompt, DOLLARS, several=True) == "Seat 3, hand 1 - hard 12 - hit or stand"


# --- facts -------------------------------------------------------------------------------------

SETTLED = Settled(4, 3, 0, "main", "win", EVEN, 2500, 5000, "dealer_busts", False, cards("TC 8D"))

FACTS: tuple[tuple[str, Fact], ...] = (
    ("Bank counted twice: $2,500", BankCounted(250000, "ann", "bo")),
    ("Round 4: wagers of $125 are locked", WagersLocked(4, 12500)),
    (
        "Round 4: wagers of $125 are locked - beyond $20,000 won the floor sees each payment",
        WagersLocked(4, 12500, 2000000),
    ),
    ("Seat 3 - dealer busts - $25 paid on $25", SETTLED),
    (
        "Seat 3, hand 2 - bust with 22 - $25 taken",
        Settled(4, 3, 1, "main", "lose", None, 2500, 0, "bust", True, cards("TC 2D KH")),
    ),
    (
        "Seat 3 - surrender - $12.50 of $25 given back",
        Settled(4, 3, 0, "main", "surrender", None, 2500, 1250, "surrender", True, cards("TC 6D")),
    ),
    (
        "Seat 3 - insurance - dealer has blackjack - $25 paid on $12.50",
        Settled(4, 3, -1, "insurance", "win", Odds(2, 1), 1250, 3750, "dealer_blackjack", False),
    ),
    ("Seat 3: cards tucked under the Buster wager", Tucked(3, 0, cards("TC 2D KH"))),
    ("A card burned", Burned()),
    ("7 of hearts burned", Burned(cards("7H")[0])),
    ("Ace of spades to the discard rack", Discarded(cards("AS")[0])),
    ("The decks are out of play", DecksOut()),
    ("Seat 3: dead hand, in again next round", SeatDead(3)),
    ("Floor told: player gone, seat 3", Told("floor", "player_absent", 3)),
    (
        "Surveillance told: decks in doubt, one card too often",
        Told("surveillance", "deck_suspect", 0, "duplicate"),
    ),
    (
        "Ruled on misdeal: void the round, by floor and floor-2",
        Ruled("misdeal", "void", "floor", "floor-2"),
    ),
    (
        "Ruled on device lost: device taken back as it is, by floor",
        Ruled("device_lost", "counters_accepted", "floor"),
    ),
    ("Round 4 is void, by floor and floor-2", RoundVoid(4, "misdeal", "floor", "floor-2")),
    (
        "Round 4, seat 3, main - $20 was paid, $25 was due - by floor and floor-2",
        Corrected(4, 3, 0, "main", 2000, 2500, "floor", "floor-2"),
    ),
    ("Round 4 is over, $50 won", RoundOver(4, 5000)),
)


@pytest.mark.parametrize(("text", "happened"), FACTS, ids=[text for text, _ in FACTS])
def test_the_fact_reads(text: str, happened: Fact) -> None:
    assert fact(happened, DOLLARS) == text


def test_each_kind_of_fact_has_a_golden_line() -> None:
    assert {type(happened) for _, happened in FACTS} == set(Fact.__subclasses__())


# --- nothing without words ---------------------------------------------------------------------


def test_every_reason_has_words() -> None:
    assert {*catalogue.WHY, "against_total"} == set(WHYS)
    terms = PromptTerms(catalogue.ENGLISH, DOLLARS)
    for key in WHYS:
        for tell in (Tell.PAY, Tell.COLLECT, Tell.GIVE_BACK):
            for hand in ((), cards("2C 3D 4H 5S 7C")):
                text = terms.why(key, hand, tell)
                assert text
                assert not set(text) & set("{}_")


def test_every_irregularity_and_way_has_words() -> None:
    assert set(catalogue.WHAT) == {what.value for what in Irregularity}
    assert set(catalogue.WAYS) == {way.value for way in Way}
    for what in Irregularity:
        ways = tuple(way.value for way in WAYS[what])
        assert "_" not in say(Prompt(Tell.RULE, "floor", why=what.value, choices=ways), DOLLARS)


def test_every_choice_and_bet_has_words() -> None:
    assert set(CHOICES.values()) <= set(catalogue.CHOICES)
    assert {*BETS, "insurance"} == set(catalogue.BETS)


def test_no_two_names_are_worded_alike() -> None:
    for table in (
        catalogue.BETS,
        catalogue.CHOICES,
        catalogue.WARNS,
        catalogue.WHAT,
        catalogue.WAYS,
    ):
        assert len(set(table.values())) == len(table)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.name))
def test_everything_that_the_scripts_bring_up_has_words(script: Path) -> None:
    said: list[str] = []

    def watch(event: Event, answer: Decision | Refused) -> None:
        if isinstance(answer, Decision):
            said.extend(filter(None, map(_worded, answer.effects)))

    for scripted in read_scripts(script):
        play_script(scripted, watch)
    assert said
    for text in said:
        assert text.isprintable()
        assert not set(text) & set("{}_"), text
        assert text.isascii(), text  # the smallest terminal shows it


def _worded(effect: Effect) -> str | None:
    match effect:
        case Prompt():
            return say(effect, DOLLARS)
        case Fact():
            return fact(effect, DOLLARS)
    return None
