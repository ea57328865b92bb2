"""PROTOCOL.md: the prose of prose/protocol.md with the tables of messages.toml inserted.

`{{name}}` in the prose is a number, a time, a table or a frame's layout. An unknown name is an
error, and so is a required one that the prose does not use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
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
    Field,
    FrameSpec,
    MessageSpec,
    schema_hash,
)
from firmware_protocol.generate.emit import ORIGIN, allowed, code, number

CLASSES: Final = ("all", "shoe", "shuffler", "station")
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
        return parts[match[1]]()

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
    parts: dict[str, Callable[[], str]] = {
        "SCHEMA_HASH": lambda: f"`{schema_hash(catalogue, catalogue.version).hex()}`",
        "PROLOGUE": lambda: str(_prologue(catalogue)),
        "frames": lambda: _join(_frames(catalogue)),
        "layouts": lambda: _join(_layouts(catalogue)),
        "ids": lambda: _join(_ids(catalogue)),
        "messages": lambda: _join(_messages(catalogue)),
        "enums": lambda: _join(_enums(catalogue)),
        "numbers": lambda: _join(_numbers(catalogue)),
        "errors": lambda: _join(_errors()),
        "conformance": lambda: _join(_conformance()),
    }
    for one in catalogue.constants:
        parts[one.name] = partial(number, one.value)
    for time in catalogue.timings:
        parts[time.name] = partial(_time, time.value, time.unit)
    for frame in catalogue.frames:
        parts[f"frame:{frame.kind}"] = partial(_frame_table, catalogue, frame)
    return parts


def _join(lines: Iterable[str]) -> str:
    return "\n".join(lines).strip("\n")


def _time(value: int, unit: str) -> str:
    if unit == "ms" and value >= 1000 and value % 1000 == 0:
        value, unit = value // 1000, "s"
    if unit == "s" and value >= 3600 and value % 3600 == 0:
        return f"{value // 3600} hours"
    return f"{value} {unit}"


def _prologue(catalogue: Catalogue) -> int:
    hellos = [one for one in catalogue.frames if one.kind in ("HELLO", "HELLO_RSP")]
    return sum(8 + catalogue.length(one.fields) for one in hellos)


def _row(*cells: object) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _table(*heads: str) -> Iterator[str]:
    yield _row(*heads)
    yield "|" + "---|" * len(heads)


def _fields(catalogue: Catalogue, fields: tuple[Field, ...]) -> Iterator[str]:
    yield from _table("offset", "size", "field", "type", "")
    for one, offset, size in catalogue.placed(fields):
        limits = allowed(catalogue, one)
        base = one.type if one.type not in catalogue.sets else catalogue.sets[one.type].type
        shown = f"{base}: {limits}" if limits else base
        yield _row(offset, size, one.name, shown, one.doc)


# --- frames and layouts ---------------------------------------------------------------------


def _frames(catalogue: Catalogue) -> Iterator[str]:
    yield from _table("kind", "", "from", "n", "on the wire", "payload")
    numbers = {value.name: value.value for value in catalogue.sets["frame_kind"].values}
    for frame in catalogue.frames:
        sizes = catalogue.frame_sizes(frame)
        yield _row(
            numbers[frame.kind],
            frame.kind,
            frame.side,
            ", ".join(map(str, sizes)),
            ", ".join(str(size + 14) for size in sizes),
            frame.doc if frame.opaque else f"{frame.doc} [Layout](#{_section(frame.kind)})",
        )
    for frame in catalogue.frames:
        if frame.opaque and frame.fields:
            yield ""
            yield from _frame(catalogue, frame)


def _section(kind: str) -> str:
    return "session" if kind == "ALERT" else "hello"


def _frame(catalogue: Catalogue, frame: FrameSpec) -> Iterator[str]:
    yield f"**{frame.kind}** ({frame.side}), n = {catalogue.length(frame.fields)}"
    yield ""
    yield from _fields(catalogue, frame.fields)


def _frame_table(catalogue: Catalogue, frame: FrameSpec) -> str:
    return _join(_frame(catalogue, frame))


def _layouts(catalogue: Catalogue) -> Iterator[str]:
    for layout in catalogue.layouts:
        sizes = " or ".join(map(str, layout.sizes))
        side = "either side" if layout.side == "both" else f"the {layout.side}"
        yield f"**{layout.name}**, sent by {side}, {sizes} bytes. {layout.doc}"
        yield ""
        yield from _fields(catalogue, layout.fields)
        yield ""


# --- messages -------------------------------------------------------------------------------


def _ids(catalogue: Catalogue) -> Iterator[str]:
    yield from _table("ids", "")
    for (kind, where), (first, last) in RANGES.items():
        words = "control" if kind == "control" else f"{kind}s, {where}"
        yield _row(f"{code(first)} to {code(last)}", words)
    yield _row(
        f"{code(0x40 + REPLY_OFFSET)} to {code(0x7F + REPLY_OFFSET)}",
        f"replies: the command's id + {code(REPLY_OFFSET)}; {code(REFUSED_ID)} REFUSED",
    )
    for span in catalogue.reserved:
        yield _row(f"{code(span.first)} to {code(span.last)}", f"reserved: {span.doc}")


def _messages(catalogue: Catalogue) -> Iterator[str]:
    for where in CLASSES:
        yield f"### {'All classes' if where == 'all' else where.capitalize()}"
        yield ""
        some = [one for one in catalogue.messages if one.device_class == where]
        replies = {one.to: one for one in some if one.kind == "reply"}
        for one in some:
            if one.kind == "reply" and one.to is not None:
                continue
            yield from _message(catalogue, one)
            if one.kind == "command":
                yield from _message(catalogue, replies[one.name])


def _message(catalogue: Catalogue, one: MessageSpec) -> Iterator[str]:
    facts = [f"{one.kind} {code(one.id)}", f"from the {one.side}"]
    facts.append(f"len {catalogue.length(one.fields)}")
    if one.size != 56:
        facts.append(f"plaintext of {one.size} bytes")
    if one.kind == "command":
        facts.append("idempotent" if one.idempotent else "not idempotent")
        facts.append(f"reply within {one.deadline_ms} ms")
        if one.result:
            facts.append(f"result: {one.result}")
    if one.since > 1:
        facts.append(f"since version {one.since}")
    yield f"**{one.name}** ({', '.join(facts)}): {one.doc}"
    yield ""
    if one.fields:
        yield from _fields(catalogue, one.fields)
        yield ""


# --- enums, numbers, errors, conformance ----------------------------------------------------


def _enums(catalogue: Catalogue) -> Iterator[str]:
    for one in (*catalogue.enums, *catalogue.flags):
        flags = one.name in catalogue.is_flags
        yield f"**{one.name}** ({one.type}{', flags' if flags else ''}): {one.doc}"
        yield ""
        if one.of is not None:
            yield f"Bit number = value of {one.of}: HIT is 0x1, STAND is 0x2 and so on."
            yield ""
            continue
        yield from _table("value", "", "")
        for value in catalogue.values(one):
            yield _row(f"0x{value.value:X}" if flags else value.value, value.name, value.doc)
        yield ""


def _numbers(catalogue: Catalogue) -> Iterator[str]:
    yield from _table("", "", "")
    for one in catalogue.constants:
        yield _row(one.name, number(one.value), one.doc)
    for time in catalogue.timings:
        yield _row(time.name, _time(time.value, time.unit), time.doc)


def _errors() -> Iterator[str]:
    yield from _table("", "", "")
    for one in all_errors():
        doc = " ".join((one.__doc__ or "").split())
        yield _row(one.number, slug(one.__name__), doc)


def _conformance() -> Iterator[str]:
    yield from _table("", "for", "needs", "rule", "see")
    for item in conformance.load_items():
        yield _row(
            item.id,
            ", ".join(item.profiles) or "all",
            ", ".join(item.needs),
            item.text,
            f"[{item.page}](#{item.page})",
        )
