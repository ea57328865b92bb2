"""Device actions of the bench page: buttons for frequent ones, and a form for every verb.

They are requests of `firmware_protocol.device.control`, as the control sockets accept them;
`describe` is excluded because its response contains cards that lie face down.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.inspect import BoolType, Field, LiteralType, NoneType, StructType, Type, UnionType
from msgspec.inspect import type_info as info_of

from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    Break,
    ControlRequest,
    CutPower,
    Draw,
    Freeze,
    LineNoise,
    Load,
    MoveCover,
    MoveDoor,
    Plug,
    Put,
    Retract,
    SetJam,
)
from firmware_protocol.messages import DeviceClass
from hil.control import BY_CLASS, Verbs, description, request_fields
from hil.devices import names_of, new_decks, shuffled
from hil.faults import BREAKS

OFF_MS: Final = 5_000
NOISE: Final = 0.02
_SEED: Final = 2**31


class ShoeFilling(Struct, frozen=True):
    """The shoe's configuration, from which buttons make their requests."""

    decks: int
    cut_at: int | None
    """How many cards lie before the cut card."""


class ShortcutButton(Struct, frozen=True):
    """A button that makes a frequent control request."""

    name: str
    words: str
    makes: Callable[[ShoeFilling], ControlRequest]
    title: str = ""


def _load(bench: ShoeFilling, **fields: Any) -> Load:
    """Returns a request to load the shoe in a random order."""
    seed = 1 + secrets.randbelow(_SEED)
    return Load(decks=bench.decks, seed=seed, cut_at=bench.cut_at, **fields)


def _twins(bench: ShoeFilling) -> Load:
    """Returns a request to load a shoe with one copy too many of a card, all near the top."""
    random = Random(secrets.token_bytes(16))
    order = names_of(shuffled(new_decks(bench.decks), secrets.token_hex(16)))
    often = random.choice(order)
    places = random.sample(range(2, 8 + 4 * bench.decks), bench.decks + 1)
    for place in places:
        order[place] = often
    return Load(decks=bench.decks, cards=tuple(order), cut_at=bench.cut_at)


SHOE: Final = (
    ShortcutButton(
        "pull", "Pull a card", lambda bench: Draw(), "As a dealer does, 40 ms over the reader"
    ),
    ShortcutButton("force", "Force one out", lambda bench: Draw(force=True), "Through the lock"),
    ShortcutButton("double", "Pull two at once", lambda bench: Draw(double=True)),
    ShortcutButton("back", "Push the last one back", lambda bench: Retract()),
    ShortcutButton("load", "Load, cut", _load, "All decks, shuffled, with the cut card"),
    ShortcutButton("open", "Open the cover", lambda bench: MoveCover(open=True)),
    ShortcutButton("close", "Close the cover", lambda bench: MoveCover(open=False)),
)
SHUFFLER: Final = (
    ShortcutButton("put", "Put the decks in", lambda bench: Put(decks=bench.decks)),
    ShortcutButton("open", "Open the door", lambda bench: MoveDoor(open=True)),
    ShortcutButton("close", "Close the door", lambda bench: MoveDoor(open=False)),
)
HANDS: Final[Mapping[Profile, tuple[ShortcutButton, ...]]] = MappingProxyType(
    {"shoe": SHOE, "shuffler": SHUFFLER, "station": ()}
)
"""Buttons for the dealer's actions."""

