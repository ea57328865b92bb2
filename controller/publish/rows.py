"""A game's published procedure, derived from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from controller.config import (
    DEFAULT,
    NOTHING,
    OPTION_TEXT,
    GameSheet,
    OptionOrigin,
    kind_of,
    load_jurisdiction,
    parse_game,
    parse_table,
    read_named,
    written,
)
from controller.errors import UsageProblem
from controller.games import game_of, game_of_table
from controller.procedure.engine import REFUSALS, rows_of
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import Step
from controller.publish.guards import condition_of
from controller.publish.terms import STEPS, Part, event_words, in_order, part_of, steps_words
from controller.rules.irregularities import Irregularity, Jurisdiction, Way

ANY: Final = "*"
"""Replaces the step in the id of a family of rows."""


class Clause(Struct, frozen=True):
    id: str
    sentence: str


class PublishedRow(Struct, frozen=True):
    """A row, or a family of equal rows at several steps."""

    id: str
    at: str
    on: str
    by: tuple[str, ...]
    """The roles that may bring the event; empty if the row fires automatically."""
    to: str
    text: str
    condition: str
    why: str
    clauses: tuple[Clause, ...]


class Chapter(Struct, frozen=True):
    title: str
    entries: tuple[PublishedRow, ...]


class PublishedRefusal(Struct, frozen=True):
    """A refusal: the event, the steps and the reason."""

    id: str
    at: str
    on: str
    why: str
    clauses: tuple[Clause, ...]


class PublishedOption(Struct, frozen=True):
    """An option: its value, its sentence, the file that sets it, and the clauses behind it."""

    path: str
    value: str
    text: str
    source: str
    clauses: tuple[Clause, ...]


class PublishedRuling(Struct, frozen=True):
    """The jurisdiction's ruling on an irregularity."""

    what: str
    way: str
    choices: tuple[str, ...]
    two_people: tuple[str, ...]
    """The ways that need two-person approval when the floor rules them."""
    text: str


class ClauseUse(Struct, frozen=True):
    clause: Clause
    options: tuple[str, ...]
    rows: tuple[str, ...]
    refusals: tuple[str, ...]


class ProcedurePage(Struct, frozen=True):
    """All that is published about a game."""

    name: str
    title: str
    source: str
    file: str
    command: str
    """The command that prints this page."""
    jurisdiction: str
    jurisdiction_source: str
    settings: tuple[PublishedOption, ...]
    absent: tuple[str, ...]
    """Options that the game does not have."""
    unset: tuple[str, ...]
    """Options that a table sets and that are not set."""
    chapters: tuple[Chapter, ...]
    refusals: tuple[PublishedRefusal, ...]
    ways: tuple[PublishedRuling, ...]
    clauses: tuple[ClauseUse, ...]


class PublishedGame(Struct, frozen=True):
    """A loaded game with its sheet and jurisdiction."""

    sheet: GameSheet
    game: Game
    jurisdiction: Jurisdiction
    command: str


def load(
    name: str, overrides: Mapping[str, object] = NOTHING, source: str = "--set"
) -> PublishedGame:
    """Load a game under the default jurisdiction, or the game of a table. Raises UsageProblem."""
    document = read_named("game", name, "game")
    command = f"holecard procedure {name}"
    match kind_of(document):
        case "game":
            sheet = parse_game(document, overrides, DEFAULT, source)
            house = load_jurisdiction(DEFAULT)
            return PublishedGame(sheet, game_of(sheet, house), house, command)
        case "table":
            table = parse_table(document, overrides, source)
            return PublishedGame(table.sheet, game_of_table(table), table.jurisdiction, command)
        case "jurisdiction":
            raise UsageProblem(
                document.source, "is the file of a jurisdiction", "the file of a game or table"
            )


# --- rows -------------------------------------------------------------------------------------


class RowFamily(Struct, frozen=True):
    """Rows that are published as one."""

    id: str
    rows: tuple[Row, ...]
    steps: tuple[Step, ...]
    """The steps at which they fire."""

    @property
    def one(self) -> Row:
        return self.rows[0]


