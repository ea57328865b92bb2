"""The sender of records: commits events to the ring, and sends them until they are acknowledged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from firmware_protocol.device.ring import SLOT_SIZE, AckedPosition, Ring
from firmware_protocol.device.send_window import Room, Sending
from firmware_protocol.device.sessions import DeviceContext, DeviceSession
from firmware_protocol.messages import AlertCode, Event, LogPressure, Resume
from firmware_protocol.tablelink import chained

TORN_BYTES: Final = SLOT_SIZE // 2
"""Bytes of a record's slot that are written before a power cut in its commit."""


class RecordSender:
    """Commits events, and sends records within the window of the running session."""

    def __init__(self, device: DeviceContext, ring: Ring) -> None:
        self.ring = ring
        self.room = Room(ring, device.storage, device.behaviour)
        self._behaviour = device.behaviour
        self._device = device
        self._last_sent = 0
        """The last record that was sent in any session since the start."""

    def record(self, event: Event, now: int) -> bool:
        """Commit this event. Returns False if the ring is full."""
        if not self.room.has(event):
            return False
        self._commit(event, now)
        self._press(now)
        return True

    def _commit(self, event: Event, now: int) -> None:
        device = self._device
        record = chained(
            self._behaviour.chains_to(self.ring.chain),
            epoch=self.ring.epoch,
            seq=self.ring.head + 1,
            boot=device.boot,
            t_us=device.clock(now),
            event=event,
        ).encode()
        if self._behaviour.sends_before_commit():
            self.flow(now, record)
        device.reach("before_commit")
        torn = device.torn_bytes()
        if torn is not None:
            self.ring.tear(record, torn)
            device.reach("in_commit")
        self.ring.commit(record)
        self.room.committed()
        device.reach("after_commit")
        arg = self._behaviour.alert_of(event)
        if arg is not None:
            device.channel.alert(AlertCode.DEFECT, now, arg)
        self.flow(now)

    def _press(self, now: int) -> None:
        """Record LOG_PRESSURE, and take the safe state when the ring becomes full."""
        while pressure := self.room.pressure():
            if self.room.free:
                self._commit(LogPressure(self.room.percent), now)
            self.room.set_reported(pressure)
        if self.room.becomes_full():
            self._device.safe(now)

    # --- sending ---

    def flow(self, now: int, uncommitted: bytes = b"") -> None:
        """Send the records that fit the window for the first time."""
        session = self._device.running
        if session is not None and session.sending is not None:
            head = self.ring.head + bool(uncommitted)
            self._send(session, session.sending.fresh(head, now), now, uncommitted)

    def retry(self, now: int) -> None:
        """Send the records again whose acknowledgement timed out."""
        session = self._device.running
        if session is not None and session.sending is not None:
            self._send(session, session.sending.retry(now), now)

    def due(self) -> int | None:
        session = self._device.running
        if session is None or session.sending is None:
            return None
        return session.sending.due()

    def _send(
        self, session: DeviceSession, seqs: Iterable[int], now: int, uncommitted: bytes = b""
    ) -> None:
        for seq in seqs:
            if seq > self.ring.head:
                self._device.send(session, uncommitted, now)
            elif self.ring.holds(seq):  # always true unless the ring overwrites
                self._device.send(session, self.ring.record(seq), now)
            self._last_sent = max(self._last_sent, seq)

    # --- requests of the host ---

    def stop(self, session: DeviceSession) -> None:
        """Stop sending until RESUME is answered OK."""
        session.wanted = 0
        session.resumed = False
        session.sending = None

    def resume(self, command: Resume) -> None:
        """Acknowledge all before the record that RESUME requests, durably if that moves back."""
        acked = self._behaviour.resumes_at(command, self.room.acked)
        self.room.acknowledge(min(max(acked, self.ring.oldest - 1), self.ring.head))

    @property
    def acked(self) -> AckedPosition:
        """The acknowledged position that RESUME_REPLY returns."""
        return self._behaviour.acked_reply(self.ring.acked)

    def start(self, session: DeviceSession, now: int) -> None:
        """Send from the record that RESUME requested; all before it are acknowledged by that."""
        session.resumed = True
        first = self._behaviour.first_sent(session.wanted, self._last_sent)
        first = min(max(first, self.ring.oldest), self.ring.head + 1)
        session.sending = Sending(first, self._behaviour)
        self._press(now)

    def start_unasked(self, session: DeviceSession) -> None:
        if session.sending is None and self._behaviour.sends_unasked():
            session.sending = Sending(self.room.acked + 1, self._behaviour)

    def acknowledge(
        self, session: DeviceSession, epoch: int, seq: int, window: int, now: int
    ) -> None:
        sending = session.sending
        if sending is None or epoch != self.ring.epoch:
            return
        if sending.acked < seq <= sending.sent:
            self._device.reach("before_ack")
        if sending.acknowledge(seq, window):
            self.room.acknowledge(seq)
            self._send(session, self._behaviour.sent_after_ack(seq), now)

    def send_again(self, session: DeviceSession, epoch: int, first: int, now: int) -> None:
        sending = session.sending
        ours = self._behaviour.nak_is_ours(epoch == self.ring.epoch)
        if sending is not None and ours and self.ring.holds(first):
            self._send(session, sending.negative(first, now), now)