_ANY: Final = (
    ShortcutButton("unplug", "Unplug", lambda bench: Plug(connected=False)),
    ShortcutButton("plug", "Plug in", lambda bench: Plug(connected=True)),
    ShortcutButton("power", "Power off for 5 s", lambda bench: CutPower(off_ms=OFF_MS)),
    ShortcutButton("restart", "Power cut and back", lambda bench: CutPower(cause="brown_out")),
    ShortcutButton(
        "cut", "Power cut in the next record", lambda bench: CutPower(at="in_commit", off_ms=500)
    ),
    ShortcutButton(
        "noise", "Noise on the cable", lambda bench: LineNoise(flip=NOISE, drop=NOISE, cut=NOISE)
    ),
    ShortcutButton("quiet", "A clean cable", lambda bench: LineNoise()),
    ShortcutButton("hang", "Firmware hangs", lambda bench: Freeze(on=True)),
    ShortcutButton("go", "Firmware goes on", lambda bench: Freeze(on=False)),
)
_JAMS: Final = (
    ShortcutButton("jam", "Cards are stuck", lambda bench: SetJam("stuck")),
    ShortcutButton("free", "Free the cards", lambda bench: SetJam(None)),
)
FAULTS: Final[Mapping[Profile, tuple[ShortcutButton, ...]]] = MappingProxyType(
    {
        "shoe": (
            *_ANY,
            *_JAMS,
            ShortcutButton(
                "short", "Load, a card missing", lambda bench: _load(bench, remove=("As",))
            ),
            ShortcutButton(
                "long", "Load, a card too many", lambda bench: _load(bench, add=("As",))
            ),
            ShortcutButton("twins", "Load, a duplicate near the top", _twins),
            ShortcutButton(
                "sorted", "Load, as from the box", lambda bench: Load(decks=bench.decks)
            ),
        ),
        "shuffler": (
            *_ANY,
            *_JAMS,
            ShortcutButton(
                "short", "Put, a card missing", lambda b: Put(decks=b.decks, remove=("As",))
            ),
            ShortcutButton(
                "long", "Put, a card too many", lambda b: Put(decks=b.decks, add=("As",))
            ),
            ShortcutButton(
                "sorted", "Put, will stay sorted", lambda b: Put(decks=b.decks, sorted=True)
            ),
            ShortcutButton(
                "left", "Put, one stays inside", lambda b: Put(decks=b.decks, left_inside=1)
            ),
        ),
        "station": _ANY,
    }
)
"""Buttons for faults."""

NEXT_PULLS: Final[Mapping[str, tuple[str, Draw | None]]] = MappingProxyType(
    {
        "well": ("is read well", None),
        "low": ("is read, but not surely", Draw(read="low")),
        "wrong": ("is taken for another one", Draw(read="wrong")),
        "unreadable": ("cannot be read", Draw(read="unreadable")),
        "no_index": ("shows no index", Draw(read="no_index")),
        "too_fast": ("comes too fast", Draw(read="too_fast")),
        "foreign": ("has a foreign back", Draw(read="foreign")),
        "double": ("brings another one along", Draw(double=True)),
    }
)
"""Options for how the next card is pulled, by a robot or a user."""


# --- every verb ---------------------------------------------------------------------------------


class FormField(Struct, frozen=True):
    """A field of a request's form."""

    name: str
    allowed: str
    default: str
    """As JSON; empty if it must be given."""
    choices: tuple[str, ...]
    """As JSON; none: it is typed."""
    kind: str
    """What is typed: text, list or json."""


class Form(Struct, frozen=True):
    """The form of a control request."""

    verb: str
    words: str
    fields: tuple[FormField, ...]


def verbs(device: DeviceClass) -> Verbs:
    """Returns the control requests that the page offers for a class of device."""
    every = BY_CLASS[device]
    return {verb: hand for verb, hand in every.items() if verb != "describe"}


def forms(device: DeviceClass) -> tuple[Form, ...]:
    return tuple(
        Form(verb, description(hand), tuple(_fields(hand))) for verb, hand in verbs(device).items()
    )


def _fields(hand: type[ControlRequest]) -> Iterator[FormField]:
    info = info_of(hand)
    assert isinstance(info, StructType)
    for word, field in zip(request_fields(hand), info.fields, strict=True):
        kind = "list" if word.many else "text" if word.textual else "json"
        choices = _choices(field, hand)
        yield FormField(word.name, word.allowed, word.default or "", choices, kind)


def _choices(field: Field, hand: type[ControlRequest]) -> tuple[str, ...]:
    if hand is Break and field.name == "name":
        return tuple(_json(one.name) for one in BREAKS)
    found = _literals(field.type)
    return () if found is None else tuple(_json(value) for value in found)


def _literals(kind: Type) -> list[object] | None:
    """Returns all values of a type that has few, otherwise None."""
    match kind:
        case BoolType():
            return [True, False]
        case NoneType():
            return [None]
        case LiteralType(values=values):
            return list(values)
        case UnionType(types=types):
            parts = [_literals(one) for one in types]
            return [one for part in parts for one in part or ()] if all(parts) else None
        case _:
            return None


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
