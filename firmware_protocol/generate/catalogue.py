"""Parses and validates messages.toml: its structure, its consistency, and its schema hash.

An invalid value is rejected while parsing. Errors between entries (duplicate ids, a reply without
a command, a body too long) are collected, so that one run reports all of them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import resources
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct, field

Side = Literal["host", "device", "both"]
Kind = Literal["event", "command", "reply", "control"]
DeviceClass = Literal["all", "shoe", "shuffler", "station"]
Byte = Annotated[int, Meta(ge=0, le=0xFF)]
Upper = Annotated[str, Meta(pattern="^[A-Z][A-Z0-9_]*$")]
Lower = Annotated[str, Meta(pattern="^[a-z][a-z0-9_]*$")]
Doc = Annotated[str, Meta(min_length=1)]

INTEGER_SIZES: Final = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
PLAINTEXT_SIZES: Final = (56, 120, 226)
HEADS: Final = {"event": 24, "command": 16, "reply": 16, "control": 4}
TAILS: Final = {"event": 8, "command": 0, "reply": 0, "control": 0}
RANGES: Final[dict[tuple[str, str], tuple[int, int]]] = {
    ("event", "all"): (0x01, 0x0F),
    ("event", "shoe"): (0x10, 0x1F),
    ("event", "shuffler"): (0x20, 0x2F),
    ("event", "station"): (0x30, 0x3F),
    ("command", "all"): (0x40, 0x4F),
    ("command", "shoe"): (0x50, 0x5F),
    ("command", "shuffler"): (0x60, 0x6F),
    ("command", "station"): (0x70, 0x7F),
    ("control", "all"): (0x80, 0x8F),
}
REPLY_OFFSET: Final = 0x80
"""The id of a reply is that of its command plus this; only REFUSED answers any command."""
REFUSED_ID: Final = 0xFF
_ARRAY: Final = re.compile(r"(bytes|zero|text|word)\[([1-9][0-9]{0,2})\]")


class CatalogueEntry(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Value(CatalogueEntry, frozen=True):
    name: Upper
    value: Annotated[int, Meta(ge=0)]
    doc: Doc
    since: Annotated[int, Meta(ge=1, le=15)] = 1


class Values(CatalogueEntry, frozen=True):
    """An enum, or a set of flags; `of` makes flags of an enum, whose values are bit numbers."""

    name: Lower
    type: Literal["u8", "u16", "u32"]
    doc: Doc
    values: tuple[Value, ...] = ()
    of: Lower | None = None


class Field(CatalogueEntry, frozen=True):
    name: Lower
    type: str
    doc: Doc
    min: int | None = None
    max: int | None = None
    also: tuple[int, ...] = ()


class NamedEntry(CatalogueEntry, frozen=True):
    """An entry with a name and a doc."""

    name: Upper
    doc: Doc


class Constant(NamedEntry, frozen=True):
    value: Annotated[int, Meta(ge=0)]


class Timing(Constant, frozen=True):
    unit: Literal["ms", "s"]


class Layout(NamedEntry, frozen=True):
    type: Byte
    side: Side = field(name="from")
    sizes: tuple[int, ...]
    fields: tuple[Field, ...]


class FrameSpec(CatalogueEntry, frozen=True):
    kind: Upper
    side: Side = field(name="from")
    doc: Doc
    fields: tuple[Field, ...]
    opaque: bool = False
    """Not decoded by the codec, but by the Noise handshakes and the ciphers."""
    sizes: tuple[int, ...] = ()


class MessageSpec(NamedEntry, frozen=True):
    id: Byte
    device_class: DeviceClass = field(name="class")
    kind: Kind
    side: Side = field(name="from")
    since: Annotated[int, Meta(ge=1, le=15)]
    fields: tuple[Field, ...]
    size: int = 56
    secret: bool = False
    """May contain a hidden card: no repr and no error text shows its values."""
    idempotent: bool | None = None
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    result: Upper | None = None
    to: Upper | None = None


class Reserved(CatalogueEntry, frozen=True):
    first: Byte
    last: Byte
    doc: Doc


class Version(CatalogueEntry, frozen=True):
    number: Annotated[int, Meta(ge=1, le=15)]
    released: bool


class PlacedField(NamedTuple):
    field: Field
    offset: int
    size: int


class Catalogue(CatalogueEntry, frozen=True, dict=True):
    protocol: str
    versions: tuple[Version, ...] = field(name="version")
    constants: tuple[Constant, ...] = field(name="constant")
    timings: tuple[Timing, ...] = field(name="timing")
    enums: tuple[Values, ...] = field(name="enum")
    flags: tuple[Values, ...]
    layouts: tuple[Layout, ...] = field(name="layout")
    frames: tuple[FrameSpec, ...] = field(name="frame")
    messages: tuple[MessageSpec, ...] = field(name="message")
    reserved: tuple[Reserved, ...]

    @property
    def version(self) -> int:
        """The newest version."""
        return self.versions[-1].number

    @cached_property
    def sets(self) -> dict[str, Values]:
        """Enums and flags by name."""
        return {one.name: one for one in (*self.enums, *self.flags)}

    @cached_property
    def is_flags(self) -> frozenset[str]:
        return frozenset(one.name for one in self.flags)

    def values(self, one: Values) -> tuple[Value, ...]:
        """Returns the values, also those of flags that are derived from an enum."""
        if one.of is None:
            return one.values
        return tuple(
            Value(value.name, 1 << value.value, value.doc, value.since)
            for value in self.sets[one.of].values
        )

    def number(self, name: str) -> int:
        """A constant or timing by name."""
        return next(one.value for one in (*self.constants, *self.timings) if one.name == name)

    def size_of(self, kind: str) -> int:
        """Size of a field of this type in bytes. Raises KeyError for an unknown type."""
        array = _ARRAY.fullmatch(kind)
        if array:
            return int(array[2])
        if kind == "bool":
            return 1
        return INTEGER_SIZES[kind if kind in INTEGER_SIZES else self.sets[kind].type]

    def placed(self, fields: tuple[Field, ...]) -> tuple[PlacedField, ...]:
        """Returns the fields with their offsets and sizes."""
        out, offset = [], 0
        for one in fields:
            size = self.size_of(one.type)
            out.append(PlacedField(one, offset, size))
            offset += size
        return tuple(out)

    def length(self, fields: tuple[Field, ...]) -> int:
        return sum(self.size_of(one.type) for one in fields)

    def room(self, message: MessageSpec) -> int:
        """Maximum size of the message's body in bytes."""
        return message.size - HEADS[message.kind] - TAILS[message.kind]

    def frame_sizes(self, frame: FrameSpec) -> tuple[int, ...]:
        """Allowed lengths of the frame's payload."""
        return frame.sizes or (self.length(frame.fields),)


