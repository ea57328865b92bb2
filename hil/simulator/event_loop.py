"""A stand in real time: one asyncio loop, the port it is plugged into, and whoever's hands.

    live = Live(stand)
    live.attach(PtyOutlet(PtyPort(link, live.heard)))
    ...
    live.close()

The clock is time.monotonic in microseconds, which is the loop's own. Nothing here waits: each byte,
each hand and each moment that is due is dealt with when the loop says so.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import Protocol

from firmware_protocol.device.control import ControlRequest, Plug
from firmware_protocol.device.interfaces import Answer, CannotDo
from hil.ports import BusFull, LinkTaken, PtyPort, UsbDevice
from hil.simulator.device import SimulatedDevice


def now() -> int:
    """Microseconds of the clock that simulated devices live by in real time."""
    return time.monotonic_ns() // 1000


class PortAdapter(Protocol):
    """A port that follows what happens to the stand."""

    def follow(self, stand: SimulatedDevice) -> None:
        """Be plugged in or not, as the stand has it."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class PtyAdapter:
    """Serial: the adapter is in the cable, so the port stays while the device has no power."""

    def __init__(self, port: PtyPort) -> None:
        self.port = port
        self.write = port.write
        self.close = port.close

    def follow(self, stand: SimulatedDevice) -> None:
        if not stand.plugged:
            self.port.unplug()
        else:
            self.port.plug(stand.port_number)
        # As text that JSON can carry: a folder's name need not be UTF-8.
        name = os.fsencode(self.port.name).decode(errors="replace")
        stand.facts["port"] = name if self.port.plugged else None


class UsbAdapter:
    """USB: the device itself is on the bus, so each of its starts plugs it in anew."""

    def __init__(self, device: UsbDevice) -> None:
        self.device = device
        self.write = device.write
        self.close = device.close
        self._starts = 0

    def follow(self, stand: SimulatedDevice) -> None:
        if not (stand.plugged and stand.powered) or stand.starts != self._starts:
            self.device.unplug()
        if stand.plugged and stand.powered:
            self._starts = stand.starts
            self.device.plug(stand.port_number)
        stand.facts["usb_address"] = self.device.address
        if stand.reading:
            self.device.go_on()


class LiveDevice:
    """Made inside of a running loop."""

    def __init__(self, stand: SimulatedDevice) -> None:
        self.stand = stand
        self._loop = asyncio.get_running_loop()
        self._outlets: list[PortAdapter] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._pump()

    def attach(self, outlet: PortAdapter) -> None:
        self._outlets.append(outlet)
        outlet.follow(self.stand)

    def heard(self, data: bytes) -> None:
        """Bytes from the host."""
        self.stand.receive(data, now())
        self._pump()

    def hand(self, hand: ControlRequest) -> Answer:
        former = self.stand.port_number
        try:
            return self._done(hand)
        except (LinkTaken, BusFull) as taken:
            if not isinstance(hand, Plug):
                raise
            self.stand.stay_out(former)
            self._pump()
            raise CannotDo(str(taken), "port_number of a port that is free") from None

    def _done(self, hand: ControlRequest) -> Answer:
        try:
            return self.stand.hand(hand, now())
        finally:
            self._pump()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for outlet in self._outlets:
            outlet.close()

    def _wake(self) -> None:
        self.stand.wake(now())
        self._pump()

    def _pump(self) -> None:
        """Bring everything up to date with what has just happened to the stand."""
        if self._closed:
            return
        data = self.stand.take()
        for outlet in self._outlets:
            if data:
                outlet.write(data)
            outlet.follow(self.stand)
        if self._timer is not None:
            self._timer.cancel()
        due = self.stand.due()
        self._timer = None if due is None else self._loop.call_at(due / 1e6, self._wake)
