"""PROTOCOL.md: the prose of prose/protocol.md with the tables of messages.toml inserted.

`{{name}}` in the prose is a number, a time, a table or a frame's layout. An unknown name is an
error, and so is a required one that the prose does not use.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Final

from firmware_protocol import conformance
from firmware_protocol.errors import all_errors, slug
from firmware_protocol.generate.catalogue import (
    RANGES,
    REFUSED_ID,
    REPLY_OFFSET,
    Catalogue,
    CatalogueError,
    Timing,
    schema_hash,
)
from firmware_protocol.generate.emit import ORIGIN, environment, number

_PLACE: Final = re.compile(r"\{\{([A-Za-z0-9_:]+)\}\}")
TABLES: Final = (
    "frames",
    "layouts",
    "ids",
    "messages",
    "enums",
    "numbers",
    "errors",
    "conformance",
)


def page(catalogue: Catalogue, prose: str | None = None) -> str:
    """The text of PROTOCOL.md."""
    if prose is None:
        source = resources.files("firmware_protocol").joinpath("prose").joinpath("protocol.md")
        prose = source.read_text(encoding="utf-8")
    parts = _parts(catalogue)
    used: set[str] = set()

    def place(match: re.Match[str]) -> str:
        used.add(match[1])
        if match[1] not in parts:
            raise CatalogueError((f"prose/protocol.md: {{{{{match[1]}}}}} is not known",))
        return parts[match[1]]().strip("\n")

    text = _PLACE.sub(place, prose)
    missing = [name for name in TABLES if name not in used]
    if missing:
        raise CatalogueError((f"prose/protocol.md: has no {', '.join(missing)}",))
    _check_links(text)
    title, rest = text.split("\n", 1)
    return f"{title}\n\n<!-- {ORIGIN} The text is in prose/protocol.md. -->\n{rest}"


def _check_links(text: str) -> None:
    """Check that each conformance item and each link names an existing section."""
    sections = {heading.lower() for heading in re.findall(r"^## (\w+)$", text, re.MULTILINE)}
    wanted = {item.page for item in conformance.load_items()}
    wanted |= set(re.findall(r"\]\(#(\w+)\)", text))
    if wanted - sections:
        raise CatalogueError(
            (f"PROTOCOL.md: has no section {', '.join(sorted(wanted - sections))}",)
        )


def _parts(catalogue: Catalogue) -> dict[str, Callable[[], str]]:
    """Returns what the prose may name, and how each is written."""
    templates = environment(catalogue)
    templates.filters |= {"slug": slug, "time": _time, "wire_size": _wire_size}
    facts = {
        "all_errors": tuple(all_errors()),
        "items": conformance.load_items(),
        "kinds": {one.name: one.value for one in catalogue.sets["frame_kind"].values},
        "ranges": RANGES,
        "refused_id": REFUSED_ID,
        "reply_offset": REPLY_OFFSET,
        "row": _row,
    }
    macros = vars(templates.get_template("page.md.j2").make_module(facts))
    hellos = [one for one in catalogue.frames if one.kind in ("HELLO", "HELLO_RSP")]
    prologue = sum(8 + catalogue.length(one.fields) for one in hellos)
    return {
        "SCHEMA_HASH": lambda: f"`{schema_hash(catalogue, catalogue.version).hex()}`",
        "PROLOGUE": lambda: str(prologue),
        **{name: macros[name] for name in TABLES},
        **{one.name: partial(number, one.value) for one in catalogue.constants},
        **{one.name: partial(_time, one) for one in catalogue.timings},
        **{f"frame:{one.kind}": partial(macros["frame_table"], one) for one in catalogue.frames},
    }


def _wire_size(payload: int) -> int:
    """Length of a frame on the wire; only its payload is in the catalogue."""
    return payload + 14


def _time(one: Timing) -> str:
    value, unit = one.value, one.unit
    if unit == "ms" and value >= 1000 and value % 1000 == 0:
        value, unit = value // 1000, "s"
    if unit == "s" and value >= 3600 and value % 3600 == 0:
        return f"{value // 3600} hours"
    return f"{value} {unit}"


def _row(*cells: object) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"
