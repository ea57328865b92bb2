"""Record entries about people: sign-ins, sign-outs, authorisations, refusals, views.

No PIN is recorded, not even a wrong one. A badge is recorded only if it exists, because users
sometimes type the PIN into the badge field.
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
"""Refusals after a right PIN: the role is missing; the table is not closed; a different dealer is
signed in; the dealer cannot be the floor as well; the first person is missing; both persons are the
same."""
RefusalReason: TypeAlias = PinRefusal | RoleRefusal
GUESSES: Final = frozenset[str](get_args(PinRefusal))
"""Refusals that count as wrong PINs. The client is not told which of them it was."""
SignOutReason: TypeAlias = Literal["asked", "closed", "disabled", "opened"]
"""By the user; because the table closed; because the badge was disabled; because the table was
opened and the role may be signed in only while it is closed."""


class SignInEntry(Struct, frozen=True, tag_field="what", forbid_unknown_fields=True):
    """Base class for the `data` of entries about people."""


class SignInData(SignInEntry, frozen=True, tag="signed in"):
    """A person signed in."""

    role: HouseRole
    name: str
    badge: str
    lock: str
    screen: str
    life: int
    """Seconds; 0: no expiry."""
    relieved: str = ""
    """The name of the dealer who was relieved."""


class SignOutData(SignInEntry, frozen=True, tag="signed out"):
    """A person signed out, or was signed out."""

    role: HouseRole
    name: str
    badge: str
    screen: str
    why: SignOutReason


class Authorisation(SignInEntry, frozen=True, tag="authorised"):
    """For one act, exactly once."""

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
    """A sign-in or an authorisation was refused."""

    why: RefusalReason
    name: str
    badge: str
    """Name and badge are empty if the badge does not exist."""
    lock: str
    screen: str
    wanted: str
    """The act, or the role of the sign-in."""


class SignInDelayed(SignInEntry, frozen=True, tag="turned away"):
    """A PIN was rejected unchecked because of the delay after wrong ones. Recorded once per
    delay."""

    lock: str
    screen: str
    wait: int
    """Delay in seconds."""


class RecordView(SignInEntry, frozen=True, tag="looked"):
    """An authorised person viewed a part of the record. Has no effect on the sign-in state."""

    role: HouseRole
    name: str
    page: str
    of: str
    """The part of the record."""
    reason: str = ""
    out: str = ""
    """Name of the export, if one was made."""
    seal: str = ""
    """SHA-256 of the export's manifest."""


_KINDS: Final = (SignInData, SignOutData, Authorisation, SignInRefused, SignInDelayed)
_BY_WHAT: Final = {kind.__struct_config__.tag: msgspec.json.Decoder(kind) for kind in _KINDS}


class _Tag(Struct, frozen=True):
    what: str


_what: Final = msgspec.json.Decoder(_Tag).decode


def entry_for(data: SignInEntry) -> RecordEntry:
    """The record entry. Refused people are not its actors, since they are not authenticated."""
    return RecordEntry("person", _by(data), data)


def read_sign_in_entry(record: Record) -> SignInEntry | None:
    """Decode an entry about people; None if it does not affect the sign-in state. Raises ValueError
    (msgspec.DecodeError is one) if it is invalid."""
    if record.kind != "person":
        return None
    decoder = _BY_WHAT.get(_what(record.data).what)
    return None if decoder is None else decoder.decode(record.data)


def _by(data: SignInEntry) -> RecordActor:
    match data:
        case SignInData() | Authorisation() | RecordView():
            return RecordActor(data.role, data.name)
        case SignOutData(why="asked"):
            return RecordActor(data.role, data.name)
        case _:
            return CONTROLLER
