"""What the record says of people: who signed in and out, who may do what, and who was refused.

A PIN stands nowhere, not even a wrong one. Whose badge it is, is said only where somebody has that
badge: people type PINs where the badge belongs.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from controller.audit.format.records import CONTROLLER, Record, RecordActor, RecordEntry
from controller.people.person import HouseRole

PinRefusal: TypeAlias = Literal["unknown badge", "wrong PIN", "disabled"]
RoleRefusal: TypeAlias = Literal[
    "not theirs", "table open", "another dealer", "deals here", "no first person", "same person"
]
"""The PIN was right: another role is asked for; it is for a table that is closed; somebody else
deals already; who deals would be their own floor; there is nobody whose second person it would be;
or it would be the same one."""
RefusalReason: TypeAlias = PinRefusal | RoleRefusal
GUESSES: Final = frozenset[str](get_args(PinRefusal))
"""They count, and nobody is told which of them it was."""
SignOutReason: TypeAlias = Literal["asked", "closed", "disabled", "opened"]
"""The last two: the controller's word; the table was opened, and they may be here while it is
closed."""


class SignInEntry(Struct, frozen=True, tag_field="what", forbid_unknown_fields=True):
    """The `data` of a record about people."""


class SignIn(SignInEntry, frozen=True, tag="signed in"):
    role: HouseRole
    name: str
    badge: str
    lock: str
    screen: str
    life: int
    """Seconds; 0 without an end."""
    relieved: str = ""
    """Whose place it is: their name."""


class SignOut(SignInEntry, frozen=True, tag="signed out"):
    role: HouseRole
    name: str
    badge: str
    screen: str
    why: SignOutReason


class Authorisation(SignInEntry, frozen=True, tag="authorised"):
    """For one act, once."""

    role: HouseRole
    name: str
    badge: str
    lock: str
    screen: str
    act: str
    about: str
    second: bool
    life: int


class SignInRefused(SignInEntry, frozen=True, tag="refused"):
    why: RefusalReason
    name: str
    badge: str
    """Both are empty where nobody has such a badge."""
    lock: str
    screen: str
    wanted: str
    """An act, or the role of who wanted to sign in."""


class SignInDelayed(SignInEntry, frozen=True, tag="turned away"):
    """It was too early after wrong PINs, so none was looked at. Once for each such wait."""

    lock: str
    screen: str
    wait: int
    """Seconds."""


class RecordView(SignInEntry, frozen=True, tag="looked"):
    """Somebody who may looks at what stands in the record. Nobody goes by it: it is for who reads
    the record."""

    role: HouseRole
    name: str
    page: str
    of: str
    """Which part of the record."""
    reason: str = ""
    out: str = ""
    """What is taken elsewhere is called so."""
    seal: str = ""
    """SHA-256 of the manifest of what was exported."""


_KINDS: Final = (SignIn, SignOut, Authorisation, SignInRefused, SignInDelayed)
_BY_WHAT: Final = {kind.__struct_config__.tag: msgspec.json.Decoder(kind) for kind in _KINDS}


class _Tag(Struct, frozen=True):
    what: str


_what: Final = msgspec.json.Decoder(_Tag).decode


def entry_for(said: SignInEntry) -> RecordEntry:
    """What to record. Who was refused is nobody as long as no PIN says so."""
    return RecordEntry("person", _by(said), said)


def read_sign_in_entry(record: Record) -> SignInEntry | None:
    """What a record says of people; None where it says nothing that anybody here goes by.
    ValueError, of which msgspec.DecodeError is one, where it cannot be read."""
    if record.kind != "person":
        return None
    decoder = _BY_WHAT.get(_what(record.data).what)
    return None if decoder is None else decoder.decode(record.data)


def _by(said: SignInEntry) -> RecordActor:
    match said:
        case SignIn() | Authorisation() | RecordView():
            return RecordActor(said.role, said.name)
        case SignOut(why="asked"):
            return RecordActor(said.role, said.name)
        case _:
            return CONTROLLER
