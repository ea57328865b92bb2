"""RESUME from the host's side: whether a ring goes on where the host's record ends."""

from __future__ import annotations

from msgspec import Struct, structs

from firmware_protocol.host.cursor import ReceivedRecords, after, own_verdict
from firmware_protocol.host.events import RingHeld, RingResumed
from firmware_protocol.messages.common import Resume, ResumeReply
from firmware_protocol.messages.enums import ResumeMode, Verdict
from firmware_protocol.tablelink.plaintext import NO_CHAIN, EventRecord


class RingAdoption(Struct, frozen=True):
    """What two people accepted: this ring as they saw it, with what is added since, from `next`
    on. It stands until the device has answered, also in another session."""

    epoch: int
    next: int
    head: int
    chain: bytes

    def goes_on(self, reply: ResumeReply) -> bool:
        """Whether the ring still ends where it did, or later."""
        if reply.head == self.head:
            return reply.chain == self.chain
        return reply.head > self.head


class Resumption:
    """Asks, judges the answer, and says whether records may be taken."""

    def __init__(self, records: ReceivedRecords) -> None:
        self._records = records
        self._adoption: RingAdoption | None = None
        self._doubt = Verdict.OK  # what a record or heartbeat has shown; no RESUME takes it back
        self._oldest = 1
        self.held: RingHeld | None = None
        self.taking = False
        """Records may come."""
        self.device_agrees = False
        """The device answered OK in this session: it carries out all commands."""

    def request(self) -> Resume:
        """The RESUME that is to be sent now."""
        adoption = self._adoption
        if adoption is None:
            return self._records.request()
        return Resume(adoption.epoch, adoption.next, NO_CHAIN, ResumeMode.ADOPT)

    def judge(self, asked: Resume, reply: ResumeReply) -> RingResumed | RingHeld | None:
        """What the answer amounts to; None: ask again with request()."""
        self._oldest = reply.oldest
        verdict = max(own_verdict(asked, reply), reply.verdict)
        self.device_agrees = reply.verdict is Verdict.OK
        if self._adoption is not None:
            if asked != self.request():
                return None  # it was accepted while another RESUME was on its way
            return self._judge_adoption(self._adoption, asked, reply, verdict)
        if verdict is Verdict.OK and self._records.disagrees(reply):
            verdict = Verdict.FORK
        return self._judged(max(verdict, self._doubt), reply)

    def doubt(self, verdict: Verdict, record: EventRecord) -> RingHeld:
        """A record does not go with what was kept. That stands until it is adopted."""
        self._doubt = verdict
        oldest = self._oldest if verdict is Verdict.FORK else 1
        return self._hold(RingHeld(verdict, record.epoch, oldest, record.seq, record.chain))

    def stray(self) -> None:
        """A heartbeat does not go with what has come. It does not say how the ring stands: the next
        RESUME does, and holds it, whatever its verdict."""
        self._doubt = max(self._doubt, Verdict.FORK)
        self.taking = False

    def adopt(self, *, skip: bool) -> None:
        """Two people have accepted the ring as it is. ValueError when nothing is held, and when
        records have come that are neither kept nor given up: kept() would mean others soon."""
        held = self.held
        if held is None:
            raise ValueError("adopt(): nothing is held")
        if self._records.waiting:
            raise ValueError(
                f"adopt(): {self._records.waiting} records have arrived and are not kept; "
                "kept() or again() comes first"
            )
        start = after(held.head) if skip else held.oldest
        self._adoption = RingAdoption(held.epoch, start, held.head, held.chain)

    def parted(self) -> None:
        """The session is over, or another one took its place: RESUME begins anew."""
        self.taking = False
        self.device_agrees = False

    def _judge_adoption(
        self, adoption: RingAdoption, asked: Resume, reply: ResumeReply, verdict: Verdict
    ) -> RingResumed | RingHeld | None:
        if not adoption.goes_on(reply):
            verdict = max(verdict, Verdict.FORK)
        if verdict is Verdict.GAP:
            # What was acknowledged long ago was overwritten meanwhile: still the same ring.
            self._adoption = structs.replace(adoption, next=reply.oldest)
            return None
        self._adoption = None
        if verdict is Verdict.OK:
            self._doubt = Verdict.OK
            at_head = asked.next == reply.head + 1
            self._records.begin(reply.epoch, asked.next - 1, reply.chain if at_head else None)
        return self._judged(verdict, reply)

    def _judged(self, verdict: Verdict, reply: ResumeReply) -> RingResumed | RingHeld:
        if verdict is not Verdict.OK:
            return self._hold(RingHeld(verdict, reply.epoch, reply.oldest, reply.head, reply.chain))
        self.held = None
        self.taking = True
        return RingResumed(reply.epoch, reply.oldest, reply.head)

    def _hold(self, held: RingHeld) -> RingHeld:
        self.held = held
        self.taking = False
        return held
