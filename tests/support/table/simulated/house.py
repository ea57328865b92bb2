"""A house with people in it, whose PINs are cheap to ask; a clock, and a record of people."""

import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Raw
from msgspec.json import encode

from controller.audit.format.records import Moment, Record, RecordEntry
from controller.people import HouseRole, People, PeopleFile, Person
from controller.people.person import Change, key_bytes, people_bytes
from controller.people.pins import Cost, PeopleKey

CHEAP: Final = Cost(8, 1, 1)
DEARER: Final = Cost(16, 2, 1)
KEY: Final = PeopleKey(bytes(range(32)))
NOON: Final = 1_800_000_000_000_000
PINS: Final = {
    "D-17": "402931",
    "D-18": "918264",
    "D-19": "550172",
    "F-2": "775010",
    "F-3": "310648",
    "F-9": "640923",
    "S-1": "208817",
    "T-1": "993120",
    "X-1": "467190",
}
_WHO: Final[tuple[tuple[str, str, tuple[HouseRole, ...]], ...]] = (
    ("D-17", "Ann Lee", ("dealer",)),
    ("D-18", "Gil Ode", ("dealer",)),
    ("D-19", "Cy Moss", ("dealer",)),
    ("F-2", "Bo Chan", ("floor",)),
    ("F-3", "Cy Moss", ("dealer", "floor")),
    ("F-9", "ANN LEE", ("floor",)),
    ("S-1", "Dee Faro", ("surveillance",)),
    ("T-1", "Eve Pond", ("technician",)),
    ("X-1", "Hal Gone", ("dealer", "floor")),
)
"""Cy Moss has two badges, and so has Ann Lee. Hal Gone is disabled."""


AT: Final = "2027-01-15T08:00:00Z"
TWO: Final = ("Ann Lee", "Bo Chan")


def person(
    badge: str, name: str, roles: tuple[HouseRole, ...], *, cost: Cost = CHEAP, gone: bool = False
) -> Person:
    pin = PINS.get(badge, "481516")
    return Person(badge, name, roles, gone, str(KEY.verifier(badge, pin, cost)))


def everybody(cost: Cost = CHEAP) -> tuple[Person, ...]:
    return tuple(
        person(badge, name, roles, cost=cost, gone=badge == "X-1") for badge, name, roles in _WHO
    )


def house(place: Path, people: Sequence[Person] | None = None, cost: Cost = CHEAP) -> PeopleFile:
    """The files of these people, or of everybody."""
    file = PeopleFile(place / "house" / "people.json", place / "keys")
    for made in (place, file.file.parent, file.keys):
        made.mkdir(mode=0o700, exist_ok=True)
    put(file.key_file, key_bytes(KEY))
    every = everybody(cost) if people is None else tuple(people)
    put(file.file, people_bytes(People(KEY, every)))
    return file


def history_of(people: Sequence[Person]) -> bytes:
    """How they came there."""
    lines = [Change(AT, "added", TWO, "root", one.badge, one.name, one.roles) for one in people]
    lines += [
        Change(AT, "disabled", TWO, "root", one.badge, one.name, one.roles)
        for one in people
        if one.disabled
    ]
    return b"".join(one.encode() for one in lines)


def put(file: Path, data: bytes, mode: int = 0o600) -> None:
    file.write_bytes(data)
    os.chmod(file, mode)


class Time:
    """The clocks of a machine, which only the test moves."""

    def __init__(self) -> None:
        self.utc = NOON
        self.mono = 10**9

    @property
    def now(self) -> Moment:
        return Moment(self.utc, self.mono, "synced")

    def go(self, seconds: float) -> None:
        self.utc += round(seconds * 1e6)
        self.mono += round(seconds * 1e9)

    def set(self, seconds: float) -> None:
        """Somebody sets the clock of the day."""
        self.utc += round(seconds * 1e6)


class Ledger:
    """What was recorded, as it would be read back."""

    def __init__(self, time: Time, boot: str = "b1") -> None:
        self.time = time
        self.boot = boot
        self.records: list[Record] = []
        self.broken: Exception | None = None

    async def record(self, entry: RecordEntry) -> None:
        if self.broken is not None:
            raise self.broken
        self.add(entry)

    def add(self, entry: RecordEntry) -> Record:
        now = self.time.now
        made = Record(
            2,
            self.boot,
            len(self.records) + 1,
            now.utc,
            now.mono,
            now.quality,
            entry.round,
            entry.kind,
            Raw(encode(entry.data)),
            entry.by,
        )
        self.records.append(made)
        return made

    def said(self, kind: str = "person") -> list[bytes]:
        return [bytes(record.data) for record in self.records if record.kind == kind]

    def what(self) -> list[str]:
        """Of all records about people, what happened."""
        return [data[9 : data.index(b'"', 9)].decode() for data in self.said()]


# --- changes ----------------------------------------------------------------------------------

NEW: Final = person("D-20", "Ivy North", ("dealer",))


def add(file: PeopleFile, one: Person = NEW) -> People:
    return file.change("added", one.badge, lambda people: one, TWO, AT)


def who(file: PeopleFile, badge: str) -> Person:
    """Whoever has this badge now."""
    found = file.read().find(badge)
    assert found is not None, badge
    return found


def has_pin(file: PeopleFile, badge: str, pin: str) -> bool:
    return KEY.fits(who(file, badge).verifier(), badge, pin)


def lines(file: PeopleFile) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.history_file.read_text().splitlines()]


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)
