"""The structure of messages.toml, the sizes of its entries and its schema hash."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from typing import Annotated, Final, Literal, NamedTuple

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
