"""A simulated device in real time, in an asyncio event loop, behind its ports.

    live = LiveDevice(device)
    live.attach(PtyAdapter(PtyPort(link, live.receive)))
    ...
    live.close()

The clock is time.monotonic in microseconds, which the event loop uses too. Nothing here blocks:
bytes, requests and timers are handled by callbacks.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import Protocol

from firmware_protocol.device import Answer, CannotDo, ControlRequest, Plug
from hil.ports import BusFull, LinkTaken, PtyPort, UsbDevice
from hil.simulator.device import SimulatedDevice


def now() -> int:
    """The clock of simulated devices in real time, in microseconds."""
    return time.monotonic_ns() // 1000


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
        self._closed = False
        self._pump()

    def attach(self, port: PortAdapter) -> None:
        self._ports.append(port)
        port.follow(self.device)

    def receive(self, data: bytes) -> None:
        """Bytes from the host."""
        self.device.receive(data, now())
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
        due = self.device.due()
        self._timer = None if due is None else self._loop.call_at(due / 1e6, self._wake)
