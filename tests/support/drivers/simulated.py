"""An event loop in simulated time, with devices, a record store and supervisors on it.

Where nothing is to be done, time jumps to the next timer: seconds of a device's life take
milliseconds, and every run is the same. Nothing here may wait for a thread or a real descriptor.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from drivers import events as happenings
from drivers.devices import DeviceEvent, LinkState
from drivers.ports import Address, PortListener, PortLost, PortRefused, Transport
from drivers.session import AdoptedRing, Supervisor, WantedDevice
from firmware_protocol.device import (
    Answer,
    ControlRequest,
    Mechanism,
    Plug,
    create_identity,
    pair_directly,
)
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.messages import DeviceClass, FrameKind
from firmware_protocol.tablelink import Deframer, EventRecord, Frame
from hil.devices import SimulatedShoe as SimShoe
from hil.devices import SimulatedShuffler as SimShuffler
from hil.devices import SimulatedStation as SimStation
from hil.simulator import SimulatedDevice

T = TypeVar("T")
START_US = 1_000_000_000
OWN = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
MECHANISMS: Mapping[DeviceClass, Callable[[], Mechanism]] = {
    DeviceClass.SHOE: SimShoe,
    DeviceClass.SHUFFLER: SimShuffler,
    DeviceClass.STATION: SimStation,
}


# --- time ---------------------------------------------------------------------------------------


class Standstill(AssertionError):
    """Nothing will ever happen again, and someone waits for it."""


class _Jumping(selectors.SelectSelector):
    loop: SimulatedLoop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise Standstill
        self.loop.us += max(1, round(timeout * 1_000_000))
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.us = START_US
        selector = _Jumping()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.us / 1_000_000


def simulate(main: Coroutine[Any, Any, T]) -> T:
    """Run in simulated time. Tasks that are left over fail."""

    async def whole() -> T:
        result = await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        loop: Any = asyncio.get_running_loop()
        timers = [timer for timer in loop._scheduled if not timer.cancelled()]
        assert not timers, f"timers left behind: {timers}"
        return result

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(whole())


def now_us() -> int:
    return round(asyncio.get_running_loop().time() * 1_000_000)


# --- devices ------------------------------------------------------------------------------------


class Plugged:
    """A stand on the loop: it lives whether or not its port is open."""

    def __init__(
        self,
        place: Path,
        device_class: DeviceClass = DeviceClass.SHOE,
        serial: str = "SH-0001",
        *,
        paired: bool = True,
        make: Callable[[], Mechanism] | None = None,
        rng: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self.identity = create_identity(place, device_class, serial, rng=rng)
        if paired:
            pair_directly(place, OWN.public_key().public_bytes_raw())
        self.place = place
        self.stand = SimulatedDevice(
            place, make or MECHANISMS[device_class], now=now_us(), sync=False, random=rng
        )
        self.listener: PortListener | None = None
        self.opened = 0
        self.slow: tuple[float, float] | None = None
        """Seconds that it takes for HS1, and for the next DATA: a slow microcontroller."""
        self._frames = Deframer()
        self._slow_at = FrameKind.HS1
        self._busy: asyncio.TimerHandle | None = None
        self._unread = b""
        self._timer: asyncio.TimerHandle | None = None
        self._pump()

    @property
    def address(self) -> Address:
        return Address(Transport.SERIAL, f"/dev/sim{self.stand.port_number}")

    @property
    def wanted(self) -> WantedDevice:
        one = self.identity
        return WantedDevice(one.device_class, one.serial, one.public)

    def request(self, request: ControlRequest) -> Answer:
        answer = self.stand.request(request, now_us())
        if isinstance(request, Plug) and not request.connected:
            self.hang_up("unplugged")
        self._pump()
        return answer

    def replug(self) -> None:
        """Pull it out and plug it in again at once."""
        self.request(Plug(connected=False))
        self.request(Plug(connected=True))

    def hang_up(self, why: str) -> None:
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.lost(PortLost(why))

    def to_device(self, data: bytes) -> None:
        for frame in () if self.slow is None else self._frames.feed(data):
            if self.slow and isinstance(frame, Frame) and frame.kind is self._slow_at:
                first = frame.kind is FrameKind.HS1
                self._slow_at = FrameKind.DATA if first else FrameKind.HS1
                wait = self.slow[0 if first else 1]
                self._busy = asyncio.get_running_loop().call_later(wait, self._read)
        self._unread += data
        if self._busy is None:
            self._read()

    def _read(self) -> None:
        data, self._unread, self._busy = self._unread, b"", None
        self.stand.receive(data, now_us())
        self._pump()

    def switch_off(self) -> None:
        self.hang_up("the test is over")
        for timer in (self._timer, self._busy):
            if timer is not None:
                timer.cancel()

    def _pump(self) -> None:
        self.stand.wake(now_us())
        data = self.stand.take()
        if data:
            asyncio.get_running_loop().call_soon(self._hear, self.listener, data)
        if self._timer is not None:
            self._timer.cancel()
        due = self.stand.due()
        if due is not None:
            wait = max(0, due - now_us()) / 1_000_000
            self._timer = asyncio.get_running_loop().call_later(wait, self._pump)

    def _hear(self, listener: PortListener | None, data: bytes) -> None:
        if listener is not None and listener is self.listener:
            listener.received(data)


def stand_still(seconds: float, *devices: Plugged) -> None:
    """The host does not run for so long; the devices do. What they send waits in their ports."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    end = loop.us + round(seconds * 1_000_000)
    for device in devices:
        at = loop.us
        while (due := device.stand.due()) is not None and due <= end:
            at = max(at, due)
            device.stand.wake(at)
        if data := device.stand.take():
            loop.call_soon(device._hear, device.listener, data)
    loop.us = end


