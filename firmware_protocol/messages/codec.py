"""What every message of the catalogue shares: fields to bytes and back, strictly.

The generated modules say what a message consists of; here is how it is packed and checked. A
value that cannot be encoded exactly is refused, and so are bytes that encoding would not have
made: whoever decodes and encodes again gets the same bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from enum import IntEnum, IntFlag
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from firmware_protocol.messages.enums import DeviceClass
from firmware_protocol.messages.errors import (
    BadPadding,
    BadText,
    OutOfRange,
    ProtocolError,
    WrongSize,
)

Side = Literal["host", "device", "both"]

_TEXT: Final = re.compile(rb"[!-~](?:[ -~]*[!-~])?")
_WORD: Final = re.compile(rb"[A-Za-z0-9._-]+")


class Unfit(Exception):
    """Inside of the codec only: a rule does not take a value."""

    def __init__(self, error: type[ProtocolError], why: str) -> None:
        super().__init__(error, why)
        self.error = error
        self.why = why


_Pass: TypeAlias = tuple[int, Callable[[Any], Any]]
"""A rule's way in or out, and the place of its field."""


class Rule(NamedTuple):
    """What struct alone cannot see to, for one field. Both ways raise Unfit."""

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
            raise Unfit(OutOfRange, f"{value} is no {enum.__name__} that may stand here")
        return member

    return Rule(name, check, check)


def some_of(name: str, flags: type[IntFlag]) -> Rule:
    """Any members of `flags` together."""
    every = sum(int(member) for member in flags)
    seen: dict[int, IntFlag] = {}  # no more than there are sets of members

    def check(value: int) -> IntFlag:
        found = seen.get(value)
        if found is not None:
            return found
        if value < 0 or value & ~every:
            raise Unfit(OutOfRange, f"{value:#x} has bits that are no {flags.__name__}")
        return seen.setdefault(value, flags(value))

    return Rule(name, check, check)


def truth(name: str) -> Rule:
    """0 or 1."""

    def check(value: int) -> bool:
        if value not in (0, 1):
            raise Unfit(OutOfRange, f"{value} is neither 0 nor 1")
        return bool(value)

    return Rule(name, check, check)


def exactly(name: str, size: int) -> Rule:
    """`size` bytes. struct would cut or fill them up in silence."""

    def check(value: bytes) -> bytes:
        if len(value) != size:
            raise Unfit(WrongSize, f"has {len(value)} bytes, not {size}")
        return value

    return Rule(name, check, _as_it_is)


def _as_it_is(value: bytes) -> bytes:
    """struct has seen to it."""
    return value


def text(name: str, size: int, *, word: bool = False) -> Rule:
    """1 to `size` characters, then zeros."""
    pattern = _WORD if word else _TEXT

    def to_wire(value: str) -> bytes:
        raw = value.encode("ascii", errors="replace") if value.isascii() else b""
        if len(raw) > size or not pattern.fullmatch(raw):
            raise Unfit(BadText, f"{value!r} is not 1 to {size} characters that may stand here")
        return raw

    def from_wire(raw: bytes) -> str:
        chars = raw.rstrip(b"\0")
        if not pattern.fullmatch(chars):
            raise Unfit(BadText, f"{chars!r} is no text that may stand here")
        return chars.decode("ascii")

    return Rule(name, to_wire, from_wire)


# --- a message's fields as bytes ------------------------------------------------------------


class Spec:
    """The form of one message: struct's format, with x for bytes that must be zero, and the
    fields that it has. Rules see to what struct alone cannot."""

    def __init__(
        self, name: str, form: str, fields: str = "", *rules: Rule, secret: bool = False
    ) -> None:
        self.name = name
        self.fields = tuple(fields.split())
        self.secret = secret
        self.size = struct.calcsize(form)
        self._struct = struct.Struct(form)
        self._zeros = tuple(_zeros(form))
        self._rules = tuple((self.fields.index(rule.name), rule) for rule in rules)
        self._to_wire = tuple((at, rule.to_wire) for at, rule in self._rules)
        self._from_wire = tuple(
            (at, rule.from_wire) for at, rule in self._rules if rule.from_wire is not _as_it_is
        )

    def pack(self, message: Payload) -> bytes:
        out = list(astuple(message))
        self._pass(out, self._to_wire)
        try:
            return self._struct.pack(*out)
        except struct.error:
            # Nothing but a number too large or below zero is left for struct to refuse.
            raise OutOfRange(f"{self.name}: a number does not fit into its field") from None

    def unpack(self, body: bytes) -> list[Any]:
        if len(body) != self.size:
            raise WrongSize(f"{self.name}: has {len(body)} bytes, not {self.size}")
        out = list(self._struct.unpack(body))
        self._pass(out, self._from_wire)
        for start, end in self._zeros:
            if any(body[start:end]):
                raise BadPadding(f"{self.name}: bytes {start} to {end - 1} are not zero")
        return out

    def _pass(self, values: list[Any], rules: tuple[_Pass, ...]) -> None:
        """Every value through its rule, or a ProtocolError."""
        at = 0
        try:
            for at, rule in rules:
                values[at] = rule(values[at])
        except Unfit as unfit:
            problem = unfit
        else:
            return
        # Not while Unfit is handled: it names the value, and would go along as the context.
        why = "has a value that may not stand here" if self.secret else problem.why
        raise problem.error(f"{self.name}.{self.fields[at]}: {why}") from None


def _zeros(form: str) -> Iterator[tuple[int, int]]:
    """Where the form's pad bytes are."""
    at = 0
    for count, code in re.findall(r"(\d*)([a-zA-Z])", form):
        size = struct.calcsize(f"<{count}{code}")
        if code == "x":
            yield at, at + size
        at += size


class Payload(Struct, frozen=True, gc=False):
    """Fields that are encoded one after the other. Frozen; equal when all fields are.

    One whose SPEC is secret shows nothing of them in repr, str, format or a pretty print. What
    encodes structs does: msgspec, pickle and encode() give all fields away, the card among them.
    They are for whoever seals what comes out, and never for a log.
    """

    SPEC: ClassVar[Spec]

    def encode(self) -> bytes:
        """The fields as bytes."""
        return self.SPEC.pack(self)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """What these bytes say, or a ProtocolError."""
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
    CLASS: ClassVar[DeviceClass]
    """ANY for messages that every class has."""
    FROM: ClassVar[Side]
    SINCE: ClassVar[int]
    SIZE: ClassVar[int] = 56
    """Bytes of the plaintext that carries it."""


class Event(Message, frozen=True, gc=False):
    """Something that happened at the device."""


class Reply(Message, frozen=True, gc=False):
    """The answer to a command."""


class Command(Message, frozen=True, gc=False):
    """Something the host wants done or known."""

    IDEMPOTENT: ClassVar[bool]
    """May be sent again blindly when no reply came."""
    DEADLINE_MS: ClassVar[int]
    REPLY: ClassVar[type[Reply]]
    RESULT: ClassVar[type[Event] | None] = None
    """The event by which a physical command shows that it was carried out."""


class Control(Message, frozen=True, gc=False):
    """Acknowledgements, heartbeats, time."""
