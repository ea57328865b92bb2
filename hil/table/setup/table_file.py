"""The table file of a simulated house: the game, and the paths of devices, people and record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from controller.config import TAKEN_AWAY, flat, read_named
from controller.sim.scripts import Script
from hil.table.setup.house import House

NO_BURN: Final[Mapping[str, object]] = {"burn.on_shuffle": 0, "burn.on_dealer": 0}
"""A script's shoe holds dealt cards only."""


class TableContent(Struct, frozen=True):
    """The game, options and wagers of a table file."""

    head: Mapping[str, object]
    """The file's [table], but its name."""
    currency: Mapping[str, object] = {}
    options: Mapping[str, object] = {}
    """By dotted path."""
    standing: Mapping[str, Mapping[str, int]] = {}
    """What the bet button of a seat places."""
    screens: int | None = None
    """The port of its pages, 0 for any free one; None: it serves none."""


def example(table: str) -> TableContent:
    """Returns the content of a table of configs/tables, without devices and paths."""
    content: Mapping[str, Any] = read_named("table", table, "table").content
    head = {key: value for key, value in content["table"].items() if key != "name"}
    options = dict(flat(content["options"]))
    standing = content["devices"]["standing"]
    return TableContent(head, content["currency"], options, standing)


def scripted(script: Script) -> TableContent:
    """Returns the content for a script's rounds."""
    head = {"game": script.game, "title": "Scripts"}
    return TableContent(head, {}, {**dict(flat(script.config)), **NO_BURN})


def table_text(house: House, deals: TableContent, name: str, control: Path) -> str:
    """Returns the file's text, with absolute paths."""
    return "".join(f"{line}\n" for line in _lines(house, deals, name, control))


def _lines(house: House, deals: TableContent, name: str, control: Path) -> Iterator[str]:
    yield "# Made for a simulated table."
    yield "schema = 1"
    yield from _table("table", {"name": name, **deals.head})
    yield from _table("currency", deals.currency)
    yield from _table("options", deals.options)
    for device in house.config:
        fields: dict[str, object] = {"serial": device.serial, "port": house.address(device)}
        if device.profile == "station":
            yield from _table("[devices.stations]", {**fields, "seats": device.seats})
        else:
            yield from _table(f"devices.{device.profile}", fields)
    yield from _table("devices.standing", deals.standing)
    yield from _table("record", {"directory": str(house.record)})
    yield from _table("keys", {"directory": str(house.keys)})
    yield from _table("people", {"file": str(house.people)})
    yield from _table("control", {"socket": str(control)})
    if deals.screens is not None:
        yield from _table("screens", {"port": deals.screens})


def _table(name: str, fields: Mapping[str, object]) -> Iterator[str]:
    if fields:
        yield from ("", f"[{name}]")
        yield from (f"{_text(key)} = {toml(value)}" for key, value in fields.items())


def toml(value: object) -> str:
    """Returns a value in TOML. Raises TypeError for other types."""
    match value:
        case None:
            return _text(TAKEN_AWAY)
        case str():
            return _text(value)
        case bool() | int() | float():
            return json.dumps(value)
        case Mapping():
            pairs = (f"{_text(str(key))} = {toml(one)}" for key, one in value.items())
            return f"{{ {', '.join(pairs)} }}"
        case list() | tuple():
            return f"[{', '.join(map(toml, value))}]"
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a table file")


def _text(value: str) -> str:
    """JSON's way is TOML's, but for characters that either escapes and the other does not."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
