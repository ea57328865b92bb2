"""Whether a PIN is that of a badge: what takes long, and so has no place in an event loop.

An unknown badge, a wrong PIN and a badge that is disabled take the same steps.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from controller.people.directory import PeopleFile
from controller.people.person import People, Person
from controller.people.pins import Cost
from controller.people.records import PinRefusal
from drivers.keys import KeyProblem

UNKNOWN_PERSON: Final = Person("", "", (), True, "")


class PinCheck(Struct, frozen=True):
    """What came of a badge and a PIN."""

    lock: str
    person: Person
    """Whose badge it is; NOBODY where nobody has it."""
    why: PinRefusal | None
    """None: it is them."""
    cost: Cost
    """Of what was asked."""


def read_lock(file: PeopleFile, badge: str) -> tuple[People, str]:
    """Who there is, and what wrong guesses at this badge are counted by. KeyProblem."""
    people = file.read()
    return people, people.lock(badge)


def check_pin_of(people: People, badge: str, pin: str) -> PinCheck:
    """CannotHash."""
    person, verifier = people.asked(badge)
    fits = people.key.fits(verifier, badge, pin)
    why: PinRefusal | None = None
    if person is None:
        why = "unknown badge"
    elif not fits:
        why = "wrong PIN"
    elif person.disabled:
        why = "disabled"
    return PinCheck(people.lock(badge), person or UNKNOWN_PERSON, why, verifier.cost)


def renew_verifier(file: PeopleFile, proven: Person, pin: str, cost: Cost, at: str) -> None:
    """Keep what a PIN that was right costs to guess now. KeyProblem, CannotHash; what somebody has
    changed meanwhile stays as it is, and nobody is waited for."""
    made = str(file.key().verifier(proven.badge, pin, cost))

    def change(people: People) -> Person:
        now = people.find(proven.badge)
        if now is None or now.pin != proven.pin:
            raise KeyProblem(str(file.file), f"{proven.badge} has another PIN by now", None)
        return replace(now, pin=made)

    file.change("verifier renewed", proven.badge, change, (proven.name,), at, patience=0)
