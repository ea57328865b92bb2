"""Why the procedure refuses something, as the console says it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from controller.api.acting import answer_of
from controller.api.answers import Answer
from controller.procedure.engine import Procedure
from controller.procedure.events import Event
from controller.procedure.row import Decision, Refusal, Refused, Row
from controller.procedure.rows import REFUSALS, ROWS
from controller.procedure.states import State
from controller.screens.common.texts import NAME, Texts
from controller.screens.console.refused import refusal_of, refused
from controller.table.taking import Answered
from tests.procedure.random_games import game_as_it_is, game_with
from tests.procedure.random_table import RandomTable
from tests.screens.console.shown_at import ASKED, GAMES, HOUSES, TEXTS
from tests.screens.console.test_said import marked

EVENTS: Final = 700
_NOT_NOW: Final = "not_now"
_WHYS: Final[tuple[Refusal | Row, ...]] = (*REFUSALS, *ROWS)
_NAMES: Final = re.compile(r"[a-z]+(?:_[a-z]+)+")
"""Of terms, as programs have them."""


def some_refusals() -> list[Answer]:
    """Of each game under each jurisdiction, as a program is told of them."""
    found: list[Answer] = []

    def watch(state: State, event: Event, answer: Decision | Refused) -> None:
        if isinstance(answer, Refused):
            found.append(answer_of(Answered(event, answer)))

    games = [game_as_it_is(name, house) for name in GAMES for house in HOUSES]
    games += [game_with(name, options) for name, options in ASKED]
    for number, game in enumerate(games):
        table = RandomTable(Procedure(game), f"refused {number}", illegal=0.5, watch=watch)
        for _ in range(EVENTS):
            table.once()
    return found


def test_each_refusal_has_a_text_and_it_is_the_procedures() -> None:
    whys = {refusal_of(one.id): one.why for one in _WHYS if one.why}
    texts = {
        name.removeprefix("console.refuse."): TEXTS(name)
        for name in TEXTS.names
        if name.startswith("console.refuse.")
    }
    assert texts.pop(_NOT_NOW)
    assert texts == whys


def test_the_rows_of_one_act_are_refused_in_one_way() -> None:
    ways: dict[str, set[str]] = {}
    for one in _WHYS:
        if one.why:
            ways.setdefault(refusal_of(one.id), set()).add(one.why)
    assert all(len(words) == 1 for words in ways.values())


def test_what_is_refused_is_said_as_the_record_has_it(tmp_path: Path) -> None:
    theirs = marked(tmp_path / NAME)
    codes: set[str] = set()
    for answer in some_refusals():
        said = refused(answer, TEXTS)
        codes.add(refusal_of(answer.code))
        if answer.code == _NOT_NOW:
            continue
        if not {"bet", "offered", "legal", "allowed"} & set(answer.detail):
            assert said == answer.why
        assert not _NAMES.search(said), said
        translated(answer, theirs)
    assert len(codes) > 50


def translated(answer: Answer, theirs: Texts) -> None:
    """In a house's own words nothing is left of ours."""
    said = refused(answer, theirs)
    assert said.startswith("\u2039")
    assert said.endswith("\u203a")
    for field, under in (("bet", "bet"), ("role", "role")):
        if field in answer.detail and f"{{{field}}}" in TEXTS(
            f"console.refuse.{refusal_of(answer.code)}"
        ):
            assert theirs(f"console.{under}.{answer.detail[field]}") in said


def test_several_ways_are_named_as_people_say_them() -> None:
    detail = {"seat": "2", "hand": "1", "legal": "hit, stand, double"}
    answer = Answer("Split", False, code="cannot_split", detail=detail)
    said = refused(answer, TEXTS)
    assert said == "seat 2 hand 1 may not split; it may: hit, stand or double"
    nothing = replace(answer, detail=detail | {"legal": "no decision"})
    assert refused(nothing, TEXTS).endswith("it may: no decision")
