"""Where the host's record of a device ends, and whether the next record of its ring goes there."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from firmware_protocol.messages.common import Resume, ResumeReply
from firmware_protocol.messages.enums import ResumeMode, Verdict
from firmware_protocol.messages.limits import REREAD_DEPTH, WINDOW
from firmware_protocol.tablelink.plaintext import NO_CHAIN, EventRecord

RECENT: Final = REREAD_DEPTH
"""Chains of kept records that are remembered, to tell a repeat from a fork."""


class RecordCursor(Struct, frozen=True):
    """The last record of a device that the host keeps safely."""

    epoch: int
    seq: int
    chain: bytes


NO_CURSOR: Final = RecordCursor(0, 0, NO_CHAIN)
"""Of a device that the host has never heard."""


LAST_SEQ: Final = 0xFFFFFFFF
"""No seq is higher. No ring comes so far, but a defective device may say that it has."""


class RecordStatus(Enum):
    """Where a record stands beside what the host has."""

    NEXT = "next"
    """The one that was missing: it is the host's now."""
    KEPT = "kept"
    """It is kept already, and the device does not know it."""
    WAITS = "waits"
    """It has come already and is not kept yet, or there is no room for it yet."""
    AHEAD = "ahead"
    """One or more before it are missing."""
    FORK = "fork"
    NEW_EPOCH = "new_epoch"


class ReceivedRecords:
    """What has come of a ring: kept up to the cursor, and at most WINDOW more that wait for it."""

    def __init__(self, cursor: RecordCursor, recent: Mapping[int, bytes]) -> None:
        self.cursor = cursor
        self._loose = False  # adopted: what the chain was before cursor + 1 is not known
        self._waiting: dict[int, bytes] = {}
        self._recent = {seq: recent[seq] for seq in sorted(recent) if seq <= cursor.seq}
        if cursor.seq:
            self._recent[cursor.seq] = cursor.chain
        self._trim()

    @property
    def next(self) -> int:
        """The first seq that has not come."""
        return self.cursor.seq + len(self._waiting) + 1

    @property
    def waiting(self) -> int:
        """How many have come and are not kept yet."""
        return len(self._waiting)

    def place(self, record: EventRecord) -> RecordStatus:
        """Where this record stands. The one that is NEXT counts as come from now on."""
        if record.epoch != self.cursor.epoch:
            return RecordStatus.NEW_EPOCH
        if record.seq < self.next:
            return self._again(record)
        if len(self._waiting) >= WINDOW:
            return RecordStatus.WAITS
        if record.seq > self.next:
            return RecordStatus.AHEAD
        if not self._follows(record):
            return RecordStatus.FORK
        self._waiting[record.seq] = record.chain
        return RecordStatus.NEXT

    def kept(self, seq: int) -> bool:
        """All up to seq are safe. False if they were before. ValueError if seq has not come."""
        if seq >= self.next or seq < 0:
            raise ValueError(f"kept({seq}): records have come up to {self.next - 1}")
        if seq <= self.cursor.seq:
            return False
        for one in range(self.cursor.seq + 1, seq + 1):
            chain = self._recent[one] = self._waiting.pop(one)
            self.cursor = RecordCursor(self.cursor.epoch, one, chain)
        self._loose = False
        self._trim()
        return True

    def forget(self) -> None:
        """What was not kept has not come: the device shall send it again."""
        self._waiting.clear()

    def begin(self, epoch: int, seq: int, chain: bytes | None) -> None:
        """Go on after this seq of this ring, whatever was before. Without its chain the next
        record is taken as it is."""
        self.cursor = RecordCursor(epoch, seq, chain or NO_CHAIN)
        self._loose = chain is None
        self._waiting.clear()
        self._recent.clear()

    def request(self) -> Resume:
        """Where the record ends, as RESUME says it."""
        if not self.cursor.epoch:
            return Resume(0, 0, NO_CHAIN, ResumeMode.CHECK)
        mode = ResumeMode.ADOPT if self._loose else ResumeMode.CHECK
        return Resume(self.cursor.epoch, after(self.cursor.seq), self.cursor.chain, mode)

    def go_with(self, epoch: int, head: int) -> bool:
        """Whether a ring of this name that ends there can be the one that the records are of. A
        record is committed before it is sent: no ring ends before one that has come."""
        return epoch == self.cursor.epoch and head >= self.next - 1

    def disagrees(self, reply: ResumeReply) -> bool:
        """Whether the ring's end contradicts a record that has come, kept or not."""
        known = self._chain_of(reply.head)
        return reply.head < self.next - 1 or (known is not None and known != reply.chain)

    def _again(self, record: EventRecord) -> RecordStatus:
        known = self._chain_of(record.seq)
        if known is not None and known != record.chain:
            return RecordStatus.FORK
        return RecordStatus.KEPT if record.seq <= self.cursor.seq else RecordStatus.WAITS

    def _chain_of(self, seq: int) -> bytes | None:
        return self._waiting.get(seq) or self._recent.get(seq)

    def _follows(self, record: EventRecord) -> bool:
        if self._waiting:
            return record.follows(self._waiting[record.seq - 1])
        return self._loose or record.follows(self.cursor.chain)

    def _trim(self) -> None:
        while len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]


def after(seq: int) -> int:
    """The next seq, as far as there is one."""
    return min(seq + 1, LAST_SEQ)


def own_verdict(asked: Resume, reply: ResumeReply) -> Verdict:
    """What a RESUME amounts to, as far as the host can tell from the answer alone."""
    if reply.epoch != asked.epoch:
        return Verdict.NEW_EPOCH
    if asked.next > reply.head + 1:
        return Verdict.FORK
    if asked.next < reply.oldest:
        return Verdict.GAP
    if asked.mode is ResumeMode.CHECK and asked.next == reply.head + 1:
        return Verdict.OK if asked.chain == reply.chain else Verdict.FORK
    return Verdict.OK
