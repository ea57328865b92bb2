"""What a simulated device stands on: its cable, its power, and the clock that it lives by.

    stand = Stand(place, Shoe, now=0)
    stand.receive(data, now); stand.wake(now); port.write(stand.take())
    stand.hand(Power(at="in_commit", off_ms=200), now)

A Peer like the device in it, in simulated time or in real time alike. Power, plug, freeze and line
noise are the stand's; every other hand goes to the device. When power is cut the device is gone,
and another one is made from the same place when it comes back.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from firmware_protocol.device.control import (
    ControlRequest,
    CutPower,
    Describe,
    Freeze,
    LineNoise,
    Plug,
)
from firmware_protocol.device.core import Device, PowerCut
from firmware_protocol.device.interfaces import Answer, CannotDo, Mechanism
from firmware_protocol.messages.enums import PowerCause
from hil.faults import CLEAN, CableDirection, faulty_device, whole_frames

UART_BYTES: Final = 256
"""Bytes that the serial hardware keeps for firmware that does not look; more are lost."""
MAX_OUTPUT_BYTES: Final = 1 << 20
"""Bytes that wait to be taken; more are lost."""
T = TypeVar("T")


class LostBytes(Struct):
    """Bytes that fell off, and where."""

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
        """Of the port that the cable is in, or was in last; another one is a higher number."""
        self.starts = 0
        """How often the device has begun to run."""
        self.facts: Answer = {}
        """What front ends add to `describe`."""
        self.lost = LostBytes()
        self._mechanism = mechanism
        self._options: dict[str, Any] = {
            "breaks": set() if breaks is None else breaks,
            "sync": sync,
            "random": random,
        }
        self._device: Device | None = None
        self._back: int | None = None
        """When power comes back."""
        self._cut = CutPower()
        """How power will go at the moment that the device knows."""
        self._frozen_at: int | None = None
        self._lag = 0
        """How long the device's clock has stood still."""
        self._uart = bytearray()
        self._line = CLEAN
        self._to_device, self._to_host = CableDirection("to device"), CableDirection("to host")
        self._out = bytearray()
        self._start(cause, now)

    @property
    def powered(self) -> bool:
        return self._device is not None

    @property
    def frozen(self) -> bool:
        return self._frozen_at is not None

    @property
    def reading(self) -> bool:
        """Whether the firmware takes bytes."""
        return self.powered and not self.frozen

    @property
    def device(self) -> Device:
        """The device that is running now. CannotDo while there is no power."""
        if self._device is None:
            raise CannotDo("there is no power")
        return self._device

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
        self._arrive(self._to_device.take(now), now)
        self._run(lambda device, at: device.wake(at), now)
        self._leave(now)

    def due(self) -> int | None:
        inner = self._device.due() if self._device is not None and not self.frozen else None
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

    # --- hands ------------------------------------------------------------------------------------

    def hand(self, hand: ControlRequest, now: int) -> Answer:
        """CannotDo if it makes no sense now; nothing has changed then."""
        self.wake(now)
        mine = _REQUESTS.get(type(hand))
        answer = self._at_device(hand, now) if mine is None else mine(self, hand, now)
        self._leave(now)
        return answer

    def _at_device(self, hand: ControlRequest, now: int) -> Answer:
        if self._device is None:
            raise CannotDo("there is no power", "plug, line, describe; or wait until it is back")
        if self.frozen:
            raise CannotDo("the firmware hangs", "freeze, power, plug, line, describe")
        boot = self._device.boot
        answer = self._run(lambda device, at: device.hand(hand, at), now)
        if answer is None:
            return {"power": "cut", "at": self._cut.at}
        self.starts += self._device.boot != boot  # some hands start the firmware anew
        return answer

    def _describe(self, hand: ControlRequest, now: int) -> Answer:
        answer: Answer = {}
        if self._device is not None and self.frozen:
            answer = self._device.hand(hand, self._inner(now))  # its clock shows no new moment
        elif self._device is not None:
            answer = self._run(lambda device, at: device.hand(hand, at), now) or {}
        line = _shown(self._line)
        struck = {"to_device": self._to_device.struck, "to_host": self._to_host.struck}
        return answer | {
            "powered": self.powered,
            "frozen": self.frozen,
            "plugged": self.plugged,
            "line": line | {name: _values(counts) for name, counts in struck.items()},
            "lost": _values(self.lost),
            **self.facts,
        }

    def _power(self, hand: CutPower, now: int) -> Answer:
        if self._device is None:
            raise CannotDo("the power is off already", "wait until it is back")
        if hand.at == "now":
            self._cut = hand
            self._off(now)
            return {"power": "cut", "at": "now"}
        if self.frozen:
            raise CannotDo("the firmware hangs: it comes to no such moment", "at: now")
        self._cut = hand
        self._device.cut_at(hand.at)
        return {"power": "on", "at": hand.at}

    def _plug(self, hand: Plug, now: int) -> Answer:
        named = hand.other_port or hand.port_number is not None
        if named and not hand.connected:
            raise CannotDo("a port is for putting it back", "connected true")
        if named and self.plugged:
            raise CannotDo("the cable is in", "pull it first: connected false")
        if hand.other_port and hand.port_number is not None:
            raise CannotDo("it goes into one port", "other_port or port_number")
        if not hand.connected:
            self._pull()
        elif hand.port_number is not None:
            self.port_number = hand.port_number
        else:
            self.port_number += hand.other_port
        self.plugged = hand.connected
        return {"plugged": self.plugged, "port_number": self.port_number}

    def stay_out(self, port_number: int) -> None:
        """The port that the cable was to go into is somebody else's: it is out as before."""
        self.plugged, self.port_number = False, port_number
        self._pull()

    def _pull(self) -> None:
        self._to_device.clear()
        self._to_host.clear()
        self.lost.unplugged += len(self._out)
        self._out.clear()

    def _freeze(self, hand: Freeze, now: int) -> Answer:
        if self._device is None:
            raise CannotDo("there is no power", "wait until it is back")
        if hand.on and self._frozen_at is None:
            self._frozen_at = now
        elif not hand.on and self._frozen_at is not None:
            self._lag += now - self._frozen_at
            self._frozen_at = None
            held = bytes(self._uart)
            self._uart.clear()
            self._arrive(held, now)
            self._run(lambda device, at: device.wake(at), now)
        return {"frozen": self.frozen}

    def _set_line(self, hand: LineNoise, now: int) -> Answer:
        self._line = hand
        self._to_device.set(hand, now)
        self._to_host.set(hand, now)
        self.wake(now)
        return {"line": _shown(hand)}

    # --- the device -------------------------------------------------------------------------------

    def _inner(self, now: int) -> int:
        """What the device's clock shows."""
        return (now if self._frozen_at is None else self._frozen_at) - self._lag

    def _run(self, do: Callable[[Device, int], T], now: int) -> T | None:
        """Let the device do something; None when it has no power, hangs, or lost its power."""
        if self._device is None or self.frozen:
            return None
        try:
            return do(self._device, self._inner(now))
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
        self._device = faulty_device(
            self.place, self._mechanism(), now=now, cause=cause, **self._options
        )
        self._collect(now)

    def _cause(self) -> PowerCause:
        return PowerCause[self._cut.cause.upper()]

    def _off(self, now: int) -> None:
        self._collect(now)  # what had left before is on the cable
        self._device = None
        self._frozen_at = None
        self._uart.clear()
        if self._cut.off_ms:
            self._back = now + self._cut.off_ms * 1000
        else:
            self._start(self._cause(), now)

    # --- the cable --------------------------------------------------------------------------------

    def _arrive(self, data: bytes, now: int) -> None:
        if not data:
            return
        if self._device is None:
            self.lost.unpowered += len(data)
        elif self.frozen:
            room = max(0, UART_BYTES - len(self._uart))
            self._uart += data[:room]
            self.lost.frozen += len(data[room:])
        else:
            self._run(lambda device, at: device.receive(data, at), now)

    def _collect(self, now: int) -> None:
        if self._device is None or self.frozen:
            return
        data = self._device.take()
        if self.plugged:
            self._to_host.put(data, now)
        else:
            self.lost.unplugged += len(data)

    def _leave(self, now: int) -> None:
        data = self._to_host.take(now)
        fit = whole_frames(data, MAX_OUTPUT_BYTES - len(self._out))
        self._out += fit
        self.lost.full += len(data) - len(fit)


def _values(of: Struct) -> Answer:
    values: Answer = msgspec.to_builtins(of)
    return values


def _shown(line: LineNoise) -> Answer:
    return {name: value for name, value in _values(line).items() if name != "do"}


_REQUESTS: Final[dict[type[ControlRequest], Callable[[SimulatedDevice, Any, int], Answer]]] = {
    Describe: SimulatedDevice._describe,
    CutPower: SimulatedDevice._power,
    Plug: SimulatedDevice._plug,
    Freeze: SimulatedDevice._freeze,
    LineNoise: SimulatedDevice._set_line,
}
