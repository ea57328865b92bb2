"""Links of a table's devices: each happening is recorded, a longer absence is a device fault.

A device that is away is in its safe state, and its records wait in its ring. So a cable that is
touched stops no game. Nor does a stall of this process, after which each session is started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from msgspec import Struct

from controller.audit.format.records import RecordActor, RecordEntry
from controller.procedure.model.events import Device
from controller.table.intake import card_destination, plain_value
from controller.table.loop import DeviceRecordStore, TableLoop, TableStopped
from controller.table.memory import DeviceFault, FaultCause
from drivers import events
from drivers.devices import LinkState
from drivers.session import HANDSHAKE_TIMEOUT
from firmware_protocol.host import RingHeld, SessionEnding
from firmware_protocol.messages import DeviceState

CATCH_UP_TIMEOUT: Final = 5.0
"""Seconds after a start in which shoe and shuffler send the records from before it."""
POLL_INTERVAL: Final = 0.02
LOST_AFTER: Final = 2.0
"""Seconds for which a device may be away before it is a fault."""
LOST_AFTER_START: Final = 15.0
"""The same after a start, when all devices still have to be found."""
LOST_AFTER_HANDSHAKE: Final = HANDSHAKE_TIMEOUT + LOST_AFTER
"""The same while a device that has answered HELLO starts its session again, because a stall of this
process ended the last one: a slow microcontroller takes seconds for a handshake."""
MAX_EXCUSED: Final = 60.0
"""Seconds of an absence in which a stall of this process starts the time of the device again. A
host that is so busy for longer needs people."""
RECHECK_INTERVAL: Final = 1.0
"""Seconds until it is checked again whether records can be stored."""


class DeviceStatus(Protocol):
    """The state of a supervisor."""

    @property
    def state(self) -> LinkState: ...
    @property
    def why(self) -> str: ...
    @property
    def held(self) -> RingHeld | None: ...


class DeviceLink:
    """Link of one device."""

    def __init__(
        self,
        table: TableLoop,
        device: Device,
        serial: str,
        *,
        on_back: Callable[[str], None],
        on_store_failed: Callable[[], None],
        stalled_until: Callable[[], float],
    ) -> None:
        """`on_back` is called when the device accepts commands again, `on_store_failed` when one
        of its records could not be stored. `stalled_until` returns the loop time at which the last
        stall of this process ended."""
        self.serial = serial
        self.supervisor: DeviceStatus | None = None
        self._table = table
        self._device: Device = device
        self._on_back = on_back
        self._on_store_failed = on_store_failed
        self._stalled_until = stalled_until
        self._changed = asyncio.Event()
        self._away_since: float | None = None
        self._was_ready = False
        self._was_stalled = False
        """A stall of this process has ended its last session."""
        self._was_unkept = False
        """It restarts once records can be stored again, and has its time to come back then."""
        self._lost: bool | None = None
        """Whether the table knows it as lost; None: not found yet."""
        self._flags: DeviceState | None = None
        """The state flags at the start of its session."""
        self._head: int | None = None
        """The end of its log when it was last resumed."""
        self._repaired = False
        """It has reported since that no fault is left."""

    def on_happening(self, happening: events.AnyHappening) -> None:
        """Record a happening. Does not block."""
        self._table.later(entry_of(happening, self._device))
        match happening:
            case events.StateChanged(state=LinkState.READY | LinkState.UNKEPT):
                self._on_back(self.serial)
            case events.Resumed(head=head):
                self._head = head
            case events.KeepFailed():
                self._on_store_failed()
            case events.SessionEnded(why=why):
                self._was_stalled = why is SessionEnding.STALLED
            case events.Informed(state=flags):
                self._flags = flags
            case events.DeviceStands(state=flags) if not flags & DeviceState.FAULTY:
                self._repaired = True
        self.check()

    def check(self) -> None:
        """Check the supervisor's state now."""
        self._changed.set()

    async def caught_up(self, store: DeviceRecordStore) -> None:
        """Returns when all that was in the device's log when it was resumed is recorded."""
        while self._head is None or store.seq < self._head:
            await asyncio.sleep(POLL_INTERVAL)

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self._changed.clear()
            delay = await self._check()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._changed.wait()

    async def _check(self) -> float | None:
        """Returns seconds until the next check; None: when something changes."""
        supervisor = self.supervisor
        if supervisor is None:
            return None
        now = asyncio.get_running_loop().time()
        if supervisor.held is not None and supervisor.held.is_stored_elsewhere:
            await self._behind(supervisor.why)
            return None
        unkept = supervisor.state is LinkState.UNKEPT
        if unkept and (self._table.stopped is not None or self._table.append_seconds):
            # The fault is the record's, and the table knows it. After it, the device has its time.
            self._away_since = None
            return RECHECK_INTERVAL
        if supervisor.state is LinkState.READY:
            self._away_since, self._was_ready = None, True
            await self._ready()
            return None
        if self._away_since is None or (self._was_unkept and not unkept):
            self._away_since = now
        self._was_unkept = unkept
        since = self._away_since
        if now - since < MAX_EXCUSED:
            since = max(since, self._stalled_until())
        left = since + self._lost_after(supervisor.state) - now
        if left > 0 or self._lost:
            return None if self._lost else left
        self._lost = True
        fault = self._fault("link", f"{supervisor.state.value}: {supervisor.why}")
        await self._report((fault,), (fault,))  # again, also if it was not found yet
        return None

    def _lost_after(self, state: LinkState) -> float:
        usual = LOST_AFTER if self._was_ready else LOST_AFTER_START
        starts = self._was_stalled and state in (LinkState.HANDSHAKING, LinkState.RESUMING)
        return max(usual, LOST_AFTER_HANDSHAKE) if starts else usual

    async def _behind(self, why: str) -> None:
        """The record does not have events that the device was told are stored: the table is held
        at once, until two people decide."""
        self._lost = True
        await self._report((self._fault("behind", why),), (self._fault("link"),))

    async def _ready(self) -> None:
        wrong: tuple[DeviceFault, ...] = ()
        right: tuple[DeviceFault, ...] = ()
        if self._lost is not False:
            self._lost = False
            right = (self._fault("link"), self._fault("behind"))
        flags, self._flags = self._flags, None
        repaired, self._repaired = self._repaired, False
        if flags is not None:
            wrong = self._faults_in(flags)
            repaired = repaired or not flags & DeviceState.FAULTY
        if repaired:
            right = (*right, self._fault("fault"))
        if wrong or right:
            await self._report(wrong, right)

    def _faults_in(self, flags: DeviceState) -> tuple[DeviceFault, ...]:
        """Faults at the start of a session; the device sends an event for each later one."""
        found = []
        if flags & DeviceState.JAMMED and self._device != "station":
            found.append(self._fault("jam", "cards are stuck"))
        in_play = card_destination(self._table.state) != "nothing"
        if flags & DeviceState.OPEN and self._device == "shoe" and in_play:
            found.append(self._fault("cover", "its cover is open"))
        return tuple(found)

    async def _report(self, wrong: tuple[DeviceFault, ...], right: tuple[DeviceFault, ...]) -> None:
        with suppress(TableStopped):  # the table is closing
            await self._table.change_faults(wrong, right)

    def _fault(self, cause: FaultCause, why: str = "") -> DeviceFault:
        return DeviceFault(self._device, self.serial, cause, "", why)


# --- for the record ---------------------------------------------------------------------------


def entry_of(happening: events.AnyHappening, device: Device) -> RecordEntry:
    """The record entry of a happening. No happening contains a card."""
    return RecordEntry("link", RecordActor("device", device), data_of(happening))


def data_of(happening: events.AnyHappening) -> dict[str, Any]:
    """All fields but the time, as plain values."""
    names = (name for name in happening.__struct_fields__ if name not in ("serial", "at"))
    fields = {name: _plain(getattr(happening, name)) for name in names}
    return {"what": type(happening).__name__, "device": happening.serial, **fields}


def _plain(value: Any) -> Any:
    match value:
        case Struct():
            return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        case tuple() if value and all(isinstance(one, tuple) for one in value):
            return {str(name): _plain(count) for name, count in value}
        case tuple():
            return [_plain(one) for one in value]
        case _:
            return plain_value(value)
