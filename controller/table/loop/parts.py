"""What a running table is built from: game, devices, keys and record, and its environment.

    parts = parts_of(load_table("tables/mega-1.toml"))

Every problem is a UsageProblem that names the place in the table file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from msgspec import Struct

from controller.audit.errors import LogFailed
from controller.audit.format.hole_cards import COMMITMENT_SIZE, CardOpening, WrongKey, seal
from controller.audit.format.records import ChainPosition, RecordEntry
from controller.audit.format.segments import SIZE
from controller.audit.keys import (
    load_hole_key,
    load_surveillance_public,
    load_table_private,
    public_file,
)
from controller.audit.log import Clock, Day, Log, LogWriter, gaming_day
from controller.audit.simulate import RecorderKeys
from controller.config import DevicePlace, DevicePlaces, TableConfig
from controller.errors import UsageProblem
from controller.games import game_of_table
from controller.procedure.model.events import Bet, Device
from controller.procedure.model.game import Game
from controller.table.intake import DeviceSettings
from drivers.keys import KeyProblem, KeyStore
from drivers.ports import Address, AddressProblem, monotonic_us, open_port, parse
from drivers.session import OpenPort, PortSearch, WantedDevice
from firmware_protocol.messages import DeviceClass

MIB: Final = 1 << 20
_T = TypeVar("_T")
_BODY: Final = 24
_BETS: Final[tuple[Bet, ...]] = ("main", "diamond", "buster", "toke_main", "toke_buster")

Find: TypeAlias = Callable[[WantedDevice], Awaitable[Address]]

CLASSES: Final[Mapping[DeviceClass, Device]] = MappingProxyType(
    {
        DeviceClass.SHOE: "shoe",
        DeviceClass.SHUFFLER: "shuffler",
        DeviceClass.STATION: "station",
    }
)
"""The procedure's name of each class of device."""


class RecordWriter(Protocol):
    """Writes the record: an `audit.log` writer, or a wrapper of one."""

    @property
    def failed(self) -> LogFailed | None: ...
    async def append(self, *entries: RecordEntry) -> tuple[ChainPosition, ...]: ...
    async def close(self) -> None: ...


class DeviceConfig(Struct, frozen=True):
    """A configured device of the table."""

    wanted: WantedDevice
    seats: tuple[int, ...] = ()
    """The seats whose buttons and lamps a station has."""

    @property
    def device(self) -> Device:
        return CLASSES[self.wanted.device_class]

    @property
    def serial(self) -> str:
        return self.wanted.serial


class TableParts(Struct, frozen=True):
    """The configuration of a running table, with keys loaded."""

    name: str
    what: TableConfig | Game
    """The configuration as it is recorded."""
    game: Game
    house: DeviceSettings
    devices: tuple[DeviceConfig, ...]
    keys: RecorderKeys
    own: Callable[[], X25519PrivateKey]
    """Returns the host's private key for its devices."""
    record: Path
    day: Day = gaming_day()
    size: int = SIZE


class TableEnvironment(Struct, frozen=True):
    """Sources of time, ports and the record's writer. Replaced in tests."""

    find: Callable[[], Find] = PortSearch
    """Makes a port search for each device."""
    opener: OpenPort = open_port
    clock: Callable[[], int] = monotonic_us
    utc: Clock | None = None
    write: Callable[[Log, Callable[[LogFailed], None]], RecordWriter] = LogWriter
    believed: tuple[str, str] | None = None
    """Two people who confirm that the clock is right although the record is ahead of it."""
    debuggable: bool = False
    """Whether debuggers of the same user can read the memory of this process."""


REAL_ENVIRONMENT: Final = TableEnvironment()


