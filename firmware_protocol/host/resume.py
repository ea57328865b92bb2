"""RESUME on the host: whether a ring continues the host's record, and its adoption if not."""

from __future__ import annotations

from msgspec import Struct, structs

from firmware_protocol.host.cursor import ReceivedRecords, after, own_verdict
from firmware_protocol.host.events import RingHeld, RingResumed
from firmware_protocol.messages import Resume, ResumeMode, ResumeReply, Verdict
from firmware_protocol.tablelink import NO_CHAIN, EventRecord


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
        start = after(held.head) if skip else held.oldest
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
            at_head = asked.next == reply.head + 1
            self._records.restart(reply.epoch, asked.next - 1, reply.chain if at_head else None)
        return self._judged(verdict, reply)

    def _judged(self, verdict: Verdict, reply: ResumeReply) -> RingResumed | RingHeld:
        if verdict is not Verdict.OK:
            return self._hold(RingHeld(verdict, reply.epoch, reply.oldest, reply.head, reply.chain))
        self.held = None
        self.accepting = True
        return RingResumed(reply.epoch, reply.oldest, reply.head)

    def _hold(self, held: RingHeld) -> RingHeld:
        self.held = held
        self.accepting = False
        return held
