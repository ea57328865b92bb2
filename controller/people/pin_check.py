"""Checks the PIN of a badge. Blocking, so it runs in a thread.

An unknown badge, a wrong PIN and a disabled badge take the same steps and the same time.
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
    """The result for a badge and a PIN."""

    lock: str
    person: Person
    """The person with the badge; UNKNOWN_PERSON if there is none."""
    why: PinRefusal | None
    """None if the PIN is right."""
    cost: Cost
    """The cost of the verifier that was used."""


def read_lock(file: PeopleFile, badge: str) -> tuple[People, str]:
    """Read the people, and the key for wrong PINs of this badge. Raises KeyProblem."""
    people = file.read()
    return people, people.lock(badge)


def check_pin_of(people: People, badge: str, pin: str) -> PinCheck:
    """Check a PIN. Raises CannotHash."""
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
    """Replace the verifier of a right PIN by one of the current cost. Raises KeyProblem, also if
    the person was changed since or the file is locked, and CannotHash."""
    made = str(file.key().verifier(proven.badge, pin, cost))

    def change(people: People) -> Person:
        now = people.find(proven.badge)
        if now is None or now.pin != proven.pin:
            raise KeyProblem(str(file.file), f"{proven.badge} has another PIN by now", None)
        return replace(now, pin=made)

    file.change("verifier renewed", proven.badge, change, (proven.name,), at, timeout=0)
