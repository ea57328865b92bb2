"""Runs one simulated device: its folder, its port and its control socket, until it is stopped."""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from msgspec import Struct

from firmware_protocol.device import (
    Answer,
    Describe,
    DeviceIdentity,
    FolderProblem,
    Mechanism,
    load_identity,
    naming,
)
from firmware_protocol.messages import DeviceClass
from hil.control import BY_CLASS, ControlServer
from hil.devices import class_of
from hil.ports import PtyPort, UsbDevice, UsbStatus
from hil.simulator.device import SimulatedDevice
from hil.simulator.event_loop import LiveDevice, PtyAdapter, UsbAdapter, now

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
