"""How the devices of a table are linked to it: recorded as it happens, and told to the procedure
where a device is away for longer than a moment.

A device that is away is safe by itself, and what it has to tell waits in its ring; so a cable that
is touched holds nobody up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum, Flag
from typing import Any, Final, Protocol

from msgspec import Struct

from controller.audit.format.records import RecordActor, RecordEntry
from controller.procedure.model.events import Device
from controller.table.intake import card_destination
from controller.table.loop import DeviceRecordStore, TableLoop, TableStopped
from controller.table.memory import DeviceFault, FaultCause
from drivers import events
from drivers.devices import State
from firmware_protocol.messages.enums import DeviceState

START_WAIT: Final = 5.0
"""Seconds that shoe and shuffler have after a start to tell what happened before it."""
POLL: Final = 0.02
GRACE: Final = 2.0
"""Seconds for which a device may be away before anybody is told."""
AGAIN: Final = 1.0
"""Seconds after which it is looked again whether the record takes what a device tells."""
START_GRACE: Final = 15.0
"""The same at a start, when all devices are still to be found."""


class Supervised(Protocol):
    """A supervisor, as far as it is asked how its device stands."""

    @property
    def state(self) -> State: ...
    @property
    def why(self) -> str: ...


class Link:
    """One device's."""

    def __init__(
        self,
        table: TableLoop,
        device: Device,
        serial: str,
        *,
        back: Callable[[str], None],
        unkept: Callable[[], None],
    ) -> None:
        """`back` is told of a device that takes commands again, `unkept` when something cannot be
        kept."""
        self.serial = serial
        self._unkept = unkept
        self._table = table
        self._back = back
        self._device: Device = device
        self.supervisor: Supervised | None = None
        self._news = asyncio.Event()
        self._away_since: float | None = None
        self._was_ready = False
        self._was_unkept = False
        """Begun anew once it is mended, which is one more moment away."""
        self._told: bool | None = None
        """Whether the table knows it as away; None: as not found yet."""
        self._flags: DeviceState | None = None
        """What the device said of itself when its session began."""
        self._head: int | None = None
        """How far its log went when it was last resumed."""
        self._over = False
        """It has said since that no fault is left."""

    def tell(self, happening: events.AnyHappening) -> None:
        """Something has happened around the device. Does not wait."""
        self._table.later(entry_of(happening, self._device))
        match happening:
            case events.StateChanged(state=State.READY | State.UNKEPT):
                self._back(self.serial)
            case events.Resumed(head=head):
                self._head = head
            case events.KeepFailed():
                self._unkept()
            case events.Informed(state=flags):
                self._flags = flags
            case events.DeviceStands(state=flags) if not flags & DeviceState.FAULTY:
                self._over = True
        self.check()

    def check(self) -> None:
        """The supervisor's state may have changed."""
        self._news.set()

    async def caught_up(self, store: DeviceRecordStore) -> None:
        """Returns when all is recorded that the device had to tell when it was resumed."""
        while self._head is None or store.seq < self._head:
            await asyncio.sleep(POLL)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self._news.clear()
            patience = await self._look()
            try:
                async with asyncio.timeout(patience):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _look(self) -> float | None:
        """Seconds until it is to be looked at again; None: when there is news."""
        supervisor = self.supervisor
        if supervisor is None:
            return None
        now = asyncio.get_running_loop().time()
        unkept = supervisor.state is State.UNKEPT
        if unkept and (self._table.stopped is not None or self._table.waits):
            # Our own record's trouble, and the table knows of it. When that is over, the device has
            # its moment.
            self._away_since = None
            return AGAIN
        if supervisor.state is State.READY:
            self._away_since, self._was_ready = None, True
            await self._is_here()
            return None
        if self._away_since is None or (self._was_unkept and not unkept):
            self._away_since = now
        self._was_unkept = unkept
        grace = GRACE if self._was_ready else START_GRACE
        left = self._away_since + grace - now
        if left > 0 or self._told:
            return None if self._told else left
        self._told = True
        link = self._trouble("link", f"{supervisor.state.value}: {supervisor.why}")
        await self._changes((link,), (link,))  # anew, also where it was not found yet
        return None

    async def _is_here(self) -> None:
        wrong: tuple[DeviceFault, ...] = ()
        right: tuple[DeviceFault, ...] = ()
        if self._told is not False:
            self._told = False
            right = (self._trouble("link"),)
        flags, self._flags = self._flags, None
        over, self._over = self._over, False
        if flags is not None:
            wrong = self._wrong(flags)
            over = over or not flags & DeviceState.FAULTY
        if over:
            right = (*right, self._trouble("fault"))
        if wrong or right:
            await self._changes(wrong, right)

    def _wrong(self, flags: DeviceState) -> tuple[DeviceFault, ...]:
        """What it said that is in the way; of what happens later it tells itself."""
        found = []
        if flags & DeviceState.JAMMED and self._device != "station":
            found.append(self._trouble("jam", "cards are stuck"))
        in_play = card_destination(self._table.state) != "nothing"
        if flags & DeviceState.OPEN and self._device == "shoe" and in_play:
            found.append(self._trouble("cover", "its cover is open"))
        return tuple(found)

    async def _changes(
        self, wrong: tuple[DeviceFault, ...], right: tuple[DeviceFault, ...]
    ) -> None:
        try:
            await self._table.changes(wrong, right)
        except TableStopped:
            return  # the table is closing

    def _trouble(self, cause: FaultCause, why: str = "") -> DeviceFault:
        return DeviceFault(self._device, self.serial, cause, "", why)


# --- for the record ---------------------------------------------------------------------------


def entry_of(happening: events.AnyHappening, device: Device) -> RecordEntry:
    """What is recorded of it. None of them holds a card."""
    return RecordEntry("link", RecordActor("device", device), data_of(happening))


def data_of(happening: events.AnyHappening) -> dict[str, Any]:
    """All that it says but when, in plain words."""
    names = (name for name in happening.__struct_fields__ if name not in ("serial", "at"))
    fields = {name: _plain(getattr(happening, name)) for name in names}
    return {"what": type(happening).__name__, "device": happening.serial, **fields}


def _plain(value: Any) -> Any:
    match value:
        case Flag():
            return value.value
        case Enum():
            return value.name.lower()
        case bytes():
            return value.hex()
        case Struct():
            return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        case tuple() if value and all(isinstance(one, tuple) for one in value):
            return {str(name): _plain(count) for name, count in value}
        case tuple():
            return [_plain(one) for one in value]
        case _:
            return value
