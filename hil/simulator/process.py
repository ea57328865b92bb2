"""A simulated device for a test, a benchmark or a demo: in its own process, or in this event loop.

with device_process("shoe", folder / "shoe", breaks=("chain-wrong",)) as sim:
    sim.control.do(Draw(count=2))           # sim.port, sim.told["label"], ...

async with device_in_loop("shoe", folder / "shoe") as live:
    live.request(Draw(count=2))
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
from firmware_protocol.device import Answer, create_identity
from firmware_protocol.messages import DeviceClass
from hil.control import ControlClient
from hil.simulator.event_loop import LiveDevice
from hil.simulator.run import DeviceSetup, exclusive_use, running_device

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
    told: Answer
    """The fields of `describe` when it started."""
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
    """Run `holecard sim` with further `options`. The device is created if it does not exist. At the
    end it gets SIGTERM; raises DeviceFailed if it exits with an error."""
    command = [sys.executable, "-m", "hil.simulator", profile, "--dir", str(place)]
    command += ["--create", "--no-sync", "--json", *options]
    command += [] if usb is None else ["--usb", str(usb)]
    command += [word for name in breaks for word in ("--break", name)]
    command += [] if paired_with is None else ["--paired-with", paired_with.hex()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        told = _read_ready_line(process)
        port = None if usb is not None else Path(told["port"])
        with ControlClient(Path(told["control"])) as control:
            yield DeviceProcess(process, control, told, port, usb)
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
    if process.returncode > 0:  # negative: killed by the test itself
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
    """Run the device in the current event loop, with the same files as in its own process."""
    device_class = DeviceClass[profile.upper()]
    if not (place / "identity.toml").exists():
        create_identity(place, device_class, serial or f"{profile}-1")
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
