"""Sessions on the host, and the exchange within them: records, commands, heartbeats, clock.

Two sessions can exist at once: the running one, and the pending one that replaces it with its first
valid DATA. Only INFO and heartbeats are sent in the pending one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from firmware_protocol.host.commands import READS, CommandQueue, PendingCommand
from firmware_protocol.host.events import (
    BeatReceived,
    ClockMeasured,
    CommandTimedOut,
    DeviceInfoReceived,
    LinkEvent,
    ProtocolViolated,
    RecordMissing,
    RecordReceived,
    ReplyReceived,
    SessionEnding,
)
from firmware_protocol.host.records import ReceivedRecords, RecordStatus, Resumption, after
from firmware_protocol.messages import (
    BEAT_EARLY_MS,
    CRC_SIZE,
    DEAD_MS,
    HEADER_SIZE,
    HEARTBEAT_MS,
    NAK_GAP_MS,
    RESEND_MOST_MS,
    TAG_SIZE,
    TIME_EVERY_MS,
    WINDOW,
    Command,
    Control,
    DeviceBeat,
    DeviceClass,
    EvtAck,
    EvtNak,
    HelloRsp,
    HostBeat,
    Info,
    InfoReply,
    NakWhy,
    OutOfRange,
    ProtocolError,
    Refused,
    Reply,
    Resume,
    ResumeReply,
    SessionSpent,
    TimeAnswer,
    TimeAsk,
    UnknownMessage,
    Verdict,
)
from firmware_protocol.tablelink import (
    CommandReply,
    EventRecord,
    Frame,
    Opener,
    Sealer,
    SessionKeys,
    decode_plaintext,
    encode_plaintext,
)

_BEAT: Final = HEARTBEAT_MS * 1000
BEAT_EARLY: Final = BEAT_EARLY_MS * 1000
"""A heartbeat may be sent so much before its time, so that one timer serves all links."""
_DEAD: Final = DEAD_MS * 1000
_TIME_EVERY: Final = TIME_EVERY_MS * 1000
BEHIND_ASK: Final = 2 * RESEND_MOST_MS * 1000
"""A record that is missing for so long is requested, and again after each RESEND_MOST_MS. The
device has retried twice by then."""
BEHIND_END: Final = 5 * RESEND_MOST_MS * 1000
"""Timeout of a missing record, after which the session ends."""
_REQUEST_AGAIN: Final = RESEND_MOST_MS * 1000
_TIME_AGAIN: Final = _DEAD
"""An unanswered TIME_ASK is sent again after this."""
MAX_LOST: Final = 1_000_000
"""Limit of lost frames between two received ones: more than any line carries within DEAD."""
MAX_OUT: Final = 16_384
"""Limit of buffered bytes for the port. What is beyond is lost, as on a bad line, and retried."""
_OVERHEAD: Final = HEADER_SIZE + TAG_SIZE + CRC_SIZE
"""Bytes of a decoded DATA frame around its plaintext."""
INITIAL_DELAY: Final = 500_000
"""Shortest delay of an attempt, also of a rekey."""
_NAK_GAP: Final = NAK_GAP_MS * 1000
_SILENT: Final = HostBeat(0, 0, 0)
"""A heartbeat that acknowledges nothing."""


class LinkOutput:
    """Bytes for the port and events for the owner, until the link returns them."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.events: list[LinkEvent] = []

    def write(self, data: bytes) -> None:
        if len(self.data) + len(data) <= MAX_OUT:
            self.data += data

    def report(self, event: LinkEvent) -> None:
        self.events.append(event)


