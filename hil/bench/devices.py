"""The host's CPU load with nine devices, and the time to reconnect one."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, cast

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from drivers import logging as log_lines
from drivers.devices import DeviceEvent, LinkState, ShoeDriver, ShufflerDriver, StationDriver
from drivers.events import AnyHappening, Held
from drivers.ports import Address, Transport
from drivers.session import AdoptedRing, NothingHeld, Supervisor, WantedDevice
from firmware_protocol.conformance import Profile
from firmware_protocol.device.control import Chord, Draw, Load, Plug, Put, ShufflePace
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.messages import ButtonMask, DeviceClass, Verdict
from firmware_protocol.tablelink.fingerprints import public_bytes
from firmware_protocol.tablelink.plaintext import EventRecord
from hil.bench.measure import Line, Pace, Section
from hil.simulator import DeviceProcess, device_process

OWN: Final = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PUBLIC: Final = public_bytes(OWN)
_TIMEOUT: Final = 20.0
_SEATS: Final = 7
_TABLE: Final[tuple[Profile, ...]] = ("shoe", "shuffler", *("station",) * _SEATS)
_EVERY_BUTTON: Final = ButtonMask(0x1FF)
_CHORD: Final = Chord(
    1, ("hit", "stand", "double", "split", "surrender", "yes", "no", "bet", "call"), 30
)
_CHORD_EVERY: Final = 0.25
_SECONDS: Final = 4.0


class CursorStore:
    """A RecordStore in memory, so that no disk is measured."""

    def __init__(self) -> None:
        self.position = NO_CURSOR
        self.count = 0

    def cursor(self) -> RecordCursor:
        return self.position

    def recent(self) -> Mapping[int, bytes]:
        return MappingProxyType({})

    async def store(self, record: EventRecord, event: DeviceEvent) -> None:
        self.position = RecordCursor(record.epoch, record.seq, record.chain)
        self.count += 1

    async def adopt(self, ring: AdoptedRing) -> None:
        self.position = ring.cursor or self.position


class BenchHost:
    """The host's supervisor of one device."""

    def __init__(self, wanted: WantedDevice, store: CursorStore) -> None:
        self.store = store
        self._changed = asyncio.Event()
        self._held = asyncio.Event()
        self.supervisor = Supervisor(
            wanted, store, own=lambda: OWN, on_happening=self._on_happening
        )
        self.driver = self.supervisor.driver

    def _on_happening(self, happening: AnyHappening) -> None:
        self._changed.set()
        if isinstance(happening, Held) and happening.verdict is Verdict.NEW_EPOCH:
            self._held.set()

    async def until(self, good: Callable[[Supervisor], object]) -> None:
        async with asyncio.timeout(_TIMEOUT):
            while not good(self.supervisor):
                self._changed.clear()
                await self._changed.wait()

    async def ready(self) -> None:
        async with asyncio.timeout(_TIMEOUT):
            await self.supervisor.ready()

    async def adopt(self) -> None:
        """Adopt each new device's ring, as with two-person approval."""
        while True:
            await self._held.wait()
            self._held.clear()
            with suppress(NothingHeld):  # disconnected; it is held again after it is back
                await self.supervisor.adopt(("first", "second"))


@asynccontextmanager
async def hosted(
    wanted: WantedDevice, store: CursorStore | None = None
) -> AsyncIterator[BenchHost]:
    log_lines.to_stderr(logging.ERROR)
    host = BenchHost(wanted, store or CursorStore())
    tasks = [asyncio.create_task(work) for work in (host.supervisor.run(), host.adopt())]
    try:
        yield host
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _BenchDevice(NamedTuple):
    sim: DeviceProcess
    host: BenchHost


_Table: TypeAlias = list[_BenchDevice]


@asynccontextmanager
async def _table(folder: Path) -> AsyncIterator[_Table]:
    async with AsyncExitStack() as stack:
        table: _Table = []
        for number, profile in enumerate(_TABLE):
            serial = f"{profile[:2].upper()}-{number:04}"
            place = folder / f"{profile}-{number}"
            sim = stack.enter_context(
                device_process(profile, place, "--serial", serial, paired_with=PUBLIC)
            )
            address = Address(Transport.SERIAL, str(sim.port))
            wanted = WantedDevice(DeviceClass[profile.upper()], serial, sim.key, address)
            table.append(_BenchDevice(sim, await stack.enter_async_context(hosted(wanted))))
        for device in table:
            await device.host.ready()
        yield table


def _stored(table: _Table) -> int:
    return sum(device.host.store.count for device in table)


async def _load(table: _Table, work: Awaitable[object]) -> tuple[float, float]:
    """Returns this process's CPU in percent of a core, and events a second, during the work."""
    events, cpu, wall = _stored(table), time.process_time(), time.perf_counter()
    await work
    wall = time.perf_counter() - wall
    return 100 * (time.process_time() - cpu) / wall, (_stored(table) - events) / wall


async def _start(table: _Table, seconds: float) -> None:
    """Start drawing cards without pauses and shuffling, and arm all buttons."""
    shoe, shuffler, *stations = table
    shoe.sim.control.do(Load(decks=8))
    await cast(ShoeDriver, shoe.host.driver).open_gate()
    shuffler.sim.control.do(ShufflePace(int(seconds * 1000)))
    shuffler.sim.control.do(Put(6))
    for station in stations:
        await cast(StationDriver, station.host.driver).arm(1, _EVERY_BUTTON, 1, 60_000)
    shoe.sim.control.do(Draw(count=300, dwell_ms=0))
    await cast(ShufflerDriver, shuffler.host.driver).start(6)


async def _press(table: _Table, seconds: float) -> None:
    """Press all buttons of all stations four times a second."""
    for _ in range(int(seconds / _CHORD_EVERY)):
        for station in table[2:]:
            station.sim.control.do(_CHORD)
        await asyncio.sleep(_CHORD_EVERY)


async def _reconnects(device: _BenchDevice, times: int) -> list[float]:
    """Returns the milliseconds from plugging the cable in to the device being ready."""
    out = []
    for _ in range(times):
        device.sim.control.do(Plug(connected=False))
        await device.host.until(lambda one: one.state is not LinkState.READY)
        begun = time.perf_counter()
        device.sim.control.do(Plug(connected=True))
        await device.host.until(lambda one: one.state is LinkState.READY)
        out.append(1000 * (time.perf_counter() - begun))
    return out


async def _run(folder: Path, pace: Pace) -> list[Line]:
    seconds = min(_SECONDS, pace.slices * pace.seconds * 4)
    async with _table(folder) as table:
        idle, _ = await _load(table, asyncio.sleep(seconds))
        await _start(table, seconds)
        busy, rate = await _load(table, _press(table, seconds))
        back = await _reconnects(table[-1], max(3, pace.slices // 2))
    return [
        Line("idle", "host's CPU, nine devices idle", idle, "% of core"),
        Line("busy", "host's CPU, nine devices at full rate", busy, "% of core"),
        Line("rate", "events meanwhile", rate, "events/s"),
        Line("back", "cable back in until ready, median", median(back), "ms"),
        Line("back_most", "the longest of them", max(back), "ms"),
    ]


def _measure(pace: Pace) -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_run(Path(folder), pace))


DEVICES: Final = Section("devices", "a shoe, a shuffler and seven stations on ptys", _measure)
