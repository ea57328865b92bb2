"""A shoe and its host in simulated time, with a tap at the cable between them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from firmware_protocol.device import Draw, Load
from firmware_protocol.host import ReplyReceived
from firmware_protocol.messages import (
    CARDS,
    CardRead,
    Command,
    FrameKind,
    Lock,
    LockState,
    Reread,
    Side,
)
from firmware_protocol.tablelink import Deframer, EventRecord, Frame, next_chain
from hil.devices import SimulatedShoe
from hil.faults import TappedFrame
from hil.faults.tap import BODY
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
    table.play(200, draw or Draw(count=len(order), dwell_ms=35))
    for _ in range((len(order) * 120 + tail_ms) // SLOW_MS + 1):
        table.run(SLOW_MS)
        table.keep_up()
    last = table.records[-1]
    table.call(Reread(last.epoch, last.seq))
    table.run(300)
    assert len(table.all(ReplyReceived)) == 2  # LOCK_REPLY and REREAD_REPLY
    return Run(frames_of(table.wire), table.records, table.arrivals)


# --- a tap ----------------------------------------------------------------------------------

HASHED = 48
"""Offset of the chain of a record, which is the hash of all bytes before it."""
CARD_AT = BODY + 6
SALT_AT = BODY + 13
_RANDOM = slice(32, 40)
"""HELLO_RSP.random in its payload."""
_CLEAR = (FrameKind.HELLO, FrameKind.HELLO_RSP, FrameKind.ALERT)


def frames_of(pieces: Iterable[tuple[int, Side, bytes]], since: int = 0) -> list[TappedFrame]:
    """The undamaged frames of these bytes from that time on."""
    deframers = {"host": Deframer(), "device": Deframer()}
    return [
        TappedFrame(at, side, heard, len(heard.encode()))
        for at, side, data in pieces
        for heard in deframers[side].feed(data)
        if isinstance(heard, Frame) and at >= since
    ]


def clear_bytes(frame: Frame) -> bytes:
    """The unencrypted bytes, with random fields set to zero."""
    payload = bytearray(frame.payload if frame.kind in _CLEAR else b"")
    if frame.kind is FrameKind.HELLO_RSP:
        payload[_RANDOM] = bytes(8)
    return frame.header() + bytes(payload)


def first_clear_difference(one: Run, other: Run) -> str | None:
    """The first difference of two runs in their unencrypted bytes. Session ids and serial numbers
    are compared too, so both runs need the same device or two identical ones."""
    for ours, theirs in zip(one.frames, other.frames, strict=False):
        clear, other_clear = clear_bytes(ours.frame), clear_bytes(theirs.frame)
        if clear != other_clear:
            return f"{ours.describe()}: {clear.hex()}, and {other_clear.hex()}"
    return None


def matching_cards(record: EventRecord, previous: bytes, salts: Iterable[bytes]) -> set[int]:
    """The cards for which the record has its chain, if its salt is one of `salts`. All other fields
    are assumed to be known, which is more than an attacker has."""
    if not isinstance(record.event, CardRead):
        return set()
    hashed = bytearray(record.encode()[:HASHED])
    fit = set()
    for salt in salts:
        hashed[SALT_AT : SALT_AT + len(salt)] = salt
        for card in range(CARDS):
            hashed[CARD_AT] = card
            if next_chain(previous, bytes(hashed)) == record.chain:
                fit.add(card)
    return fit