def array(kind: str) -> tuple[str, int] | None:
    """Parse an array type such as bytes[8]. Returns None for another type."""
    match = _ARRAY.fullmatch(kind)
    return (match[1], int(match[2])) if match else None


def schema_text(catalogue: Catalogue, version: int) -> str:
    """Text of all that affects the bytes of this version: the input of the schema hash."""

    def fields(some: tuple[Field, ...]) -> str:
        return " ".join(
            f"{one.name}:{one.type}:{one.min}:{one.max}:{'/'.join(map(str, one.also))}"
            for one in some
        )

    lines = [f"{catalogue.protocol}/{version}"]
    for one in (*catalogue.enums, *catalogue.flags):
        values = (value for value in catalogue.values(one) if value.since <= version)
        words = " ".join(f"{value.name}={value.value}" for value in values)
        lines.append(f"set {one.name} {one.type} {words}")
    for layout in catalogue.layouts:
        sizes = "/".join(map(str, layout.sizes))
        lines.append(
            f"layout {layout.name} {layout.type} {layout.side} {sizes} {fields(layout.fields)}"
        )
    for frame in catalogue.frames:
        sizes = "/".join(map(str, catalogue.frame_sizes(frame)))
        lines.append(f"frame {frame.kind} {frame.side} {sizes} {fields(frame.fields)}")
    lines.extend(
        f"message {message.id} {message.name} {message.device_class} {message.kind} "
        f"{message.side} {message.size} {message.idempotent} {message.to} "
        f"{fields(message.fields)}"
        for message in sorted(catalogue.messages, key=lambda message: message.id)
        if message.since <= version
    )
    return "\n".join(line.rstrip() for line in lines) + "\n"


def schema_hash(catalogue: Catalogue, version: int) -> bytes:
    text = f"{catalogue.protocol} schema{schema_text(catalogue, version)}"
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


# --- consistency between the entries; each check yields its errors ---------------------------


def problems(catalogue: Catalogue) -> Iterator[str]:
    """Yields all errors, in the order of the file."""
    yield from _versions(catalogue)
    for what, names in _name_spaces(catalogue):
        yield from (f"{what} {name} is declared twice" for name in _twice(names))
    for one in (*catalogue.enums, *catalogue.flags):
        yield from _values(catalogue, one)
    broken = list(_all_fields(catalogue))
    yield from broken
    if broken:  # sizes are undefined while a type is unknown
        return
    yield from _layouts(catalogue)
    yield from _frames(catalogue)
    for message in catalogue.messages:
        yield from _message(catalogue, message)
    yield from _replies(catalogue)
    yield from _reserved(catalogue)


