"""Strict encoding and decoding of the fields of every message.

The generated modules define the messages; this module packs and validates them. A value that cannot
be encoded exactly is rejected, and so are bytes that encoding would not produce: decoding and
encoding again returns the same bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from enum import IntEnum, IntFlag
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from firmware_protocol.errors import (
    BadPadding,
    BadText,
    OutOfRange,
    ProtocolError,
    WrongSize,
)
from firmware_protocol.messages.enums import DeviceClass

Side = Literal["host", "device", "both"]

_TEXT: Final = re.compile(rb"[!-~](?:[ -~]*[!-~])?")
_WORD: Final = re.compile(rb"[A-Za-z0-9._-]+")


class Unfit(Exception):
    """Raised inside the codec only, if a rule rejects a value."""

    def __init__(self, error: type[ProtocolError], why: str) -> None:
        super().__init__(error, why)
        self.error = error
        self.why = why


_Pass: TypeAlias = tuple[int, Callable[[Any], Any]]
"""The index of a field, and one direction of its rule."""


class Rule(NamedTuple):
    """Validates one field beyond what struct checks. Both directions raise Unfit."""

    name: str
    to_wire: Callable[[Any], Any]
    from_wire: Callable[[Any], Any]


# --- rules ----------------------------------------------------------------------------------


def whole(name: str, low: int, high: int, also: tuple[int, ...] = ()) -> Rule:
    """A number from `low` to `high`, or one of `also`."""

    def check(value: int) -> int:
        if low <= value <= high or value in also:
            return value
        more = "".join(f" or {one}" for one in also)
        raise Unfit(OutOfRange, f"{value} is not {low} to {high}{more}")

    return Rule(name, check, check)


def one_of(name: str, enum: type[IntEnum], low: int = 0) -> Rule:
    """A member of `enum` that is at least `low`."""
    members = {int(member): member for member in enum if member >= low}

    def check(value: int) -> IntEnum:
        member = members.get(value)
        if member is None:
            raise Unfit(OutOfRange, f"{value} is not an allowed {enum.__name__}")
        return member

    return Rule(name, check, check)


def some_of(name: str, flags: type[IntFlag]) -> Rule:
    """Any combination of members of `flags`."""
    every = sum(int(member) for member in flags)
    cache: dict[int, IntFlag] = {}  # bounded by the number of combinations

    def check(value: int) -> IntFlag:
        found = cache.get(value)
        if found is not None:
            return found
        if value < 0 or value & ~every:
            raise Unfit(OutOfRange, f"{value:#x} has bits that are not in {flags.__name__}")
        return cache.setdefault(value, flags(value))

    return Rule(name, check, check)


def truth(name: str) -> Rule:
    """0 or 1."""

    def check(value: int) -> bool:
        if value not in (0, 1):
            raise Unfit(OutOfRange, f"{value} is neither 0 nor 1")
        return bool(value)

    return Rule(name, check, check)


def exactly(name: str, size: int) -> Rule:
    """Exactly `size` bytes, because struct would truncate or pad them silently."""

    def check(value: bytes) -> bytes:
        if len(value) != size:
            raise Unfit(WrongSize, f"has {len(value)} bytes, not {size}")
        return value

    return Rule(name, check, _unchanged)


def _unchanged(value: bytes) -> bytes:
    """struct has checked the size."""
    return value


def text(name: str, size: int, *, word: bool = False) -> Rule:
    """1 to `size` characters, then zeros."""
    pattern = _WORD if word else _TEXT

    def to_wire(value: str) -> bytes:
        raw = value.encode("ascii", errors="replace") if value.isascii() else b""
        if len(raw) > size or not pattern.fullmatch(raw):
            raise Unfit(BadText, f"{value!r} is not 1 to {size} allowed characters")
        return raw

    def from_wire(raw: bytes) -> str:
        chars = raw.rstrip(b"\0")
        if not pattern.fullmatch(chars):
            raise Unfit(BadText, f"{chars!r} is not an allowed text")
        return chars.decode("ascii")

    return Rule(name, to_wire, from_wire)


# --- the fields of a message as bytes ------------------------------------------------------------


class Spec:
    """The format of one message: that of struct, with x for bytes that must be zero, the names of
    its fields, rules for what struct cannot check, and its facts: class variables of Message."""

    def __init__(
        self,
        name: str,
        form: str,
        fields: str = "",
        *rules: Rule,
        secret: bool = False,
        **facts: object,
    ) -> None:
        self.name = name
        self.facts = facts
        self.fields = tuple(fields.split())
        self.secret = secret
        self.size = struct.calcsize(form)
        self._struct = struct.Struct(form)
        self._zeros = tuple(_zeros(form))
        self._rules = tuple((self.fields.index(rule.name), rule) for rule in rules)
        self._to_wire = tuple((at, rule.to_wire) for at, rule in self._rules)
        self._from_wire = tuple(
            (at, rule.from_wire) for at, rule in self._rules if rule.from_wire is not _unchanged
        )

    def pack(self, message: Payload) -> bytes:
        out = list(astuple(message))
        self._apply(out, self._to_wire)
        try:
            return self._struct.pack(*out)
        except struct.error:
            # Only a number that is too large or negative is left for struct to reject.
            raise OutOfRange(f"{self.name}: a number does not fit into its field") from None

    def unpack(self, body: bytes) -> list[Any]:
        if len(body) != self.size:
            raise WrongSize(f"{self.name}: has {len(body)} bytes, not {self.size}")
        out = list(self._struct.unpack(body))
        self._apply(out, self._from_wire)
        for start, end in self._zeros:
            if any(body[start:end]):
                raise BadPadding(f"{self.name}: bytes {start} to {end - 1} are not zero")
        return out

    def _apply(self, values: list[Any], rules: tuple[_Pass, ...]) -> None:
        """Apply each rule to its value. Raises ProtocolError."""
        at = 0
        try:
            for at, rule in rules:
                values[at] = rule(values[at])
        except Unfit as unfit:
            problem = unfit
        else:
            return
        # Raised outside of the handler: Unfit names the value and would become the context.
        why = "has a value that is not allowed" if self.secret else problem.why
        raise problem.error(f"{self.name}.{self.fields[at]}: {why}") from None


def _zeros(form: str) -> Iterator[tuple[int, int]]:
    """The ranges of pad bytes in the format."""
    at = 0
    for count, code in re.findall(r"(\d*)([a-zA-Z])", form):
        size = struct.calcsize(f"<{count}{code}")
        if code == "x":
            yield at, at + size
        at += size


class Payload(Struct, frozen=True, gc=False):
    """Fields that are encoded one after another. Frozen; equal if all fields are.

    If SPEC is secret, repr, str, format and pretty prints show no field. Encoders do: msgspec,
    pickle and encode() contain all fields, the card included. Their output must be sealed, and
    never logged.
    """

    SPEC: ClassVar[Spec]

    def encode(self) -> bytes:
        """Encode the fields."""
        return self.SPEC.pack(self)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Decode the fields. Raises ProtocolError."""
        return cls(*cls.SPEC.unpack(body))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)" if self.SPEC.secret else super().__repr__()

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        if self.SPEC.secret:
            return []
        return [(name, getattr(self, name)) for name in self.SPEC.fields]


