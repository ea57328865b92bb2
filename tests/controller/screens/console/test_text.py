"""What the console says: the procedure's own words, in whatever language a house has them, and why
the procedure refuses something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Final, get_args

import pytest
from msgspec.structs import replace

from controller.api.contract.messages import Answer
from controller.api.contract.view import PromptShown, View
from controller.api.service.acts import answer_of
from controller.procedure.engine import REFUSALS, Procedure, refusal_name
from controller.procedure.engine.dispatch import ROWS
from controller.procedure.model.effects import Tell
from controller.procedure.model.events import Event, Role
from controller.procedure.model.game import BETS
from controller.procedure.model.row import Decision, Refusal, Refused, Row
from controller.procedure.model.state import WAITING, State
from controller.procedure.prompts import MoneyFormat
from controller.rules.hands import CHOICES
from controller.screens.common.texts import NAME
from controller.screens.console.text import BETWEEN, NONE, refused
from controller.screens.console.text import TERMS as UNDER
from controller.screens.console.view import console_of
from controller.table.intake import EventAnswer
from tests.support.procedure.random_games import game_as_it_is, game_with
from tests.support.procedure.random_table import RandomTable
from tests.support.screens.console.shown_at import (
    ASKED,
    GAMES,
    HERE,
    HOUSES,
    LONG,
    TEXTS,
    Around,
    console_at,
    everywhere,
    fragment,
    marked,
    pages,
    played,
    played_in,
    view_at,
)


def test_the_console_says_what_the_procedure_says() -> None:
    """Word for word, so that what is read out is what stands in the record."""
    tells = set()
    for at in everywhere("said", 200, LONG):
        view = view_at(at)
        assert view.prompt is not None
        if at.game.jurisdiction.declare_payments and view.prompt.tell.value in _MONEY:
            continue
        assert console_at(at).say == view.prompt.words
        tells.add(view.prompt.tell)
    assert len(tells) > 24


_MONEY: Final = ("pay", "collect", "give_back")


def test_what_is_declared_first_is_not_told_before() -> None:
    """Where the dealer says what a payment comes to, neither amount nor chips stand anywhere."""
    seen = 0
    for at in played("mega", "strict", "declared", 1500):
        view = view_at(at)
        if view.prompt is None or view.prompt.tell is not Tell.PAY:
            continue
        console = console_at(at)
        assert console.payments is not None
        assert (console.payments.first.amount, console.payments.first.chips) == ("", ())
        money = MoneyFormat().amount(view.prompt.amount)
        assert money not in console.say.split()
        assert not any(money in part for part in console.instruction.small)
        assert [ask.name for one in console.actions for ask in one.inputs] == ["amount"]
        seen += 1
    assert seen > 10


def test_the_floor_sees_the_payment_that_it_signs_for_where_payments_are_declared() -> None:
    seen = 0
    game = game_with("mega", {"payout.floor_from": 10}, "strict")
    assert game.jurisdiction.declare_payments
    for at in played_in(game, "seen first", LONG):
        view = view_at(at)
        if view.prompt is None or view.prompt.tell is not Tell.FLOOR_FIRST:
            continue
        console = console_at(at)
        assert console.payments is not None
        assert console.payments.first.amount == MoneyFormat().amount(view.prompt.amount)
        assert console.say == sentence_of(view)
        seen += 1
    assert seen > 3


def sentence_of(view: View) -> str:
    assert view.prompt is not None
    return view.prompt.words


def test_a_house_that_speaks_otherwise_is_shown_nothing_of_ours(tmp_path: Path) -> None:
    """What is printed is made of the house's texts, of names, and of figures."""
    texts = marked(tmp_path / NAME)
    drawn = pages(texts)
    count = 0
    for at in everywhere("translated", 60):
        console = console_at(at, HERE, texts)
        assert console.say.startswith("\u2039")
        html = drawn.text("console/table.html", c=console)
        for word in ("Hit", "Dealer", "Seat", "Shoe", "Record", "Call the floor", "wager"):
            assert f">{word}<" not in html
        for action in (*console.actions, *console.aside):
            assert "\u2039" in action.label
        count += 1
    assert count > 400


def test_a_stopped_record_is_said_before_anything_else() -> None:
    at = next(played("mega", "default", "stopped", 1))
    console = console_at(at, around=Around(stopped="no room on the disk"))
    assert console.instruction.tone == "stopped"
    assert "no room on the disk" in console.say
    assert not console.controls
    assert (console.actions, console.aside, console.groups, console.wagers) == ((), (), (), None)
    html = fragment(console)
    assert "no room on the disk" in html
    assert "data-act=" not in html
    assert html.index("no room on the disk") < html.index("code record")


def test_a_table_that_shows_nothing_yet_says_so() -> None:
    at = next(played("mega", "default", "nothing", 1))
    console = console_of(replace(view_at(at), prompt=None), at.game, HERE, TEXTS)
    assert console.instruction.large == TEXTS("console.fault.no_prompt")
    assert console.actions == ()
    assert fragment(console)


