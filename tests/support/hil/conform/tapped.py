"""A shoe and its host in simulated time, with a tap at the cable between them."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from firmware_protocol.device import Draw, Load
from firmware_protocol.host import ReplyReceived
from firmware_protocol.messages import Command, Lock, LockState, Reread
from firmware_protocol.tablelink import EventRecord
from hil.devices import SimulatedShoe
from hil.faults import TappedFrame
from hil.faults.tap import Tap
from tests.support.hil.devices.meeting import Meeting

SLOW_MS = 350
"""How long a slow host takes; records are repeated by then."""


class Table(Meeting):
    """One host and one shoe, in a session. All random bytes come from one seed."""

    def __init__(self, folder: Path, *breaks: str, seed: int = 1, keeps: bool = True) -> None:
        super().__init__(folder, SimulatedShoe, breaks=breaks, seed=seed, keeps=keeps)
        self.open()
        self.run(300)

    def call(self, command: Command) -> None:
        self.link.call(command, self.now)
        self.settle()

    def keep_up(self) -> None:
        """A slow host acknowledges all records."""
        self.link.stored(self.records[-1].seq, self.now)
        self.settle()

    def frames(self) -> list[TappedFrame]:
        tap = Tap()
        for at, side, data in self.wire:
            tap.note(at, side, data)
        return tap.frames()


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
    table.request(Load(cards=order))
    table.call(Lock(LockState.OPEN))
    table.run(200)
    table.request(draw or Draw(count=len(order), dwell_ms=35))
    for _ in range((len(order) * 120 + tail_ms) // SLOW_MS + 1):
        table.run(SLOW_MS)
        table.keep_up()
    last = table.records[-1]
    table.call(Reread(last.epoch, last.seq))
    table.run(300)
    assert len(table.all(ReplyReceived)) == 2  # LOCK_REPLY and REREAD_REPLY
    return Run(table.frames(), table.records, table.arrivals)
