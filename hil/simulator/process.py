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
from hil.control import Control
from hil.simulator.event_loop import Live
from hil.simulator.run import Setup, plugged_in, sole

START_PATIENCE: Final = 60.0
"""Seconds in which a simulated device says that it runs, however busy the machine is."""
PATIENCE: Final = 10.0
"""Seconds in which a simulated device ends after SIGTERM."""


class DidNotRun(Exception):
    """The simulated device did not start, or ended with an error: its own words."""


class Running(Struct, frozen=True):
    """A simulated device in a process of its own."""

    process: subprocess.Popen[str]
    control: Control
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
def running(
    profile: Profile,
    place: Path,
    *options: str,
    usb: Path | None = None,
    breaks: Sequence[str] = (),
    paired_with: bytes | None = None,
) -> Iterator[Running]:
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
        with Control(Path(told["control"])) as control:
            yield Running(process, control, told, port, usb)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    _end(process)


def _first_words(process: subprocess.Popen[str]) -> Answer:
    assert process.stdout is not None
    late = threading.Timer(START_PATIENCE, process.kill)
    late.start()
    try:
        line = process.stdout.readline()
    finally:
        in_time = late.is_alive()
        late.cancel()
        late.join()
    if not in_time:
        raise DidNotRun(f"said nothing within {START_PATIENCE:.0f} s")
    if not line:
        raise DidNotRun(process.communicate(timeout=PATIENCE)[1].strip())
    told: Answer = json.loads(line)
    return told


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        words = process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    # Killed by the test itself is as good as ended.
    if process.returncode > 0:
        raise DidNotRun(words.strip())


@asynccontextmanager
async def beside(
    profile: Profile,
    place: Path,
    *,
    port: Path | None = None,
    usb: Path | None = None,
    breaks: Sequence[str] = (),
    seats: tuple[int, ...] = (),
    serial: str | None = None,
) -> AsyncIterator[Live]:
    """In the loop that runs already; the same things are there as beside a process of its own."""
    device_class = DeviceClass[profile.upper()]
    if not (place / "identity.toml").exists():
        identity.create(place, device_class, serial or f"{profile}-1")
    setup = Setup(
        device_class=device_class,
        place=place,
        control=place / "control",
        port=None if usb is not None else port or place / "port",
        usb=usb,
        breaks=tuple(breaks),
        seats=seats,
        sync=False,
    )
    with sole(place):
        async with plugged_in(setup) as live:
            yield live
