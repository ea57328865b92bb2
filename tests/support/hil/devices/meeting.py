"""A host's link and a simulated device, in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any, Self, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.device import (
    Answer,
    ControlRequest,
    Describe,
    Mechanism,
    create_identity,
    pair_directly,
)
from firmware_protocol.host import (
    NO_CURSOR,
    HostLink,
    LinkEvent,
    RecordReceived,
    RingHeld,
)
from firmware_protocol.messages import DeviceClass, Side
from firmware_protocol.tablelink import EventRecord
from hil.devices import SimulatedStation
from hil.simulator import SimulatedDevice

HOST = X25519PrivateKey.from_private_bytes(bytes(range(32)))
T = TypeVar("T")


class Meeting:
    """A paired device, a station by default, and its host, which stores what arrives at once."""

    def __init__(
        self,
        folder: Path,
        mechanism: Callable[[], Mechanism] = SimulatedStation,
        *,
        breaks: Iterable[str] = (),
        seed: int = 1,
        keeps: bool = True,
    ) -> None:
        """`keeps`: whether the host acknowledges at once."""
        self.now = 1_000_000
        self.place = folder / "device"
        own = create_identity(
            self.place, mechanism().device_class, "XX-0001", rng=Random(1).randbytes
        )
        pair_directly(self.place, HOST.public_key().public_bytes_raw())
        self.stand = SimulatedDevice(
            self.place,
            mechanism,
            now=self.now,
            sync=False,
            breaks=set(breaks),
            random=Random(f"device {seed}").randbytes,
        )
        self.link = HostLink(
            HOST,
            own.public,
            device_class=DeviceClass.ANY,
            serial=None,
            host_boot=1,
            random=Random(f"host {seed}").randbytes,
        )
        self.keeps = keeps
        self.told: list[LinkEvent] = []
        self.records: list[EventRecord] = []
        self.arrivals: list[int] = []
        """The time of each record."""
        self.held: list[RingHeld] = []
        self.wire: list[tuple[int, Side, bytes]] = []
        """All bytes on the cable: time, sender, data."""

    def open(self) -> None:
        self._hear(self.link.open(self.now))

    def replug(self) -> None:
        """The host opens the port again."""
        self._hear(self.link.lost(self.now))
        self.open()

    def request(self, request: ControlRequest) -> Answer:
        answer = self.stand.request(request, self.now)
        self.settle()
        return answer

    def play(self, *steps: ControlRequest | int) -> Self:
        """Requests in order; a number is milliseconds that go by."""
        for step in steps:
            if isinstance(step, int):
                self.run(step)
            else:
                self.request(step)
        return self

    def run(self, ms: int) -> None:
        """Let so much time pass."""
        end = self.now + ms * 1000
        self.settle()
        while (due := self._due()) is not None and due <= end:
            self.now = max(self.now, due)
            self.stand.wake(self.now)
            self._hear(self.link.wake(self.now))
            self.settle()
        self.now = end

    def look(self) -> dict[str, Any]:
        return self.request(Describe())

    def settle(self) -> None:
        """Bytes cross until neither side has more to say now."""
        while True:
            out, back = self.link.take(), self.stand.take()
            if not out and not back:
                return
            if out:
                self.wire.append((self.now, "host", out))
                self.stand.receive(out, self.now)
            if back:
                self.wire.append((self.now, "device", back))
                self._hear(self.link.receive(back, self.now))

    def last(self, kind: type[T]) -> T:
        return self.all(kind)[-1]

    def all(self, kind: type[T]) -> list[T]:
        return [event for event in self.told if isinstance(event, kind)]

    def _due(self) -> int | None:
        dues = (self.stand.due(), self.link.due())
        return min((due for due in dues if due is not None), default=None)

    def _hear(self, events: list[LinkEvent]) -> None:
        self.told += events
        for event in events:
            if isinstance(event, RecordReceived):
                self.records.append(event.record)
                self.arrivals.append(self.now)
                if self.keeps:
                    self.link.stored(event.record.seq, self.now)
            elif isinstance(event, RingHeld) and self.link.cursor == NO_CURSOR:
                self.link.adopt(self.now)  # the first time that it sees this ring
            elif isinstance(event, RingHeld):
                self.held.append(event)
