"""Runs simulated devices in real time: in an event loop, or in a process of their own.

    live = LiveDevice(device)
    live.attach(PtyAdapter(PtyPort(link, live.receive)))
    live.close()

    async with device_in_loop("shoe", folder / "shoe", create=True) as live:
        live.request(Draw(count=2))

    with device_process("shoe", folder / "shoe", breaks=("chain-wrong",)) as sim:
        sim.control.do(Draw(count=2))           # sim.port, sim.described["label"], ...

The clock is time.monotonic in microseconds, which the event loop uses too. Nothing in the event
loop blocks: bytes, requests and timers are handled by callbacks.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol

from msgspec import Struct

from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    Answer,
    CannotDo,
    ControlRequest,
    Describe,
    DeviceIdentity,
    FolderProblem,
    Mechanism,
    Plug,
    create_identity,
    load_identity,
    naming,
)
from firmware_protocol.messages import DeviceClass
from hil.control import BY_CLASS, ControlClient, ControlServer
from hil.devices import class_of
from hil.ports import BusFull, LinkTaken, PtyPort, UsbDevice, UsbStatus
from hil.simulator.device import SimulatedDevice


def now() -> int:
    """The clock of simulated devices in real time, in microseconds."""
    return time.monotonic_ns() // 1000


LATE_US: Final = 250_000
"""Microseconds after which a timer is late because this process did not run."""


class PortAdapter(Protocol):
    """A port that follows the state of the device."""

    def follow(self, device: SimulatedDevice) -> None:
        """Plug or unplug the port, as the device's cable and power are."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class PtyAdapter:
    """Serial: the adapter is in the cable, so the port stays while the device has no power."""

    def __init__(self, port: PtyPort) -> None:
        self.port = port
        self.write = port.write
        self.close = port.close

    def follow(self, device: SimulatedDevice) -> None:
        if device.plugged:
            self.port.plug(device.port_number)
        else:
            self.port.unplug()
        # As text for JSON: a folder's name need not be UTF-8.
        name = os.fsencode(self.port.name).decode(errors="replace")
        device.facts["port"] = name if self.port.plugged else None


class UsbAdapter:
    """USB: the device itself is on the bus, so each start plugs it in again."""

    def __init__(self, port: UsbDevice) -> None:
        self.port = port
        self.write = port.write
        self.close = port.close
        self._starts = 0

    def follow(self, device: SimulatedDevice) -> None:
        if not (device.plugged and device.powered) or device.starts != self._starts:
            self.port.unplug()
        if device.plugged and device.powered:
            self._starts = device.starts
            self.port.plug(device.port_number)
        device.facts["usb_address"] = self.port.address
        if device.reading:
            self.port.resume()


class LiveDevice:
    """Runs a device in the event loop in which it is created."""

    def __init__(self, device: SimulatedDevice) -> None:
        self.device = device
        self._loop = asyncio.get_running_loop()
        self._ports: list[PortAdapter] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due: int | None = None
        """When the timer is due."""
        self._closed = False
        self._pump()

    def attach(self, port: PortAdapter) -> None:
        self._ports.append(port)
        port.follow(self.device)

    def receive(self, data: bytes) -> None:
        """Bytes from the host. If this process stood still, they were there before the timeouts of
        the device, which follow: a real device would have read them in time."""
        late = self._due is not None and now() - self._due >= LATE_US
        self.device.receive(data, self._due if late and self._due is not None else now())
        if late:
            self.device.wake(now())
        self._pump()

    def request(self, request: ControlRequest) -> Answer:
        """Carry out a request. Raises CannotDo."""
        former = self.device.port_number
        try:
            try:
                return self.device.request(request, now())
            finally:
                self._pump()
        except (LinkTaken, BusFull) as taken:
            if not isinstance(request, Plug):
                raise
            self.device.undo_plug(former)
            self._pump()
            raise CannotDo(str(taken), "port_number of a port that is free") from None

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for port in self._ports:
            port.close()

    def _wake(self) -> None:
        self.device.wake(now())
        self._pump()

    def _pump(self) -> None:
        """Write the output, update the ports, and set the timer."""
        if self._closed:
            return
        data = self.device.take()
        for port in self._ports:
            if data:
                port.write(data)
            port.follow(self.device)
        if self._timer is not None:
            self._timer.cancel()
        due = self._due = self.device.due()
        self._timer = None if due is None else self._loop.call_at(due / 1e6, self._wake)


LOCK: Final = "in-use"
"""The lock file of exclusive_use()."""


class DeviceSetup(Struct, frozen=True, kw_only=True):
    """What to run, and its port: a serial port or a USB bus."""

    device_class: DeviceClass
    place: Path
    control: Path
    port: Path | None = None
    usb: Path | None = None
    gone: UsbStatus = UsbStatus.NO_DEVICE
    breaks: tuple[str, ...] = ()
    seats: tuple[int, ...] = ()
    gap_ms: int | None = None
    """Of a shoe: the pause between two cards; None: the default."""
    seed: int | None = None
    sync: bool = True

    def mechanism(self) -> Callable[[], Mechanism]:
        options: dict[str, Any] = {"seats": self.seats} if self.seats else {}
        if self.gap_ms is not None and self.device_class is DeviceClass.SHOE:
            options["gap_ms"] = self.gap_ms
        return partial(class_of(self.device_class).mechanism, **options)

    def random(self, purpose: str) -> Callable[[int], bytes]:
        """A source of random bytes. With a seed it is reproducible, and not secret."""
        if self.seed is None:
            return secrets.token_bytes
        return Random(f"{self.seed} {purpose}").randbytes