def reachable_steps(rows: Iterable[Row]) -> frozenset[Step]:
    """Returns the steps that a round of this game can reach. A stop returns only to such a step."""
    forward = [row for row in rows if Step.RESUMING not in row.at]
    found = {Step.CLOSED}
    while more := {row.to for row in forward if not found.isdisjoint(row.at)} - found:
        found |= more
    return frozenset(found)


def families(rows: Iterable[Row]) -> Iterator[RowFamily]:
    """Yields the rows that can fire, in table order; those that differ only by step as one."""
    every = tuple(rows)
    known = reachable_steps(every)
    same: dict[object, list[Row]] = {}
    for row in every:
        if not known.isdisjoint(row.at) and row.to in known:
            same.setdefault(_likeness(row), []).append(row)
    for alike in same.values():
        if len(alike) == 1:
            yield RowFamily(alike[0].id, tuple(alike), in_order(alike[0].at))
        else:
            places = in_order(step for row in alike for step in (*row.at, row.to))
            alike.sort(key=lambda row: (places.index(row.at[0]), places.index(row.to)))
            steps = in_order(step for row in alike for step in row.at)
            yield RowFamily(_stem(alike[0]) + ANY, tuple(alike), steps)


def _likeness(row: Row) -> object:
    stem = _stem(row)
    return row.id if stem == row.id else (stem, row.event, row.text, row.why, row.rule)


def _stem(row: Row) -> str:
    """Returns the id without the step of a generated row."""
    for step in (*row.at, row.to) if len(row.at) == 1 else ():
        if row.id.endswith(f"_{step.value}"):
            return row.id.removesuffix(step.value)
    return row.id


def _to(family: RowFamily) -> str:
    targets = tuple(dict.fromkeys(row.to for row in family.rows))
    if len(family.rows) > 1 and all(row.at == (row.to,) for row in family.rows):
        return "the same step"
    return STEPS[targets[0]].words if len(targets) == 1 else "the step where it was stopped"


def _entry(
    family: RowFamily, game: Game, known: frozenset[Step], clauses: Mapping[str, str]
) -> PublishedRow:
    row = family.one
    condition = condition_of(row.id, family.id)
    if condition is None and row.when is not None:
        condition = row.when.__name__.strip("_").replace("_", " ")
    return PublishedRow(
        family.id,
        steps_words(family.steps, known),
        event_words(row.event),
        tuple(sorted(game.who.get(row.event, ()))),
        _to(family),
        row.text,
        condition or "",
        row.why,
        _quoted(row.rule, clauses),
    )


def _quoted(rule: Iterable[str], clauses: Mapping[str, str]) -> tuple[Clause, ...]:
    """Returns the clauses of `rule` that are in this sheet, with their sentences."""
    return tuple(Clause(name, clauses[name]) for name in rule if name in clauses)


def _chapters(game: Game, clauses: Mapping[str, str]) -> tuple[Chapter, ...]:
    rows = rows_of(game)
    known = reachable_steps(rows)
    parts: dict[Part, list[RowFamily]] = {part: [] for part in Part}
    for family in families(rows):
        parts[part_of(family.one)].append(family)
    for part, found in parts.items():
        if part is not Part.IRREGULAR:  # grouped by irregularity, not by step
            found.sort(key=lambda family: in_order(STEPS).index(family.steps[0]))
    return tuple(
        Chapter(part.value, tuple(_entry(family, game, known, clauses) for family in found))
        for part, found in parts.items()
        if found
    )


# --- refusals ---------------------------------------------------------------------------------


def _answers(known: frozenset[Step], clauses: Mapping[str, str]) -> tuple[PublishedRefusal, ...]:
    same: dict[tuple[str, str], list[Refusal]] = {}
    for ref in REFUSALS:
        if not known.isdisjoint(ref.at):
            same.setdefault((ref.id, ref.why), []).append(ref)
    return tuple(_answer(alike, known, clauses) for alike in same.values())


