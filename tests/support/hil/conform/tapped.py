"""A shoe and its host in simulated time, with a tap at the cable between them."""

from __future__ import annotations

from pathlib import Path
from random import Random

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.device import identity
from firmware_protocol.device.control import ControlRequest, Draw, Load
from firmware_protocol.host import (
    HostLink,
    LinkEvent,
    RecordReceived,
    ReplyReceived,
    RingHeld,
)
from firmware_protocol.messages.codec import Command
from firmware_protocol.messages.enums import DeviceClass, LockState
from firmware_protocol.messages.shoe import Lock, Reread
from firmware_protocol.tablelink.plaintext import EventRecord
from hil.devices import SimulatedShoe
from hil.faults import TappedFrame, faulty_device
from hil.faults.tap import Tap

START = 5_000_000
SLOW_MS = 350
"""So long a slow host takes; what came meanwhile is sent again by then."""
HOST = X25519PrivateKey.from_private_bytes(bytes(range(32)))


class Table:
    """One host and one shoe. All that is random comes from one seed."""

    def __init__(self, folder: Path, *breaks: str, seed: int = 1, keeps: bool = True) -> None:
        place = folder / "shoe"
        own = identity.create(place, DeviceClass.SHOE, "SH-1", rng=Random(1).randbytes)
        identity.pair_directly(place, HOST.public_key().public_bytes_raw())
        self.now = START
        self.tap = Tap()
        self.keeps = keeps
        """Whether the host acknowledges at once."""
        self.records: list[EventRecord] = []
        self.came: list[int] = []
        """When each of them came."""
        self.replies: list[ReplyReceived] = []
        self.device = faulty_device(
            place,
            SimulatedShoe(),
            now=self.now,
            breaks=set(breaks),
            sync=False,
            random=Random(f"device {seed}").randbytes,
        )
        self.link = HostLink(
            HOST,
            own.public,
            device_class=DeviceClass.SHOE,
            serial="SH-1",
            host_boot=7,
            random=Random(f"host {seed}").randbytes,
        )
        self._hear(self.link.open(self.now))
        self.run(300)

    def hand(self, hand: ControlRequest) -> None:
        self.device.hand(hand, self.now)
        self._settle()

    def call(self, command: Command) -> None:
        self.link.call(command, self.now)
        self._settle()

    def run(self, ms: int) -> None:
        end = self.now + ms * 1000
        self._settle()
        while (due := self._due()) is not None and due <= end:
            self.now = max(self.now, due)
            self.device.wake(self.now)
            self._hear(self.link.wake(self.now))
            self._settle()
        self.now = end

    def _due(self) -> int | None:
        dues = (self.device.due(), self.link.due())
        return min((due for due in dues if due is not None), default=None)

    def _settle(self) -> None:
        while True:
            said, answered = self.link.take(), self.device.take()
            self.tap.note(self.now, "host", said)
            self.tap.note(self.now, "device", answered)
            if not said and not answered:
                return
            if said:
                self.device.receive(said, self.now)
            if answered:
                self._hear(self.link.receive(answered, self.now))

    def _hear(self, events: list[LinkEvent]) -> None:
        for event in events:
            if isinstance(event, RingHeld):
                self.link.adopt(self.now)
            elif isinstance(event, ReplyReceived):
                self.replies.append(event)
            elif isinstance(event, RecordReceived):
                self.records.append(event.record)
                self.came.append(self.now)
                if self.keeps:
                    self.link.stored(event.record.seq, self.now)

    def keep_up(self) -> None:
        """The host has been slow: it acknowledges what came meanwhile."""
        self.link.stored(self.records[-1].seq, self.now)
        self._settle()


class Run(Struct):
    """What one order of cards left behind."""

    frames: list[TappedFrame]
    records: list[EventRecord]
    came: list[int]


def play(
    folder: Path,
    order: tuple[str, ...],
    *breaks: str,
    seed: int = 1,
    keeps: bool = True,
    draw: Draw | None = None,
    tail_ms: int = 700,
) -> Run:
    """Draw these cards at fixed moments, and ask for the last record once more."""
    table = Table(folder, *breaks, seed=seed, keeps=keeps)
    table.hand(Load(cards=order))
    table.call(Lock(LockState.OPEN))
    table.run(200)
    table.hand(draw or Draw(count=len(order), dwell_ms=35))
    for _ in range((len(order) * 120 + tail_ms) // SLOW_MS + 1):
        table.run(SLOW_MS)
        table.keep_up()
    last = table.records[-1]
    table.call(Reread(last.epoch, last.seq))
    table.run(300)
    assert len(table.replies) == 2  # LOCK_REPLY and REREAD_REPLY
    return Run(table.tap.frames(), table.records, table.came)
