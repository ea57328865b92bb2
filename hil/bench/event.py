"""One event there and back over a pty, beside a bare echo over the same pty in the same run."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import tty
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from drivers.ports import Address, Port, PortListener, PortLost, Transport, open_serial
from drivers.session import WantedDevice
from firmware_protocol.device import identity
from firmware_protocol.messages.enums import DeviceClass, JamCode
from firmware_protocol.messages.shoe import ShoeJam
from hil.bench.devices import PUBLIC, CursorStore, hosted
from hil.bench.measure import Line, Pace, Section
from hil.devices import SimulatedShoe
from hil.faults import faulty_device
from hil.ports import set_link

SIZE: Final = 86
"""Bytes of an event and of an acknowledgement on the wire, and of what is echoed."""
_EVENT: Final = ShoeJam(JamCode.STUCK)
_READ: Final = 4096
_PATIENCE: Final = 20.0


def _now() -> int:
    return time.monotonic_ns() // 1000


class _Far:
    def __init__(self, link: Path, place: Path) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        set_link(link, os.ttyname(self.slave))
        self.device = faulty_device(place, SimulatedShoe(), now=_now(), sync=False)

    def echo(self, count: int) -> list[float]:
        """Microseconds until all bytes of a frame have come back."""
        frame, times = bytes(range(1, SIZE + 1)), []
        self._settle()
        for _ in range(count):
            begun = time.perf_counter_ns()
            os.write(self.master, frame)
            left = SIZE
            while left:
                self._wait(_PATIENCE)
                left -= len(os.read(self.master, left))
            times.append((time.perf_counter_ns() - begun) / 1000)
        return times

    def event(self, count: int) -> list[float]:
        """Microseconds from a record that is committed until its acknowledgement was taken."""
        device, times = self.device, list[float]()
        device.sessions.end(_now())  # the host of the last turn has gone
        self._until(lambda: self._flows() and device.records.room.acked == device.ring.head)
        for _ in range(count):
            device.record(_EVENT, _now())
            begun = time.perf_counter_ns()
            self._until(lambda: device.records.room.acked == device.ring.head)
            times.append((time.perf_counter_ns() - begun) / 1000)
        return times

    def _flows(self) -> bool:
        session = self.device.sessions.running
        return session is not None and session.sending is not None

    def _until(self, done: Callable[[], bool]) -> None:
        device, last = self.device, _now() + int(_PATIENCE * 1e6)
        while True:
            if data := device.take():
                os.write(self.master, data)
            if done():
                return
            if _now() > last:
                raise TimeoutError(f"nothing was acknowledged for {_PATIENCE:.0f} s")
            due = device.due()
            rest = last if due is None else due
            if self._wait(max(0, rest - _now()) / 1e6, must=False):
                device.receive(os.read(self.master, _READ), _now())
            else:
                device.wake(_now())

    def _wait(self, seconds: float, *, must: bool = True) -> bool:
        ready = bool(select.select([self.master], [], [], seconds)[0])
        if must and not ready:
            raise TimeoutError("nothing came back")
        return ready

    def _settle(self) -> None:
        """What the last turn left on the line is no echo."""
        while self._wait(0.05, must=False):
            os.read(self.master, _READ)


def main(link: str, place: str) -> None:
    far = _Far(Path(link), Path(place))
    turns: dict[str, Callable[[int], list[float]]] = {"echo": far.echo, "event": far.event}
    print("ready", flush=True)
    for line in sys.stdin:
        what, count = line.split()
        print(json.dumps(turns[what](int(count))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])


_AT_MOST: Final = 5.0
_SLICE: Final = 40
"""Events, and echoes, in a slice."""


class _Echo(PortListener):
    def __init__(self) -> None:
        self.port: Port | None = None

    def heard(self, data: bytes) -> None:
        if self.port is not None:
            self.port.write(data)

    def lost(self, why: PortLost) -> None:
        self.port = None


class _FarEnd:
    """The other process, asked over its stdin without blocking this loop."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    async def turn(self, what: str, count: int) -> list[float]:
        return await asyncio.to_thread(self._turn, what, count)

    def _turn(self, what: str, count: int) -> list[float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what} {count}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the far end of the bench has ended")
        times: list[float] = json.loads(line)
        return times


async def _echoes(far: _FarEnd, link: Path, count: int) -> list[float]:
    ears = _Echo()
    port = ears.port = await open_serial(str(link), ears)
    try:
        return await far.turn("echo", count)
    finally:
        await port.close()


async def _events(
    far: _FarEnd, wanted: WantedDevice, keeper: CursorStore, count: int
) -> list[float]:
    async with hosted(wanted, keeper) as host:
        # The far end lives only while it is asked for something: the handshake is in its turn.
        turn = asyncio.create_task(far.turn("event", count))
        await host.ready()
        return await turn


async def _there_and_back(folder: Path, slices: int) -> tuple[list[float], list[float]]:
    place, link = folder / "shoe", folder / "port"
    own = identity.create(place, DeviceClass.SHOE, "SH-BENCH")
    identity.pair_directly(place, PUBLIC)
    command = [sys.executable, "-m", "hil.bench.event", str(link), str(place)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            await asyncio.to_thread(process.stdout.readline)
            far, keeper = _FarEnd(process), CursorStore()
            address = Address(Transport.SERIAL, str(link))
            wanted = WantedDevice(DeviceClass.SHOE, own.serial, own.public, address)
            echoes, events = list[float](), list[float]()
            for _ in range(slices):
                echoes += await _echoes(far, link, _SLICE)
                events += await _events(far, wanted, keeper, _SLICE)
            return echoes, events
        finally:
            process.kill()


def _p99(times: list[float]) -> float:
    return quantiles(times, n=100)[98]


def _measure(pace: Pace) -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        echoes, events = asyncio.run(_there_and_back(Path(folder), pace.slices))
    lines = []
    for name, times in (("echo", echoes), ("event", events)):
        text = f"{name}, {SIZE} bytes each way"
        lines.append(Line(f"{name}_p50", f"{text}, p50", median(times), "us"))
        lines.append(Line(f"{name}_p99", f"{text}, p99", _p99(times), "us"))
    p50 = median(events) / median(echoes)
    p99 = _p99(events) / _p99(echoes)
    lines.append(Line("ratio", "event beside echo, p50", p50, "times", at_most=_AT_MOST))
    lines.append(Line("ratio_p99", "event beside echo, p99", p99, "times"))
    return lines


EVENT: Final = Section(
    "event", "one event there and back over a pty, from its record to its acknowledgement", _measure
)