class HostSession:
    """Keys and state of one session."""

    def __init__(
        self, keys: SessionKeys, session: int, version: int, answer: HelloRsp, now: int
    ) -> None:
        self.id = session
        self.version = version
        self.sealer = Sealer(keys.send, session, version)
        self.opener = Opener(keys.receive, session, version)
        self.device_class: DeviceClass = answer.device_class
        self.opening: PendingCommand | None = None
        """The INFO or RESUME that is not answered yet."""
        self.started_at = now
        self.beat_at = now + _BEAT
        self.sent_at = now
        """When its last DATA was sent."""
        self.stalled = False
        """Nothing was sent for DEAD, so the device has ended it."""
        self.spent = False
        """Its counters are used up: it cannot send any more."""
        self._before = -1
        self._largest = int(answer.largest)
        self._received_at = now
        self._asked: int | None = None
        self.ask_at: int | None = None
        """When TIME_ASK is due; None before RESUME was answered."""
        self.missing: RecordMissing | None = None
        """The record whose timeout ends the session."""
        self.other_ring = False
        """Its ring is not the one that was resumed, which ends the session."""
        self._missed = (0, 0)  # the last missing record, and since when
        self._request_at = 0

    @property
    def ending(self) -> SessionEnding | None:
        """Why it must end now; None: it continues."""
        if self.other_ring:
            return SessionEnding.OTHER_RING
        if self.missing is not None:
            return SessionEnding.BEHIND
        if self.stalled:
            return SessionEnding.STALLED
        return SessionEnding.SPENT if self.spent else None

    @property
    def dead_at(self) -> int:
        return self._received_at + _DEAD

    def open(self, frame: Frame) -> bytes:
        """Returns the plaintext of this frame. Raises the ProtocolError of Opener."""
        self._before = self.opener.last
        return self.opener.open(frame)

    @property
    def leap(self) -> OutOfRange | None:
        """The error if the last counter is implausibly high. The frame is accepted: losses are
        normal, but no device sends so many frames between two heartbeats."""
        last = self.opener.last
        if last - self._before <= MAX_LOST:
            return None
        return OutOfRange(f"DATA: counter {last} after {self._before}")

    def renew_at(self, frames: int, life: int) -> int:
        """When a rekey is due: after so many frames or microseconds. Never at once, because the
        device picks its counters and handshakes cost more than frames."""
        sent_or_received = max(self.sealer.counter, self.opener.last + 1)
        return self.started_at + (INITIAL_DELAY if sent_or_received >= frames else life)

    def fits(self, plaintext: bytes) -> bool:
        """Whether the device accepts a frame of this size."""
        return len(plaintext) + _OVERHEAD <= self._largest

    def seal(self, plaintext: bytes) -> bytes:
        """Encode the frame; b"" if the counters are used up."""
        try:
            return self.sealer.seal(plaintext).encode()
        except SessionSpent:
            self.spent = True
            return b""

    def received(self, now: int) -> None:
        """Reset the timeout, because valid DATA arrived."""
        self._received_at = now

    def schedule_beat(self, now: int) -> None:
        """Schedule the next heartbeat; this one may be early. Missed ones are skipped; while this
        host was late with one, it was not running, and what it did not receive then is not the
        silence of the device."""
        late = max(0, now - self.beat_at)
        if late >= _BEAT:
            self._received_at = min(now, self._received_at + late)
        self.beat_at += _BEAT * (late // _BEAT + 1)

    def time_asked(self, now: int) -> None:
        self._asked = now
        self.ask_at = now + _TIME_AGAIN

    def read_clock(self, answer: TimeAnswer, now: int) -> ClockMeasured | None:
        """Returns the clock offset; None if the answer belongs to no open request. Raises
        OutOfRange if the device's clock went back."""
        t1, t2, t3 = answer.t1, answer.t2, answer.t3
        if t1 != self._asked:
            return None
        self._asked = None
        self.ask_at = t1 + _TIME_EVERY
        if t3 < t2:
            raise OutOfRange("TIME_ANSWER: t3 is before t2")
        # Negative if a coarse clock reports more time at the device than the whole exchange took:
        # the error is that large then.
        round_trip = abs((now - t1) - (t3 - t2))
        return ClockMeasured(((t2 - t1) + (t3 - now)) // 2, (round_trip + 1) // 2)

    def report_missing(self, seq: int, head: int, now: int) -> bool:
        """A heartbeat shows this record, which was not received. Returns whether to request it."""
        if self._missed[0] != seq:
            self._missed = seq, now
            self._request_at = now + BEHIND_ASK
        if now >= self._missed[1] + BEHIND_END:
            self.missing = RecordMissing(seq, head)
            return False
        if now < self._request_at:
            return False
        self._request_at = now + _REQUEST_AGAIN
        return True

    def clear_missing(self) -> None:
        """No record that the device may send is known to be missing."""
        self._missed = (0, 0)
        self.missing = None

    def wipe(self) -> None:
        self.sealer.wipe()
        self.opener.wipe()


class HostSessions:
    """The running session, and the pending one that will replace it."""

    def __init__(self) -> None:
        self.running: HostSession | None = None
        self.pending: HostSession | None = None
        """Its first valid DATA has not arrived yet."""

    @property
    def all(self) -> list[HostSession]:
        return [one for one in (self.running, self.pending) if one is not None]

    def find(self, session: int) -> HostSession | None:
        return next((one for one in self.all if one.id == session), None)


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

    def beat(self, now: int, early: int = 0) -> None:
        """Send the heartbeats that are due within `early` microseconds: the first of all timers."""
        for session in self._sessions.all:
            if now >= session.beat_at - early:
                self._send_beat(session, now)

    def tick(self, now: int) -> None:
        """Handle timeouts of commands."""
        for call in self._commands.overdue(now) if self._commands.active else ():
            self._output.report(CommandTimedOut(call.id, call.command, call.sent_in is not None))
        for session in self._sessions.all:
            self._reopen(session, now)

    def pump(self, now: int) -> None:
        """Send the deferred acknowledgement, the commands whose turn it is, and TIME_ASK if due."""
        if self._ack_wanted:
            self.acknowledge(now)
        for session in self._sessions.all:
            if session.opening is not None and self._may_open(session):
                self._send_due(session.opening, session, now)
        if self._commands.waiting:
            self._commands.advance(self._may_go, now)
        running = self._sessions.running
        for call in self._commands.active:
            if running is not None and self._may_go(call):
                self._send_due(call, running, now)
        if running is not None and running.ask_at is not None and now >= running.ask_at:
            running.time_asked(now)
            self._send(TimeAsk(now), now)

    def due(self) -> Iterator[int]:
        """Every time at which something is due."""
        yield from self._commands.due()
        for session in self._sessions.all:
            yield session.beat_at
            if session.opening is not None:
                yield from _some(session.opening.until)
                if self._may_open(session):
                    yield from _some(session.opening.send_at(session.id))
        running = self._sessions.running
        if running is not None:
            yield from _some(running.ask_at)
            for call in self._commands.active:
                if self._may_go(call):
                    yield from _some(call.send_at(running.id))

    # --- plaintexts of the device -----------------------------------------------------------

    def receive(self, session: HostSession, data: bytes, now: int) -> None:
        """Handle a plaintext that was opened in the running session."""
        try:
            what = decode_plaintext(data, sender="device", device_class=session.device_class)
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
            self._put(self._sessions.running, encode_plaintext(what), now)

    def _put(self, session: HostSession, data: bytes, now: int) -> None:
        if now >= session.sent_at + _DEAD:
            session.stalled = True
        if now >= session.dead_at or session.stalled:
            return
        if now >= session.beat_at:
            self._send_beat(session, now)
        session.sent_at = now
        self._output.write(session.seal(data))

    def _send_beat(self, session: HostSession, now: int) -> None:
        session.schedule_beat(now)
        beat = _SILENT
        if session is self._sessions.running and self.resuming.accepting:
            cursor = self._records.cursor
            beat = HostBeat(cursor.epoch, cursor.seq, self._window)
        self._put(session, encode_plaintext(beat), now)


def _some(time: int | None) -> Iterator[int]:
    if time is not None:
        yield time


def _bare(error: ProtocolError) -> ProtocolError:
    """The error without cause and traceback: those frames refer to the plaintext, which may be a
    card that is face down."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
