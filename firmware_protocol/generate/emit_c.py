"""Generates the C header: packed structs, with every size and offset asserted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from firmware_protocol.generate.catalogue import (
    INTEGER_SIZES,
    PLAINTEXT_SIZES,
    Catalogue,
    Field,
    array,
    schema_hash,
)
from firmware_protocol.generate.emit import ORIGIN, environment, fill

INTEGERS: Final = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t"}
HEADER_FIELDS: Final = (
    Field(name="version_kind", type="u8", doc="version << 4 | frame kind"),
    Field(name="n", type="u8", doc="length of the payload"),
    Field(name="session", type="u16", doc="session id"),
    Field(name="counter", type="u32", doc="of DATA, else 0"),
)


class CStruct(NamedTuple):
    name: str
    doc: str
    fields: tuple[Field, ...]


def header(catalogue: Catalogue) -> str:
    """The text of tablelink_messages.h."""
    templates = environment(catalogue)
    templates.filters["comment"] = _comment
    return templates.get_template("messages.h.j2").render(
        declared=partial(_declared, catalogue),
        origin=ORIGIN,
        plaintext_sizes=PLAINTEXT_SIZES,
        schema_hash=schema_hash(catalogue, catalogue.version),
        structs=list(_structs(catalogue)),
    )


def _comment(text: str, indent: str = "") -> str:
    return "\n".join(fill(text, f"{indent}/* ", f"{indent} * ", 97)) + " */"


def _structs(catalogue: Catalogue) -> Iterator[CStruct]:
    yield CStruct("header", "Before every payload.", HEADER_FIELDS)
    for layout in catalogue.layouts:
        doc = f"{layout.doc} Plaintext of 56 bytes."
        yield CStruct(f"{layout.name.lower()}_plaintext", doc, layout.fields)
    for frame in catalogue.frames:
        if frame.fields:
            yield CStruct(frame.kind.lower(), f"Frame {frame.kind}. {frame.doc}", frame.fields)
    for one in catalogue.messages:
        if one.fields:
            doc = f"{one.kind.capitalize()} {one.name}. {one.doc}"
            yield CStruct(one.name.lower(), doc, one.fields)


def _declared(catalogue: Catalogue, one: Field) -> str:
    form = array(one.type)
    if form:
        return f"{'char' if form[0] in ('text', 'word') else 'uint8_t'} {one.name}[{form[1]}]"
    if one.type == "bool":
        return f"uint8_t {one.name}"
    integer = one.type if one.type in INTEGER_SIZES else catalogue.sets[one.type].type
    return f"{INTEGERS[integer]} {one.name}"
