"""From an event to the wire: committed to the ring, sent within the window, sent again until it is
acknowledged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from firmware_protocol.device.control import Moment
from firmware_protocol.device.ring import SLOT_SIZE, Ring
from firmware_protocol.device.send_window import Room, Sending
from firmware_protocol.device.sessions import DeviceParts, DeviceSession
from firmware_protocol.messages.codec import Event
from firmware_protocol.messages.common import LogPressure
from firmware_protocol.messages.enums import AlertCode
from firmware_protocol.tablelink.plaintext import chained

TORN_BYTES: Final = SLOT_SIZE // 2
"""How many bytes of a record are written when power goes in the middle of it."""


class RecordContext(Protocol):
    """What the records need of the device around them."""

    boot: int

    def clock(self, now: int) -> int: ...

    def running(self) -> DeviceSession | None: ...

    def send(self, session: DeviceSession, plaintext: bytes, now: int) -> None: ...

    def safe(self, now: int) -> None: ...

    def reach(self, moment: Moment) -> None: ...

    def torn(self) -> int | None:
        """How much of a record is written before power goes; None if it does not go there."""


class RecordSender:
    def __init__(self, board: DeviceParts, ring: Ring, around: RecordContext) -> None:
        self.ring = ring
        self.room = Room(ring, board.kept, board.behaviour)
        self._wire = board.wire
        self._behaviour = board.behaviour
        self._around = around
        self._last_sent = 0
        """The last record that was sent in any session."""

    def record(self, event: Event, now: int) -> bool:
        """Commit this event; False if there is no room for it."""
        if not self.room.has(event):
            return False
        self._commit(event, now)
        self._press(now)
        return True

    def _commit(self, event: Event, now: int) -> None:
        around = self._around
        record = chained(
            self._behaviour.chains_to(self.ring.chain),
            epoch=self.ring.epoch,
            seq=self.ring.head + 1,
            boot=around.boot,
            t_us=around.clock(now),
            event=event,
        ).encode()
        if self._behaviour.sends_before_commit():
            self.flow(now, record)
        around.reach("before_commit")
        torn = around.torn()
        if torn is not None:
            self.ring.tear(record, torn)
            around.reach("in_commit")
        self.ring.commit(record)
        self.room.committed()
        around.reach("after_commit")
        arg = self._behaviour.alert_of(event)
        if arg is not None:
            self._wire.alert(AlertCode.DEFECT, now, arg)
        self.flow(now)

    def _press(self, now: int) -> None:
        """LOG_PRESSURE and FULL, when the ring has come that far."""
        while pressure := self.room.pressure():
            if self.room.free:
                self._commit(LogPressure(self.room.percent), now)
            self.room.said(pressure)
        if self.room.fills():
            self._around.safe(now)

    # --- sending ---

    def flow(self, now: int, uncommitted: bytes = b"") -> None:
        """Send what may go out for the first time."""
        session = self._around.running()
        if session is not None and session.sending is not None:
            head = self.ring.head + bool(uncommitted)
            self._send(session, session.sending.fresh(head, now), now, uncommitted)

    def again(self, now: int) -> None:
        """Send once more what waits for its acknowledgement too long."""
        session = self._around.running()
        if session is not None and session.sending is not None:
            self._send(session, session.sending.again(now), now)

    def due(self) -> int | None:
        session = self._around.running()
        if session is None or session.sending is None:
            return None
        return session.sending.due()

    def _send(
        self, session: DeviceSession, seqs: Iterable[int], now: int, uncommitted: bytes = b""
    ) -> None:
        for seq in seqs:
            if seq > self.ring.head:
                self._around.send(session, uncommitted, now)
            elif self.ring.holds(seq):  # always, unless the ring overwrites
                self._around.send(session, self.ring.record(seq), now)
            self._last_sent = max(self._last_sent, seq)

    # --- what the host says ---

    def stop(self, session: DeviceSession) -> None:
        """RESUME begins anew."""
        session.wanted = 0
        session.resumed = False
        session.sending = None

    def begin(self, session: DeviceSession, now: int) -> None:
        """RESUME was answered with OK: all below what it wants are the host's."""
        session.resumed = True
        first = self._behaviour.first_sent(session.wanted, self._last_sent)
        first = min(max(first, self.ring.oldest), self.ring.head + 1)
        session.sending = Sending(first, self._behaviour)
        self.room.acknowledge(first - 1)
        self._press(now)

    def begin_unasked(self, session: DeviceSession) -> None:
        if session.sending is None and self._behaviour.sends_unasked():
            session.sending = Sending(self.room.acked + 1, self._behaviour)

    def acknowledge(
        self, session: DeviceSession, epoch: int, seq: int, window: int, now: int
    ) -> None:
        sending = session.sending
        if sending is None or epoch != self.ring.epoch:
            return
        if sending.acked < seq <= sending.sent:
            self._around.reach("before_ack")
        if sending.acknowledge(seq, window):
            self.room.acknowledge(seq)
            self._send(session, self._behaviour.sent_after_ack(seq), now)

    def wanted(self, session: DeviceSession, epoch: int, first: int, now: int) -> None:
        sending = session.sending
        ours = self._behaviour.nak_is_ours(epoch == self.ring.epoch)
        if sending is not None and ours and self.ring.holds(first):
            self._send(session, sending.wanted(first, now), now)
