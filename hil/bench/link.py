"""The link to devices: in memory, over a pty, and with nine devices at once.

An event there and back over a pty is measured beside a bare echo over the same pty in the same run,
by the device, which is a child process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
import tty
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, cast

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from drivers import logging as log_lines
from drivers.devices import DeviceEvent, LinkState, ShoeDriver, ShufflerDriver, StationDriver
from drivers.ports import Address, Port, PortListener, PortLost, Transport, open_serial
from drivers.session import AdoptedRing, NothingHeld, Supervisor, WantedDevice
from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    Chord,
    Draw,
    Load,
    Plug,
    Put,
    ShufflePace,
    create_identity,
    pair_directly,
)
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.messages import (
    ButtonMask,
    CardFlags,
    CardRead,
    DeviceClass,
    FrameKind,
    JamCode,
    ShoeJam,
)
from firmware_protocol.tablelink import (
    NO_CHAIN,
    Deframer,
    EventRecord,
    Frame,
    Opener,
    Sealer,
    chained,
    decode_plaintext,
    public_bytes,
)
from hil.bench.bare import child_process, readable, there_and_back
from hil.bench.measure import (
    Contestant,
    Figure,
    Pace,
    Samples,
    Section,
    contest,
    p50_and_p99,
    seconds,
)
from hil.devices import SimulatedShoe
from hil.faults import faulty_device
from hil.ports import set_link
from hil.simulator import DeviceProcess, device_process

OWN: Final = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PUBLIC: Final = public_bytes(OWN)
_TIMEOUT: Final = 20.0
_READ: Final = 4096


# --- frames in memory -------------------------------------------------------------------------

_KEY: Final = bytes(range(32))
_SESSION: Final = 7
_BATCH: Final = 256
"""Frames of one session; then its counters start again."""


def _repeat(run: Callable[[], object]) -> Contestant:
    def repeated(count: int) -> None:
        for _ in range(count):
            run()

    return repeated


def _opening(plaintext: bytes) -> Contestant:
    """The whole decoding of a record: COBS, CRC, tag, counter, fields."""
    sealer = Sealer(_KEY, _SESSION)
    wire = [sealer.seal(plaintext).encode() for _ in range(_BATCH)]

    def run(frames: int) -> None:
        opener, deframer = Opener(_KEY, _SESSION), Deframer()
        for number in range(frames):
            if number % _BATCH == 0:
                opener = Opener(_KEY, _SESSION)
            for frame in deframer.feed(wire[number % _BATCH]):
                if isinstance(frame, Frame):
                    decode_plaintext(opener.open(frame), sender="device")

    return run


def _bare(frames: int) -> None:
    cipher, plaintext, header = ChaCha20Poly1305(_KEY), bytes(56), bytes(8)
    for number in range(frames):
        cipher.encrypt(number.to_bytes(12, "little"), plaintext, header)


def _wire(pace: Pace) -> Samples:
    frame, deframer = Frame(FrameKind.DATA, _SESSION, 1, bytes(range(1, 73))), Deframer()
    encoded = frame.encode()
    event = CardRead(1, 1, 12, 99, 0xFE, CardFlags(0), 40, 1, bytes(11))
    record = chained(NO_CHAIN, epoch=1, seq=1, boot=1, t_us=1, event=event)
    sealer = Sealer(_KEY, _SESSION)
    contestants = {
        "encode": _repeat(frame.encode),
        "decode": _repeat(lambda: deframer.feed(encoded)),
        "seal": _repeat(lambda: sealer.seal(record.encode()).encode()),
        "open": _opening(record.encode()),
        "bare": _bare,
    }
    return contest(contestants, pace)


WIRE: Final = Section(
    "frames and records, in one process without a port",
    _wire,
    (
        Figure("encode", "frames encoded", "frames/s", "encode"),
        Figure("decode", "frames decoded", "frames/s", "decode"),
        Figure("seal", "records sealed and encoded", "frames/s", "seal"),
        Figure("open", "records decoded and opened", "frames/s", "open"),
        Figure("seal_ratio", "sealed, beside the bare cipher", "times", "seal : bare"),
        Figure("open_ratio", "opened, beside the bare cipher", "times", "open : bare"),
    ),
)


# --- the host of a device ---------------------------------------------------------------------


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
        self.supervisor = Supervisor(
            wanted, store, own=lambda: OWN, on_happening=lambda _: self._changed.set()
        )
        self.driver = self.supervisor.driver

    async def until(self, good: Callable[[Supervisor], object]) -> None:
        async with asyncio.timeout(_TIMEOUT):
            while not good(self.supervisor):
                self._changed.clear()
                await self._changed.wait()

    async def ready(self) -> None:
        """Wait until the device is ready. A new device's ring is adopted, as by two people."""
        async with asyncio.timeout(_TIMEOUT):
            while self.supervisor.state is not LinkState.READY:
                self._changed.clear()
                with suppress(NothingHeld):  # not connected yet, or again
                    await self.supervisor.adopt(("first", "second"))
                await self._changed.wait()