def parts_of(config: TableConfig) -> TableParts:
    """Build the parts. Raises UsageProblem."""
    file, equipment = config.file, config.equipment
    devices = required_section(
        equipment.devices, f"{file}: devices", "[devices] and a [devices.shoe]"
    )
    record = required_section(
        equipment.record, f"{file}: record", '[record] with directory = "..."'
    )
    place = required_section(equipment.keys, f"{file}: keys", '[keys] with directory = "..."')
    with _as_usage_problem():
        keys = load_keys(place)
        store = KeyStore(place)
        store.existing_own()
    _check_seats(config, devices)
    return TableParts(
        config.name,
        config,
        game_of_table(config),
        settings_of(devices),
        tuple(_device_configs(devices, store, file)),
        keys,
        store.existing_own,
        record.directory,
        gaming_day(timedelta(minutes=record.day_starts)),
        record.segment_mib * MIB,
    )


def load_keys(place: Path) -> RecorderKeys:
    """Load the keys of the record, and test that cards can be sealed. Raises KeyProblem."""
    keys = RecorderKeys(
        load_table_private(place), load_hole_key(place), load_surveillance_public(place)
    )
    _try_sealing(place, keys.surveillance)
    return keys


def settings_of(devices: DevicePlaces) -> DeviceSettings:
    """The settings of the devices from the configuration."""
    standing = {
        seat: tuple((bet, bets[bet]) for bet in _BETS if bet in bets)
        for seat, bets in devices.standing.items()
    }
    batch = devices.batch
    return DeviceSettings(batch.min_confidence, MappingProxyType(standing), batch.backs)


def required_section(part: _T | None, where: str, allowed: str) -> _T:
    """Returns a section of the table file. Raises UsageProblem if it is missing."""
    if part is None:
        raise UsageProblem(where, "is missing: the table cannot be served without it", allowed)
    return part


def _check_seats(config: TableConfig, devices: DevicePlaces) -> None:
    """Raises UsageProblem if decisions are made by buttons only and a seat has none."""
    if config.sheet.options.decisions.by != "buttons":
        return
    fitted = {seat for station in devices.stations for seat in station.seats}
    bare = [str(seat) for seat in range(1, config.seats + 1) if seat not in fitted]
    if bare:
        where = f"{config.file}: devices.stations"
        what = f"seats {', '.join(bare)} have no station, and players decide by buttons only"
        raise UsageProblem(where, what, "a station for each seat")


def _device_configs(devices: DevicePlaces, store: KeyStore, file: str) -> Iterator[DeviceConfig]:
    yield _device(devices.shoe, DeviceClass.SHOE, store, f"{file}: devices.shoe")
    if devices.shuffler is not None:
        where = f"{file}: devices.shuffler"
        yield _device(devices.shuffler, DeviceClass.SHUFFLER, store, where)
    for at, station in enumerate(devices.stations):
        where = f"{file}: devices.stations[{at}]"
        yield _device(station, DeviceClass.STATION, store, where)


def _device(place: DevicePlace, kind: DeviceClass, store: KeyStore, where: str) -> DeviceConfig:
    with _as_usage_problem():
        paired = store.find(place.serial)
    if paired is None:
        what = f"{place.serial} is not paired with this host"
        raise UsageProblem(f"{where}.serial", what, "one that `holecard devices list` shows")
    if paired.device_class is not kind:
        found, wanted = paired.device_class.name.lower(), kind.name.lower()
        raise UsageProblem(f"{where}.serial", f"{place.serial} is a {found}", f"a {wanted}")
    address = _address(place.port, f"{where}.port")
    return DeviceConfig(WantedDevice(kind, place.serial, paired.key, address), place.seats)


def _address(port: str, where: str) -> Address | None:
    if not port:
        return None
    try:
        return parse(port)
    except AddressProblem as problem:
        raise UsageProblem(where, problem.what, problem.allowed) from None


def _try_sealing(place: Path, public: X25519PublicKey) -> None:
    """Seal a test message, so that an unusable key is found at the start."""
    try:
        seal(public, bytes(COMMITMENT_SIZE), CardOpening(bytes(32), bytes(_BODY)))
    except WrongKey as problem:
        where = str(public_file(place, "surveillance"))
        raise KeyProblem(where, str(problem), "the key that surveillance has made") from None


@contextmanager
def _as_usage_problem() -> Iterator[None]:
    """Converts KeyProblem to UsageProblem."""
    try:
        yield
    except KeyProblem as problem:
        raise UsageProblem(problem.where, problem.what, problem.allowed) from None