class Message(Payload, frozen=True, gc=False):
    """A message of a session."""

    ID: ClassVar[int]
    NAME: ClassVar[str]
    """The name in the catalogue, which is that of its SPEC."""
    CLASS: ClassVar[DeviceClass] = DeviceClass.ANY
    """ANY for messages of every class."""
    FROM: ClassVar[Side] = "device"
    SINCE: ClassVar[int] = 1
    SIZE: ClassVar[int] = 56
    """Size of its plaintext in bytes."""

    def __init_subclass__(cls) -> None:
        spec: Spec | None = cls.__dict__.get("SPEC")
        if spec is not None:
            cls.NAME = spec.name
            for fact, value in spec.facts.items():
                setattr(cls, fact, value)


class Event(Message, frozen=True, gc=False):
    """Something that happened at the device."""


class Reply(Message, frozen=True, gc=False):
    """The answer to a command."""


class Command(Message, frozen=True, gc=False):
    """A request of the host."""

    FROM: ClassVar[Side] = "host"
    IDEMPOTENT: ClassVar[bool]
    """May be retried without knowing whether it was executed."""
    DEADLINE_MS: ClassVar[int]
    REPLY: ClassVar[type[Reply]]
    RESULT: ClassVar[type[Event] | None] = None
    """The event that reports the execution of a physical command."""


class Control(Message, frozen=True, gc=False):
    """An acknowledgement, a heartbeat or a clock message."""
