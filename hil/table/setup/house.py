"""A simulated house: keys, people, and simulated devices that are paired with it.

    FOLDER/            0700
      keys/            of the table, of hole cards, of people, of this host and its devices
      surveillance/    what opens hole cards; at a real house on another machine
      people.json      dealers and floor
      devices/SERIAL   a simulated device each
      usb/             the bus that some of them are plugged into

Created once and reused. It contains all PINs and private keys, so it is only for tests and
demonstrations, never for real money.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from controller.audit.keys import Role, create_key, key_file, public_file, read_bytes
from controller.errors import UsageProblem
from controller.people import HouseRole, People, PeopleFile
from controller.people import Person as Listed
from drivers.keys import HOST, KeyProblem, KeyStore, PairedDevice, path_exists, write_private
from firmware_protocol.conformance import Profile
from firmware_protocol.device import FolderProblem, create_identity, load_identity, pair_directly
from firmware_protocol.messages import DeviceClass


class RobotBadge(Struct, frozen=True):
    """A person of the house with badge and PIN."""

    badge: str
    name: str
    roles: tuple[HouseRole, ...]
    pin: str


DEALER: Final = RobotBadge("D-1", "Ann Lee", ("dealer",), "402931")
FLOOR: Final = RobotBadge("F-1", "Bo Chan", ("floor",), "775010")
SECOND: Final = RobotBadge("F-2", "Cy Moss", ("floor", "dealer"), "310648")
STAFF: Final = (DEALER, FLOOR, SECOND)
"""The people that robots need."""
GUEST: Final = RobotBadge("D-2", "Di Park", ("dealer",), "518264")
"""A human dealer."""
OBSERVER: Final = RobotBadge("S-1", "Sam Ortiz", ("surveillance",), "660173")
STAFF_AND_VISITORS: Final = (*STAFF, GUEST, OBSERVER)
"""The people of a house that humans visit."""
_BY: Final = (FLOOR.name, SECOND.name)


class FittedDevice(Struct, frozen=True):
    """A device of the table, connected to the bus or to a separate port."""

    profile: Profile
    serial: str
    usb: bool = False
    seats: tuple[int, ...] = ()


SHOE: Final = FittedDevice("shoe", "SH-1")
SHUFFLER: Final = FittedDevice("shuffler", "SF-1", usb=True)
SEVEN: Final = (
    SHOE,
    SHUFFLER,
    *(FittedDevice("station", f"ST-{seat}", usb=seat > 4, seats=(seat,)) for seat in range(1, 8)),
)
"""A station for each seat."""
FEW: Final = (
    SHOE,
    SHUFFLER,
    FittedDevice("station", "ST-A", seats=(1, 2, 3, 4)),
    FittedDevice("station", "ST-B", usb=True, seats=(5, 6, 7)),
)
"""The same seats at two stations: quicker to set up."""


class House:
    """The house in this folder."""

    def __init__(
        self,
        folder: Path,
        fitted: tuple[FittedDevice, ...] = SEVEN,
        people: tuple[RobotBadge, ...] = STAFF,
    ) -> None:
        self.folder = folder
        self.listed = people
        self.config = fitted
        self.keys = folder / "keys"
        self.people = folder / "people.json"
        self.bus = folder / "usb"
        self.record = folder / "record"

    def place(self, device: FittedDevice) -> Path:
        return self.folder / "devices" / device.serial

    def port(self, device: FittedDevice) -> Path:
        """Returns the port of a device that is not on the bus."""
        return self.place(device) / "port"

    def address(self, device: FittedDevice) -> str:
        """Returns the device's address as in a table file."""
        if device.usb:
            return f"usb+sim={self.bus}:{device.serial}"
        return f"serial:{self.port(device)}"

    def make(self) -> None:
        """Create what does not exist yet. Raises UsageProblem."""
        try:
            self._make()
        except (KeyProblem, FolderProblem) as problem:
            what = f"{problem.what}: no house can be made there"
            raise UsageProblem(problem.where, what, "an empty folder") from None
        except OSError as problem:
            what = f"cannot be written: {problem.strerror}"
            raise UsageProblem(str(self.folder), what, "a folder of yours") from None

    def _make(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._make_keys()
        self._make_people()
        self.bus.mkdir(exist_ok=True)
        store = KeyStore(self.keys)
        for device in self.config:
            self._pair(device, store)

    def _make_keys(self) -> None:
        apart = self.folder / "surveillance"
        places: dict[Role, Path] = {"table": self.keys, "hole": self.keys, "surveillance": apart}
        for role, place in places.items():
            if not path_exists(key_file(place, role)):
                create_key(place, role)
        public = public_file(self.keys, "surveillance")
        if not path_exists(public):
            write_private(public, read_bytes(public_file(apart, "surveillance")), once=True)
        if not path_exists(self.keys / HOST):
            KeyStore.create(self.keys)

    def _make_people(self) -> None:
        file = PeopleFile(self.people, self.keys)
        people = file.read() if file.exists() else file.begin()
        key = file.key()
        for one in self.listed:
            if people.find(one.badge) is None:
                pin = str(key.verifier(one.badge, one.pin))
                listed = Listed(one.badge, one.name, one.roles, False, pin)
                file.change("added", one.badge, partial(_as_is, listed), _BY, _now())

    def _pair(self, device: FittedDevice, store: KeyStore) -> None:
        place, kind = self.place(device), DeviceClass[device.profile.upper()]
        made = (place / "identity.toml").exists()
        one = load_identity(place) if made else create_identity(place, kind, device.serial)
        if store.find(device.serial) is None:
            pair_directly(place, store.own().public_key().public_bytes_raw())
            store.add(PairedDevice(kind, one.serial, one.maker, one.model, one.public, _now(), _BY))


def _as_is(listed: Listed, people: People) -> Listed:
    return listed


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def private(folder: Path) -> Path:
    """Create the folder for this user only. Raises UsageProblem if others own it or may write."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as problem:
        raise UsageProblem(str(folder), f"cannot be made: {problem.strerror}", "a folder") from None
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise UsageProblem(str(folder), "others may write there", f"chmod go-w {folder}")
    return folder