def _answer(
    alike: list[Refusal], known: frozenset[Step], clauses: Mapping[str, str]
) -> PublishedRefusal:
    one = alike[0]
    events: list[type[Event]] = list(dict.fromkeys(ref.event for ref in alike))
    return PublishedRefusal(
        one.id,
        steps_words((step for ref in alike for step in ref.at), known),
        ", ".join(event_words(event) for event in events),
        one.why,
        _quoted(dict.fromkeys(name for ref in alike for name in ref.rule), clauses),
    )


# --- options, ways, clauses -------------------------------------------------------------------


def _because(sheet: GameSheet, path: str) -> tuple[str, ...]:
    """Returns the clauses that set the option; none if another layer outranks the sheet."""
    return sheet.because.get(path, ()) if sheet.origin[path].layer == "sheet" else ()


def _settings(sheet: GameSheet) -> tuple[PublishedOption, ...]:
    return tuple(
        PublishedOption(
            path,
            written(origin.value),
            OPTION_TEXT[path],
            origin.source,
            _quoted(_because(sheet, path), sheet.clauses),
        )
        for path, origin in sheet.origin.items()
        if not _is_none(origin) or path.startswith(_NONE_SAYS_SOMETHING)
    )


_NONE_SAYS_SOMETHING: Final = ("shuffle.", "payout.")
_OF_TABLES: Final = ("limits.", "chips")


def _is_none(origin: OptionOrigin) -> bool:
    return origin.value is None or origin.value == ()


def _without(sheet: GameSheet, *, of_tables: bool) -> tuple[str, ...]:
    """Returns the options without a value; a group without any value is one entry."""
    none = frozenset(path for path, origin in sheet.origin.items() if _is_none(origin))
    return tuple(
        dict.fromkeys(
            _widest(path, none, sheet.origin)
            for path in sheet.origin
            if path in none
            and path.startswith(_OF_TABLES) == of_tables
            and not path.startswith(_NONE_SAYS_SOMETHING)
        )
    )


def _widest(path: str, none: frozenset[str], every: Iterable[str]) -> str:
    """Returns the largest group of the option that has no value, or the option."""
    names = path.split(".")
    for depth in range(1, len(names)):
        group = ".".join(names[:depth]) + "."
        if all(other in none for other in every if other.startswith(group)):
            return group + ANY
    return path


def _way_on(jurisdiction: Jurisdiction, what: Irregularity) -> PublishedRuling:
    ruling = jurisdiction.ruling(what)
    asked = ruling.options if ruling.way is Way.FLOOR_DECIDES else (ruling.way,)
    two = (w for w in asked if ruling.two_people or w.value in jurisdiction.two_people)
    return PublishedRuling(
        _spaced(what.value),
        _spaced(ruling.way.value),
        tuple(_spaced(way.value) for way in ruling.options),
        tuple(_spaced(way.value) for way in two),
        ruling.text,
    )


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _uses(
    sheet: GameSheet, chapters: tuple[Chapter, ...], answers: tuple[PublishedRefusal, ...]
) -> tuple[ClauseUse, ...]:
    entries = [entry for chapter in chapters for entry in chapter.entries]
    return tuple(
        ClauseUse(
            clause,
            tuple(path for path in sheet.origin if name in _because(sheet, path)),
            tuple(dict.fromkeys(entry.id for entry in entries if clause in entry.clauses)),
            tuple(dict.fromkeys(answer.id for answer in answers if clause in answer.clauses)),
        )
        for name, sentence in sheet.clauses.items()
        for clause in (Clause(name, sentence),)
    )


def page(published: PublishedGame) -> ProcedurePage:
    sheet, jurisdiction = published.sheet, published.jurisdiction
    chapters = _chapters(published.game, sheet.clauses)
    answers = _answers(reachable_steps(rows_of(published.game)), sheet.clauses)
    return ProcedurePage(
        sheet.name,
        sheet.title,
        sheet.source,
        sheet.file,
        published.command,
        jurisdiction.title,
        jurisdiction.source,
        _settings(sheet),
        _without(sheet, of_tables=False),
        _without(sheet, of_tables=True),
        chapters,
        answers,
        tuple(_way_on(jurisdiction, what) for what in Irregularity),
        _uses(sheet, chapters, answers),
    )
