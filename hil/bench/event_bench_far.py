"""The far end of a pty for the bench: an echo's partner and a device by turns, timed from there.

    python -m hil.bench.event_bench_far LINK PLACE   # stdin: `echo 100`, `event 100`; answers: JSON

Blocking, in a process of its own, so that what is measured is the host's way and the wire's.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Final

from firmware_protocol.device.core import Device
from firmware_protocol.messages.enums import JamCode
from firmware_protocol.messages.shoe import ShoeJam
from hil.devices.shoe import Shoe
from hil.ports.pty import point

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
        point(link, os.ttyname(self.slave))
        self.device = Device(place, Shoe(), now=_now(), sync=False)

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
