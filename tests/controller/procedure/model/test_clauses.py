"""Every sentence of the four rule sheets is carried out, and stands as the sheet has it.

What is fixed shows by events and refusals with rows of their own.
"""

import hashlib
import re
from functools import cache

import pytest

from controller.config import GameSheet, load_game
from controller.procedure.engine import EVENTS, REFUSALS, rows_of
from controller.procedure.engine.dispatch import ROWS
from controller.procedure.model.events import WagerPlaced
from controller.procedure.model.game import all_rules
from controller.procedure.model.holds import REFUSED, TAKEN
from controller.publish import rows
from controller.rules.irregularities import FIXED

# How many sentences each sheet has, and the SHA-256 of all of them joined by line ends, taken when
# they were compared with the printed sheets: who changes a sentence compares it again.
SHEETS = {
    "classic": (32, "3ec8bfdff6ac5eca98dc24a953e6e89bc6a1685e5bc4b3f40ab1c04a4f241f66"),
    "maxtime": (23, "897fd5b75294c18d98ff0618300b65bd0505f6b9b563ab7f99b18616bbc53be7"),
    "mega": (37, "8f040bfd0a26f5832dc640e728c0a96936be628db4b362b2cc00c26ab7550a0d"),
    "sf21x": (24, "726d9f2d1c56fb3b06d2908f262e90b7a9427be8af20a39c12b51af4544cea41"),
}
GAMES = tuple(SHEETS)
ALL_CLAUSES = [(game, clause) for game in GAMES for clause in load_game(game).clauses]


@cache
def _sheet(game: str) -> GameSheet:
    return load_game(game)


@cache
def _carried_out(game: str) -> dict[str, set[str]]:
    """What carries out each clause: rows and refusals that this game has, and options."""
    sheet = _sheet(game)
    found: dict[str, set[str]] = {}
    for row in rows_of(rows.load(game).game):
        for clause in row.rule:
            found.setdefault(clause, set()).add(f"row {row.id}")
    for refusal in REFUSALS:
        for clause in refusal.rule:
            found.setdefault(clause, set()).add(f"refusal {refusal.id}")
    for path, clauses in sheet.because.items():
        for clause in clauses:
            found.setdefault(clause, set()).add(f"option {path}")
    return found


def _normal(sentence: str) -> str:
    return re.sub(r"\s+", " ", sentence).strip()


@pytest.mark.parametrize(("game", "clause"), ALL_CLAUSES)
def test_each_sentence_is_carried_out(game: str, clause: str) -> None:
    assert _carried_out(game).get(clause), f"{clause}: {_sheet(game).clauses[clause]}"


def test_each_clause_that_is_named_stands_in_its_sheet() -> None:
    every = {clause for game in GAMES for clause in _sheet(game).clauses}
    named = {
        **{f"row {row.id}": row.rule for row in ROWS},
        **{f"refusal {refusal.id}": refusal.rule for refusal in REFUSALS},
        "prompts": tuple(sorted(all_rules())),
    }
    assert not {name: lost for name, rule in named.items() if (lost := sorted(set(rule) - every))}


def test_nothing_names_a_clause_twice() -> None:
    named = [*((row.id, row.rule) for row in ROWS), *((each.id, each.rule) for each in REFUSALS)]
    assert not [name for name, rule in named if len(set(rule)) < len(rule)]


@pytest.mark.parametrize("game", GAMES)
def test_a_clause_bears_the_name_of_its_game(game: str) -> None:
    assert all(clause.startswith(f"{game}.") for clause in _sheet(game).clauses)


@pytest.mark.parametrize("game", GAMES)
def test_the_sentences_are_those_of_the_rule_sheet(game: str) -> None:
    sentences = [_normal(sentence) for sentence in _sheet(game).clauses.values()]
    digest = hashlib.sha256("\n".join(sentences).encode()).hexdigest()
    assert (len(sentences), digest) == SHEETS[game]


@pytest.mark.parametrize("game", GAMES)
def test_the_page_says_what_carries_out_each_sentence(game: str) -> None:
    uses = rows.page(rows.load(game)).clauses
    assert [use.clause.id for use in uses] == list(_sheet(game).clauses)
    assert not [use.clause.id for use in uses if not (use.options or use.rows or use.refusals)]


def test_all_that_is_fixed_shows_and_nothing_else() -> None:
    assert {*TAKEN.values(), *REFUSED.values()} == FIXED


def test_the_events_and_refusals_are_there() -> None:
    assert set(TAKEN) <= {event.__name__ for event in EVENTS}
    assert set(REFUSED) <= {one.id for one in REFUSALS if one.event is WagerPlaced}
