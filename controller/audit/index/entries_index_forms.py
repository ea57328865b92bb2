"""As much of a record as the index reads, in structs that let everything else lie.

Of a card that lies face down a record holds a commitment and what is sealed: neither has a field
here.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

Whole: TypeAlias = Annotated[int, Meta(ge=-(1 << 62), le=(1 << 62) - 1)]
"""SQLite can keep it, and the difference of two of them."""


class By(Struct, gc=False):
    role: str
    name: str
    seat: Whole = 0


class Read(Struct, gc=False):
    day: str
    utc: Whole
    round: Whole
    kind: str
    by: By
    data: msgspec.Raw
    cause: Whole = 0


class Event(Struct, gc=False):
    """Of any event."""

    type: str
    seat: Whole = 0
    card: Whole = -1
    bet: str = ""
    amount: Whole | None = None
    second: By | None = None


class Effect(Struct, gc=False):
    """Of any effect."""

    type: str
    round: Whole = 0
    seat: Whole = 0
    hand: Whole = -1
    bet: str = ""
    outcome: str = ""
    stake: Whole = 0
    returned: Whole = 0
    why: str = ""
    card: Whole = -1
    cards: tuple[Whole, ...] = ()
    tell: str = ""
    count: Whole = 0
    amount: Whole = 0
    lamps: tuple[tuple[Whole, str], ...] = ()
    who: str = ""
    what: str = ""
    way: str = ""
    by: str = ""
    second: str = ""
    total: Whole = 0
    won: Whole = 0
    bank: Whole = 0
    paid: Whole = 0
    due: Whole = 0


class Made(Struct, gc=False):
    event: Event
    effects: tuple[Effect, ...]


class TurnedDown(Struct, gc=False):
    event: Event
    id: str


class What(Struct, gc=False):
    what: str = ""


read_record: Final = msgspec.json.Decoder(Read).decode
read_made: Final = msgspec.json.Decoder(Made).decode
read_turned_down: Final = msgspec.json.Decoder(TurnedDown).decode
read_what: Final = msgspec.json.Decoder(What).decode
"""All of them raise what is in CANNOT_READ."""
CANNOT_READ: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
