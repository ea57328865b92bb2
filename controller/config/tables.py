"""Table files: the game of a table, its jurisdiction, chips, limits and devices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from controller.config import files, values
from controller.config.equipment import (
    NO_EQUIPMENT,
    TABLES,
    Equipment,
    check_standing,
    read_equipment,
)
from controller.config.files import Document
from controller.config.jurisdictions import DEFAULT, read_jurisdiction
from controller.config.option_layers import read_layer
from controller.config.schema import TableKey, open_document, read_table
from controller.config.sheets import NOTHING, OVERRIDES, GameSheet, lay_over, read_sheet
from controller.config.values import ValueCheck, invalid
from controller.errors import UsageProblem, refuse
from controller.rules.irregularities import Jurisdiction
from controller.rules.option_constraints import SHOES, Range

MAX_SEATS: Final = 7
_CODE: Final = re.compile(r"[A-Z]{3}")


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


def _read_code(value: object) -> str:
    if not isinstance(value, str) or not _CODE.fullmatch(value):
        raise invalid(value)
    return value


_HEAD: Final = {
    "name": TableKey(values.NAME, required=True),
    "title": TableKey(values.text(80)),
    "game": TableKey(values.text(400), required=True),
    "jurisdiction": TableKey(values.text(400)),
    "seats": TableKey(values.whole_number(Range(1, MAX_SEATS))),
}
_CURRENCY: Final = {
    "symbol": TableKey(values.text(4)),
    "code": TableKey(ValueCheck("three capital letters, such as USD", _read_code)),
    "minor_digits": TableKey(values.whole_number(Range(0, 4))),
}


def load_table(
    table: str | Path,
    overrides: Mapping[str, object] = NOTHING,
    *,
    overrides_from: str = OVERRIDES,
) -> TableConfig:
    """Load the table of this name or file. Its paths are relative to its folder."""
    document = files.read_named("table", table, "table")
    return parse_table(document, overrides, overrides_from)


def parse_table(
    document: Document,
    overrides: Mapping[str, object] = NOTHING,
    overrides_from: str = OVERRIDES,
) -> TableConfig:
    files.expect(document, "table")
    file = document.source
    problems: list[UsageProblem] = []
    tables = open_document(document, ("table", "currency", "options", *TABLES), problems)
    head = read_table(tables["table"], TableHead, _HEAD, f"{file}: table", problems)
    currency = read_table(tables["currency"], Currency, _CURRENCY, f"{file}: currency", problems)
    sheet = house = None
    if head is not None:
        where = f"{file}: table"
        with files.named_by(f"{where}.game"):
            found = files.read_named("game", head.game, f"{where}.game", document.folder)
            sheet = read_sheet(found)
        with files.named_by(f"{where}.jurisdiction"):
            house = read_jurisdiction(head.jurisdiction, f"{where}.jurisdiction", document.folder)
    decks = SHOES if sheet is None else sheet.head.decks_allowed
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