class SimPort:
    """The Port interface on a plugged stand."""

    def __init__(self, plugged: Plugged, listener: PortListener) -> None:
        self._plugged = plugged
        self._listener = listener
        self.name = plugged.address.where
        plugged.listener = listener
        plugged.opened += 1

    def write(self, data: bytes) -> None:
        if self._plugged.listener is self._listener:
            self._plugged.to_device(data)

    async def close(self) -> None:
        if self._plugged.listener is self._listener:
            self._plugged.listener = None


class Desk:
    """All that is plugged in at a table: by address, as ports; by serial number, as finding."""

    def __init__(self) -> None:
        self.devices: list[Plugged] = []
        self.refusal: str | None = None
        """Why no port can be opened today."""

    def plug(self, device: Plugged) -> Plugged:
        self.devices.append(device)
        return device

    async def find(self, wanted: WantedDevice) -> Address:
        for device in self.devices:
            if device.stand.plugged and device.identity.serial == wanted.serial:
                return device.address
        raise PortRefused(f"no port has the serial number {wanted.serial}", absent=True)

    async def open(self, address: Address, listener: PortListener) -> SimPort:
        await asyncio.sleep(0)
        for device in self.devices:
            if device.stand.plugged and device.address == address:
                if self.refusal is not None:
                    raise PortRefused(self.refusal)
                if device.listener is not None:
                    raise PortRefused(f"{address}: is open already")
                return SimPort(device, listener)
        raise PortRefused(f"{address}: no such port", absent=True)


# --- storing ------------------------------------------------------------------------------------


def stubborn_store(
    may_end: asyncio.Event, failure: OSError | None = None
) -> Callable[..., Awaitable[None]]:
    """MemoryStore.store() that ignores its cancellation until it may end, and then fails or not."""

    async def store(*_: object) -> None:
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()
        if failure is not None:
            raise failure

    return store


async def never(*_: object) -> None:
    """What a store or a port does that never comes to an end."""
    await asyncio.sleep(3600)


class MemoryStore:
    """Stores records in memory, the record and the cursor in one step, and is as strict as the
    record about which record may follow which."""

    def __init__(self, cursor: RecordCursor = NO_CURSOR) -> None:
        self.records: list[EventRecord] = []
        self.events: list[DeviceEvent] = []
        """What the records are to the driver."""
        self.adoptions: list[AdoptedRing] = []
        self.failing: OSError | None = None
        self.slow = 0.0
        self._cursor = cursor
        self._adopted: AdoptedRing | None = None

    @classmethod
    def at(cls, records: Sequence[EventRecord]) -> MemoryStore:
        """A store that has these."""
        made = cls()
        made.records = list(records)
        last = made.records[-1]
        made._cursor = RecordCursor(last.epoch, last.seq, last.chain)
        return made

    def cursor(self) -> RecordCursor:
        return self._cursor

    def recent(self) -> Mapping[int, bytes]:
        epoch = self._cursor.epoch
        return MappingProxyType(
            {one.seq: one.chain for one in self.records[-64:] if one.epoch == epoch}
        )

    async def store(self, record: EventRecord, event: DeviceEvent) -> None:
        await asyncio.sleep(self.slow)
        if self.failing is not None:
            raise self.failing
        if not self._follows(record):
            raise ValueError(f"record {record.seq} is not the one after {self._cursor}")
        self.records.append(record)
        self.events.append(event)
        self._cursor = RecordCursor(record.epoch, record.seq, record.chain)
        self._adopted = None

    def _follows(self, record: EventRecord) -> bool:
        if self._adopted is not None and record.epoch == self._adopted.held.epoch:
            return record.seq >= self._adopted.next
        if not self._cursor.epoch:
            return self._adopted is None
        return (record.epoch, record.seq) == (self._cursor.epoch, self._cursor.seq + 1)

    async def adopt(self, ring: AdoptedRing) -> None:
        if self.failing is not None:
            raise self.failing
        self.adoptions.append(ring)
        self._adopted = ring
        self._cursor = ring.cursor or self._cursor

    @property
    def seqs(self) -> list[int]:
        return [record.seq for record in self.records]


# --- supervisors --------------------------------------------------------------------------------


