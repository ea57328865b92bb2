"""Why the procedure refuses something, as the console says it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Final, get_args

import pytest
from msgspec.structs import replace

from controller.api.contract.messages import Answer
from controller.api.service.acts import answer_of
from controller.procedure.engine import REFUSALS, Procedure, refusal_name
from controller.procedure.engine.row_table import ROWS
from controller.procedure.model.events import Event, Role
from controller.procedure.model.game import BETS
from controller.procedure.model.row import Decision, Refusal, Refused, Row
from controller.procedure.model.state import State
from controller.rules.hands import CHOICES
from controller.screens.common.texts import NAME
from controller.screens.console.text import BETWEEN, NONE, refused
from controller.screens.console.text import TERMS as UNDER
from controller.table.intake import EventAnswer
from tests.support.procedure.random_games import game_as_it_is, game_with
from tests.support.procedure.random_table import RandomTable
from tests.support.screens.console.shown_at import ASKED, GAMES, HOUSES, TEXTS, marked

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
