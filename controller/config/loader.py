"""Game sheets, jurisdictions and table files: parsed, validated, and laid over each other.

A file is named by the name of an installed one, or by its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct

from controller.config import files, values
from controller.config.equipment import (
    NO_EQUIPMENT,
    TABLES,
    Equipment,
    check_standing,
    read_equipment,
)
from controller.config.files import (
    Document,
    TableKey,
    open_document,
    read_table,
    read_value,
    refuse_unknown,
)
from controller.config.options import (
    LEAVES,
    Layer,
    OptionOrigin,
    flat,
    keys_near,
    merge,
    nearest,
    read_layer,
)
from controller.errors import UsageProblem, printable, refuse
from controller.rules.irregularities import (
    FIXED,
    TWO_PEOPLE,
    WAYS,
    Irregularity,
    Jurisdiction,
    Ruling,
    Way,
)
from controller.rules.money import Odds
from controller.rules.option_constraints import SHOES, Range
from controller.rules.options import Options

# --- jurisdictions ----------------------------------------------------------------------------

DEFAULT: Final = "default"
ACTS: Final = tuple(dict.fromkeys((*TWO_PEOPLE, *(way.value for way in Way))))
"""Acts for which a house may require two people; the first ones always do."""
OPTIONS: Final = tuple(
    path
    for path in LEAVES
    if path.startswith(("shuffle.", "burn.", "money.", "settle.", "payout."))
)
"""The options that a jurisdiction sets: how a house deals, not what the game is."""


_JURISDICTION: Final = {
    "name": TableKey(values.NAME, required=True),
    "title": TableKey(values.text(80), required=True),
    "source": TableKey(values.text(200)),
    "rounds_after_cut": TableKey(values.whole_number(Range(0, 3))),
    "declare_payments": TableKey(values.TRUTH),
    "two_people": TableKey(values.list_of(values.choice(ACTS), always=TWO_PEOPLE)),
}


class JurisdictionFile(Struct, frozen=True):
    file: str
    rulings: Jurisdiction
    layer: Layer
    silent: tuple[str, ...]
    """Irregularities that the file does not name: the floor decides."""


def load_jurisdiction(jurisdiction: str | Path) -> Jurisdiction:
    """Load the jurisdiction of this name or file. Raises UsageProblem."""
    return read_jurisdiction(jurisdiction).rulings


def read_jurisdiction(
    jurisdiction: str | Path, where: str = "jurisdiction", beside: Path | None = None
) -> JurisdictionFile:
    return parse_jurisdiction(files.read_named("jurisdiction", jurisdiction, where, beside))


def parse_jurisdiction(document: Document) -> JurisdictionFile:
    files.expect(document, "jurisdiction")
    file = document.source
    problems: list[UsageProblem] = []
    tables = open_document(document, ("jurisdiction", "options", "ways"), problems)
    where = f"{file}: jurisdiction"
    head = read_table(tables["jurisdiction"], dict[str, Any], _JURISDICTION, where, problems)
    layer = read_layer("jurisdiction", file, tables["options"], problems)
    problems.extend(
        UsageProblem(f"{file}: {path}", "is not a jurisdiction's to set", ", ".join(OPTIONS))
        for path in layer.values
        if path not in OPTIONS
    )
    ways = _read_ways(tables["ways"], file, problems)
    refuse(problems)
    assert head is not None
    rulings = Jurisdiction(**{"source": "", **head}, ways=ways)
    silent = tuple(name for name in ways if name not in tables["ways"])
    return JurisdictionFile(file, rulings, layer, silent)


def _read_ways(
    raw: Mapping[str, object], file: str, problems: list[UsageProblem]
) -> dict[str, Ruling]:
    refuse_unknown(raw, tuple(what.value for what in Irregularity), f"{file}: ways.", problems)
    ways: dict[str, Ruling] = {}
    for what in Irregularity:
        where = f"{file}: ways.{what.value}"
        if what.value in raw:
            ruling = _read_ruling(what, raw[what.value], where, problems)
        else:
            # Not in the file: the floor decides, unless there is only one way.
            ruling = Ruling(WAYS[what][0] if what in FIXED else Way.FLOOR_DECIDES)
        if ruling is None:
            continue
        if ruling.way is Way.FLOOR_DECIDES and not ruling.options:
            ruling = Ruling(ruling.way, WAYS[what], ruling.two_people, ruling.text)
        elif ruling.way is not Way.FLOOR_DECIDES and ruling.options:
            problems.append(
                UsageProblem(
                    f"{where}.options",
                    f"the way is {ruling.way.value}: there is no choice",
                    "options only with way = floor_decides",
                )
            )
        ways[what.value] = ruling
    return ways


def _read_ruling(
    what: Irregularity, raw: object, where: str, problems: list[UsageProblem]
) -> Ruling | None:
    names = tuple(way.value for way in WAYS[what])
    ways = names if what in FIXED else (Way.FLOOR_DECIDES.value, *names)
    keys = {
        "way": TableKey(values.choice(ways), required=True),
        "options": TableKey(values.list_of(values.choice(names), min_length=1)),
        "two_people": TableKey(values.TRUTH),
        "text": TableKey(values.text(400)),
    }
    return read_table(raw, Ruling, keys, where, problems)


# --- game sheets ------------------------------------------------------------------------------

OVERRIDES: Final = "overrides"
NOTHING: Final[Mapping[str, object]] = {}


_GAME: Final = {
    "name": TableKey(values.NAME, required=True),
    "title": TableKey(values.text(80), required=True),
    "source": TableKey(values.text(200)),
    "decks_allowed": TableKey(values.list_of(values.choice(SHOES), min_length=1), required=True),
    "blackjack_pays": TableKey(values.list_of(values.ODDS, min_length=1)),
}
_CLAUSE: Final = values.text()
_CLAUSES: Final = values.list_of(values.text(60), min_length=1)


class Sheet(Struct, frozen=True, kw_only=True):
    """What a sheet says apart from its options."""

    name: str
    title: str
    decks_allowed: tuple[int, ...]
    source: str = ""
    """The rule sheet."""
    file: str
    clauses: dict[str, str]
    """The sentences of the rule sheet, by id."""
    because: dict[str, tuple[str, ...]]
    """The clauses that set the value of an option in the sheet."""


class SheetFile(Sheet, frozen=True, kw_only=True):
    """A parsed sheet, before other layers."""

    blackjack_pays: tuple[Odds, ...] = ()
    """The odds that a house may choose from; empty: any."""
    layer: Layer


class GameSheet(Sheet, frozen=True, kw_only=True):
    """A game with all layers applied to its sheet."""

    options: Options
    origin: dict[str, OptionOrigin]


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
        layers.append(read_jurisdiction(jurisdiction).layer)
    layers.append(read_layer("override", overrides_from, overrides, problems, sheet.decks_allowed))
    refuse(problems)
    return lay_over(sheet, layers)


def lay_over(sheet: SheetFile, layers: list[Layer]) -> GameSheet:
    options, origin = merge(layers, sheet.decks_allowed)
    pays = options.blackjack.pays
    if sheet.blackjack_pays and pays not in sheet.blackjack_pays:
        raise UsageProblem(
            f"{origin['blackjack.pays'].source}: blackjack.pays",
            f"{pays} is none of the odds that the sheet lists",
            ", ".join(str(odds) for odds in sheet.blackjack_pays),
        )
    same = {name: getattr(sheet, name) for name in Sheet.__struct_fields__}
    return GameSheet(**same, options=options, origin=origin)


def read_sheet(document: Document) -> SheetFile:
    files.expect(document, "game")
    file = document.source
    problems: list[UsageProblem] = []
    tables = open_document(document, ("game", "options", "because", "clauses"), problems)
    head = read_table(tables["game"], dict[str, Any], _GAME, f"{file}: game", problems)
    decks = SHOES if head is None else head["decks_allowed"]
    layer = read_layer("sheet", file, tables["options"], problems, decks)
    clauses = _read_clauses(tables["clauses"], file, problems)
    because = _read_because(tables["because"], clauses, file, problems)
    refuse(problems)
    assert head is not None
    return SheetFile(**head, file=file, layer=layer, clauses=clauses, because=because)


def _read_clauses(
    raw: Mapping[str, object], file: str, problems: list[UsageProblem]
) -> dict[str, str]:
    clauses = {
        name: read_value(_CLAUSE, sentence, f"{file}: clauses.{printable(name)}", problems)
        for name, sentence in raw.items()
    }
    return {name: sentence for name, sentence in clauses.items() if sentence is not None}


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
        because[path] = (
            read_value(_CLAUSES, value, where, problems, "a list of names from [clauses]") or ()
        )
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


# --- table files ------------------------------------------------------------------------------

MAX_SEATS: Final = 7


class Currency(Struct, frozen=True):
    """How amounts are written: an amount of 150 with two minor digits is $1.50."""

    symbol: str = "$"
    code: str = "USD"
    minor_digits: int = 2


class TableHead(Struct, frozen=True):
    """The file's [table]."""

    name: str
    game: str
    title: str = ""
    jurisdiction: str = DEFAULT
    seats: int = MAX_SEATS


