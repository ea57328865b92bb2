"""Jurisdiction files: the ruling on each irregularity, and the cards that the house burns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from controller.config import files, values
from controller.config.files import Document
from controller.config.option_layers import Layer, read_layer
from controller.config.option_paths import LEAVES
from controller.config.schema import TableKey, open_document, read_table, refuse_unknown
from controller.errors import UsageProblem, refuse
from controller.rules.irregularities import (
    FIXED,
    TWO_PEOPLE,
    WAYS,
    Irregularity,
    Jurisdiction,
    Ruling,
    Way,
)
from controller.rules.option_constraints import Range

DEFAULT: Final = "default"
ACTS: Final = tuple(dict.fromkeys((*TWO_PEOPLE, *(way.value for way in Way))))
"""Acts for which a house may require two people; the first ones always do."""
OPTIONS: Final = tuple(
    path
    for path in LEAVES
    if path.startswith(("shuffle.", "burn.", "money.", "settle.", "payout."))
)
"""The options that a jurisdiction sets: how a house deals, not what the game is."""


class JurisdictionHead(Struct, frozen=True):
    """The file's [jurisdiction]."""

    name: str
    title: str
    source: str = ""
    rounds_after_cut: int = 1
    declare_payments: bool = False
    two_people: tuple[str, ...] = (*TWO_PEOPLE, Way.DECKS_OUT.value)


_HEAD: Final = {
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
    head = read_table(
        tables["jurisdiction"], JurisdictionHead, _HEAD, f"{file}: jurisdiction", problems
    )
    layer = read_layer("jurisdiction", file, tables["options"], problems)
    problems.extend(
        UsageProblem(f"{file}: {path}", "is not a jurisdiction's to set", ", ".join(OPTIONS))
        for path in layer.values
        if path not in OPTIONS
    )
    ways = _read_ways(tables["ways"], file, problems)
    refuse(problems)
    assert head is not None
    rulings = Jurisdiction(
        head.name,
        head.title,
        head.source,
        ways,
        head.rounds_after_cut,
        head.declare_payments,
        head.two_people,
    )
    silent = tuple(name for name in ways if name not in tables["ways"])
    return JurisdictionFile(file, rulings, layer, silent)


def _read_ways(
    raw: Mapping[str, object], file: str, problems: list[UsageProblem]
) -> dict[str, Ruling]:
    known = tuple(what.value for what in Irregularity)
    refuse_unknown(raw, known, f"{file}: ways.", problems)
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
        "options": TableKey(values.list_of(values.choice(names), least=1)),
        "two_people": TableKey(values.TRUTH),
        "text": TableKey(values.text(400)),
    }
    return read_table(raw, Ruling, keys, where, problems)
