"""The end of the host's record of a device, and whether a received record continues it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from firmware_protocol.messages import (
    REREAD_DEPTH,
    WINDOW,
    Resume,
    ResumeMode,
    ResumeReply,
    Verdict,
)
from firmware_protocol.tablelink import NO_CHAIN, EventRecord

RECENT: Final = REREAD_DEPTH
"""Cached chains of stored records, to distinguish a repeat from a fork."""


class RecordCursor(Struct, frozen=True):
    """The last record of a device that the host has stored durably."""

    epoch: int
    seq: int
    chain: bytes


NO_CURSOR: Final = RecordCursor(0, 0, NO_CHAIN)
"""The cursor of a device without any stored record."""


LAST_SEQ: Final = 0xFFFFFFFF
"""The highest seq. No ring reaches it, but a faulty device may report it."""


class RecordStatus(Enum):
    """A received record, compared with those that the host has."""

    NEXT = "next"
    """It is the next one, and accepted."""
    STORED = "stored"
    """It is stored already; the acknowledgement was lost."""
    WAITS = "waits"
    """It is already buffered and not stored yet, or the buffer is full."""
    AHEAD = "ahead"
    """A record before it is missing."""
    FORK = "fork"
    NEW_EPOCH = "new_epoch"


class ReceivedRecords:
    """Received records: stored up to the cursor, and at most WINDOW more in the buffer."""

    def __init__(self, cursor: RecordCursor, recent: Mapping[int, bytes]) -> None:
        self.cursor = cursor
        self._chain_unknown = False  # adopted: the chain before cursor + 1 is unknown
        self._waiting: dict[int, bytes] = {}
        self.recent = {seq: recent[seq] for seq in sorted(recent) if seq <= cursor.seq}
        if cursor.seq:
            self.recent[cursor.seq] = cursor.chain
        self._drop_old()

    @property
    def next(self) -> int:
        """The first seq that was not received."""
        return self.cursor.seq + len(self._waiting) + 1

    @property
    def waiting(self) -> int:
        """Number of received records that are not stored yet."""
        return len(self._waiting)

    def accept(self, record: EventRecord) -> RecordStatus:
        """Compare this record, and buffer it if it is NEXT."""
        if record.epoch != self.cursor.epoch:
            return RecordStatus.NEW_EPOCH
        if record.seq < self.next:
            return self._compare(record)
        if len(self._waiting) >= WINDOW:
            return RecordStatus.WAITS
        if record.seq > self.next:
            return RecordStatus.AHEAD
        if not self._follows(record):
            return RecordStatus.FORK
        self._waiting[record.seq] = record.chain
        return RecordStatus.NEXT

    def stored(self, seq: int) -> bool:
        """Advance the cursor to seq. Returns False if it was there. Raises ValueError if seq was
        not received."""
        if seq >= self.next or seq < 0:
            raise ValueError(f"stored({seq}): records were received up to {self.next - 1}")
        if seq <= self.cursor.seq:
            return False
        for one in range(self.cursor.seq + 1, seq + 1):
            chain = self.recent[one] = self._waiting.pop(one)
            self.cursor = RecordCursor(self.cursor.epoch, one, chain)
        self._chain_unknown = False
        self._drop_old()
        return True

    def discard_buffer(self) -> None:
        """Drop the records that are not stored, so that the device sends them again."""
        self._waiting.clear()

    def restart(self, epoch: int, seq: int, chain: bytes | None) -> None:
        """Continue after this seq of this ring. Without its chain, the chain of the next record is
        not checked."""
        self.cursor = RecordCursor(epoch, seq, chain or NO_CHAIN)
        self._chain_unknown = chain is None
        self._waiting.clear()
        self.recent.clear()

    def request(self) -> Resume:
        """The RESUME for the end of the host's record."""
        if not self.cursor.epoch:
            return Resume(0, 0, NO_CHAIN, ResumeMode.CHECK)
        mode = ResumeMode.ADOPT if self._chain_unknown else ResumeMode.CHECK
        return Resume(self.cursor.epoch, after(self.cursor.seq), self.cursor.chain, mode)

    def fit(self, epoch: int, head: int) -> bool:
        """Whether a ring with this epoch and head can contain the received records. A record is
        committed before it is sent, so no ring ends before a received one."""
        return epoch == self.cursor.epoch and head >= self.next - 1

    def disagrees(self, reply: ResumeReply) -> bool:
        """Whether the end of the ring contradicts a received record."""
        known = self._chain_of(reply.head)
        return reply.head < self.next - 1 or (known is not None and known != reply.chain)

    def _compare(self, record: EventRecord) -> RecordStatus:
        known = self._chain_of(record.seq)
        if known is not None and known != record.chain:
            return RecordStatus.FORK
        return RecordStatus.STORED if record.seq <= self.cursor.seq else RecordStatus.WAITS

    def _chain_of(self, seq: int) -> bytes | None:
        return self._waiting.get(seq) or self.recent.get(seq)

    def _follows(self, record: EventRecord) -> bool:
        if self._waiting:
            return record.follows(self._waiting[record.seq - 1])
        return self._chain_unknown or record.follows(self.cursor.chain)

    def _drop_old(self) -> None:
        while len(self.recent) > RECENT:
            del self.recent[next(iter(self.recent))]


def after(seq: int) -> int:
    """The next seq, at most LAST_SEQ."""
    return min(seq + 1, LAST_SEQ)


def own_verdict(asked: Resume, reply: ResumeReply) -> Verdict:
    """The host's own verdict on a RESUME, from the reply alone."""
    if reply.epoch != asked.epoch:
        return Verdict.NEW_EPOCH
    if asked.next > reply.head + 1:
        return Verdict.FORK
    if asked.next < reply.oldest:
        return Verdict.GAP
    if asked.mode is ResumeMode.CHECK and asked.next == reply.head + 1:
        return Verdict.OK if asked.chain == reply.chain else Verdict.FORK
    return Verdict.OK
