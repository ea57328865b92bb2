"""The host side of TableLink/1, without I/O: bytes and times in, events and bytes out.

    link = HostLink(own, device_key, device_class=DeviceClass.SHOE, serial="SN-1",
                    cursor=record.cursor, recent=record.chains, host_boot=secrets.randbits(64) or 1)
    events = link.open(now)                  # the port is open
    events = link.receive(port.read(), now)  # and wake(now) when due() is reached
    port.write(link.take())                  # after each of these

Times are integer microseconds of one monotonic clock, never negative. Nothing that a device sends
raises an exception. Misuse raises ValueError, LinkBusy, or a ProtocolError for a key or a command
that cannot be encoded. Limits: WINDOW records, MAX_COMMANDS commands, MAX_OUT bytes are buffered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.host.commands import CommandQueue
from firmware_protocol.host.events import (
    AlertReceived,
    CommandTimedOut,
    FrameRejected,
    FramesDamaged,
    LinkEvent,
    LinkSessionEnded,
    LinkSessionStarted,
    ProtocolViolated,
    SessionEnding,
)
from firmware_protocol.host.exchange import (
    BEAT_EARLY,
    Exchange,
    HostSession,
    HostSessions,
    LinkOutput,
)
from firmware_protocol.host.handshake import HandshakeAttempts, PeerIdentity
from firmware_protocol.host.records import NO_CURSOR, ReceivedRecords, RecordCursor
from firmware_protocol.messages import (
    DEAD_MS,
    REKEY_FRAMES,
    SESSION_LIFE_S,
    WINDOW,
    Alert,
    Command,
    DeviceClass,
    FrameKind,
    HandshakeError,
    ProtocolError,
    WrongSession,
)
from firmware_protocol.tablelink import Cause, Deframer, Frame, FrameDamage

_FORMER: Final = 4
"""Ended sessions whose ids are cached."""
_LINGER: Final = DEAD_MS * 1000
"""Frames of an ended session may still arrive for so long; they are ignored."""


class HostLink:
    """One device behind one port."""

    def __init__(  # noqa: PLR0913 - the inputs of a link, by name
        self,
        own: X25519PrivateKey,
        device_key: bytes,
        *,
        device_class: DeviceClass,
        serial: str | None,
        cursor: RecordCursor = NO_CURSOR,
        recent: Mapping[int, bytes] = MappingProxyType({}),
        host_boot: int,
        rekey_frames: int = REKEY_FRAMES,
        session_life_us: int = SESSION_LIFE_S * 1_000_000,
        random: Callable[[int], bytes] | None = None,
    ) -> None:
        """`cursor` is the end of the host's record of this device; `recent` has known chains of
        records before it, by seq. `host_boot` is 64 random bits, drawn for this link, whose
        command ids start at 1. `random` is for reproducible tests; without it ids and ephemeral
        keys come from the system's generator."""
        if not 0 < host_boot < 1 << 64:
            raise ValueError("host_boot is 1 to 2**64 - 1")
        self._rekey_frames = rekey_frames
        self._session_life = session_life_us
        self.records = ReceivedRecords(cursor, recent)
        self.commands = CommandQueue(host_boot)
        self.output = LinkOutput()
        self.deframer = Deframer()
        self.sessions = HostSessions()
        expected = PeerIdentity(own, device_key, device_class, serial)
        self._attempts = HandshakeAttempts(expected, self.sessions, random, self.output)
        self._exchange = Exchange(
            device_class, self.sessions, self.records, self.commands, self.output
        )
        self._open = False
        self._closed = False
        self._now = 0
        self.former: dict[int, int] = {}  # sessions that ended recently, and when
        self._frames: dict[FrameKind, Callable[[Frame, int], None]] = {
            FrameKind.HELLO_RSP: self._handshake,
            FrameKind.HS2: self._handshake,
            FrameKind.DATA: self._data,
            FrameKind.ALERT: self._alert,
        }

    @property
    def cursor(self) -> RecordCursor:
        """The last stored record; after adopt(), the start of the adopted ring."""
        return self.records.cursor

    @property
    def session(self) -> int | None:
        """Id of the running session."""
        return None if self.sessions.running is None else self.sessions.running.id

    @property
    def running(self) -> bool:
        """Whether a session runs, resumed or not."""
        return self.sessions.running is not None

    @property
    def resumed(self) -> bool:
        """Whether records are accepted."""
        return self._exchange.resuming.accepting

    @property
    def repeats(self) -> int:
        """Repeated records that were stored already."""
        return self._exchange.repeats

    @property
    def gaps(self) -> int:
        """Records that arrived before a missing one."""
        return self._exchange.gaps

    # --- the port ---------------------------------------------------------------------------

    def open(self, now: int) -> list[LinkEvent]:
        """The port is open (again): drop the former state, and send HELLO."""
        self._check_open("open()")
        self._disconnect(now)
        self._open = True
        self._attempts.start(now)
        return self._events(now)

    def receive(self, data: bytes, now: int) -> list[LinkEvent]:
        """Handle bytes from the device, split in any way. They are ignored while the port is
        closed. They come before the timeouts: they may have waited while this host did not run."""
        if self._open:
            self._feed(data, now)
        self._tick(now)
        return self._events(now)

    def wake(self, now: int, *, early: int = 0) -> list[LinkEvent]:
        """Do what is due. A timer that serves several links passes how many microseconds until its
        next call, at most BEAT_EARLY: a heartbeat that is due before it is sent now."""
        self._tick(now, min(early, BEAT_EARLY))
        return self._events(now)

    def due(self) -> int | None:
        """When wake() must be called next; None: only after another call."""
        running, attempt = self.sessions.running, self._attempts.until
        if self.output.events or (running is not None and running.ending is not None):
            return self._now
        times = [*self._exchange.due(), *(session.dead_at for session in self.sessions.all)]
        if attempt is not None:
            times.append(attempt)
        elif running is not None:
            times.append(running.renew_at(self._rekey_frames, self._session_life))
        return min(times, default=None)

    def take(self) -> bytes:
        """Returns the buffered bytes for the port, and empties the buffer."""
        out = bytes(self.output.data)
        self.output.data.clear()
        return out

    def lost(self, now: int) -> list[LinkEvent]:
        """The port disconnected: the session ends and its keys are wiped. Idempotent commands wait
        for the next session until their timeout."""
        self._disconnect(now)
        return self._events(now)

    def close(self, now: int) -> list[LinkEvent]:
        """End this link: as lost(), and all commands fail. It cannot be opened again."""
        self._disconnect(now)
        self._closed = True
        for call in self.commands.clear():
            self.output.report(CommandTimedOut(call.id, call.command, call.sent_in is not None))
        return self._events(now)

    # --- requests of the owner ---------------------------------------------------------------

    def call(self, command: Command, now: int) -> int:
        """Queue a command, and return its id. ReplyReceived or CommandTimedOut follows.

        The timeout also applies to a command that cannot be sent. Raises LinkBusy if the queue is
        full, ValueError for RESUME or another class, ProtocolError for an invalid field.
        """
        self._check_open("call()")
        ident = self._exchange.call(command)
        self._exchange.pump(now)
        return ident

    def stored(self, seq: int, now: int) -> None:
        """Acknowledge the records up to seq, which are durable with the cursor. Raises ValueError
        if they were not received."""
        self._exchange.stored(seq, now)

    def discard(self, now: int) -> None:
        """Drop the records that could not be stored; the device sends them again."""
        self._exchange.discard(now)

    def pause(self, now: int) -> None:
        """Stop the flow of records: window 0."""
        self._exchange.set_window(0, now)

    def unpause(self, now: int) -> None:
        """Continue the flow of records: window 8."""
        self._exchange.set_window(WINDOW, now)

    def adopt(self, now: int, *, skip: bool = False) -> None:
        """Adopt the held ring, which two people have accepted. Raises ValueError if no ring is
        held, or if received records are neither stored() nor dropped with discard().

        Records are delivered from the oldest of the ring on, including those received before; with
        `skip` only those after the head in RingHeld. After RingResumed, `cursor` is the position
        before the next record. The adoption is durable with the first stored record.
        """
        self._exchange.adopt(now, skip=skip)
        self._exchange.pump(now)

    # --- internals -----------------------------------------------------------------------------

    def _check_open(self, what: str) -> None:
        if self._closed:
            raise ValueError(f"{what}: the link was closed")

    def _events(self, now: int) -> list[LinkEvent]:
        """Finish a call: send what is due, and return the events."""
        self._exchange.pump(now)
        running = self.sessions.running
        if running is not None and running.ending is not None:
            if running.missing is not None:
                self.output.report(running.missing)
            self._end(running.ending, now)
        running = self.sessions.running
        if running is not None and now >= running.renew_at(self._rekey_frames, self._session_life):
            self._attempts.start(now)
        self._now = now
        events, self.output.events = self.output.events, []
        return events

    def _tick(self, now: int, early: int = 0) -> None:
        """Handle timeouts of sessions, and what is due."""
        self._exchange.beat(now, early)
        running, pending = self.sessions.running, self.sessions.pending
        if running is not None and not running.stalled and now >= running.dead_at:
            self._end(SessionEnding.SILENT, now)
        if pending is not None and pending.stalled:
            self._attempts.drop()
            self._attempts.start(now)
        elif pending is not None and now >= pending.dead_at:
            self._attempts.fail(HandshakeError("no DATA came under the new keys"), now)
        self._exchange.tick(now)
        if self._attempts.until is not None and now >= self._attempts.until:
            self._attempts.wake(now)

    def _end(self, why: SessionEnding, now: int) -> None:
        """End the running session."""
        running, self.sessions.running = self.sessions.running, None
        if running is None:
            return
        self._wipe(running, now)
        self.output.report(LinkSessionEnded(why))
        self._exchange.end()
        self._attempts.shorten_backoff(now)
        if self._open:
            self._attempts.start(now)

    def _wipe(self, session: HostSession, now: int) -> None:
        session.wipe()
        self.former.pop(session.id, None)
        self.former[session.id] = now
        if len(self.former) > _FORMER:
            del self.former[next(iter(self.former))]

    def _disconnect(self, now: int) -> None:
        """End the session and the attempt, because the port is closed."""
        self._open = False
        self._end(SessionEnding.CLOSED, now)
        self._attempts.drop()
        self.deframer.reset()
        self.output.data.clear()

    # --- frames -----------------------------------------------------------------------------

    def _feed(self, data: bytes, now: int) -> None:
        damaged: Counter[Cause] = Counter()
        for frame in self.deframer.feed(data):
            if isinstance(frame, FrameDamage):
                damaged[frame.cause] += 1
            elif frame.kind in self._frames:
                self._frames[frame.kind](frame, now)
        # One event per cause: a device that sends only noise sends a lot of it.
        for cause in filter(damaged.__contains__, Cause):
            self.output.report(FramesDamaged(cause, damaged[cause]))

    def _alert(self, frame: Frame, _: int) -> None:
        with suppress(ProtocolError):  # malformed frames in clear are ignored
            self.output.report(AlertReceived(Alert.decode(frame.payload)))

    def _handshake(self, frame: Frame, now: int) -> None:
        pending = self._attempts.receive(frame, now)
        if pending is not None:
            self._exchange.propose(pending, now)
            self._exchange.pump(now)

    def _data(self, frame: Frame, now: int) -> None:
        session = self.sessions.find(frame.session)
        if session is None:
            self._unknown_session(frame, now)
            return
        try:
            data = session.open(frame)
        except ProtocolError as error:
            self.output.report(FrameRejected(error))
            return
        if session.leap is not None:
            self.output.report(ProtocolViolated(session.leap))
        session.received(now)
        if session is self.sessions.pending:
            self._take_over(session, now)
        self._exchange.receive(session, data, now)

    def _unknown_session(self, frame: Frame, now: int) -> None:
        """Handle DATA of an unknown or of an ended session."""
        ended = self.former.get(frame.session)
        if self.running and (ended is None or now >= ended + _LINGER):
            self.output.report(FrameRejected(WrongSession(f"DATA of session {frame.session}")))

    def _take_over(self, session: HostSession, now: int) -> None:
        """Replace the running session by the pending one, after its first valid DATA."""
        former = self.sessions.running
        self.sessions.running, self.sessions.pending = session, None
        self._attempts.succeeded()
        self._exchange.resuming.reset()
        if former is not None:
            self._wipe(former, now)
        self.output.report(LinkSessionStarted(session.id, session.version, former is not None))