@contextmanager
def exclusive_use(place: Path) -> Iterator[None]:
    """Lock the folder. Raises FolderProblem if another process runs the device."""
    file = place / LOCK
    with naming(file):
        lock = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        try:
            with naming(file):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = "only one process can run a device"
            raise FolderProblem(place, "is in use", what) from None
        yield
    finally:
        os.close(lock)


@asynccontextmanager
async def running_device(setup: DeviceSetup) -> AsyncIterator[LiveDevice]:
    """Run the device with its port and control socket; both are removed at the end."""
    own = load_identity(setup.place)
    device = SimulatedDevice(
        setup.place,
        setup.mechanism(),
        now=now(),
        breaks=set(setup.breaks),
        sync=setup.sync,
        random=setup.random("device"),
    )
    live = LiveDevice(device)
    try:
        control = ControlServer(setup.control, BY_CLASS[own.device_class], live.request)
        try:
            await control.start()
            _attach(live, setup, own)
            yield live
        finally:
            await control.close()
    finally:
        live.close()


def _attach(live: LiveDevice, setup: DeviceSetup, own: DeviceIdentity) -> None:
    if setup.port is not None:
        live.attach(PtyAdapter(PtyPort(setup.port, live.receive)))
    if setup.usb is not None:
        names = (own.maker, own.model, own.serial)
        port = UsbDevice(
            setup.usb, names, live.receive, reading=lambda: live.device.reading, gone=setup.gone
        )
        live.attach(UsbAdapter(port))


async def run(setup: DeviceSetup, ready: Callable[[Answer], None]) -> None:
    """Run until SIGTERM or SIGINT; raises the error if the device fails. Calls `ready` once it
    runs. The caller holds exclusive_use() of the folder."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def stop() -> None:
        if not ended.done():
            ended.set_result(None)

    def fail(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not ended.done():  # the first error is raised
            ended.set_exception(context.get("exception") or RuntimeError(context["message"]))

    loop.set_exception_handler(fail)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    async with running_device(setup) as live:
        ready(live.request(Describe()))
        await ended


START_TIMEOUT: Final = 60.0
"""Seconds until the device runs, on a busy machine too."""
STOP_TIMEOUT: Final = 10.0
"""Seconds until the process ends after SIGTERM."""


class DeviceFailed(Exception):
    """The device did not start, or ended with an error: its stderr."""


class DeviceProcess(Struct, frozen=True):
    """A simulated device in its own process."""

    process: subprocess.Popen[str]
    control: ControlClient
    described: Answer
    """The fields of `describe` when it started."""
    port: Path | None
    usb: Path | None

    @property
    def serial(self) -> str:
        return str(self.described["serial"])

    @property
    def label(self) -> str:
        return str(self.described["label"])

    @property
    def key(self) -> bytes:
        """The device's public key."""
        return bytes.fromhex(self.described["key"])


@contextmanager
def device_process(
    profile: Profile,
    place: Path,
    *options: str,
    usb: Path | None = None,
    breaks: Sequence[str] = (),
    paired_with: bytes | None = None,
) -> Iterator[DeviceProcess]:
    """Run `holecard sim` with further `options`. The device is created if it does not exist. At the
    end it gets SIGTERM; raises DeviceFailed if it exits with an error."""
    command = [sys.executable, "-m", "hil.simulator", profile, "--dir", str(place)]
    command += ["--create", "--no-sync", "--json", *options]
    command += [] if usb is None else ["--usb", str(usb)]
    command += [word for name in breaks for word in ("--break", name)]
    command += [] if paired_with is None else ["--paired-with", paired_with.hex()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        described = _read_ready_line(process)
        port = None if usb is not None else Path(described["port"])
        with ControlClient(Path(described["control"])) as control:
            yield DeviceProcess(process, control, described, port, usb)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    _end(process)


def _read_ready_line(process: subprocess.Popen[str]) -> Answer:
    assert process.stdout is not None
    timer = threading.Timer(START_TIMEOUT, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        in_time = timer.is_alive()
        timer.cancel()
        timer.join()
    if not in_time:
        raise DeviceFailed(f"no output within {START_TIMEOUT:.0f} s")
    if not line:
        raise DeviceFailed(process.communicate(timeout=STOP_TIMEOUT)[1].strip())
    described: Answer = json.loads(line)
    return described


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        words = process.communicate(timeout=STOP_TIMEOUT)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    if process.returncode > 0:  # negative: killed by the test itself
        raise DeviceFailed(words.strip())


@asynccontextmanager
async def device_in_loop(
    profile: Profile,
    place: Path,
    *,
    port: Path | None = None,
    usb: Path | None = None,
    seats: tuple[int, ...] = (),
    gap_ms: int | None = None,
    create: bool = False,
) -> AsyncIterator[LiveDevice]:
    """Run the device in the current event loop, with the same files as in its own process.

    With `create`, a missing device is created, as by `holecard sim --create`; without it,
    FileNotFoundError is raised.
    """
    device_class = DeviceClass[profile.upper()]
    if create and not (place / "identity.toml").exists():
        create_identity(place, device_class, f"{profile}-1")
    setup = DeviceSetup(
        device_class=device_class,
        place=place,
        control=place / "control",
        port=None if usb else (port or place / "port"),
        usb=usb,
        seats=seats,
        gap_ms=gap_ms,
        sync=False,
    )
    with exclusive_use(place):
        async with running_device(setup) as live:
            yield live
