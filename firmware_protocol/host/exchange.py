"""What host and device say to each other within a session: records, commands, beats, the clock.

Two sessions can be alive at once: the running one, and the pending one that will take its place
with its first valid DATA. In the pending one nothing is said but INFO and heartbeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from firmware_protocol.host.commands import READS, CommandQueue, PendingCommand
from firmware_protocol.host.cursor import ReceivedRecords, RecordStatus, after
from firmware_protocol.host.events import (
    BeatReceived,
    CommandUnanswered,
    DeviceInfoReceived,
    LinkEvent,
    ProtocolViolated,
    RecordReceived,
    ReplyReceived,
)
from firmware_protocol.host.resume import Resumption
from firmware_protocol.host.session import HostSession, HostSessions
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
    """Both sides of the conversation. `write` takes bytes for the port, `tell` what happened."""

    def __init__(
        self,
        device_class: DeviceClass,
        sessions: HostSessions,
        records: ReceivedRecords,
        calls: CommandQueue,
        write: Callable[[bytes], None],
        tell: Callable[[LinkEvent], None],
    ) -> None:
        self._device_class = device_class
        self._sessions = sessions
        self._records = records
        self._calls = calls
        self._write = write
        self._tell = tell
        self.resuming = Resumption(records)
        self._window = WINDOW
        self._ack_wanted = False
        self._naked = (0, 0)  # the seq last asked for again, and when
        self.repeats = 0
        """Records that came once more though they were kept."""
        self.gaps = 0
        """Records that came before one that was missing."""
        self._hearers: dict[type, Callable[[HostSession, Any, int], None]] = {
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
        self._places: dict[RecordStatus, Callable[[EventRecord, int], None]] = {
            RecordStatus.NEXT: self._take,
            RecordStatus.KEPT: self._repeated,
            RecordStatus.WAITS: self._drop,
            RecordStatus.AHEAD: self._missing,
            RecordStatus.FORK: self._forked,
            RecordStatus.NEW_EPOCH: self._strange,
        }

    # --- sessions come and go ---------------------------------------------------------------

    def propose(self, pending: HostSession, now: int) -> None:
        """New keys: INFO goes out under them."""
        pending.opening = self._make(Info(), now)

    def part(self) -> None:
        """The running session died. Commands that must not be sent again are given up."""
        self.resuming.parted()
        for call in self._calls.cut_off():
            self._tell(CommandUnanswered(call.id, call.command))

    # --- what the owner wants said ----------------------------------------------------------

    def ask(self, command: Command) -> int:
        if isinstance(command, Resume):
            raise ValueError("RESUME is the link's own; adopt() is what two people may do")
        if command.CLASS not in (DeviceClass.ANY, self._device_class) and self._device_class:
            raise ValueError(f"{command.NAME} is no command of a {self._device_class.name.lower()}")
        return self._calls.ask(command).id

    def kept(self, seq: int, now: int) -> None:
        if self._records.kept(seq):
            self.acknowledge(now)

    def again(self, now: int) -> None:
        """What has come and is not kept shall come once more."""
        self._records.forget()
        cursor = self._records.cursor
        if self.resuming.taking:
            self._say(EvtNak(cursor.epoch, after(cursor.seq), NakWhy.AGAIN), now)

    def adopt(self, now: int, *, skip: bool) -> None:
        self.resuming.adopt(skip=skip)
        running = self._sessions.running
        if running is not None and running.opening is None:
            running.opening = self._make(self.resuming.request(), now)

    def set_window(self, window: int, now: int) -> None:
        self._window = window
        self.acknowledge(now)

    def acknowledge(self, now: int) -> None:
        """EVT_ACK, where events flow; elsewhere the next RESUME says it."""
        self._ack_wanted = False
        cursor = self._records.cursor
        if self.resuming.taking:
            self._say(EvtAck(cursor.epoch, cursor.seq, self._window), now)

    # --- what is due ------------------------------------------------------------------------

    def tick(self, now: int) -> None:
        """Heartbeats first, then what is overdue."""
        for session in self._sessions:
            if now >= session.beat_at:
                self._pulse(session, now)
        for call in self._calls.overdue(now):
            self._tell(CommandUnanswered(call.id, call.command, call.sent_in is not None))
        for session in self._sessions:
            self._reopen(session, now)

    def pump(self, now: int) -> None:
        """Send the acknowledgement that was put off, the commands that may go, the clock's turn."""
        if self._ack_wanted:
            self.acknowledge(now)
        for session in self._sessions:
            if session.opening is not None and self._may_open(session):
                self._send_due(session.opening, session, now)
        self._calls.turn(self._may_go, now)
        running = self._sessions.running
        for call in self._calls.open():
            if running is not None and self._may_go(call):
                self._send_due(call, running, now)
        if running is not None and running.ask_at is not None and now >= running.ask_at:
            running.asked(now)
            self._say(TimeAsk(now), now)

    def due(self) -> Iterator[int]:
        """Every time at which something is due."""
        yield from self._calls.due()
        for session in self._sessions:
            yield session.beat_at
            if session.opening is not None:
                yield from _some(session.opening.until)
                if self._may_open(session):
                    yield from _some(session.opening.send_at(session.id))
        running = self._sessions.running
        if running is not None:
            yield from _some(running.ask_at)
            for call in self._calls.open():
                if self._may_go(call):
                    yield from _some(call.send_at(running.id))

    # --- what comes -------------------------------------------------------------------------

    def hear(self, session: HostSession, data: bytes, now: int) -> None:
        """A plaintext that opened in the running session."""
        try:
            what = plaintext.decode(data, sender="device", device_class=session.device_class)
            hearer = self._hearers.get(type(what))
            if hearer is None:
                raise UnknownMessage(f"{type(what).__name__} has no place in a session")
            hearer(session, what, now)
        except ProtocolError as error:
            self._tell(ProtocolViolated(_bare(error)))

    def _beat(self, session: HostSession, beat: DeviceBeat, now: int) -> None:
        self._tell(BeatReceived(beat))
        wanted = self._records.next
        if self.resuming.taking and not self._records.go_with(beat.epoch, beat.head):
            self.resuming.stray()
            session.other_ring = True
        if beat.head < wanted or not self._may_come(wanted):
            session.misses_nothing()
        elif session.misses(wanted, beat.head, now):
            self._say(EvtNak(beat.epoch, wanted, NakWhy.GAP), now)

    def _may_come(self, seq: int) -> bool:
        """Whether the device may send this record now."""
        return self.resuming.taking and seq <= self._records.cursor.seq + self._window

    def _clock(self, session: HostSession, answer: TimeAnswer, now: int) -> None:
        read = session.read_clock(answer, now)
        if read is not None:
            self._tell(read)

    def _record(self, _: HostSession, record: EventRecord, now: int) -> None:
        if self.resuming.taking:  # else the answer OK was lost, and RESUME is sent again
            self._places[self._records.place(record)](record, now)

    def _take(self, record: EventRecord, _: int) -> None:
        if self._sessions.running is not None:
            self._sessions.running.misses_nothing()
        self._tell(RecordReceived(record))

    def _repeated(self, _: EventRecord, __: int) -> None:
        self.repeats += 1
        self._ack_wanted = True  # one for all that came together

    def _drop(self, _: EventRecord, __: int) -> None:
        """Its acknowledgement is kept()'s."""

    def _missing(self, record: EventRecord, now: int) -> None:
        self.gaps += 1
        wanted, (before, at) = self._records.next, self._naked
        if wanted != before or now - at >= _NAK_GAP:
            self._naked = wanted, now
            self._say(EvtNak(record.epoch, wanted, NakWhy.GAP), now)

    def _forked(self, record: EventRecord, _: int) -> None:
        self._tell(self.resuming.doubt(Verdict.FORK, record))

    def _strange(self, record: EventRecord, _: int) -> None:
        self._tell(self.resuming.doubt(Verdict.NEW_EPOCH, record))

    def _reply(self, session: HostSession, reply: CommandReply, now: int) -> None:
        if reply.host_boot != self._calls.host_boot:
            return
        opening = session.opening
        if opening is not None and opening.id == reply.command_id:
            self._check(opening, reply.reply)
            self._answers[type(reply.reply)](session, reply.reply, now)
            return
        call = self._calls.find(reply.command_id)
        if call is not None:  # else it is the second reply to a command that was sent twice
            self._check(call, reply.reply)
            self._calls.done(call)
            self._tell(ReplyReceived(call.id, call.command, reply.reply))

    @staticmethod
    def _check(call: PendingCommand, reply: Reply) -> None:
        if not call.takes(reply):
            raise UnknownMessage(f"{reply.NAME} does not answer {call.command.NAME}")

    def _informed(self, session: HostSession, reply: InfoReply, now: int) -> None:
        session.opening = self._make(self.resuming.request(), now)
        self._tell(DeviceInfoReceived(reply))

    def _resumed(self, session: HostSession, reply: ResumeReply, now: int) -> None:
        opening, session.opening = session.opening, None
        assert opening is not None
        assert isinstance(opening.command, Resume)
        judged = self.resuming.judge(opening.command, reply)
        session.ask_at = now if session.ask_at is None else session.ask_at
        if judged is None:
            session.opening = self._make(self.resuming.request(), now)
            return
        self._tell(judged)
        if self._window != WINDOW:
            self.acknowledge(now)

    def _refused(self, session: HostSession, reply: Refused, _: int) -> None:
        if session.opening is not None:
            session.opening.rest()
            self._tell(ReplyReceived(session.opening.id, session.opening.command, reply))

    # --- sending ----------------------------------------------------------------------------

    def _make(self, command: Command, now: int) -> PendingCommand:
        call = self._calls.make(command)
        call.begin(now)
        return call

    def _reopen(self, session: HostSession, now: int) -> None:
        """INFO or RESUME is overdue: tell, and ask anew."""
        opening = session.opening
        if opening is None or opening.until is None or now < opening.until:
            return
        if session is self._sessions.running and not opening.rests:
            self._tell(CommandUnanswered(opening.id, opening.command, opening.sent_in is not None))
        again = isinstance(opening.command, Resume)
        session.opening = self._make(self.resuming.request() if again else Info(), now)

    def _may_open(self, session: HostSession) -> bool:
        """One command without a reply at a time: RESUME too waits for another's."""
        opening = session.opening
        return opening is not None and (
            opening.sent_in is not None or not self._calls.in_flight(session.id)
        )

    def _may_go(self, call: PendingCommand) -> bool:
        """Whether the device would carry out this command now."""
        session = self._sessions.running
        if session is None or session.opening is not None or not session.takes(call.plaintext):
            return False
        if self._sessions.pending is not None and not call.command.IDEMPOTENT:
            return False  # nobody would know whether it came before the change of keys
        return self.resuming.device_agrees or isinstance(call.command, READS)

    def _send_due(self, call: PendingCommand, session: HostSession, now: int) -> None:
        at = call.send_at(session.id)
        if at is not None and now >= at:
            call.sent(session.id, now)
            self._put(session, call.plaintext, now)

    def _say(self, what: Control, now: int) -> None:
        if self._sessions.running is not None:
            self._put(self._sessions.running, plaintext.encode(what), now)

    def _put(self, session: HostSession, data: bytes, now: int) -> None:
        if now >= session.dead_at:
            return
        if now >= session.beat_at:
            self._pulse(session, now)
        self._write(session.seal(data))

    def _pulse(self, session: HostSession, now: int) -> None:
        """The heartbeat."""
        session.beaten(now)
        beat = _SILENT
        if session is self._sessions.running and self.resuming.taking:
            cursor = self._records.cursor
            beat = HostBeat(cursor.epoch, cursor.seq, self._window)
        self._put(session, plaintext.encode(beat), now)


def _some(time: int | None) -> Iterator[int]:
    if time is not None:
        yield time


def _bare(error: ProtocolError) -> ProtocolError:
    """Without where it came from: those frames hold the plaintext, which may be a card that lies
    face down."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