class Watched:
    """A supervisor, what it told, and what came out of it."""

    def __init__(
        self,
        desk: Desk,
        wanted: WantedDevice,
        store: MemoryStore | None = None,
        *,
        find: Callable[[WantedDevice], Awaitable[Address]] | None = None,
    ) -> None:
        self.store: Any = store or MemoryStore()
        """A MemoryStore; tests replace its methods."""
        self.happenings: list[happenings.AnyHappening] = []
        self.also: Callable[[happenings.AnyHappening], None] | None = None
        """Called with each happening too."""
        self.unable: type | None = None
        """The kind of happening that raises in the listener."""
        self.own: Callable[[], X25519PrivateKey] = lambda: OWN
        self.supervisor = Supervisor(
            wanted,
            self.store,
            own=self._give_own,
            on_happening=self._tell,
            find=find or desk.find,
            opener=desk.open,
            clock=now_us,
        )

    @property
    def driver(self) -> Any:
        return self.supervisor.driver

    def _tell(self, happening: happenings.AnyHappening) -> None:
        self.happenings.append(happening)
        if self.also is not None:
            self.also(happening)
        if self.unable is not None and isinstance(happening, self.unable):
            raise BrokenPipeError("nobody reads the log")

    def _give_own(self) -> X25519PrivateKey:
        return self.own()

    @property
    def state(self) -> LinkState:
        return self.supervisor.state

    def of(self, kind: type[T]) -> list[T]:
        return [one for one in self.happenings if isinstance(one, kind)]

    def whys(self, kind: type[Any]) -> list[Any]:
        """The reasons in the happenings of this kind."""
        return [one.why for one in self.of(kind)]

    @property
    def states(self) -> list[LinkState]:
        return [one.state for one in self.of(happenings.StateChanged)]

    def events(self) -> list[DeviceEvent]:
        """All that were stored since the last call."""
        events: list[DeviceEvent] = self.store.events
        self.store.events = []
        return events

    async def until(self, *states: LinkState, within: float = 30.0) -> None:
        await until(lambda: self.state in states, within)

    async def ready(self, within: float = 30.0) -> None:
        """Ready; a ring that the host has never seen is adopted by two people."""
        await until(
            lambda: self.state is LinkState.READY or self.supervisor.held is not None, within
        )
        if self.state is not LinkState.READY:
            await self.supervisor.adopt(("Ann", "Bob"))
            await self.until(LinkState.READY, within=within)


async def until(true: Callable[[], bool], within: float = 30.0) -> None:
    """Wait for something, in steps of a simulated millisecond."""
    async with asyncio.timeout(within):
        while not true():
            await asyncio.sleep(0.001)


async def stopped(*tasks: asyncio.Task[Any]) -> None:
    """Cancel these and wait until they have ended."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def running(*watched: Watched) -> Any:
    """These supervisors run; afterwards they have ended and left nothing."""
    tasks = [asyncio.create_task(one.supervisor.run()) for one in watched]
    try:
        yield
        for task in tasks:
            assert not task.done(), task
    finally:
        await stopped(*tasks)


@asynccontextmanager
async def table(
    folder: Path,
    device_class: DeviceClass = DeviceClass.SHOE,
    serial: str = "SH-0001",
    **options: Any,
) -> Any:
    """One device and its supervisor, ready."""
    desk = Desk()
    device = desk.plug(Plugged(folder / "device", device_class, serial))
    watched = Watched(desk, device.wanted, **options)
    try:
        yield desk, device, watched
    finally:
        for one in desk.devices:
            one.switch_off()


_DRIVEN: Mapping[str, tuple[DeviceClass, str]] = {
    "shoe": (DeviceClass.SHOE, "SH-0001"),
    "shuffler": (DeviceClass.SHUFFLER, "SF-1"),
    "station": (DeviceClass.STATION, "ST-1"),
}


def supervised(
    test: Callable[..., Coroutine[Any, Any, None]],
    *,
    first: Callable[[Plugged, Watched], Awaitable[object]] | None = None,
) -> Callable[..., None]:
    """Run the test in simulated time, with a device whose supervisor runs.

    Arguments of these names are given to it: `desk`, `device`, `watched`, `tmp_path`, and `shoe`,
    `shuffler` or `station`: its driver, once it is ready. Without the last it is a shoe. `first` is
    what happens before the test."""
    parameters = inspect.signature(test).parameters
    names = {"desk", "device", "watched", "tmp_path", *_DRIVEN} & parameters.keys()
    driver = next((name for name in _DRIVEN if name in names), None)

    def run(tmp_path: Path, **others: Any) -> None:
        async def main() -> None:
            device_class, serial = _DRIVEN[driver or "shoe"]
            place = table(tmp_path, device_class, serial)
            async with place as (desk, device, watched), running(watched):
                given = {"desk": desk, "device": device, "watched": watched, "tmp_path": tmp_path}
                if driver is not None:
                    await watched.ready()
                    given[driver] = watched.driver
                if first is not None:
                    await first(device, watched)
                await test(**{name: given[name] for name in names}, **others)

        simulate(main())

    rest = [one for name, one in parameters.items() if name not in names]
    folder = inspect.Parameter("tmp_path", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    run.__signature__ = inspect.Signature([folder, *rest])  # type: ignore[attr-defined]
    return run


when_ready = partial(supervised, first=lambda _, watched: watched.ready())
"""As `supervised`; the device is ready when the test begins."""
