"""What a running table is built from: its game, devices, keys and record, and its environment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from controller.audit.errors import LogFailed
from controller.audit.format.records import ChainPosition, RecordEntry
from controller.audit.format.segments import SIZE
from controller.audit.log import Clock, Day, Log, LogWriter, gaming_day
from controller.audit.simulate import RecorderKeys
from controller.config import TableConfig
from controller.procedure.model.events import Device
from controller.procedure.model.game import Game
from controller.table.intake import DeviceSettings
from drivers.ports import Address, monotonic_us, open_port
from drivers.session import OpenPort, PortSearch, WantedDevice
from firmware_protocol.messages import DeviceClass

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


REAL_ENVIRONMENT: Final = TableEnvironment()
