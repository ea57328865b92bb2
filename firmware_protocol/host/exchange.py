"""The exchange within sessions: records, commands, heartbeats and clock requests.

Two sessions can exist at once: the running one, and the pending one that replaces it with its first
valid DATA. Only INFO and heartbeats are sent in the pending one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from firmware_protocol.host.commands import READS, CommandQueue, PendingCommand
from firmware_protocol.host.cursor import ReceivedRecords, RecordStatus, after
from firmware_protocol.host.events import (
    BeatReceived,
    CommandTimedOut,
    DeviceInfoReceived,
    ProtocolViolated,
    RecordReceived,
    ReplyReceived,
)
from firmware_protocol.host.resume import Resumption
from firmware_protocol.host.session import HostSession, HostSessions, LinkOutput
from firmware_protocol.messages.codec import Command, Control, Reply
from firmware_protocol.messages.common import Info, InfoReply, Refused, Resume, ResumeReply
from firmware_protocol.messages.control import (
    DeviceBeat,
    EvtAck,
    EvtNak,
    HostBeat,
    TimeAnswer,
    TimeAsk,
)
from firmware_protocol.messages.enums import DeviceClass, NakWhy, Verdict
from firmware_protocol.messages.errors import ProtocolError, UnknownMessage
from firmware_protocol.messages.limits import NAK_GAP_MS, WINDOW
from firmware_protocol.tablelink import plaintext
from firmware_protocol.tablelink.plaintext import CommandReply, EventRecord

_NAK_GAP: Final = NAK_GAP_MS * 1000
_SILENT: Final = HostBeat(0, 0, 0)
"""A heartbeat that acknowledges nothing."""


class Exchange:
    """Handles the plaintexts of the device, and sends those of the host."""

    def __init__(
        self,
        device_class: DeviceClass,
        sessions: HostSessions,
        records: ReceivedRecords,
        calls: CommandQueue,
        output: LinkOutput,
    ) -> None:
        self._device_class = device_class
        self._sessions = sessions
        self._records = records
        self._commands = calls
        self._output = output
        self.resuming = Resumption(records)
        self._window = WINDOW
        self._ack_wanted = False
        self._requested = (0, 0)  # the seq of the last EVT_NAK, and when it was sent
        self.repeats = 0
        """Repeated records that were stored already."""
        self.gaps = 0
        """Records that arrived before a missing one."""
        self._handlers: dict[type, Callable[[HostSession, Any, int], None]] = {
            EventRecord: self._record,
            CommandReply: self._reply,
            DeviceBeat: self._beat,
            TimeAnswer: self._clock,
        }
        self._answers: dict[type, Callable[[HostSession, Any, int], None]] = {
            InfoReply: self._informed,
            ResumeReply: self._resumed,
            Refused: self._refused,
        }
        self._actions: dict[RecordStatus, Callable[[EventRecord, int], None]] = {
            RecordStatus.NEXT: self._deliver,
            RecordStatus.STORED: self._repeated,
            RecordStatus.WAITS: self._drop,
            RecordStatus.AHEAD: self._missing,
            RecordStatus.FORK: self._forked,
            RecordStatus.NEW_EPOCH: self._other_epoch,
        }

    # --- sessions ---------------------------------------------------------------

    def propose(self, pending: HostSession, now: int) -> None:
        """Send INFO under the new keys."""
        pending.opening = self._make(Info(), now)

    def end(self) -> None:
        """The running session ended: commands that must not be sent again fail."""
        self.resuming.reset()
        for call in self._commands.drop_unrepeatable():
            self._output.report(CommandTimedOut(call.id, call.command))

    # --- requests of the owner ----------------------------------------------------------

    def call(self, command: Command) -> int:
        if isinstance(command, Resume):
            raise ValueError("RESUME is sent by the link itself; adopt() is for two people")
        if command.CLASS not in (DeviceClass.ANY, self._device_class) and self._device_class:
            raise ValueError(
                f"{command.NAME} is not a command of a {self._device_class.name.lower()}"
            )
        return self._commands.add(command).id

    def stored(self, seq: int, now: int) -> None:
        if self._records.stored(seq):
            self.acknowledge(now)

    def discard(self, now: int) -> None:
        """Drop the records that are not stored, and request them again."""
        self._records.discard_buffer()
        cursor = self._records.cursor
        if self.resuming.accepting:
            self._send(EvtNak(cursor.epoch, after(cursor.seq), NakWhy.AGAIN), now)

    def adopt(self, now: int, *, skip: bool) -> None:
        self.resuming.adopt(skip=skip)
        running = self._sessions.running
        if running is not None and running.opening is None:
            running.opening = self._make(self.resuming.request(), now)

    def set_window(self, window: int, now: int) -> None:
        self._window = window
        self.acknowledge(now)

    def acknowledge(self, now: int) -> None:
        """Send EVT_ACK if records are accepted; otherwise the next RESUME acknowledges."""
        self._ack_wanted = False
        cursor = self._records.cursor
        if self.resuming.accepting:
            self._send(EvtAck(cursor.epoch, cursor.seq, self._window), now)

    # --- timers ------------------------------------------------------------------------

    def tick(self, now: int) -> None:
        """Send heartbeats, then handle timeouts."""
        for session in self._sessions:
            if now >= session.beat_at:
                self._send_beat(session, now)
        for call in self._commands.overdue(now):
            self._output.report(CommandTimedOut(call.id, call.command, call.sent_in is not None))
        for session in self._sessions:
            self._reopen(session, now)

    def pump(self, now: int) -> None:
        """Send the deferred acknowledgement, the commands whose turn it is, and TIME_ASK if due."""
        if self._ack_wanted:
            self.acknowledge(now)
        for session in self._sessions:
            if session.opening is not None and self._may_open(session):
                self._send_due(session.opening, session, now)
        self._commands.advance(self._may_go, now)
        running = self._sessions.running
        for call in self._commands.active():
            if running is not None and self._may_go(call):
                self._send_due(call, running, now)
        if running is not None and running.ask_at is not None and now >= running.ask_at:
            running.time_asked(now)
            self._send(TimeAsk(now), now)

    def due(self) -> Iterator[int]:
        """Every time at which something is due."""
        yield from self._commands.due()
        for session in self._sessions:
            yield session.beat_at
            if session.opening is not None:
                yield from _some(session.opening.until)
                if self._may_open(session):
                    yield from _some(session.opening.send_at(session.id))
        running = self._sessions.running
        if running is not None:
            yield from _some(running.ask_at)
            for call in self._commands.active():
                if self._may_go(call):
                    yield from _some(call.send_at(running.id))

    # --- plaintexts of the device -----------------------------------------------------------

    def receive(self, session: HostSession, data: bytes, now: int) -> None:
        """Handle a plaintext that was opened in the running session."""
        try:
            what = plaintext.decode(data, sender="device", device_class=session.device_class)
            handler = self._handlers.get(type(what))
            if handler is None:
                raise UnknownMessage(f"{type(what).__name__} has no place in a session")
            handler(session, what, now)
        except ProtocolError as error:
            self._output.report(ProtocolViolated(_bare(error)))

    def _beat(self, session: HostSession, beat: DeviceBeat, now: int) -> None:
        self._output.report(BeatReceived(beat))
        wanted = self._records.next
        if self.resuming.accepting and not self._records.fit(beat.epoch, beat.head):
            self.resuming.mistrust()
            session.other_ring = True
        if beat.head < wanted or not self._may_arrive(wanted):
            session.clear_missing()
        elif session.report_missing(wanted, beat.head, now):
            self._send(EvtNak(beat.epoch, wanted, NakWhy.GAP), now)

    def _may_arrive(self, seq: int) -> bool:
        """Whether the device may send this record now."""
        return self.resuming.accepting and seq <= self._records.cursor.seq + self._window

    def _clock(self, session: HostSession, answer: TimeAnswer, now: int) -> None:
        read = session.read_clock(answer, now)
        if read is not None:
            self._output.report(read)

    def _record(self, _: HostSession, record: EventRecord, now: int) -> None:
        if self.resuming.accepting:  # otherwise the reply OK was lost, and RESUME is retried
            self._actions[self._records.accept(record)](record, now)

    def _deliver(self, record: EventRecord, _: int) -> None:
        if self._sessions.running is not None:
            self._sessions.running.clear_missing()
        self._output.report(RecordReceived(record))

    def _repeated(self, _: EventRecord, __: int) -> None:
        self.repeats += 1
        self._ack_wanted = True  # one for all records of this call

    def _drop(self, _: EventRecord, __: int) -> None:
        """stored() will acknowledge it."""

    def _missing(self, record: EventRecord, now: int) -> None:
        self.gaps += 1
        wanted, (before, at) = self._records.next, self._requested
        if wanted != before or now - at >= _NAK_GAP:
            self._requested = wanted, now
            self._send(EvtNak(record.epoch, wanted, NakWhy.GAP), now)

    def _forked(self, record: EventRecord, _: int) -> None:
        self._output.report(self.resuming.doubt(Verdict.FORK, record))

    def _other_epoch(self, record: EventRecord, _: int) -> None:
        self._output.report(self.resuming.doubt(Verdict.NEW_EPOCH, record))

    def _reply(self, session: HostSession, reply: CommandReply, now: int) -> None:
        if reply.host_boot != self._commands.host_boot:
            return
        opening = session.opening
        if opening is not None and opening.id == reply.command_id:
            self._check(opening, reply.reply)
            self._answers[type(reply.reply)](session, reply.reply, now)
            return
        call = self._commands.find(reply.command_id)
        if call is not None:  # otherwise it is the second reply to a repeated command
            self._check(call, reply.reply)
            self._commands.done(call)
            self._output.report(ReplyReceived(call.id, call.command, reply.reply))

    @staticmethod
    def _check(call: PendingCommand, reply: Reply) -> None:
        if not call.accepts(reply):
            raise UnknownMessage(f"{reply.NAME} does not answer {call.command.NAME}")

    def _informed(self, session: HostSession, reply: InfoReply, now: int) -> None:
        session.opening = self._make(self.resuming.request(), now)
        self._output.report(DeviceInfoReceived(reply))

    def _resumed(self, session: HostSession, reply: ResumeReply, now: int) -> None:
        opening, session.opening = session.opening, None
        assert opening is not None
        assert isinstance(opening.command, Resume)
        judged = self.resuming.judge(opening.command, reply)
        session.ask_at = now if session.ask_at is None else session.ask_at
        if judged is None:
            session.opening = self._make(self.resuming.request(), now)
            return
        self._output.report(judged)
        if self._window != WINDOW:
            self.acknowledge(now)

    def _refused(self, session: HostSession, reply: Refused, _: int) -> None:
        if session.opening is not None:
            session.opening.refuse()
            self._output.report(ReplyReceived(session.opening.id, session.opening.command, reply))

    # --- sending ----------------------------------------------------------------------------

    def _make(self, command: Command, now: int) -> PendingCommand:
        call = self._commands.make(command)
        call.start(now)
        return call

    def _reopen(self, session: HostSession, now: int) -> None:
        """Report the timeout of INFO or RESUME, and retry."""
        opening = session.opening
        if opening is None or opening.until is None or now < opening.until:
            return
        if session is self._sessions.running and not opening.refused:
            self._output.report(
                CommandTimedOut(opening.id, opening.command, opening.sent_in is not None)
            )
        again = isinstance(opening.command, Resume)
        session.opening = self._make(self.resuming.request() if again else Info(), now)

    def _may_open(self, session: HostSession) -> bool:
        """Whether INFO or RESUME may be sent: not while another command waits for its reply."""
        opening = session.opening
        return opening is not None and (
            opening.sent_in is not None or not self._commands.in_flight(session.id)
        )

    def _may_go(self, call: PendingCommand) -> bool:
        """Whether the device would execute this command now."""
        session = self._sessions.running
        if session is None or session.opening is not None or not session.fits(call.plaintext):
            return False
        if self._sessions.pending is not None and not call.command.IDEMPOTENT:
            return False  # its fate would be unknown if the keys change now
        return self.resuming.device_agrees or isinstance(call.command, READS)

    def _send_due(self, call: PendingCommand, session: HostSession, now: int) -> None:
        at = call.send_at(session.id)
        if at is not None and now >= at:
            call.sent(session.id, now)
            self._put(session, call.plaintext, now)

    def _send(self, what: Control, now: int) -> None:
        if self._sessions.running is not None:
            self._put(self._sessions.running, plaintext.encode(what), now)

    def _put(self, session: HostSession, data: bytes, now: int) -> None:
        if now >= session.dead_at:
            return
        if now >= session.beat_at:
            self._send_beat(session, now)
        self._output.write(session.seal(data))

    def _send_beat(self, session: HostSession, now: int) -> None:
        session.schedule_beat(now)
        beat = _SILENT
        if session is self._sessions.running and self.resuming.accepting:
            cursor = self._records.cursor
            beat = HostBeat(cursor.epoch, cursor.seq, self._window)
        self._put(session, plaintext.encode(beat), now)


def _some(time: int | None) -> Iterator[int]:
    if time is not None:
        yield time


def _bare(error: ProtocolError) -> ProtocolError:
    """The error without cause and traceback: those frames refer to the plaintext, which may be a
    card that is face down."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
