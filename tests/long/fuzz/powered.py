"""A simulated shoe on a power switch, with a list of all records that it ever committed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from firmware_protocol.device import (
    CannotDo,
    ControlRequest,
    Device,
    Moment,
    PowerCut,
    create_identity,
    pair_directly,
)
from firmware_protocol.messages import REKEY_FRAMES, SESSION_LIFE_S, DeviceClass
from hil.devices import SimulatedShoe
from hil.faults import faulty_device
from tests.long.fuzz.disk import Broken

SERIAL: Final = "SH-0001"


class Terms(Struct, frozen=True):
    """What stays the same in a world."""

    rekey_frames: int = REKEY_FRAMES
    session_life_us: int = SESSION_LIFE_S * 1_000_000
    gate: bool = True
    tampered: bool = False
    """Someone will be at the ring: the link may hold."""
    breaks: frozenset[str] = frozenset()
    """What the device does wrong, by the names of hil.faults.catalogue."""


class Powered:
    """Only the folder of the device outlasts a power cut."""

    def __init__(
        self, folder: Path, random: Random, terms: Terms, host: bytes, counts: Counter[str]
    ) -> None:
        self._folder = folder
        self._random = random
        self._terms = terms
        self._counts = counts
        own = create_identity(folder, DeviceClass.SHOE, SERIAL, rng=random.randbytes)
        pair_directly(folder, host)
        self.key = own.public
        self.device: Device | None = None
        self.committed: set[bytes] = set()
        """Every record that it ever committed."""
        self.on_at: int | None = None
        """When power comes back."""
        self.frozen_until = 0
        self._seen = (0, 0, b"")  # epoch, head and last record of the ring, when it was looked at
        self._out = bytearray()

    def on(self, now: int) -> None:
        self.on_at = None
        if self.device is None:
            self.device = faulty_device(
                self._folder,
                SimulatedShoe(gate=self._terms.gate, gap_ms=5),
                now=now,
                breaks=set(self._terms.breaks),
                sync=False,
                random=self._random.randbytes,
            )
            self._look()

    def off(self, back_at: int) -> None:
        if self.device is not None:
            self._look()
            self._counts["power lost"] += 1
            self.device = None
            self.on_at = back_at

    def cut_at(self, moment: Moment) -> None:
        """Power goes at the next such moment."""
        if self.device is not None:
            self.device.cut_at(moment)
            self._counts[f"cut {moment}"] += 1

    def freeze(self, until: int) -> None:
        """The firmware hangs for a while."""
        self._counts["frozen"] += 1
        self.frozen_until = until

    def hear(self, data: bytes, now: int) -> None:
        """Bytes, or none: what is due happens too."""
        if self.device is not None:
            try:
                if data:
                    self.device.receive(data, now)
                else:
                    self.device.wake(now)
            except PowerCut:
                self._lost(now)
            else:
                self._look()

    def hand(self, hand: ControlRequest, now: int) -> bool:
        """Send a control request. Returns False if it is impossible now."""
        self.hear(b"", now)  # what is due comes first, and is noted
        if self.device is None:
            return False
        try:
            self.device.request(hand, now)
        except CannotDo:
            self._counts["cannot do"] += 1
            return False
        except PowerCut:
            self._lost(now)
            return False
        self._look()
        return True

    def take(self) -> bytes:
        """Bytes for the host, also those that left just before the power went."""
        out = bytes(self._out)
        self._out.clear()
        return out

    def due(self) -> int | None:
        due = None if self.device is None else self.device.due()
        return due if due is None else max(due, self.frozen_until)

    def _lost(self, now: int) -> None:
        self.off(now + self._random.randrange(300_000))

    def _look(self) -> None:
        """What it has said and committed."""
        assert self.device is not None
        self._out += self.device.take()
        ring = self.device.ring
        epoch, head, last = self._seen
        if head and (epoch != ring.epoch or not ring.holds(head) or ring.record(head) != last):
            if not self._terms.tampered:
                raise Broken(f"the device has lost or changed record {head}")
            head = ring.oldest - 1
        for seq in range(head + 1, ring.head + 1):
            self.committed.add(ring.record(seq))
        self._seen = ring.epoch, ring.head, ring.record(ring.head) if ring.head else b""
