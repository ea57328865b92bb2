"""Generates the Python codec: enums, a class for each message, and the registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from firmware_protocol.errors import all_errors
from firmware_protocol.generate.catalogue import (
    INTEGER_SIZES,
    Catalogue,
    Field,
    FrameSpec,
    MessageSpec,
    Values,
    array,
    schema_hash,
)
from firmware_protocol.generate.emit import ORIGIN, WIDTH, camel, code, docstring, fill, number

CODES: Final = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
PARTS: Final = ("shoe", "shuffler", "station")
KINDS: Final = ("event", "command", "reply", "control")


def files(catalogue: Catalogue) -> dict[str, str]:
    """Returns the path and text of every module of the codec."""
    messages = catalogue.messages
    every = [one for one in messages if one.device_class == "all" and one.kind != "control"]
    control = [one for one in messages if one.kind == "control"]
    out = {
        "messages/enums.py": _enums(catalogue),
        "messages/limits.py": _limits(catalogue),
        "messages/frames.py": _frames(catalogue),
        "messages/common.py": _module(catalogue, "of every class of device", every),
        "messages/control.py": _module(catalogue, "of kind control", control),
    }
    for part in PARTS:
        some = [one for one in messages if one.device_class == part]
        out[f"messages/{part}.py"] = _module(catalogue, f"of the {part}", some)
    out["messages/registry.py"] = _index(catalogue)
    out["messages/__init__.py"] = _door(catalogue)
    return out


def _head(doc: str) -> Iterator[str]:
    yield from docstring(f"{doc} {ORIGIN}", "")
    yield ""


def _join(lines: Iterator[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"


# --- enums and numbers ----------------------------------------------------------------------


def _enums(catalogue: Catalogue) -> str:
    def lines() -> Iterator[str]:
        yield from _head("Enums and flags of the wire.")
        yield "from enum import IntEnum, IntFlag"
        for one in (*catalogue.enums, *catalogue.flags):
            yield from _set(catalogue, one)

    return _join(lines())


def _set(catalogue: Catalogue, one: Values) -> Iterator[str]:
    flags = one.name in catalogue.is_flags
    yield from ("", "", f"class {camel(one.name)}({'IntFlag' if flags else 'IntEnum'}):")
    yield from docstring(one.doc, "    ")
    yield ""
    for value in catalogue.values(one):
        yield f"    {value.name} = {f'{value.value:#x}' if flags else value.value}"
        if one.of is None:
            yield from docstring(_sentence(value.doc), "    ")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _limits(catalogue: Catalogue) -> str:
    def lines() -> Iterator[str]:
        yield from _head("Constants and times of the protocol.")
        yield "from typing import Final"
        yield ""
        yield f"VERSION: Final = {catalogue.version}"
        yield from docstring("The newest version of the protocol.", "")
        yield "SCHEMA_HASHES: Final = {"
        for version in catalogue.versions:
            digest = schema_hash(catalogue, version.number).hex()
            yield f'    {version.number}: bytes.fromhex("{digest}"),'
        yield "}"
        yield from docstring("By version; identifies the catalogue that a side was built from.", "")
        for one in catalogue.constants:
            yield f"{one.name}: Final = {number(one.value)}"
            yield from docstring(_sentence(one.doc), "")
        for time in catalogue.timings:
            yield f"{time.name}_{time.unit.upper()}: Final = {time.value}"
            yield from docstring(_sentence(time.doc), "")

    return _join(lines())


# --- messages -------------------------------------------------------------------------------


def _frames(catalogue: Catalogue) -> str:
    coded = [frame for frame in catalogue.frames if not frame.opaque]

    def lines() -> Iterator[str]:
        yield from _head("Payloads of the frames in clear, and the payload sizes of each kind.")
        yield from ("from typing import ClassVar, Final", "")
        yield "from firmware_protocol.messages import codec"
        yield "from firmware_protocol.messages.codec import Payload, Spec"
        yield from _import_sets(catalogue, [frame.fields for frame in coded], ["FrameKind"])
        yield from ("", "PAYLOAD_SIZES: Final = {")
        for frame in catalogue.frames:
            sizes = ", ".join(map(str, catalogue.frame_sizes(frame)))
            comma = "" if "," in sizes else ","
            yield f"    FrameKind.{frame.kind}: ({sizes}{comma}),"
        yield "}"
        for frame in coded:
            yield from _class(catalogue, frame, frame.kind, "Payload")

    return _join(lines())


def _module(catalogue: Catalogue, what: str, messages: list[MessageSpec]) -> str:
    kinds = sorted({one.kind.capitalize() for one in messages} | {"Spec"})
    # A command refers to its reply, so replies are defined first.
    ordered = sorted(messages, key=lambda one: one.kind == "command")

    def lines() -> Iterator[str]:
        yield from _head(f"Messages {what}.")
        yield from ("from typing import ClassVar", "")
        if any(_rule(catalogue, one) for message in messages for one in message.fields):
            yield "from firmware_protocol.messages import codec"
        yield f"from firmware_protocol.messages.codec import {', '.join(kinds)}"
        elsewhere = {
            one.name: "common" if one.device_class == "all" else one.device_class
            for one in catalogue.messages
            if one.name in {message.result for message in messages}
            and one.name not in {message.name for message in messages}
        }
        for name in sorted(elsewhere):
            yield f"from firmware_protocol.messages.{elsewhere[name]} import {camel(name)}"
        classes = [] if all(one.device_class == "all" for one in messages) else ["DeviceClass"]
        yield from _import_sets(catalogue, [one.fields for one in messages], classes)
        for message in ordered:
            yield from _class(catalogue, message, message.name, message.kind.capitalize())

    return _join(lines())


def _import_sets(
    catalogue: Catalogue, holders: list[tuple[Field, ...]], more: list[str]
) -> Iterator[str]:
    used = {one.type for fields in holders for one in fields if one.type in catalogue.sets}
    yield from _import("messages.enums", [*(camel(name) for name in used), *more])


def _import(module: str, names: Iterable[str]) -> Iterator[str]:
    ordered = sorted(set(names), key=lambda name: (_group(name), name.lower()))
    line = f"from firmware_protocol.{module} import {', '.join(ordered)}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"from firmware_protocol.{module} import ("
    yield from (f"    {name}," for name in ordered)
    yield ")"


def _group(name: str) -> tuple[bool, bool]:
    """Constants first, then classes, then functions, as the linter wants it."""
    return not name.isupper(), name.islower()


def _class(
    catalogue: Catalogue, one: MessageSpec | FrameSpec, name: str, base: str
) -> Iterator[str]:
    yield from ("", "", f"class {camel(name)}({base}, frozen=True, gc=False):")
    yield from docstring(one.doc, "    ")
    yield ""
    for field in one.fields:
        if not field.type.startswith("zero"):
            yield f"    {field.name}: {_type(catalogue, field)}"
            yield from docstring(_sentence(field.doc), "    ")
    if one.fields:
        yield ""
    yield from _spec(catalogue, one, name)


def _facts(one: MessageSpec) -> Iterator[str]:
    """Arguments of Spec: the class variables of Message that differ from its defaults."""
    sender = "host" if one.kind == "command" else "device"
    yield f"ID={code(one.id)}"
    if one.device_class != "all":
        yield f"CLASS=DeviceClass.{one.device_class.upper()}"
    if one.side != sender:
        yield f'FROM="{one.side}"'
    if one.since != 1:
        yield f"SINCE={one.since}"
    if one.size != 56:
        yield f"SIZE={one.size}"
    if one.kind == "command":
        yield f"IDEMPOTENT={one.idempotent}"
        yield f"DEADLINE_MS={one.deadline_ms}"
        yield f"REPLY={camel(one.name)}Reply"
        if one.result:
            yield f"RESULT={camel(one.result)}"


def _spec(catalogue: Catalogue, one: MessageSpec | FrameSpec, name: str) -> Iterator[str]:
    form = "".join(_code(catalogue, field) for field in one.fields)
    arguments = [f'"{name}"', f'"<{form}"']
    named = [field.name for field in one.fields if not field.type.startswith("zero")]
    if named:
        # In a wrapped string, each line but the last ends with the separating space.
        rows = fill(" ".join(named), width=WIDTH - 14)
        arguments.append("\n        ".join([*(f'"{row} "' for row in rows[:-1]), f'"{rows[-1]}"']))
    arguments += [rule for field in one.fields if (rule := _rule(catalogue, field))]
    if isinstance(one, MessageSpec):
        arguments += ["secret=True"] if one.secret else []
        arguments += _facts(one)
    line = f"    SPEC: ClassVar = Spec({', '.join(arguments)})"
    if len(line) <= WIDTH and "\n" not in line:
        yield line
        return
    yield "    SPEC: ClassVar = Spec("
    inner = f"        {', '.join(arguments)}"
    if len(inner) <= WIDTH and "\n" not in inner:
        yield inner
    else:
        yield from (f"        {argument}," for argument in arguments)
    yield "    )"


def _type(catalogue: Catalogue, field: Field) -> str:
    form = array(field.type)
    if form:
        return "bytes" if form[0] == "bytes" else "str"
    if field.type == "bool":
        return "bool"
    return "int" if field.type in INTEGER_SIZES else camel(field.type)


def _code(catalogue: Catalogue, field: Field) -> str:
    form = array(field.type)
    if form:
        return f"{form[1]}{'x' if form[0] == 'zero' else 's'}"
    if field.type == "bool":
        return "B"
    return CODES[field.type if field.type in INTEGER_SIZES else catalogue.sets[field.type].type]


def _rule(catalogue: Catalogue, field: Field) -> str:
    """Source of the rule that the field needs beyond struct; "" for none."""
    form = array(field.type)
    if form:
        if form[0] == "zero":
            return ""
        if form[0] == "bytes":
            return f'codec.exactly("{field.name}", {form[1]})'
        word = ", word=True" if form[0] == "word" else ""
        return f'codec.text("{field.name}", {form[1]}{word})'
    if field.type == "bool":
        return f'codec.truth("{field.name}")'
    if field.type in catalogue.is_flags:
        return f'codec.some_of("{field.name}", {camel(field.type)})'
    if field.type in catalogue.sets:
        least = f", {field.min}" if field.min else ""
        return f'codec.one_of("{field.name}", {camel(field.type)}{least})'
    if field.min is None and field.max is None:
        return ""
    most = (1 << 8 * INTEGER_SIZES[field.type]) - 1 if field.max is None else field.max
    also = ", ".join(code(value) for value in field.also)
    if also:
        also = f", ({also}{',' if len(field.also) == 1 else ''})"
    return f'codec.whole("{field.name}", {field.min or 0}, {number(most)}{also})'


# --- the registry ---------------------------------------------------------------------------


def _index(catalogue: Catalogue) -> str:
    """The module with every message by id."""

    def lines() -> Iterator[str]:
        yield from _head("Every message, and tables of them by id.")
        yield from ("from typing import Final", "")
        yield "from firmware_protocol.messages.codec import Command, Control, Event, Message, Reply"
        for part in ("common", "control", *PARTS):
            yield from _import(f"messages.{part}", _names(catalogue, part))
        yield ""
        for kind in KINDS:
            base = kind.capitalize()
            yield f"{_table(kind)}: Final[dict[int, type[{base}]]] = {{"
            for one in catalogue.messages:
                if one.kind == kind:
                    yield f"    {code(one.id)}: {camel(one.name)},"
            yield "}"
        yield "MESSAGES: Final[dict[int, type[Message]]] = {"
        yield from ("    **EVENTS,", "    **COMMANDS,", "    **REPLIES,", "    **CONTROLS,", "}")
        yield "RESERVED: Final = {"
        for span in catalogue.reserved:
            yield f'    range({code(span.first)}, {code(span.last + 1)}): "{span.doc}",'
        yield "}"
        yield from docstring("Reserved ids, and their purpose.", "")

    return _join(lines())


def _door(catalogue: Catalogue) -> str:
    """The package's own module, which exports every name."""
    timings = [f"{one.name}_{one.unit.upper()}" for one in catalogue.timings]
    exports = {
        "errors": [*(one.__name__ for one in all_errors()), "all_errors", "slug"],
        "messages.codec": [
            "Command",
            "Control",
            "Event",
            "Message",
            "Payload",
            "Reply",
            "Side",
            "Spec",
            "Unfit",
        ],
        "messages.common": _names(catalogue, "common"),
        "messages.control": _names(catalogue, "control"),
        "messages.enums": [camel(name) for name in catalogue.sets],
        "messages.frames": ["PAYLOAD_SIZES", *_names(catalogue, "frames")],
        "messages.limits": [
            "SCHEMA_HASHES",
            "VERSION",
            *(one.name for one in catalogue.constants),
            *timings,
        ],
        "messages.registry": [*(_table(kind) for kind in KINDS), "MESSAGES", "RESERVED"],
        **{f"messages.{part}": _names(catalogue, part) for part in PARTS},
    }

    def lines() -> Iterator[str]:
        yield from _head("The messages of TableLink, their values and limits, and the errors.")
        for module, names in exports.items():
            yield from _import(module, names)
        yield ""
        yield "__all__ = ["
        every = {name for names in exports.values() for name in names}
        yield from (
            f'    "{name}",' for name in sorted(every, key=lambda name: (_group(name), name))
        )
        yield "]"

    return _join(lines())


def _table(kind: str) -> str:
    """Name of the table of all messages of this kind."""
    return {"reply": "REPLIES"}.get(kind, f"{kind.upper()}S")


def _names(catalogue: Catalogue, part: str) -> list[str]:
    if part == "frames":
        return [camel(frame.kind) for frame in catalogue.frames if not frame.opaque]
    if part == "control":
        return [camel(one.name) for one in catalogue.messages if one.kind == "control"]
    device_class = "all" if part == "common" else part
    return [
        camel(one.name)
        for one in catalogue.messages
        if one.device_class == device_class and one.kind != "control"
    ]
