"""A simulated device for a test, a bench or a demo: in a process of its own, or in this loop.

with running("shoe", folder / "shoe", breaks=("chain-wrong",)) as sim:
    sim.control.do(Draw(count=2))           # sim.port, sim.told["label"], ...

async with beside("shoe", folder / "shoe") as live:
    live.hand(Draw(count=2))
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from firmware_protocol.conformance import Profile
from firmware_protocol.device import identity
from firmware_protocol.device.interfaces import Answer
from firmware_protocol.messages.enums import DeviceClass
from hil.control import ControlClient
from hil.simulator.event_loop import LiveDevice
from hil.simulator.run import DeviceSetup, exclusive_use, running_device

START_TIMEOUT: Final = 60.0
"""Seconds in which a simulated device says that it runs, however busy the machine is."""
STOP_TIMEOUT: Final = 10.0
"""Seconds in which a simulated device ends after SIGTERM."""


class DeviceFailed(Exception):
    """The simulated device did not start, or ended with an error: its own words."""


class DeviceProcess(Struct, frozen=True):
    """A simulated device in a process of its own."""

    process: subprocess.Popen[str]
    control: ControlClient
    told: Answer
    """What it said of itself when it began, as `describe` has it."""
    port: Path | None
    usb: Path | None

    @property
    def serial(self) -> str:
        return str(self.told["serial"])

    @property
    def label(self) -> str:
        return str(self.told["label"])

    @property
    def key(self) -> bytes:
        """The device's public key."""
        return bytes.fromhex(self.told["key"])


@contextmanager
def device_process(
    profile: Profile,
    place: Path,
    *options: str,
    usb: Path | None = None,
    breaks: Sequence[str] = (),
    paired_with: bytes | None = None,
) -> Iterator[DeviceProcess]:
    """`options` are more of those that `holecard sim` takes. The device is made if it is not there
    yet; it ends with SIGTERM and must leave with 0."""
    command = [sys.executable, "-m", "hil.simulator", profile, "--dir", str(place)]
    command += ["--create", "--no-sync", "--json", *options]
    command += [] if usb is None else ["--usb", str(usb)]
    command += [word for name in breaks for word in ("--break", name)]
    command += [] if paired_with is None else ["--paired-with", paired_with.hex()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        told = _first_words(process)
        port = None if usb is not None else Path(told["port"])
        with ControlClient(Path(told["control"])) as control:
            yield DeviceProcess(process, control, told, port, usb)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    _end(process)


def _first_words(process: subprocess.Popen[str]) -> Answer:
    assert process.stdout is not None
    late = threading.Timer(START_TIMEOUT, process.kill)
    late.start()
    try:
        line = process.stdout.readline()
    finally:
        in_time = late.is_alive()
        late.cancel()
        late.join()
    if not in_time:
        raise DeviceFailed(f"said nothing within {START_TIMEOUT:.0f} s")
    if not line:
        raise DeviceFailed(process.communicate(timeout=STOP_TIMEOUT)[1].strip())
    told: Answer = json.loads(line)
    return told


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        words = process.communicate(timeout=STOP_TIMEOUT)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    # Killed by the test itself is as good as ended.
    if process.returncode > 0:
        raise DeviceFailed(words.strip())


@asynccontextmanager
async def device_in_loop(
    profile: Profile,
    place: Path,
    *,
    port: Path | None = None,
    usb: Path | None = None,
    breaks: Sequence[str] = (),
    seats: tuple[int, ...] = (),
    serial: str | None = None,
) -> AsyncIterator[LiveDevice]:
    """In the loop that runs already; the same things are there as beside a process of its own."""
    device_class = DeviceClass[profile.upper()]
    if not (place / "identity.toml").exists():
        identity.create(place, device_class, serial or f"{profile}-1")
    setup = DeviceSetup(
        device_class=device_class,
        place=place,
        control=place / "control",
        port=None if usb is not None else port or place / "port",
        usb=usb,
        breaks=tuple(breaks),
        seats=seats,
        sync=False,
    )
    with exclusive_use(place):
        async with running_device(setup) as live:
            yield live