@asynccontextmanager
async def hosted(
    wanted: WantedDevice, store: CursorStore | None = None
) -> AsyncIterator[BenchHost]:
    log_lines.to_stderr(logging.ERROR)
    host = BenchHost(wanted, store or CursorStore())
    running = asyncio.create_task(host.supervisor.run())
    try:
        yield host
    finally:
        running.cancel()
        await asyncio.wait((running,))


# --- an event there and back ------------------------------------------------------------------

SIZE: Final = 86
"""Bytes of an event and of an acknowledgement on the wire, and of an echo."""
_SLICE: Final = 40
"""Events, and echoes, in a slice."""


def _now() -> int:
    return time.monotonic_ns() // 1000


class _EventDevice:
    """A simulated shoe behind a pty, which times echoes and events."""

    def __init__(self, link: Path, place: Path) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        set_link(link, os.ttyname(self.slave))
        self.device = faulty_device(place, SimulatedShoe(), now=_now(), sync=False)

    def echo(self) -> list[float]:
        while readable(self.master, 0.05):  # bytes of the former session
            os.read(self.master, _READ)
        return [there_and_back(self.master, SIZE) for _ in range(_SLICE)]

    def event(self) -> list[float]:
        """Returns the seconds from a committed record to its acknowledgement."""
        device, took = self.device, list[float]()

        def acknowledged() -> bool:
            return device.records.room.acked == device.ring.head

        def sending() -> bool:
            session = device.sessions.running
            return session is not None and session.sending is not None

        device.sessions.end(_now())  # the host of the former slice has gone
        self._run_until(lambda: sending() and acknowledged())
        for _ in range(_SLICE):
            device.record(ShoeJam(JamCode.STUCK), _now())
            took.append(seconds(lambda: self._run_until(acknowledged)))
        return took

    def _run_until(self, done: Callable[[], bool]) -> None:
        device, last = self.device, _now() + int(_TIMEOUT * 1e6)
        while True:
            if data := device.take():
                os.write(self.master, data)
            if done():
                return
            if _now() > last:
                raise TimeoutError(f"nothing was acknowledged for {_TIMEOUT:.0f} s")
            due = device.due()
            until = last if due is None else due
            if readable(self.master, max(0, until - _now()) / 1e6):
                device.receive(os.read(self.master, _READ), _now())
            else:
                device.wake(_now())


def _measure_as_device(requests: Connection, link: Path, place: Path) -> None:
    """Answer requests for slices of events or echoes, in the device's process."""
    device = _EventDevice(link, place)
    requests.send("ready")
    slices = {"echo": device.echo, "event": device.event}
    while True:
        requests.send(slices[requests.recv()]())


class _PortEcho(PortListener):
    """Writes back what a port receives."""

    def __init__(self) -> None:
        self.port: Port | None = None

    def received(self, data: bytes) -> None:
        if self.port is not None:
            self.port.write(data)

    def lost(self, why: PortLost) -> None:
        self.port = None


