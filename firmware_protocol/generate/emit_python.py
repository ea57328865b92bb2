"""Generates the Python codec: enums, a class for each message, and the registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from firmware_protocol.errors import all_errors
from firmware_protocol.generate.catalogue import (
    INTEGER_SIZES,
    Catalogue,
    Field,
    FrameSpec,
    MessageSpec,
    array,
    schema_hash,
)
from firmware_protocol.generate.emit import (
    ORIGIN,
    WIDTH,
    camel,
    code,
    docstring,
    environment,
    fill,
    number,
)

CODES: Final = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
PARTS: Final = {
    "common": "Messages of every class of device.",
    "control": "Messages of kind control.",
    "shoe": "Messages of the shoe.",
    "shuffler": "Messages of the shuffler.",
    "station": "Messages of the station.",
}
TABLES: Final = {
    "event": "EVENTS",
    "command": "COMMANDS",
    "reply": "REPLIES",
    "control": "CONTROLS",
}
CODEC_NAMES: Final = (
    "Command",
    "Control",
    "Event",
    "Message",
    "Payload",
    "Reply",
    "Side",
    "Spec",
    "Unfit",
)


def files(catalogue: Catalogue) -> dict[str, str]:
    """Returns the path and text of every module of the codec."""
    templates = environment(catalogue)
    templates.globals |= {
        "annotation": partial(_annotation, catalogue),
        "base": _base,
        "name": _name,
        "schema_hash": schema_hash,
        "spec": partial(_spec, catalogue),
    }
    templates.filters |= {
        "camel": camel,
        "docstring": docstring,
        "head": lambda doc: docstring(f"{doc} {ORIGIN}"),
        "import": _import,
        "sentence": _sentence,
    }

    def render(name: str, **facts: object) -> str:
        return templates.get_template(f"{name}.py.j2").render(facts)

    frames = [one for one in catalogue.frames if not one.opaque]
    parts = {part: [one for one in catalogue.messages if _part(one) == part] for part in PARTS}
    exports = _exports(catalogue, frames, parts)
    names = {name for some in exports.values() for name in some}
    texts = {
        "enums": render("enums"),
        "limits": render("limits"),
        "frames": render(
            "messages",
            doc="Payloads of the frames in clear, and the payload sizes of each kind.",
            sized=catalogue.frames,
            **_module(catalogue, frames),
        ),
        **{
            part: render("messages", doc=doc, sized=(), **_module(catalogue, parts[part]))
            for part, doc in PARTS.items()
        },
        "registry": render("registry", parts=parts, tables=TABLES),
        "__init__": render(
            "__init__",
            exports=exports,
            all_names=sorted(names, key=lambda name: (_group(name), name)),
        ),
    }
    return {f"messages/{name}.py": text for name, text in texts.items()}


def _part(one: MessageSpec) -> str:
    """Name of the module of the message."""
    if one.kind == "control":
        return "control"
    return "common" if one.device_class == "all" else one.device_class


def _name(one: MessageSpec | FrameSpec) -> str:
    return one.name if isinstance(one, MessageSpec) else one.kind


def _base(one: MessageSpec | FrameSpec) -> str:
    return one.kind.capitalize() if isinstance(one, MessageSpec) else "Payload"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _import(module: str, names: Iterable[str]) -> str:
    ordered = sorted(set(names), key=lambda name: (_group(name), name.lower()))
    line = f"from firmware_protocol.{module} import {', '.join(ordered)}"
    if len(line) <= WIDTH:
        return line
    lines = "\n".join(f"    {name}," for name in ordered)
    return f"from firmware_protocol.{module} import (\n{lines}\n)"


def _group(name: str) -> tuple[bool, bool]:
    """Constants first, then classes, then functions, as the linter wants it."""
    return not name.isupper(), name.islower()


def _module(catalogue: Catalogue, classes: Sequence[MessageSpec | FrameSpec]) -> dict[str, object]:
    """What the template of a module with these classes needs."""
    messages = [one for one in classes if isinstance(one, MessageSpec)]
    fields = [field for one in classes for field in one.fields]
    enums = {camel(field.type) for field in fields if field.type in catalogue.sets}
    if len(messages) < len(classes):
        enums.add("FrameKind")
    if any(one.device_class != "all" for one in messages):
        enums.add("DeviceClass")
    elsewhere = {one.result for one in messages} - {one.name for one in messages}
    return {
        # A command refers to its reply, so replies are defined first.
        "classes": sorted(classes, key=lambda one: _base(one) == "Command"),
        "bases": sorted({*map(_base, classes), "Spec"}),
        "rules": any(_rule(catalogue, field) for field in fields),
        "enums": enums,
        "results": [
            (_part(one), camel(one.name))
            for one in sorted(catalogue.messages, key=lambda one: one.name)
            if one.name in elsewhere
        ],
    }


def _exports(
    catalogue: Catalogue, frames: list[FrameSpec], parts: dict[str, list[MessageSpec]]
) -> dict[str, list[str]]:
    """Returns the modules, and what the package exports of each."""
    names = {part: [camel(one.name) for one in some] for part, some in parts.items()}
    timings = [f"{one.name}_{one.unit.upper()}" for one in catalogue.timings]
    constants = [one.name for one in catalogue.constants]
    exports = {
        "errors": [*(one.__name__ for one in all_errors()), "all_errors", "slug"],
        "messages.codec": list(CODEC_NAMES),
        "messages.enums": [camel(name) for name in catalogue.sets],
        "messages.frames": ["PAYLOAD_SIZES", *(camel(frame.kind) for frame in frames)],
        "messages.limits": ["SCHEMA_HASHES", "VERSION", *constants, *timings],
        "messages.registry": [*TABLES.values(), "MESSAGES", "RESERVED"],
        **{f"messages.{part}": some for part, some in names.items()},
    }
    return dict(sorted(exports.items()))


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


def _spec(catalogue: Catalogue, one: MessageSpec | FrameSpec) -> str:
    """The line, or lines, that describe the bytes of a class to the codec."""
    form = "".join(_code(catalogue, field) for field in one.fields)
    arguments = [f'"{_name(one)}"', f'"<{form}"']
    named = [field.name for field in one.fields if not field.type.startswith("zero")]
    if named:
        # In a wrapped string, each line but the last ends with the separating space.
        rows = fill(" ".join(named), width=WIDTH - 14)
        arguments.append("\n        ".join([*(f'"{row} "' for row in rows[:-1]), f'"{rows[-1]}"']))
    arguments += [rule for field in one.fields if (rule := _rule(catalogue, field))]
    if isinstance(one, MessageSpec):
        arguments += ["secret=True"] if one.secret else []
        arguments += _facts(one)
    joined = ", ".join(arguments)
    line = f"    SPEC: ClassVar = Spec({joined})"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    inner = f"        {joined}"
    if len(inner) > WIDTH or "\n" in inner:
        inner = "\n".join(f"        {argument}," for argument in arguments)
    return f"    SPEC: ClassVar = Spec(\n{inner}\n    )"


def _annotation(catalogue: Catalogue, field: Field) -> str:
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