def _twice(names: Iterable[object]) -> list[object]:
    return [name for name, times in Counter(names).items() if times > 1]


def _name_spaces(catalogue: Catalogue) -> Iterator[tuple[str, list[object]]]:
    yield "number", [one.name for one in (*catalogue.constants, *catalogue.timings)]
    yield "layout", [one.name for one in catalogue.layouts]
    yield "layout type", [one.type for one in catalogue.layouts]
    # All of these become classes in one namespace.
    yield (
        "name",
        [
            *(one.name.upper() for one in (*catalogue.enums, *catalogue.flags)),
            *(one.kind for one in catalogue.frames),
            *(one.name for one in catalogue.messages),
        ],
    )
    yield "message id", [f"{one.id:#04x}" for one in catalogue.messages]


def _versions(catalogue: Catalogue) -> Iterator[str]:
    numbers = [one.number for one in catalogue.versions]
    if numbers != list(range(1, len(numbers) + 1)) or not numbers:
        yield f"versions are {numbers}; they count up from 1"
        return
    for message in catalogue.messages:
        if message.since > numbers[-1]:
            yield f"message {message.name}: since {message.since}, which is no version yet"


def _values(catalogue: Catalogue, one: Values) -> Iterator[str]:
    flags = one.name in catalogue.is_flags
    if one.of is not None:
        if not flags or one.values or one.of not in {enum.name for enum in catalogue.enums}:
            yield f"{one.name}: `of` makes flags of a declared enum, and has no values of its own"
            return
    elif not one.values:
        yield f"{one.name}: has no values"
        return
    values = catalogue.values(one)
    yield from (
        f"{one.name}: {name} is declared twice" for name in _twice(value.name for value in values)
    )
    yield from (
        f"{one.name}: value {number} is given twice"
        for number in _twice(value.value for value in values)
    )
    most = (1 << 8 * INTEGER_SIZES[one.type]) - 1
    for value in values:
        if value.value > most:
            yield f"{one.name}.{value.name}: {value.value} does not fit into {one.type}"
        if flags and value.value.bit_count() != 1:
            yield f"{one.name}.{value.name}: {value.value} is not one bit"


def _all_fields(catalogue: Catalogue) -> Iterator[str]:
    holders: list[tuple[str, tuple[Field, ...]]] = [
        *((f"layout {one.name}", one.fields) for one in catalogue.layouts),
        *((f"frame {one.kind}", one.fields) for one in catalogue.frames),
        *((f"message {one.name}", one.fields) for one in catalogue.messages),
    ]
    for where, fields in holders:
        yield from (
            f"{where}: field {name} is declared twice"
            for name in _twice(one.name for one in fields)
        )
        for one in fields:
            yield from _field(catalogue, f"{where}.{one.name}", one)


def _field(catalogue: Catalogue, where: str, one: Field) -> Iterator[str]:
    try:
        size = catalogue.size_of(one.type)
    except KeyError:
        yield f"{where}: type {one.type!r} is not known"
        return
    limits = [limit for limit in (one.min, one.max, *one.also) if limit is not None]
    if not limits:
        return
    if array(one.type) or one.type == "bool" or one.type in catalogue.is_flags:
        yield f"{where}: a range for {one.type} means nothing"
        return
    if one.type in catalogue.sets and (one.max is not None or one.also):
        yield f"{where}: an enum takes `min` only"
    most = (1 << 8 * size) - 1
    yield from (f"{where}: {limit} does not fit" for limit in limits if not 0 <= limit <= most)
    if (one.min or 0) > (most if one.max is None else one.max):
        yield f"{where}: min is above max"
    if one.also and one.max is None:
        yield f"{where}: `also` lists values beyond `max`, and there is none"


def _layouts(catalogue: Catalogue) -> Iterator[str]:
    declared = {one.name.lower(): one for one in catalogue.layouts}
    if set(declared) != set(HEADS):
        yield f"layouts are {sorted(declared)}; they must be {sorted(HEADS)}"
        return
    for name, layout in declared.items():
        if catalogue.length(layout.fields) != PLAINTEXT_SIZES[0]:
            yield f"layout {layout.name}: is not {PLAINTEXT_SIZES[0]} bytes"
        offsets = {one.field.name: one.offset for one in catalogue.placed(layout.fields)}
        if offsets.get("body") != HEADS[name]:
            yield f"layout {layout.name}: its body does not begin at byte {HEADS[name]}"
        if layout.fields[-1].name != ("chain" if TAILS[name] else "body"):
            yield f"layout {layout.name}: ends with the wrong field"
        if not layout.sizes or set(layout.sizes) - set(PLAINTEXT_SIZES):
            yield f"layout {layout.name}: sizes are among {PLAINTEXT_SIZES}"


