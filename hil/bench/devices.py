"""A shoe, a shuffler and seven stations: what they cost the host, and the way back after a pull."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Final, cast

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from drivers import logging as log_lines
from drivers.devices import DeviceEvent, LinkState, ShoeDriver, ShufflerDriver, StationDriver
from drivers.events import AnyHappening, Held
from drivers.ports import Address, Transport
from drivers.session import AdoptedRing, NothingHeld, Supervisor, WantedDevice
from firmware_protocol.conformance import Profile
from firmware_protocol.device.control import Chord, Draw, Load, Plug, Put, ShufflePace
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.messages.enums import ButtonMask, DeviceClass, Verdict
from firmware_protocol.tablelink.fingerprints import public_bytes
from firmware_protocol.tablelink.plaintext import EventRecord
from hil.bench.measure import Line, Pace, Section
from hil.simulator import DeviceProcess, device_process

OWN: Final = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PUBLIC: Final = public_bytes(OWN)
_TIMEOUT: Final = 20.0


class CursorStore:
    """A RecordStore without a disk: what is measured is the way to it."""

    def __init__(self) -> None:
        self.kept = NO_CURSOR
        self.count = 0

    def cursor(self) -> RecordCursor:
        return self.kept

    def recent(self) -> Mapping[int, bytes]:
        return MappingProxyType({})

    async def store(self, record: EventRecord, event: DeviceEvent) -> None:
        self.kept = RecordCursor(record.epoch, record.seq, record.chain)
        self.count += 1

    async def adopt(self, ring: AdoptedRing) -> None:
        self.kept = ring.cursor or self.kept


class BenchHost:
    """One supervised device, for as long as the bench wants it."""

    def __init__(self, wanted: WantedDevice, keeper: CursorStore) -> None:
        self.keeper = keeper
        self._stands = asyncio.Event()
        self._new = asyncio.Event()
        self.supervisor = Supervisor(wanted, self.keeper, own=lambda: OWN, on_happening=self._tell)
        self.driver = self.supervisor.driver

    def _tell(self, happening: AnyHappening) -> None:
        self._stands.set()
        if isinstance(happening, Held) and happening.verdict is Verdict.NEW_EPOCH:
            self._new.set()

    async def until(self, good: Callable[[Supervisor], object]) -> None:
        async with asyncio.timeout(_TIMEOUT):
            while not good(self.supervisor):
                self._stands.clear()
                await self._stands.wait()

    async def ready(self) -> None:
        async with asyncio.timeout(_TIMEOUT):
            await self.supervisor.ready()

    async def adopt(self) -> None:
        """A new device's ring is adopted, as two people would."""
        while True:
            await self._new.wait()
            self._new.clear()
            with suppress(NothingHeld):  # it has gone meanwhile, and is told of when it is back
                await self.supervisor.adopt(("first", "second"))


@asynccontextmanager
async def hosted(
    wanted: WantedDevice, keeper: CursorStore | None = None
) -> AsyncIterator[BenchHost]:
    log_lines.to_stderr(logging.ERROR)
    host = BenchHost(wanted, keeper or CursorStore())
    works = (host.supervisor.run(), host.adopt())
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield host
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


_SEATS: Final = 7
_TABLE: Final[tuple[Profile, ...]] = ("shoe", "shuffler", *("station",) * _SEATS)
_EVERY_BUTTON: Final = ButtonMask(0x1FF)
_CHORD: Final = Chord(
    1, ("hit", "stand", "double", "split", "surrender", "yes", "no", "bet", "call"), 30
)
_CHORD_EVERY: Final = 0.25
_SECONDS: Final = 4.0


class _BenchDevice:
    def __init__(self, sim: DeviceProcess, host: BenchHost) -> None:
        self.sim = sim
        self.host = host


_Table = list[_BenchDevice]


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


class _HostLoad:
    """What this process takes from its making to told()."""

    def __init__(self, table: _Table) -> None:
        self._table = table
        self._events = self._count()
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def _count(self) -> int:
        return sum(device.host.keeper.count for device in self._table)

    def told(self) -> tuple[float, float]:
        """Percent of one core, and events a second."""
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        return 100 * cpu / wall, (self._count() - self._events) / wall


async def _idle(table: _Table, seconds: float) -> tuple[float, float]:
    cost = _HostLoad(table)
    await asyncio.sleep(seconds)
    return cost.told()


async def _busy(table: _Table, seconds: float) -> tuple[float, float]:
    """More than people do: cards without a pause, a shuffle, all buttons four times a second."""
    shoe, shuffler, *stations = table
    shoe.sim.control.do(Load(decks=8))
    await cast(ShoeDriver, shoe.host.driver).open_gate()
    shuffler.sim.control.do(ShufflePace(int(seconds * 1000)))
    shuffler.sim.control.do(Put(6))
    for station in stations:
        await cast(StationDriver, station.host.driver).arm(1, _EVERY_BUTTON, 1, 60_000)
    shoe.sim.control.do(Draw(count=300, dwell_ms=0))
    await cast(ShufflerDriver, shuffler.host.driver).start(6)
    cost = _HostLoad(table)
    for _ in range(int(seconds / _CHORD_EVERY)):
        for station in stations:
            station.sim.control.do(_CHORD)
        await asyncio.sleep(_CHORD_EVERY)
    return cost.told()


async def _reconnects(device: _BenchDevice, times: int) -> list[float]:
    """Milliseconds from the cable being back to the device being ready."""
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
        idle, _ = await _idle(table, seconds)
        busy, rate = await _busy(table, seconds)
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