@pytest.mark.parametrize("again", [False, True])
def test_a_payment_that_was_shown_before_says_so(again: bool) -> None:
    for at in played("classic", "default", "again", 600):
        view = view_at(at)
        if isinstance(view.prompt, PromptShown) and view.prompt.tell is Tell.PAY:
            console = console_at(at, around=Around(again=again))
            words = TEXTS("console.pay.again")
            assert (words in fragment(console)) is again
            assert console.say.startswith(words) is again
            return
    pytest.fail("nothing was paid")


def test_every_step_that_waits_was_looked_at() -> None:
    """What these tests walk through has every step."""
    assert set(WAITING) - {at.state.step for at in everywhere("said", 200, LONG)} == set()


def test_what_is_over_in_a_moment_calls_nobody() -> None:
    at = next(played("mega", "default", "slow", 1))
    console = console_at(at, around=Around(stopped="the record is slow: wait", soon=True))
    assert "the record is slow: wait" in console.say
    assert "floor" not in console.say
    assert (console.actions, console.aside, console.groups, console.wagers) == ((), (), (), None)


EVENTS: Final = 1_000
_NOT_NOW: Final = "not_now"
_WHYS: Final[tuple[Refusal | Row, ...]] = (*REFUSALS, *ROWS)
TERMS: Final = {
    "bet": list(BETS),
    "offered": [", ".join(BETS), "main"],
    "legal": ["no decision", *CHOICES.values(), ", ".join(CHOICES.values())],
    "role": list(get_args(Role)),
    "allowed": ["dealer or floor", "device or dealer or floor", "player"],
    "declared": ["nothing", "$3"],
}
_NAMES: Final = re.compile(r"[a-z]+(?:_[a-z]+)+")
"""Of terms, as programs have them."""


def some_refusals() -> list[Answer]:
    """Of each game under each jurisdiction, as a program is told of them."""
    found: list[Answer] = []

    def watch(state: State, event: Event, answer: Decision | Refused) -> None:
        if isinstance(answer, Refused):
            found.append(answer_of(EventAnswer(event, answer)))

    games = [game_as_it_is(name, house) for name in GAMES for house in HOUSES]
    games += [game_with(name, options) for name, options in ASKED]
    for number, game in enumerate(games):
        table = RandomTable(Procedure(game), f"refused {number}", illegal=0.2, watch=watch)
        for _ in range(EVENTS):
            table.once()
    return found


def test_the_rows_of_one_act_are_refused_in_one_way() -> None:
    ways: dict[str, set[str]] = {}
    for one in _WHYS:
        if one.why:
            ways.setdefault(refusal_name(one.id), set()).add(one.why)
    assert all(len(words) == 1 for words in ways.values())


def test_what_a_table_refuses_is_said() -> None:
    codes: set[str] = set()
    for answer in some_refusals():
        said = refused(answer, TEXTS)
        codes.add(refusal_name(answer.code))
        if answer.code != _NOT_NOW and not set(answer.detail) & set(TERMS):
            assert said == answer.why
        assert not _NAMES.search(said), said
    assert len(codes) > 70


def _details(why: str) -> Iterator[dict[str, str]]:
    """What a refusal may name: each term that there is, in each of its fields."""
    fields = [name for _, name, _, _ in Formatter().parse(why) if name]
    for term in range(max(len(one) for one in TERMS.values())):
        yield {
            name: TERMS[name][term % len(TERMS[name])] if name in TERMS else "3" for name in fields
        }


@pytest.mark.parametrize(
    "one",
    {refusal_name(one.id): one for one in _WHYS if "{" in one.why}.values(),
    ids=lambda one: one.id,
)
def test_what_a_refusal_names_is_said_in_words(one: Refusal | Row, tmp_path: Path) -> None:
    theirs = marked(tmp_path / NAME)
    for detail in _details(one.why):
        answer = Answer("Hit", False, (), "", one.id, detail)
        said = refused(answer, TEXTS)
        assert not _NAMES.search(said), said
        assert not re.search(r"\b(\w+) \1\b", said), said
        said = refused(answer, theirs)
        assert said.startswith("\u2039")
        assert said.endswith("\u203a")
        for name in UNDER.keys() & detail.keys():
            for word in BETWEEN.split(detail[name]):
                assert word in NONE or theirs(f"{UNDER[name]}.{word}") in said


def test_several_ways_are_named_as_people_say_them() -> None:
    detail = {"seat": "2", "hand": "1", "legal": "hit, stand, double"}
    answer = Answer("Split", False, code="cannot_split", detail=detail)
    assert refused(answer, TEXTS) == "seat 2 hand 1 may not split; it may: hit, stand or double"
    nothing = replace(answer, detail=detail | {"legal": "no decision"})
    assert refused(nothing, TEXTS).endswith("it may: no decision")
