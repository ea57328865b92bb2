"""Generates the C header: packed structs, with every size and offset asserted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from firmware_protocol.generate.catalogue import (
    INTEGER_SIZES,
    PLAINTEXT_SIZES,
    Catalogue,
    Field,
    Values,
    array,
    schema_hash,
)
from firmware_protocol.generate.emit import ORIGIN, allowed, code, fill, number

INTEGERS: Final = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t"}

_OPENING: Final = """\
#ifndef TABLELINK_MESSAGES_H
#define TABLELINK_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "TableLink is little-endian: on this machine the structs cannot lie over the bytes"
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TL_PACKED __attribute__((packed))
#else
#error "say here how this compiler packs a struct"
#endif

#ifdef __cplusplus
#define TL_ASSERT(condition) static_assert(condition, #condition)
#else
#define TL_ASSERT(condition) _Static_assert(condition, #condition)
#endif
"""


def header(catalogue: Catalogue) -> str:
    """The text of tablelink_messages.h."""
    return "\n".join(_lines(catalogue)).rstrip("\n") + "\n"


def _lines(catalogue: Catalogue) -> Iterator[str]:
    yield f"/* {catalogue.protocol}/{catalogue.version}. {ORIGIN} */"
    yield from ("", _OPENING)
    yield from _numbers(catalogue)
    for one in (*catalogue.enums, *catalogue.flags):
        yield from _enum(catalogue, one)
    yield from _ids(catalogue)
    structs = list(_structs(catalogue))
    for name, doc, fields, size in structs:
        yield from _struct(catalogue, name, doc, fields, size)
    yield from _each_field(structs)
    yield from ("", "#endif")


def _comment(text: str, indent: str = "") -> Iterator[str]:
    lines = fill(text, f"{indent}/* ", f"{indent} * ", 97)
    yield from lines[:-1]
    yield f"{lines[-1]} */"


def _numbers(catalogue: Catalogue) -> Iterator[str]:
    yield f"#define TL_VERSION {catalogue.version}u"
    hashed = ", ".join(code(byte) for byte in schema_hash(catalogue, catalogue.version))
    yield from _comment("the schema hash of this version, as HELLO and HELLO_RSP carry it")
    yield f"#define TL_SCHEMA_HASH {{ {hashed} }}"
    for one in catalogue.constants:
        yield from _comment(one.doc)
        yield f"#define TL_{one.name} {number(one.value)}u"
    for time in catalogue.timings:
        yield from _comment(time.doc)
        yield f"#define TL_{time.name}_{time.unit.upper()} {time.value}u"


def _enum(catalogue: Catalogue, one: Values) -> Iterator[str]:
    yield ""
    yield from _comment(f"{one.doc} {one.type}")
    yield f"enum tl_{one.name} {{"
    flags = one.name in catalogue.is_flags
    for value in catalogue.values(one):
        if one.of is None:
            yield from _comment(value.doc, "    ")
        shown = f"0x{value.value:X}" if flags else str(value.value)
        yield f"    TL_{one.name.upper()}_{value.name} = {shown},"
    yield "};"


def _ids(catalogue: Catalogue) -> Iterator[str]:
    yield ""
    yield from _comment("ids of the messages, and the length of their fields")
    yield "enum tl_id {"
    yield from (f"    TL_ID_{one.name} = {code(one.id)}," for one in catalogue.messages)
    yield "};"
    yield ""
    for one in catalogue.messages:
        yield f"#define TL_LEN_{one.name} {catalogue.length(one.fields)}u"
    yield ""
    yield from _comment("lengths of the frames' payloads")
    for frame in catalogue.frames:
        sizes = catalogue.frame_sizes(frame)
        if len(sizes) == 1:
            yield f"#define TL_LEN_{frame.kind} {sizes[0]}u"
    for size in PLAINTEXT_SIZES:
        yield f"#define TL_LEN_DATA_{size} {size + 16}u"


def _structs(catalogue: Catalogue) -> Iterator[tuple[str, str, tuple[Field, ...], int]]:
    header_fields = (
        Field(name="version_kind", type="u8", doc="version << 4 | frame kind"),
        Field(name="n", type="u8", doc="length of the payload"),
        Field(name="session", type="u16", doc="session id"),
        Field(name="counter", type="u32", doc="of DATA, else 0"),
    )
    yield "header", "Before every payload.", header_fields, 8
    for layout in catalogue.layouts:
        doc = f"{layout.doc} Plaintext of 56 bytes."
        yield f"{layout.name.lower()}_plaintext", doc, layout.fields, PLAINTEXT_SIZES[0]
    for frame in catalogue.frames:
        if frame.fields:
            size = catalogue.length(frame.fields)
            yield frame.kind.lower(), f"Frame {frame.kind}. {frame.doc}", frame.fields, size
    for one in catalogue.messages:
        if one.fields:
            size = catalogue.length(one.fields)
            doc = f"{one.kind.capitalize()} {one.name}. {one.doc}"
            yield one.name.lower(), doc, one.fields, size


def _struct(
    catalogue: Catalogue, name: str, doc: str, fields: tuple[Field, ...], size: int
) -> Iterator[str]:
    yield ""
    yield from _comment(doc)
    yield f"struct tl_{name} {{"
    for one in fields:
        limits = allowed(catalogue, one)
        yield from _comment(one.doc + (f" ({limits})" if limits else ""), "    ")
        yield f"    {_declared(catalogue, one)};"
    yield "} TL_PACKED;"
    yield f"TL_ASSERT(sizeof(struct tl_{name}) == {size});"
    for place in catalogue.placed(fields):
        yield f"TL_ASSERT(offsetof(struct tl_{name}, {place.field.name}) == {place.offset});"


def _declared(catalogue: Catalogue, one: Field) -> str:
    form = array(one.type)
    if form:
        return f"{'char' if form[0] in ('text', 'word') else 'uint8_t'} {one.name}[{form[1]}]"
    if one.type == "bool":
        return f"uint8_t {one.name}"
    integer = one.type if one.type in INTEGER_SIZES else catalogue.sets[one.type].type
    return f"{INTEGERS[integer]} {one.name}"


def _each_field(structs: list[tuple[str, str, tuple[Field, ...], int]]) -> Iterator[str]:
    yield ""
    yield from _comment(
        "X(struct's name without tl_, field) for every field there is: for tests and dumps"
    )
    yield "#define TL_EACH_FIELD(X) \\"
    pairs = [(name, one.name) for name, _, fields, _ in structs for one in fields]
    yield from (f"    X({name}, {field}) \\" for name, field in pairs[:-1])
    yield f"    X({pairs[-1][0]}, {pairs[-1][1]})"
