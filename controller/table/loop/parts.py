"""What a running table is put together from: its game, its devices, its keys and its record."""

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
from drivers.ports import Address, open_port
from drivers.session import Open, Search, Wanted, monotonic_us
from firmware_protocol.messages.enums import DeviceClass

Find: TypeAlias = Callable[[Wanted], Awaitable[Address]]

CLASSES: Final[Mapping[DeviceClass, Device]] = MappingProxyType(
    {
        DeviceClass.SHOE: "shoe",
        DeviceClass.SHUFFLER: "shuffler",
        DeviceClass.STATION: "station",
    }
)
"""What the procedure calls a device."""


class RecordWriter(Protocol):
    """Who writes the record: an `audit.book.Book`."""

    @property
    def failed(self) -> LogFailed | None: ...
    async def append(self, *entries: RecordEntry) -> tuple[ChainPosition, ...]: ...
    async def close(self) -> None: ...


class DeviceConfig(Struct, frozen=True):
    """A device of the table."""

    wanted: Wanted
    seats: tuple[int, ...] = ()
    """Of a station: the seats whose buttons and lamps it has."""

    @property
    def device(self) -> Device:
        return CLASSES[self.wanted.device_class]

    @property
    def serial(self) -> str:
        return self.wanted.serial


class TableParts(Struct, frozen=True):
    """All that is given."""

    name: str
    what: TableConfig | Game
    """What the record says of the configuration."""
    game: Game
    house: DeviceSettings
    devices: tuple[DeviceConfig, ...]
    keys: RecorderKeys
    own: Callable[[], X25519PrivateKey]
    """The host's key towards its devices."""
    record: Path
    day: Day = gaming_day()
    size: int = SIZE


class TableEnvironment(Struct, frozen=True):
    """Where time, ports and the disk come from."""

    find: Callable[[], Find] = Search
    """One for each device."""
    opener: Open = open_port
    clock: Callable[[], int] = monotonic_us
    utc: Clock | None = None
    write: Callable[[Log, Callable[[LogFailed], None]], RecordWriter] = LogWriter
    believed: tuple[str, str] | None = None
    """Two people who say that the clock is right though the record is ahead of it."""


REAL_ENVIRONMENT: Final = TableEnvironment()