async def _slices(folder: Path, slices: int) -> Samples:
    place, link = folder / "shoe", folder / "port"
    own = create_identity(place, DeviceClass.SHOE, "SH-BENCH")
    pair_directly(place, PUBLIC)
    wanted = WantedDevice(
        DeviceClass.SHOE, own.serial, own.public, Address(Transport.SERIAL, str(link))
    )
    store = CursorStore()
    samples: Samples = {"echo": [], "event": []}
    with child_process(_measure_as_device, link, place) as device:
        await asyncio.to_thread(device.recv)

        async def measure(name: str) -> None:
            device.send(name)
            samples[name] += await asyncio.to_thread(device.recv)

        for _ in range(slices):
            echo = _PortEcho()
            echo.port = port = await open_serial(str(link), echo)
            await measure("echo")
            await port.close()
            async with hosted(wanted, store) as host, asyncio.TaskGroup() as group:
                # The device only runs during a request, so the handshake is part of it.
                group.create_task(measure("event"))
                await host.ready()
    return samples


def _event(pace: Pace) -> Samples:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_slices(Path(folder), pace.slices))


EVENT: Final = Section(
    "one event there and back over a pty, from its record to its acknowledgement",
    _event,
    (
        *p50_and_p99("echo", f"echo, {SIZE} bytes each way"),
        *p50_and_p99("event", f"event, {SIZE} bytes each way"),
        Figure("ratio", "event beside echo, p50", "times", "event / echo", at_most=5.0),
        Figure("ratio_p99", "event beside echo, p99", "times", "event / echo p99"),
    ),
)


# --- nine devices -----------------------------------------------------------------------------

DEVICES_OF_TABLE: Final[tuple[Profile, ...]] = ("shoe", "shuffler", *("station",) * 7)
_EVERY_BUTTON: Final = ButtonMask(0x1FF)
_CHORD: Final = Chord(
    1, ("hit", "stand", "double", "split", "surrender", "yes", "no", "bet", "call"), 30
)
_CHORD_EVERY: Final = 0.25
_SECONDS: Final = 4.0


class _BenchDevice(NamedTuple):
    sim: DeviceProcess
    host: BenchHost


_Table: TypeAlias = list[_BenchDevice]


@asynccontextmanager
async def _table(folder: Path) -> AsyncIterator[_Table]:
    async with AsyncExitStack() as stack:
        table: _Table = []
        for number, profile in enumerate(DEVICES_OF_TABLE):
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


async def _load(table: _Table, work: Awaitable[object]) -> tuple[float, float]:
    """Returns this process's CPU in percent of a core, and events a second, during the work."""

    def now() -> tuple[float, float, int]:
        stored = sum(device.host.store.count for device in table)
        return time.perf_counter(), time.process_time(), stored

    before = now()
    await work
    wall, cpu, events = (one - other for one, other in zip(now(), before, strict=True))
    return 100 * cpu / wall, events / wall


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


async def _reconnect(device: _BenchDevice) -> float:
    """Returns the seconds from plugging the cable in to the device being ready."""
    device.sim.control.do(Plug(connected=False))
    await device.host.until(lambda one: one.state is not LinkState.READY)
    start = time.perf_counter()
    device.sim.control.do(Plug(connected=True))
    await device.host.until(lambda one: one.state is LinkState.READY)
    return time.perf_counter() - start


async def _loads(folder: Path, pace: Pace) -> Samples:
    length = min(_SECONDS, pace.slices * pace.seconds * 4)
    async with _table(folder) as table:
        idle, _ = await _load(table, asyncio.sleep(length))
        await _start(table, length)
        busy, events = await _load(table, _press(table, length))
        back = [await _reconnect(table[-1]) for _ in range(max(3, pace.slices // 2))]
    return {"idle": [idle], "busy": [busy], "rate": [events], "back": back}


def _devices(pace: Pace) -> Samples:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_loads(Path(folder), pace))


DEVICES: Final = Section(
    "a shoe, a shuffler and seven stations on ptys",
    _devices,
    (
        Figure("idle", "host's CPU, nine devices idle", "% of core", "idle"),
        Figure("busy", "host's CPU, nine devices at full rate", "% of core", "busy"),
        Figure("rate", "events meanwhile", "events/s", "rate"),
        Figure("back", "cable back in until ready, median", "ms", "back"),
        Figure("back_most", "the longest of them", "ms", "back max"),
    ),
)
