"""A simulated device with its cable, its power and its clock.

    device = SimulatedDevice(place, SimulatedShoe, now=0)
    device.receive(data, now); device.wake(now); port.write(device.take())
    device.request(CutPower(at="in_commit", off_ms=200), now)

A Peer, in simulated time or in real time. It handles power, plug, freeze and line noise; all other
requests go to the firmware. After a power cut the firmware object is dropped, and a new one is
created from the same folder when the power returns.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from firmware_protocol.device import (
    Answer,
    CannotDo,
    ControlRequest,
    CutPower,
    Describe,
    Device,
    Freeze,
    LineNoise,
    Mechanism,
    Plug,
    PowerCut,
)
from firmware_protocol.messages import PowerCause
from hil.faults import CLEAN, CableDirection, faulty_device, whole_frames

UART_BYTES: Final = 256
"""Receive buffer of the serial hardware while the firmware hangs; more bytes are dropped."""
MAX_OUTPUT_BYTES: Final = 1 << 20
"""Output buffer; more bytes are dropped."""
T = TypeVar("T")


class LostBytes(Struct):
    """Numbers of dropped bytes, by cause."""

    unplugged: int = 0
    unpowered: int = 0
    frozen: int = 0
    full: int = 0


class SimulatedDevice:
    def __init__(
        self,
        place: Path,
        mechanism: Callable[[], Mechanism],
        *,
        now: int,
        cause: PowerCause = PowerCause.POWER_ON,
        breaks: set[str] | None = None,
        sync: bool = True,
        random: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self.place = place
        self.plugged = True
        self.port_number = 1
        """Number of the port that the cable is in, or was in last."""
        self.starts = 0
        """Number of starts of the firmware."""
        self.facts: Answer = {}
        """Fields that the ports add to `describe`."""
        self.lost = LostBytes()
        self._mechanism = mechanism
        self._options: dict[str, Any] = {
            "breaks": set() if breaks is None else breaks,
            "sync": sync,
            "random": random,
        }
        self._firmware: Device | None = None
        self._back: int | None = None
        """When the power returns."""
        self._cut = CutPower()
        """The last power cut, or the one that is armed."""
        self._frozen_at: int | None = None
        self._lag = 0
        """How long the firmware's clock was stopped in total."""
        self._uart = bytearray()
        self._line = CLEAN
        self._to_device, self._to_host = CableDirection("to device"), CableDirection("to host")
        self._out = bytearray()
        self._start(cause, now)

    @property
    def powered(self) -> bool:
        return self._firmware is not None

    @property
    def frozen(self) -> bool:
        return self._frozen_at is not None

    @property
    def reading(self) -> bool:
        """Whether the firmware reads bytes."""
        return self.powered and not self.frozen

    @property
    def firmware(self) -> Device:
        """The running firmware. Raises CannotDo without power."""
        if self._firmware is None:
            raise CannotDo("there is no power")
        return self._firmware

    # --- Peer -------------------------------------------------------------------------------------

    def receive(self, data: bytes, now: int) -> None:
        if self.plugged:
            self._to_device.put(data, now)
        else:
            self.lost.unplugged += len(data)
        self.wake(now)

    def wake(self, now: int) -> None:
        if self._back is not None and now >= self._back:
            self._start(self._cause(), now)
        self._deliver(self._to_device.take(now), now)
        self._run(lambda device, at: device.wake(at), now)
        self._send(now)

    def due(self) -> int | None:
        inner = self._firmware.due() if self._firmware is not None and not self.frozen else None
        moments = (
            self._to_device.due(),
            self._to_host.due(),
            self._back,
            None if inner is None else inner + self._lag,
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def take(self) -> bytes:
        out = bytes(self._out)
        self._out.clear()
        return out

    # --- requests --------------------------------------------------------------------------------

    def request(self, request: ControlRequest, now: int) -> Answer:
        """Carry out a request. Raises CannotDo, without side effects, if it is impossible now."""
        self.wake(now)
        own = _REQUESTS.get(type(request))
        answer = self._at_firmware(request, now) if own is None else own(self, request, now)
        self._send(now)
        return answer

    def _at_firmware(self, request: ControlRequest, now: int) -> Answer:
        if self._firmware is None:
            raise CannotDo("there is no power", "plug, line, describe; or wait until it is back")
        if self.frozen:
            raise CannotDo("the firmware hangs", "freeze, power, plug, line, describe")
        boot = self._firmware.boot
        answer = self._run(lambda device, at: device.request(request, at), now)
        if answer is None:
            return {"power": "cut", "at": self._cut.at}
        self.starts += self._firmware.boot != boot  # some requests restart the firmware
        return answer

    def _describe(self, request: ControlRequest, now: int) -> Answer:
        answer: Answer = {}
        if self._firmware is not None and self.frozen:
            # Not through _run(), which returns nothing while the firmware hangs.
            answer = self._firmware.request(request, self.firmware_time(now))
        elif self._firmware is not None:
            answer = self._run(lambda device, at: device.request(request, at), now) or {}
        line = _noise_of(self._line)
        noise = {"to_device": self._to_device.counts, "to_host": self._to_host.counts}
        return answer | {
            "powered": self.powered,
            "frozen": self.frozen,
            "plugged": self.plugged,
            "line": line | {name: _values(counts) for name, counts in noise.items()},
            "lost": _values(self.lost),
            **self.facts,
        }

    def _power(self, request: CutPower, now: int) -> Answer:
        if self._firmware is None:
            raise CannotDo("the power is off already", "wait until it is back")
        if request.at == "now":
            self._cut = request
            self._off(now)
            return {"power": "cut", "at": "now"}
        if self.frozen:
            raise CannotDo("the firmware hangs: it reaches no such moment", "at: now")
        self._cut = request
        self._firmware.cut_at(request.at)
        return {"power": "on", "at": request.at}

    def _plug(self, request: Plug, now: int) -> Answer:
        named = request.other_port or request.port_number is not None
        if named and not request.connected:
            raise CannotDo("a port is given without plugging it in", "connected true")
        if named and self.plugged:
            raise CannotDo("the cable is in", "pull it first: connected false")
        if request.other_port and request.port_number is not None:
            raise CannotDo("two ports are given", "other_port or port_number")
        if not request.connected:
            self._pull()
        elif request.port_number is not None:
            self.port_number = request.port_number
        else:
            self.port_number += request.other_port
        self.plugged = request.connected
        return {"plugged": self.plugged, "port_number": self.port_number}

    def undo_plug(self, port_number: int) -> None:
        """Unplug the cable again: the port that it was plugged into is in use."""
        self.plugged, self.port_number = False, port_number
        self._pull()

    def _pull(self) -> None:
        self._to_device.clear()
        self._to_host.clear()
        self.lost.unplugged += len(self._out)
        self._out.clear()

    def _freeze(self, request: Freeze, now: int) -> Answer:
        if self._firmware is None:
            raise CannotDo("there is no power", "wait until it is back")
        if request.on and self._frozen_at is None:
            self._frozen_at = now
        elif not request.on and self._frozen_at is not None:
            self._lag += now - self._frozen_at
            self._frozen_at = None
            held = bytes(self._uart)
            self._uart.clear()
            self._deliver(held, now)
            self._run(lambda device, at: device.wake(at), now)
        return {"frozen": self.frozen}

    def _set_line(self, request: LineNoise, now: int) -> Answer:
        self._line = request
        self._to_device.set(request, now)
        self._to_host.set(request, now)
        self.wake(now)
        return {"line": _noise_of(request)}

    # --- the device -------------------------------------------------------------------------------

    def firmware_time(self, now: int) -> int:
        """The firmware's clock."""
        return (now if self._frozen_at is None else self._frozen_at) - self._lag

    def _run(self, do: Callable[[Device, int], T], now: int) -> T | None:
        """Call `do` with the firmware. Returns None if it has no power, hangs, or loses power."""
        if self._firmware is None or self.frozen:
            return None
        try:
            return do(self._firmware, self.firmware_time(now))
        except PowerCut:
            self._off(now)
            return None
        finally:
            self._collect(now)

    def _start(self, cause: PowerCause, now: int) -> None:
        self._back = None
        self._frozen_at, self._lag = None, 0
        self._uart.clear()
        self.starts += 1
        self._firmware = faulty_device(
            self.place, self._mechanism(), now=now, cause=cause, **self._options
        )
        self._collect(now)

    def _cause(self) -> PowerCause:
        return PowerCause[self._cut.cause.upper()]

    def _off(self, now: int) -> None:
        self._collect(now)  # bytes sent before the cut are on the cable
        self._firmware = None
        self._frozen_at = None
        self._uart.clear()
        if self._cut.off_ms:
            self._back = now + self._cut.off_ms * 1000
        else:
            self._start(self._cause(), now)

    # --- the cable --------------------------------------------------------------------------------

    def _deliver(self, data: bytes, now: int) -> None:
        if not data:
            return
        if self._firmware is None:
            self.lost.unpowered += len(data)
        elif self.frozen:
            room = max(0, UART_BYTES - len(self._uart))
            self._uart += data[:room]
            self.lost.frozen += len(data[room:])
        else:
            self._run(lambda device, at: device.receive(data, at), now)

    def _collect(self, now: int) -> None:
        if self._firmware is None or self.frozen:
            return
        data = self._firmware.take()
        if self.plugged:
            self._to_host.put(data, now)
        else:
            self.lost.unplugged += len(data)

    def _send(self, now: int) -> None:
        data = self._to_host.take(now)
        fit = whole_frames(data, MAX_OUTPUT_BYTES - len(self._out))
        self._out += fit
        self.lost.full += len(data) - len(fit)


def _values(of: Struct) -> Answer:
    values: Answer = msgspec.to_builtins(of)
    return values


def _noise_of(line: LineNoise) -> Answer:
    return {name: value for name, value in _values(line).items() if name != "do"}


_REQUESTS: Final[dict[type[ControlRequest], Callable[[SimulatedDevice, Any, int], Answer]]] = {
    Describe: SimulatedDevice._describe,
    CutPower: SimulatedDevice._power,
    Plug: SimulatedDevice._plug,
    Freeze: SimulatedDevice._freeze,
    LineNoise: SimulatedDevice._set_line,
}
