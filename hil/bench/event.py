"""One event there and back over a pty, beside a bare echo over the same pty in the same run."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from drivers.ports.address import Address, Transport
from drivers.ports.port import Ears, Port, PortLost
from drivers.ports.serial import open_serial
from drivers.session.lookup import Wanted
from firmware_protocol.device import identity
from firmware_protocol.messages.enums import DeviceClass
from hil.bench.devices_bench_host import PUBLIC, Memory, hosted
from hil.bench.event_bench_far import SIZE
from hil.bench.measure import Pace
from hil.bench.measure_bench_lines import Line, Section

_AT_MOST: Final = 5.0
_SLICE: Final = 40
"""Events, and echoes, in a slice."""


class _Echo(Ears):
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


async def _events(far: _FarEnd, wanted: Wanted, keeper: Memory, count: int) -> list[float]:
    async with hosted(wanted, keeper) as host:
        # The far end lives only while it is asked for something: the handshake is in its turn.
        turn = asyncio.create_task(far.turn("event", count))
        await host.ready()
        return await turn


async def _there_and_back(folder: Path, slices: int) -> tuple[list[float], list[float]]:
    place, link = folder / "shoe", folder / "port"
    own = identity.create(place, DeviceClass.SHOE, "SH-BENCH")
    identity.pair_directly(place, PUBLIC)
    command = [sys.executable, "-m", "hil.bench.event_bench_far", str(link), str(place)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            await asyncio.to_thread(process.stdout.readline)
            far, keeper = _FarEnd(process), Memory()
            address = Address(Transport.SERIAL, str(link))
            wanted = Wanted(DeviceClass.SHOE, own.serial, own.public, address)
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
