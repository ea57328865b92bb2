"""The formats of the people file, the people key file and the history."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Struct

from controller.people.pins import BADGE_ALLOWED, KEY_SIZE, PeopleKey, Verifier, folded, is_badge
from controller.procedure.model import events
from controller.procedure.model.events import Event
from controller.procedure.model.game import WHO
from drivers.keys import ALLOWED as NAME_ALLOWED
from drivers.keys import BadName, KeyProblem, key_problem, name_of, open_private

HouseRole: TypeAlias = Literal["dealer", "floor", "surveillance", "technician"]
ROLES: Final[tuple[HouseRole, ...]] = get_args(HouseRole)
ChangeKind: TypeAlias = Literal[
    "added", "disabled", "enabled", "PIN reset", "roles", "verifier renewed"
]

PLACE: Final = "HOLECARD_PEOPLE"
"""The environment variable with the path of the people file."""
BACKUP: Final = "the file from a backup"
MAX_FILE_BYTES: Final = 1024 * 1024
"""Size limit of a file in bytes: some thousand people."""
_HEX: Final = re.compile(f"[0-9a-f]{{{2 * KEY_SIZE}}}")


class Person(Struct, frozen=True, forbid_unknown_fields=True):
    """A person with a badge."""

    badge: str
    name: str
    roles: tuple[HouseRole, ...]
    disabled: bool
    pin: str
    """The encoded verifier."""

    def verifier(self) -> Verifier:
        return Verifier.parse(self.pin)

    def __repr__(self) -> str:
        return f"Person({self.badge!r}, {self.name!r}, {self.roles!r}, {self.disabled!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        shown = ("badge", "name", "roles", "disabled")
        return [(name, getattr(self, name)) for name in shown]


class People(Struct, frozen=True):
    """All people, and the key of their PINs."""

    key: PeopleKey
    every: tuple[Person, ...]

    def find(self, badge: str) -> Person | None:
        wanted = folded(badge)
        return next((one for one in self.every if folded(one.badge) == wanted), None)

    def asked(self, badge: str) -> tuple[Person | None, Verifier]:
        """The person with this badge, and the verifier for a PIN. An unknown badge has a decoy that
        no PIN fits; both cases take the same time."""
        person = self.find(badge)
        decoy = self.key.decoy(badge, tuple(one.verifier().cost for one in self.every))
        return person, (decoy if person is None else person.verifier())

    def lock(self, badge: str) -> str:
        """The key under which wrong PINs of this badge are counted."""
        return self.key.lock(badge, self.asked(badge)[1])

    def floor(self) -> tuple[Person, ...]:
        """The enabled people with the role floor."""
        return tuple(one for one in self.every if "floor" in one.roles and not one.disabled)


class Change(Struct, frozen=True):
    """A line of the history: a change, its approvers, and the changed person."""

    at: str
    """UTC, like 2026-07-29T17:30:00Z."""
    what: ChangeKind
    by: tuple[str, ...]
    """The names that the approvers gave."""
    account: str
    """The user account of the machine."""
    badge: str
    name: str
    roles: tuple[HouseRole, ...]

    def encode(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"


class _PeopleFile(Struct, frozen=True, forbid_unknown_fields=True):
    """Has the fingerprint of the key, so that a wrong pair of files is detected."""

    format: Literal[1]
    key: str
    people: tuple[Person, ...]


class KeyFile(Struct, frozen=True, forbid_unknown_fields=True):
    """Has a fingerprint, so that a damaged key is detected."""

    format: Literal[1]
    key_hex: str
    fingerprint: str

    def __repr__(self) -> str:
        return f"KeyFile({self.fingerprint})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("fingerprint", self.fingerprint)]


# --- people -----------------------------------------------------------------------------------


def people_bytes(people: People) -> bytes:
    """Encode the people file. Raises ValueError if it is too large."""
    data = _encode(_PeopleFile(1, people.key.fingerprint, people.every))
    if len(data) > MAX_FILE_BYTES:
        raise ValueError("too many people for one file")
    return data


def read_people(file: Path, key: PeopleKey, key_file: Path) -> People:
    """Read and validate the people file. Raises KeyProblem."""
    found = _decode(file, _PeopleFile)
    if found.key != key.fingerprint:
        what = f"its PINs went through another key than that of {key_file}"
        raise KeyProblem(str(file), what, "the file and the key that belong together")
    check_people(file, found.people)
    return People(key, found.people)


def check_people(file: Path, people: tuple[Person, ...]) -> None:
    """Raises KeyProblem for the first person that is invalid."""
    seen: set[str] = set()
    for at, one in enumerate(people):
        where = f"{file}: people[{at}]"
        if not is_badge(one.badge):
            raise KeyProblem(f"{where}.badge", f"{one.badge!r} is not a badge", BADGE_ALLOWED)
        if folded(one.badge) in seen:
            raise KeyProblem(f"{where}.badge", f"{one.badge} is used twice", "each badge once")
        seen.add(folded(one.badge))
        if not _is_name(one.name):
            raise KeyProblem(f"{where}.name", f"{one.name!r} is not a name", NAME_ALLOWED)
        try:
            check_roles(one.roles)
        except ValueError as problem:
            raise KeyProblem(f"{where}.roles", str(problem), ", ".join(ROLES)) from None
        try:
            one.verifier()
        except ValueError as problem:
            raise KeyProblem(f"{where}.pin", str(problem), BACKUP) from None


def check_roles(roles: tuple[str, ...]) -> tuple[HouseRole, ...]:
    """The roles in the order of ROLES. Raises ValueError if they are invalid."""
    unknown = [role for role in roles if role not in ROLES]
    if unknown:
        raise ValueError(f"there is no role {unknown[0]!r}")
    if not roles:
        raise ValueError("no role is given")
    if len(set(roles)) != len(roles):
        raise ValueError("a role is given twice")
    return tuple(role for role in ROLES if role in roles)


def _is_name(text: str) -> bool:
    try:
        return name_of(text) == text
    except BadName:
        return False


# --- their key --------------------------------------------------------------------------------


def key_bytes(key: PeopleKey) -> bytes:
    return _encode(KeyFile(1, key.open().hex(), key.fingerprint))


def read_key(file: Path) -> PeopleKey:
    """Read the people key. Raises KeyProblem."""
    found = _decode(file, KeyFile)
    if not _HEX.fullmatch(found.key_hex):
        raise _damaged(file, f"its key is not {2 * KEY_SIZE} digits 0 to 9 and a to f")
    key = PeopleKey(bytes.fromhex(found.key_hex))
    if key.fingerprint != found.fingerprint:
        raise _damaged(file, "its key and its fingerprint do not belong together")
    return key


# --- bytes ------------------------------------------------------------------------------------

_F = TypeVar("_F", _PeopleFile, KeyFile)


def _encode(found: Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"


def _decode(file: Path, kind: type[_F]) -> _F:
    with open_private(file, os.O_RDONLY) as descriptor:
        data = _read_all(file, descriptor)
    try:
        found = msgspec.json.decode(data, type=kind)
        json.loads(data, object_pairs_hook=_once)
    except msgspec.MsgspecError as problem:
        what = str(problem)  # names fields and positions, never a key or a verifier
    except _DuplicateKey as problem:
        what = str(problem)
    except UnicodeDecodeError:
        what = "it contains bytes that are not text"
    else:
        return found
    # Raised outside of the handler: UnicodeDecodeError contains the file's content, with the key.
    del data
    raise _damaged(file, what)


class _DuplicateKey(Exception):
    """A key appears twice in a JSON object, so that readers could disagree."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise _DuplicateKey(f"{name!r} appears twice in one object")


