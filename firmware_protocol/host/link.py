"""The host's side of TableLink/1, without I/O: bytes and time in, events and bytes out.

    link = Link(own, device_key, device_class=DeviceClass.SHOE, serial="SN-1",
                cursor=record.cursor, recent=record.chains, host_boot=secrets.randbits(64) or 1)
    events = link.open(now)                  # the port is open
    events = link.receive(port.read(), now)  # and wake(now) when due() is reached
    port.write(link.take())                  # after each of these

All times are whole microseconds of one monotonic clock, never below zero. Nothing that a device
sends raises. What does raise is misuse: ValueError, LinkBusy, or a ProtocolError for a key or a
command that cannot be encoded. At most WINDOW records, MOST_CALLS commands and MOST_OUT bytes wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.host.commands import CommandQueue
from firmware_protocol.host.cursor import NO_CURSOR, ReceivedRecords, RecordCursor
from firmware_protocol.host.events import (
    AlertReceived,
    CommandUnanswered,
    FrameRejected,
    FramesDamaged,
    LinkEvent,
    LinkSessionEnded,
    LinkSessionStarted,
    ProtocolViolated,
    SessionEnding,
)
from firmware_protocol.host.exchange import Exchange
from firmware_protocol.host.handshake import INITIAL_DELAY, ExpectedDevice, HandshakeAttempts
from firmware_protocol.host.session import HostSession, HostSessions
from firmware_protocol.messages.codec import Command
from firmware_protocol.messages.enums import DeviceClass, FrameKind
from firmware_protocol.messages.errors import HandshakeError, ProtocolError, WrongSession
from firmware_protocol.messages.frames import Alert
from firmware_protocol.messages.limits import DEAD_MS, REKEY_FRAMES, SESSION_LIFE_S, WINDOW
from firmware_protocol.tablelink.framing import Deframer, Frame, FrameDamage

MAX_OUT: Final = 16_384
"""Bytes that wait for the port. What is beyond is lost, as on a bad line, and heals like that."""
_FORMER: Final = 4
"""Sessions that have ended and are remembered."""
_LINGER: Final = DEAD_MS * 1000
"""Frames of a session that has ended may be on their way for so long: they mean nothing."""


class HostLink:
    """One device behind one port."""

    def __init__(  # noqa: PLR0913 - what a link is made of, by name
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
        """`cursor` is where the host's record of this device ends; `recent` has the chains of
        records before it, by seq, as far as the host knows them. `host_boot` is 64 random bits,
        drawn for this link: its command ids begin at 1. `random` is for tests that are played
        again; without it ids and ephemeral keys come from the system's generator."""
        if not 0 < host_boot < 1 << 64:
            raise ValueError("host_boot is 1 to 2**64 - 1")
        self._rekey_frames = rekey_frames
        self._session_life = session_life_us
        self._records = ReceivedRecords(cursor, recent)
        self._calls = CommandQueue(host_boot)
        self._told: list[LinkEvent] = []
        self._out = bytearray()
        self._deframer = Deframer()
        self._sessions = HostSessions()
        expected = ExpectedDevice(own, device_key, device_class, serial)
        self._attempts = HandshakeAttempts(
            expected, self._sessions, random, self._write, self._tell
        )
        self._talk = Exchange(
            device_class, self._sessions, self._records, self._calls, self._write, self._tell
        )
        self._open = False
        self._closed = False
        self._now = 0
        self._former: dict[int, int] = {}  # sessions that ended just now, and when
        self._frames: dict[FrameKind, Callable[[Frame, int], None]] = {
            FrameKind.HELLO_RSP: self._shake,
            FrameKind.HS2: self._shake,
            FrameKind.DATA: self._data,
            FrameKind.ALERT: self._alert,
        }
        self.ignored = 0
        """Whole frames that meant nothing here."""

    @property
    def cursor(self) -> RecordCursor:
        """The last record that is kept; after adopt(), where the adopted ring begins."""
        return self._records.cursor

    @property
    def session(self) -> int | None:
        """Id of the session that runs."""
        return None if self._sessions.running is None else self._sessions.running.id

    @property
    def running(self) -> bool:
        """Whether a session runs, resumed or not."""
        return self._sessions.running is not None

    @property
    def resumed(self) -> bool:
        """Whether events flow."""
        return self._talk.resuming.taking

    @property
    def repeats(self) -> int:
        """Records that came once more though they were kept."""
        return self._talk.repeats

    @property
    def gaps(self) -> int:
        """Records that came before one that was missing."""
        return self._talk.gaps

    # --- the port ---------------------------------------------------------------------------

    def open(self, now: int) -> list[LinkEvent]:
        """The port is open (again). What was left of before is forgotten, and HELLO goes out."""
        self._usable("open()")
        self._part(now)
        self._open = True
        self._attempts.want(now)
        return self._events(now)

    def receive(self, data: bytes, now: int) -> list[LinkEvent]:
        """Bytes from the device, cut in any way. Without an open port they mean nothing."""
        self._tick(now)
        if self._open:
            self._feed(data, now)
        return self._events(now)

    def wake(self, now: int) -> list[LinkEvent]:
        """Do what is due."""
        self._tick(now)
        return self._events(now)

    def due(self) -> int | None:
        """When wake() is wanted next; None: not before something else happens."""
        running, attempt = self._sessions.running, self._attempts.due()
        if self._told or (running is not None and running.spent):
            return self._now
        times = [*self._talk.due(), *(session.dead_at for session in self._sessions)]
        if attempt is not None:
            times.append(attempt)
        elif running is not None:
            times.append(self._renew_at(running))
        return min(times, default=None)

    def take(self) -> bytes:
        """Bytes for the port, all that wait."""
        out = bytes(self._out)
        self._out.clear()
        return out

    def lost(self, now: int) -> list[LinkEvent]:
        """The port has gone: the session is over and its keys are wiped. Commands that may be
        repeated wait for the next session until their deadline."""
        self._part(now)
        return self._events(now)

    def close(self, now: int) -> list[LinkEvent]:
        """The end of this link: as lost(), and nothing goes on. It is not opened again."""
        self._part(now)
        self._closed = True
        for call in self._calls.clear():
            self._tell(CommandUnanswered(call.id, call.command, call.sent_in is not None))
        return self._events(now)

    # --- what the owner wants ---------------------------------------------------------------

    def call(self, command: Command, now: int) -> int:
        """Send a command when its turn comes; its id, under which Replied or Unanswered follows.

        One that could not be sent within its deadline is Unanswered too. LinkBusy when too many
        wait, ValueError for RESUME and for another class's, ProtocolError for a bad field.
        """
        self._usable("call()")
        ident = self._talk.ask(command)
        self._talk.pump(now)
        return ident

    def kept(self, seq: int, now: int) -> None:
        """All records up to seq are safe, and so is the cursor: the device is told. ValueError if
        they have not arrived."""
        self._talk.kept(seq, now)

    def again(self, now: int) -> None:
        """What has arrived could not be kept: it is dropped, and will arrive once more."""
        self._talk.again(now)

    def pause(self, now: int) -> None:
        """No more records for now: window 0."""
        self._talk.set_window(0, now)

    def go_on(self, now: int) -> None:
        """Records again: window 8."""
        self._talk.set_window(WINDOW, now)

    def adopt(self, now: int, *, skip: bool = False) -> None:
        """Two people have accepted the ring as it is. ValueError when nothing is Held, or when
        records that have arrived are neither kept() nor given up with again().

        Records come from the oldest on that the ring holds, also such as came before; with `skip`
        only those after the head that was Held. Once Resumed is told, `cursor` is where the ring
        goes on; it is adopted for good when the first record of it is kept.
        """
        self._talk.adopt(now, skip=skip)
        self._talk.pump(now)

    # --- inside -----------------------------------------------------------------------------

    def _usable(self, what: str) -> None:
        if self._closed:
            raise ValueError(f"{what}: the link was closed")

    def _tell(self, event: LinkEvent) -> None:
        self._told.append(event)

    def _write(self, data: bytes) -> None:
        if len(self._out) + len(data) <= MAX_OUT:
            self._out += data

    def _events(self, now: int) -> list[LinkEvent]:
        """The end of every step: send what may go, and hand out what happened."""
        self._talk.pump(now)
        running = self._sessions.running
        if running is not None and running.over is not None:
            if running.stuck is not None:
                self._tell(running.stuck)
            self._end(running.over, now)
        running = self._sessions.running
        if running is not None and now >= self._renew_at(running):
            self._attempts.want(now)
        self._now = now
        told, self._told[:] = self._told[:], []
        return told

    def _tick(self, now: int) -> None:
        """Who has died, and what is due."""
        running, pending = self._sessions.running, self._sessions.pending
        if running is not None and now >= running.dead_at:
            self._end(SessionEnding.SILENT, now)
        if pending is not None and now >= pending.dead_at:
            self._attempts.fail(HandshakeError("no DATA came under the new keys"), now)
        self._talk.tick(now)
        self._attempts.wake(now)

    def _renew_at(self, session: HostSession) -> int:
        """When new keys are wanted. Not at once in any case: the device picks its counters, and
        handshakes cost more than frames."""
        if session.frames >= self._rekey_frames:
            return session.began + INITIAL_DELAY
        return session.began + self._session_life

    def _end(self, why: SessionEnding, now: int) -> None:
        """The running session is over."""
        running, self._sessions.running = self._sessions.running, None
        if running is None:
            return
        self._wipe(running, now)
        self._tell(LinkSessionEnded(why))
        self._talk.part()
        self._attempts.hurry(now)
        if self._open:
            self._attempts.want(now)

    def _wipe(self, session: HostSession, now: int) -> None:
        session.wipe()
        self._former.pop(session.id, None)
        self._former[session.id] = now
        if len(self._former) > _FORMER:
            del self._former[next(iter(self._former))]

    def _part(self, now: int) -> None:
        """The port is not open any more, or not yet."""
        self._open = False
        self._end(SessionEnding.CLOSED, now)
        self._attempts.drop()
        self._deframer.reset()
        self._out.clear()

    # --- frames -----------------------------------------------------------------------------

    def _feed(self, data: bytes, now: int) -> None:
        counts = self._deframer.counts
        damaged, before = counts.damaged, counts.causes.copy()
        for heard in self._deframer.feed(data):
            if not isinstance(heard, FrameDamage):
                self._frames.get(heard.kind, self._ignore)(heard, now)
        if counts.damaged != damaged:
            # By cause, not one by one: whoever sends nothing but noise sends much of it.
            for cause, count in counts.causes.items():
                if count != before[cause]:
                    self._tell(FramesDamaged(cause, count - before[cause]))

    def _ignore(self, _: Frame, __: int) -> None:
        self.ignored += 1

    def _alert(self, frame: Frame, _: int) -> None:
        try:
            self._tell(AlertReceived(Alert.decode(frame.payload)))
        except ProtocolError:
            self.ignored += 1  # what is in clear and malformed is ignored

    def _shake(self, frame: Frame, now: int) -> None:
        pending = self._attempts.hear(frame, now)
        if pending is not None:
            self._talk.propose(pending, now)
            self._talk.pump(now)

    def _data(self, frame: Frame, now: int) -> None:
        session = self._sessions.find(frame.session)
        if session is None:
            self._strange(frame, now)
            return
        try:
            data = session.open(frame)
        except ProtocolError as error:
            self._tell(FrameRejected(error))
            return
        if session.leap is not None:
            self._tell(ProtocolViolated(session.leap))
        session.heard(now)
        if session is self._sessions.pending:
            self._take_over(session, now)
        self._talk.hear(session, data, now)

    def _strange(self, frame: Frame, now: int) -> None:
        """DATA of a session that is none of ours, or of one that was until just now."""
        self.ignored += 1
        ended = self._former.get(frame.session)
        if self.running and (ended is None or now >= ended + _LINGER):
            self._tell(FrameRejected(WrongSession(f"DATA of session {frame.session}")))

    def _take_over(self, session: HostSession, now: int) -> None:
        """The first valid DATA: the pending session is the one that runs from now on."""
        former = self._sessions.running
        self._sessions.running, self._sessions.pending = session, None
        self._attempts.succeeded()
        self._talk.resuming.parted()
        if former is not None:
            self._wipe(former, now)
        self._tell(LinkSessionStarted(session.id, session.version, former is not None))
