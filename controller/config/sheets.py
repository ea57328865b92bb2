"""Game sheets: a game's options, the clauses of its rule sheet, and which clause sets which."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from controller.config import files, jurisdictions, values
from controller.config.files import Document
from controller.config.option_layers import Layer, OptionOrigin, flat, merge, read_layer
from controller.config.option_paths import LEAVES, keys_near, nearest
from controller.config.schema import TableKey, open_document, read_table
from controller.config.values import InvalidValue
from controller.errors import UsageProblem, printable, refuse
from controller.rules.money import Odds
from controller.rules.option_constraints import SHOES
from controller.rules.options import Options

OVERRIDES: Final = "overrides"
NOTHING: Final[Mapping[str, object]] = {}


class SheetHead(Struct, frozen=True):
    """The sheet's [game]."""

    name: str
    title: str
    decks_allowed: tuple[int, ...]
    source: str = ""
    blackjack_pays: tuple[Odds, ...] = ()
    """The odds that a house may choose from; empty: any."""


_HEAD: Final = {
    "name": TableKey(values.NAME, required=True),
    "title": TableKey(values.text(80), required=True),
    "source": TableKey(values.text(200)),
    "decks_allowed": TableKey(values.list_of(values.choice(SHOES), least=1), required=True),
    "blackjack_pays": TableKey(values.list_of(values.ODDS, least=1)),
}
_CLAUSE: Final = values.text()
_CLAUSES: Final = values.list_of(values.text(60), least=1)


class SheetFile(Struct, frozen=True):
    """A parsed sheet, before other layers."""

    file: str
    head: SheetHead
    layer: Layer
    clauses: dict[str, str]
    because: dict[str, tuple[str, ...]]


class GameSheet(Struct, frozen=True):
    """A game with all layers applied to its sheet."""

    name: str
    title: str
    options: Options
    origin: dict[str, OptionOrigin]
    clauses: dict[str, str]
    """The sentences of the rule sheet, by id."""
    because: dict[str, tuple[str, ...]]
    """The clauses that set the value of an option in the sheet."""
    decks_allowed: tuple[int, ...]
    source: str
    """The rule sheet."""
    file: str


def load_game(
    game: str | Path,
    overrides: Mapping[str, object] = NOTHING,
    jurisdiction: str | Path | None = None,
    *,
    overrides_from: str = OVERRIDES,
) -> GameSheet:
    """Load the game of this name or file, with overrides by dotted path. Raises UsageProblem.

    Without a table file there are no chips or limits, and without a jurisdiction no card is
    burned.
    """
    document = files.read_named("game", game, "game")
    return parse_game(document, overrides, jurisdiction, overrides_from)


def parse_game(
    document: Document,
    overrides: Mapping[str, object] = NOTHING,
    jurisdiction: str | Path | None = None,
    overrides_from: str = OVERRIDES,
) -> GameSheet:
    problems: list[UsageProblem] = []
    sheet = read_sheet(document)
    layers = [sheet.layer]
    if jurisdiction is not None:
        layers.append(jurisdictions.read_jurisdiction(jurisdiction).layer)
    decks = sheet.head.decks_allowed
    layers.append(read_layer("override", overrides_from, overrides, problems, decks))
    refuse(problems)
    return lay_over(sheet, layers)


def lay_over(sheet: SheetFile, layers: list[Layer]) -> GameSheet:
    head = sheet.head
    options, origin = merge(layers, head.decks_allowed)
    pays = options.blackjack.pays
    if head.blackjack_pays and pays not in head.blackjack_pays:
        raise UsageProblem(
            f"{origin['blackjack.pays'].source}: blackjack.pays",
            f"{pays} is none of the odds that the sheet lists",
            ", ".join(str(odds) for odds in head.blackjack_pays),
        )
    return GameSheet(
        head.name,
        head.title,
        options,
        origin,
        sheet.clauses,
        sheet.because,
        head.decks_allowed,
        head.source,
        sheet.file,
    )


def read_sheet(document: Document) -> SheetFile:
    files.expect(document, "game")
    file = document.source
    problems: list[UsageProblem] = []
    tables = open_document(document, ("game", "options", "because", "clauses"), problems)
    head = read_table(tables["game"], SheetHead, _HEAD, f"{file}: game", problems)
    decks = SHOES if head is None else head.decks_allowed
    layer = read_layer("sheet", file, tables["options"], problems, decks)
    clauses = _read_clauses(tables["clauses"], file, problems)
    because = _read_because(tables["because"], clauses, file, problems)
    refuse(problems)
    assert head is not None
    return SheetFile(file, head, layer, clauses, because)


def _read_clauses(
    raw: Mapping[str, object], file: str, problems: list[UsageProblem]
) -> dict[str, str]:
    clauses: dict[str, str] = {}
    for name, sentence in raw.items():
        try:
            clauses[name] = _CLAUSE.read(sentence)
        except InvalidValue as wrong:
            where = f"{file}: clauses.{printable(name)}"
            problems.append(UsageProblem(where, str(wrong), _CLAUSE.allowed))
    return clauses


def _read_because(
    raw: Mapping[str, object],
    clauses: Mapping[str, str],
    file: str,
    problems: list[UsageProblem],
) -> dict[str, tuple[str, ...]]:
    because: dict[str, tuple[str, ...]] = {}
    for path, value in flat(raw):
        where = f"{file}: because.{printable(path)}"
        if path not in LEAVES:
            problems.append(UsageProblem(where, "is no option", keys_near(path)))
            continue
        try:
            because[path] = _CLAUSES.read(value)
        except InvalidValue as wrong:
            problems.append(UsageProblem(where, str(wrong), "a list of names from [clauses]"))
            continue
        problems.extend(
            UsageProblem(
                where,
                f"{printable(clause)} is no clause",
                f"{nearest(clause, clauses)}a name from [clauses]",
            )
            for clause in because[path]
            if clause not in clauses
        )
    return because