def _read_all(file: Path, descriptor: int) -> bytes:
    parts = []
    size = 0
    try:
        while size <= MAX_FILE_BYTES and (part := os.read(descriptor, 64 * 1024)):
            parts.append(part)
            size += len(part)
    except OSError as problem:
        raise key_problem(file, "cannot be read", problem) from None
    if size > MAX_FILE_BYTES:
        raise _damaged(file, f"it has more than {MAX_FILE_BYTES} bytes")
    return b"".join(parts)


def _damaged(file: Path, what: str) -> KeyProblem:
    return KeyProblem(str(file), f"is damaged: {what}", BACKUP)


SECONDS: Final[tuple[HouseRole, ...]] = ("floor", "dealer", "surveillance")
"""Roles of a second person, as the procedure accepts them."""
TWO: Final[frozenset[type[Event]]] = frozenset(
    {
        events.TableOpened,
        events.TableClosed,
        events.DecksChanged,
        events.PaymentCorrected,
        events.CountersAccepted,
        events.RoundVoided,
    }
)
"""Acts that need two people unless the jurisdiction says otherwise."""


class Act(Struct, frozen=True):
    """An act to authorise."""

    name: str
    roles: tuple[HouseRole, ...]
    two: bool = False
    about: str = ""
    """The round, device or payment to which the authority is limited."""


ADOPTED: Final = Act("adopted", ("floor",), two=True)
"""Accepting a device's log that does not continue the record."""


def act_of(event: type[Event], *, two: bool | None = None, about: str = "") -> Act:
    """The act that brings this event. Raises ValueError if it is not one of the floor."""
    if "floor" not in WHO.get(event, ()):
        raise ValueError(f"a {event.__name__} is not an act of the floor")
    if two and "second" not in event.__struct_fields__:
        raise ValueError(f"a {event.__name__} has no second person")
    return Act(event.__name__, ("floor",), event in TWO if two is None else two, about)
