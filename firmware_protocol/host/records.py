"""The end of the host's record of a device, and RESUME: whether a ring or a record continues it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct, structs

from firmware_protocol.host.events import RingHeld, RingResumed
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
        ends = ((reply.head, reply.chain), (reply.acked_seq, reply.acked_chain))
        if any(self._contradicts(seq, chain) for seq, chain in ends if chain != NO_CHAIN):
            return True
        return reply.head < self.next - 1

    def _contradicts(self, seq: int, chain: bytes) -> bool:
        known = self._chain_of(seq)
        return known is not None and known != chain

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
    # After OK, acked_seq is the one that this RESUME has set: next - 1.
    if asked.mode is ResumeMode.CHECK and asked.next <= reply.acked_seq:
        return Verdict.BEHIND
    if asked.next < reply.oldest:
        return Verdict.GAP
    if asked.mode is ResumeMode.CHECK and asked.next == reply.head + 1:
        return Verdict.OK if asked.chain == reply.chain else Verdict.FORK
    return Verdict.OK


# --- RESUME, and the adoption of a ring ------------------------------------------------------


class RingAdoption(Struct, frozen=True):
    """A ring that two people accepted, from `next` on, as it was held and with later records. It is
    valid until the device has answered, also in another session."""

    epoch: int
    next: int
    head: int
    chain: bytes

    def continues(self, reply: ResumeReply) -> bool:
        """Whether the ring has the same end or later records."""
        if reply.head == self.head:
            return reply.chain == self.chain
        return reply.head > self.head


class Resumption:
    """Builds RESUME, checks its reply, and decides whether records are accepted."""

    def __init__(self, records: ReceivedRecords) -> None:
        self._records = records
        self._adoption: RingAdoption | None = None
        self._doubt = Verdict.OK  # shown by a record or heartbeat; no RESUME clears it
        self._oldest = 1
        self.held: RingHeld | None = None
        self.accepting = False
        """Records are accepted."""
        self.device_agrees = False
        """The device answered OK in this session, so it executes all commands."""

    def request(self) -> Resume:
        """The RESUME to send now."""
        adoption = self._adoption
        if adoption is None:
            return self._records.request()
        return Resume(adoption.epoch, adoption.next, NO_CHAIN, ResumeMode.ADOPT)

    def judge(self, asked: Resume, reply: ResumeReply) -> RingResumed | RingHeld | None:
        """Check the reply. Returns None if another request() must be sent."""
        self._oldest = reply.oldest
        verdict = max(own_verdict(asked, reply), reply.verdict)
        self.device_agrees = reply.verdict is Verdict.OK
        if self._adoption is not None:
            if asked != self.request():
                return None  # adopted while another RESUME was sent
            return self._judge_adoption(self._adoption, asked, reply, verdict)
        if verdict is Verdict.OK and self._records.disagrees(reply):
            verdict = Verdict.FORK
        return self._judged(max(verdict, self._doubt), reply)

    def doubt(self, verdict: Verdict, record: EventRecord) -> RingHeld:
        """Hold the ring, because a record contradicts the stored ones. Only an adoption ends it."""
        self._doubt = verdict
        oldest = self._oldest if verdict is Verdict.FORK else 1
        return self._hold(RingHeld(verdict, record.epoch, oldest, record.seq, record.chain))

    def mistrust(self) -> None:
        """A heartbeat contradicts the received records. The next RESUME returns the state of the
        ring, which is then held whatever the verdict is."""
        self._doubt = max(self._doubt, Verdict.FORK)
        self.accepting = False

    def adopt(self, *, skip: bool) -> None:
        """Adopt the held ring. Raises ValueError if no ring is held, or if received records are
        neither stored nor discarded: stored() would soon refer to others."""
        held = self.held
        if held is None:
            raise ValueError("adopt(): nothing is held")
        if self._records.waiting:
            raise ValueError(
                f"adopt(): {self._records.waiting} received records are not stored; "
                "stored() or discard() comes first"
            )
        start = after(held.head) if skip else held.next
        self._adoption = RingAdoption(held.epoch, start, held.head, held.chain)

    def reset(self) -> None:
        """The session ended or was replaced: RESUME must be sent again."""
        self.accepting = False
        self.device_agrees = False

    def _judge_adoption(
        self, adoption: RingAdoption, asked: Resume, reply: ResumeReply, verdict: Verdict
    ) -> RingResumed | RingHeld | None:
        if not adoption.continues(reply):
            verdict = max(verdict, Verdict.FORK)
        if verdict is Verdict.GAP:
            # Only acknowledged records were overwritten: it is the same ring.
            self._adoption = structs.replace(adoption, next=reply.oldest)
            return None
        self._adoption = None
        if verdict is Verdict.OK:
            self._doubt = Verdict.OK
            chain = _held(verdict, reply).chain_before(asked.next)
            self._records.restart(reply.epoch, asked.next - 1, chain)
        return self._judged(verdict, reply)

    def _judged(self, verdict: Verdict, reply: ResumeReply) -> RingResumed | RingHeld:
        if verdict is not Verdict.OK:
            return self._hold(_held(verdict, reply))
        self.held = None
        self.accepting = True
        return RingResumed(reply.epoch, reply.oldest, reply.head)

    def _hold(self, held: RingHeld) -> RingHeld:
        self.held = held
        self.accepting = False
        return held


def _held(verdict: Verdict, reply: ResumeReply) -> RingHeld:
    return RingHeld(
        verdict,
        reply.epoch,
        reply.oldest,
        reply.head,
        reply.chain,
        reply.acked_seq,
        reply.acked_chain,
    )
