"""What people are told who come with a badge and a PIN."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from controller.people.records import NotAllowed
from controller.procedure.model.events import Actor

Reason: TypeAlias = (
    NotAllowed
    | Literal["not right", "wait", "busy", "unreadable", "not authorised", "no second", "closing"]
)
WORDS: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        "not right": "badge or PIN is not right",
        "wait": "too many wrong PINs: wait",
        "busy": "one at a time: try again",
        "unreadable": "badges and PINs cannot be looked at now: call a technician",
        "not theirs": "this badge is for other work",
        "table open": "the table is open: technicians sign in while it is closed",
        "another dealer": "another dealer is signed in: relieve them, or they sign out",
        "deals here": "whoever deals here cannot be the floor too",
        "no first person": "the first person signs for it before the second",
        "same person": "that is the same person: another one is needed",
        "not authorised": "nobody has signed for it, or that is too long ago",
        "no second": "a second person has to sign for it",
        "closing": "the controller is closing",
    }
)


class Signed(Struct, frozen=True):
    """It is them, and it stands in the record."""

    actor: Actor
    badge: str
    screen: str
    life: int
    """Seconds; 0 without an end."""
    relieved: Actor | None = None
    """Whose place a dealer takes."""


class Denied(Struct, frozen=True):
    """Nothing came of it. Of an unknown badge, a wrong PIN and a disabled badge nobody is told
    which of them it was."""

    why: Reason
    wait: int = 0
    """Seconds until a PIN is looked at again."""

    def __str__(self) -> str:
        words = WORDS[self.why]
        return f"{words} ({self.wait} s)" if self.wait else words


class Taken(Struct, frozen=True):
    """Who does an act."""

    first: Actor
    second: Actor | None
