"""Links that break one rule each. The histories must detect every one."""

from __future__ import annotations

from typing import Any, Final

from firmware_protocol.host import (
    NO_CURSOR,
    HostLink,
    LinkEvent,
    ReceivedRecords,
    RecordReceived,
    RingHeld,
    RingResumed,
)
from firmware_protocol.host.exchange import Exchange, HostSession
from firmware_protocol.host.records import RecordStatus, Resumption
from firmware_protocol.messages import Resume, ResumeReply, Verdict
from firmware_protocol.tablelink import EventRecord
from tests.long.fuzz.world import LinkKind


class AcknowledgesAtOnce(HostLink):
    """EVT_ACK is sent before a record is stored."""

    def receive(self, data: bytes, now: int) -> list[LinkEvent]:
        events = super().receive(data, now)
        for event in events:
            if isinstance(event, RecordReceived) and event.record.seq < self.records.next:
                self.stored(event.record.seq, now)
        return events


class BeginsAnew(HostLink):
    """A new session starts without the former cursor."""

    def open(self, now: int) -> list[LinkEvent]:
        self.records.restart(0, 0, NO_CURSOR.chain)
        return super().open(now)


class NeverDies(HostLink):
    """A session without DATA never times out."""

    def wake(self, now: int, *, early: int = 0) -> list[LinkEvent]:
        if self.sessions.running is not None:
            self.sessions.running.received(now)
        return super().wake(now, early=early)


class _NoDedupe(ReceivedRecords):
    def _compare(self, record: EventRecord) -> RecordStatus:
        return RecordStatus.NEXT


class _TakesGaps(ReceivedRecords):
    def accept(self, record: EventRecord) -> RecordStatus:
        place = super().accept(record)
        return RecordStatus.NEXT if place is RecordStatus.AHEAD else place


class _IgnoresChain(ReceivedRecords):
    def _follows(self, record: EventRecord) -> bool:
        return True

    def disagrees(self, reply: ResumeReply) -> bool:
        return False


class _KeepsOne(ReceivedRecords):
    """Only the first of several stored records advances the cursor."""

    def stored(self, seq: int) -> bool:
        return super().stored(min(seq, self.cursor.seq + 1))


class _Trusts(Resumption):
    """Accepts the verdict of the device."""

    def judge(self, asked: Resume, reply: ResumeReply) -> RingResumed | RingHeld | None:
        if self._adoption is None and asked.epoch:
            self._doubt = Verdict.OK
            self.device_agrees = True
            return self._judged(reply.verdict, reply)
        return super().judge(asked, reply)


class _NeverAcknowledges(Exchange):
    def acknowledge(self, now: int) -> None:
        self._ack_wanted = False

    def _send_beat(self, session: HostSession, now: int) -> None:
        taking, self.resuming.accepting = self.resuming.accepting, False
        super()._send_beat(session, now)
        self.resuming.accepting = taking


class _Forgets(ReceivedRecords):
    """Received records that are not stored are delivered again after the next RESUME."""

    def request(self) -> Resume:
        self._waiting.clear()
        return super().request()


def _with(part: str, kind: type) -> LinkKind:
    """A link with one part of another class."""

    def make(*args: Any, **more: Any) -> HostLink:
        link = HostLink(*args, **more)
        where: Any = link
        for name in part.split("."):
            where = getattr(where, name)
        where.__class__ = kind
        return link

    return make


SABOTAGED: Final[dict[str, LinkKind]] = {
    "acknowledges-at-once": AcknowledgesAtOnce,
    "begins-anew": BeginsAnew,
    "never-dies": NeverDies,
    "no-dedupe": _with("records", _NoDedupe),
    "takes-gaps": _with("records", _TakesGaps),
    "ignores-chain": _with("records", _IgnoresChain),
    "keeps-one": _with("records", _KeepsOne),
    "trusts-the-device": _with("_exchange.resuming", _Trusts),
    "never-acknowledges": _with("_exchange", _NeverAcknowledges),
    "forgets-what-waits": _with("records", _Forgets),
}