def _frames(catalogue: Catalogue) -> Iterator[str]:
    kinds = catalogue.sets.get("frame_kind")
    names = {value.name for value in kinds.values} if kinds else set()
    for frame in catalogue.frames:
        if frame.kind not in names:
            yield f"frame {frame.kind}: is no value of frame_kind"
    for name in sorted(names - {frame.kind for frame in catalogue.frames}):
        yield f"frame {name}: is a value of frame_kind, but not declared"
    numbers = {one.name: one.value for one in catalogue.constants}
    most = numbers["MAX_DECODED"] - numbers["HEADER_SIZE"] - numbers["CRC_SIZE"]
    for frame in catalogue.frames:
        if max(catalogue.frame_sizes(frame)) > most:
            yield f"frame {frame.kind}: its payload is longer than {most} bytes"


def _message(catalogue: Catalogue, message: MessageSpec) -> Iterator[str]:
    where = f"message {message.name}"
    command, reply = message.kind == "command", message.kind == "reply"
    side = {"event": "device", "command": "host", "reply": "device"}.get(message.kind)
    if side is not None and message.side != side:
        yield f"{where}: an {message.kind} is sent by the {side}".replace("an c", "a c")
    if not reply:
        span = RANGES.get((message.kind, message.device_class))
        if span is None:
            yield f"{where}: there are no {message.kind} messages of class {message.device_class}"
        elif not span[0] <= message.id <= span[1]:
            yield f"{where}: id {message.id:#04x} is outside of {span[0]:#04x} to {span[1]:#04x}"
    if command != (message.idempotent is not None) or command != (message.deadline_ms is not None):
        yield f"{where}: `idempotent` and `deadline_ms` are for commands, and each has them"
    layout = next(one for one in catalogue.layouts if one.name.lower() == message.kind)
    if message.size not in layout.sizes:
        yield f"{where}: size {message.size} is not one of {layout.sizes}"
    elif (length := catalogue.length(message.fields)) > (room := catalogue.room(message)):
        yield f"{where}: its fields take {length} bytes, and there is room for {room}"
    if message.result is not None:
        events = {
            one.name
            for one in catalogue.messages
            if one.kind == "event" and one.device_class in ("all", message.device_class)
        }
        if not command or message.result not in events:
            yield f"{where}: result {message.result} is no event of its class"


def _replies(catalogue: Catalogue) -> Iterator[str]:
    commands = {one.name: one for one in catalogue.messages if one.kind == "command"}
    answered: list[str] = []
    for message in catalogue.messages:
        if message.kind != "reply":
            if message.to is not None:
                yield f"message {message.name}: only a reply has `to`"
            continue
        if message.to is None:
            if message.id != REFUSED_ID:
                yield f"message {message.name}: a reply says what it is `to`"
            continue
        answered.append(message.to)
        command = commands.get(message.to)
        if command is None:
            yield f"message {message.name}: `to` {message.to} is no command"
        elif message.id != command.id + REPLY_OFFSET:
            yield f"message {message.name}: its id must be {command.id + REPLY_OFFSET:#04x}"
        elif message.device_class != command.device_class or message.since != command.since:
            yield f"message {message.name}: class and since must be those of {command.name}"
    for name in _twice(answered):
        yield f"message {name}: has two replies"
    for name in commands.keys() - set(answered):
        yield f"message {name}: has no reply"


def _reserved(catalogue: Catalogue) -> Iterator[str]:
    for span in catalogue.reserved:
        where = f"reserved {span.first:#04x} to {span.last:#04x}"
        if span.first > span.last:
            yield f"{where}: ends before it begins"
        for message in catalogue.messages:
            if span.first <= message.id <= span.last:
                yield f"{where}: message {message.name} is in it"


# --- parsing ---------------------------------------------------------------------------------

FILE: Final = "messages.toml"


class CatalogueError(Exception):
    """messages.toml is inconsistent; the text has one line per error."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(f"{FILE}: {problem}" for problem in problems))
        self.problems = problems


def parse_catalogue(text: str) -> Catalogue:
    """Parse and validate the catalogue. Raises CatalogueError."""
    try:
        catalogue = msgspec.toml.decode(text.encode(), type=Catalogue)
    except msgspec.DecodeError as problem:
        raise CatalogueError((str(problem),)) from None
    found = tuple(problems(catalogue))
    if found:
        raise CatalogueError(found)
    return catalogue


def load_catalogue() -> Catalogue:
    """Returns the catalogue of this package."""
    text = resources.files("firmware_protocol").joinpath(FILE).read_text(encoding="utf-8")
    return parse_catalogue(text)
