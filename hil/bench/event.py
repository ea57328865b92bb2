"""One event there and back over a pty, beside a bare echo over the same pty in the same run.

The device is a child process, `python -m hil.bench.event LINK FOLDER`, which measures.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
import tempfile
import time
import tty
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Final

from drivers.ports import Address, Port, PortListener, PortLost, Transport, open_serial
from drivers.session import WantedDevice
from firmware_protocol.device import identity
from firmware_protocol.messages import DeviceClass, JamCode, ShoeJam
from hil.bench.devices import PUBLIC, CursorStore, hosted
from hil.bench.measure import Line, Pace, Samples, Section, child_process, ratio, request, seconds
from hil.devices import SimulatedShoe
from hil.faults import faulty_device
from hil.ports import set_link

SIZE: Final = 86
"""Bytes of an event and of an acknowledgement on the wire, and of an echo."""
_EVENT: Final = ShoeJam(JamCode.STUCK)
_READ: Final = 4096
_TIMEOUT: Final = 20.0
_AT_MOST: Final = 5.0
_SLICE: Final = 40
"""Events, and echoes, in a slice."""
_MICRO: Final = 1e6


# --- the device, a child process ----------------------------------------------------------------


def _now() -> int:
    return time.monotonic_ns() // 1000


class _EventDevice:
    """A simulated shoe behind a pty, which times echoes and events."""

    def __init__(self, link: Path, place: Path) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        set_link(link, os.ttyname(self.slave))
        self.device = faulty_device(place, SimulatedShoe(), now=_now(), sync=False)

    def echo(self, count: int) -> list[float]:
        """Returns the seconds until all bytes of a frame have come back."""
        frame = bytes(range(1, SIZE + 1))

        def once() -> None:
            os.write(self.master, frame)
            left = SIZE
            while left:
                if not self._readable(_TIMEOUT):
                    raise TimeoutError("no echo")
                left -= len(os.read(self.master, left))

        while self._readable(0.05):  # bytes of the former session
            os.read(self.master, _READ)
        return [seconds(once) for _ in range(count)]

    def event(self, count: int) -> list[float]:
        """Returns the seconds from a committed record to its acknowledgement."""
        device, took = self.device, list[float]()

        def acknowledged() -> bool:
            return device.records.room.acked == device.ring.head

        def sending() -> bool:
            session = device.sessions.running
            return session is not None and session.sending is not None

        device.sessions.end(_now())  # the host of the former slice has gone
        self._run_until(lambda: sending() and acknowledged())
        for _ in range(count):
            device.record(_EVENT, _now())
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
            if self._readable(max(0, until - _now()) / 1e6):
                device.receive(os.read(self.master, _READ), _now())
            else:
                device.wake(_now())

    def _readable(self, timeout: float) -> bool:
        return bool(select.select([self.master], [], [], timeout)[0])


def serve(link: str, place: str) -> None:
    """Answer requests "echo COUNT" and "event COUNT" of stdin with times as JSON."""
    device = _EventDevice(Path(link), Path(place))
    print("ready", flush=True)
    for line in sys.stdin:
        name, count = line.split()
        took = device.echo(int(count)) if name == "echo" else device.event(int(count))
        print(json.dumps(took), flush=True)


# --- the host -----------------------------------------------------------------------------------


class _PortEcho(PortListener):
    def __init__(self) -> None:
        self.port: Port | None = None

    def heard(self, data: bytes) -> None:
        if self.port is not None:
            self.port.write(data)

    def lost(self, why: PortLost) -> None:
        self.port = None


async def _slice(device: Popen[str], name: str) -> list[float]:
    """Have the device measure a slice, without blocking this event loop."""
    answer = await asyncio.to_thread(request, device, f"{name} {_SLICE}")
    took: list[float] = json.loads(answer)
    return took


async def _echoes(device: Popen[str], link: Path) -> list[float]:
    listener = _PortEcho()
    port = listener.port = await open_serial(str(link), listener)
    try:
        return await _slice(device, "echo")
    finally:
        await port.close()


async def _events(device: Popen[str], wanted: WantedDevice, store: CursorStore) -> list[float]:
    async with hosted(wanted, store) as host:
        # The device only runs during a request, so the handshake is part of it.
        slice_ = asyncio.create_task(_slice(device, "event"))
        await host.ready()
        return await slice_


async def _there_and_back(folder: Path, slices: int) -> Samples:
    place, link = folder / "shoe", folder / "port"
    own = identity.create(place, DeviceClass.SHOE, "SH-BENCH")
    identity.pair_directly(place, PUBLIC)
    took: dict[str, list[float]] = {"echo": [], "event": []}
    with child_process("hil.bench.event", link, place) as device:
        await asyncio.to_thread(request, device)
        address = Address(Transport.SERIAL, str(link))
        wanted = WantedDevice(DeviceClass.SHOE, own.serial, own.public, address)
        store = CursorStore()
        for _ in range(slices):
            took["echo"] += await _echoes(device, link)
            took["event"] += await _events(device, wanted, store)
    return Samples(took)


def _measure(pace: Pace) -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        took = asyncio.run(_there_and_back(Path(folder), pace.slices))
    parts = {"p50": 0.5, "p99": 0.99}
    beside = {
        key: took.quantile("event", part) / took.quantile("echo", part)
        for key, part in parts.items()
    }
    return [
        *(
            Line(
                f"{name}_{key}",
                f"{name}, {SIZE} bytes each way, {key}",
                took.quantile(name, part) * _MICRO,
                "us",
            )
            for name in ("echo", "event")
            for key, part in parts.items()
        ),
        ratio("ratio", "event beside echo, p50", beside["p50"], at_most=_AT_MOST),
        ratio("ratio_p99", "event beside echo, p99", beside["p99"]),
    ]


EVENT: Final = Section(
    "event", "one event there and back over a pty, from its record to its acknowledgement", _measure
)

if __name__ == "__main__":
    serve(*sys.argv[1:])