class TableConfig(Struct, frozen=True):
    name: str
    title: str
    sheet: GameSheet
    """The game as this table deals it."""
    jurisdiction: Jurisdiction
    seats: int
    currency: Currency
    file: str
    equipment: Equipment = NO_EQUIPMENT


_TABLE: Final = {
    "name": TableKey(values.NAME, required=True),
    "title": TableKey(values.text(80)),
    "game": TableKey(values.text(400), required=True),
    "jurisdiction": TableKey(values.text(400)),
    "seats": TableKey(values.whole_number(Range(1, MAX_SEATS))),
}
_CURRENCY: Final = {
    "symbol": TableKey(values.text(4)),
    "code": TableKey(values.matching("[A-Z]{3}", "three capital letters, such as USD")),
    "minor_digits": TableKey(values.whole_number(Range(0, 4))),
}


def load_table(
    table: str | Path,
    overrides: Mapping[str, object] = NOTHING,
    *,
    overrides_from: str = OVERRIDES,
) -> TableConfig:
    """Load the table of this name or file. Its paths are relative to its folder."""
    return parse_table(files.read_named("table", table, "table"), overrides, overrides_from)


def parse_table(
    document: Document,
    overrides: Mapping[str, object] = NOTHING,
    overrides_from: str = OVERRIDES,
) -> TableConfig:
    files.expect(document, "table")
    file = document.source
    problems: list[UsageProblem] = []
    tables = open_document(document, ("table", "currency", "options", *TABLES), problems)
    head = read_table(tables["table"], TableHead, _TABLE, f"{file}: table", problems)
    currency = read_table(tables["currency"], Currency, _CURRENCY, f"{file}: currency", problems)
    sheet = house = None
    if head is not None:
        where = f"{file}: table"
        with files.named_by(f"{where}.game"):
            found = files.read_named("game", head.game, f"{where}.game", document.folder)
            sheet = read_sheet(found)
        with files.named_by(f"{where}.jurisdiction"):
            house = read_jurisdiction(head.jurisdiction, f"{where}.jurisdiction", document.folder)
    decks = SHOES if sheet is None else sheet.decks_allowed
    own = read_layer("table", file, tables["options"], problems, decks)
    more = read_layer("override", overrides_from, overrides, problems, decks)
    seats = MAX_SEATS if head is None else head.seats
    equipment, wrong = read_equipment(document.content, file, document.folder, seats)
    problems += wrong
    refuse(problems)
    # Errors have been raised above.
    assert head is not None
    assert sheet is not None
    assert house is not None
    assert currency is not None
    whole = lay_over(sheet, [sheet.layer, house.layer, own, more])
    check_standing(equipment, whole.options, file)
    return TableConfig(
        head.name,
        head.title or head.name,
        whole,
        house.rulings,
        head.seats,
        currency,
        file,
        equipment,
    )


# --- a file of any kind -----------------------------------------------------------------------

Anything: TypeAlias = GameSheet | TableConfig | JurisdictionFile


def load(
    name: str,
    overrides: Mapping[str, object] = NOTHING,
    *,
    overrides_from: str = OVERRIDES,
) -> Anything:
    """Load a game by name, or a file of any kind. Raises UsageProblem."""
    document = files.read_named("game", name, printable(name))
    match files.kind_of(document):
        case "game":
            return parse_game(document, overrides, overrides_from=overrides_from)
        case "table":
            return parse_table(document, overrides, overrides_from)
        case "jurisdiction":
            return parse_jurisdiction(document)
