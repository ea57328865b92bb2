"""One session from the host's side: its keys, its heartbeat, its life, and the clock question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from firmware_protocol.host.commands import PendingCommand
from firmware_protocol.host.events import ClockMeasured, RecordMissing, SessionEnding
from firmware_protocol.messages.control import TimeAnswer
from firmware_protocol.messages.enums import DeviceClass
from firmware_protocol.messages.errors import OutOfRange, SessionSpent
from firmware_protocol.messages.frames import HelloRsp
from firmware_protocol.messages.limits import (
    CRC_SIZE,
    DEAD_MS,
    HEADER_SIZE,
    HEARTBEAT_MS,
    RESEND_MOST_MS,
    TAG_SIZE,
    TIME_EVERY_MS,
)
from firmware_protocol.tablelink.framing import Frame
from firmware_protocol.tablelink.noise import SessionKeys
from firmware_protocol.tablelink.session_cipher import Opener, Sealer

_BEAT: Final = HEARTBEAT_MS * 1000
_DEAD: Final = DEAD_MS * 1000
_TIME_EVERY: Final = TIME_EVERY_MS * 1000
BEHIND_ASK: Final = 2 * RESEND_MOST_MS * 1000
"""A record that has not come for so long is asked for, and again after each RESEND_MOST: a device
that sends again by itself has done so twice."""
BEHIND_END: Final = 5 * RESEND_MOST_MS * 1000
"""So long after it was missed first, the session is given up."""
_ASK_AGAIN: Final = RESEND_MOST_MS * 1000
_TIME_AGAIN: Final = _DEAD
"""An unanswered TIME_ASK is asked again after this."""
MAX_LOST: Final = 1_000_000
"""Frames that can be lost between two that come: more than any line carries within DEAD."""
_AROUND: Final = HEADER_SIZE + TAG_SIZE + CRC_SIZE
"""Bytes of a decoded DATA frame around its plaintext."""


class HostSession:
    """From the INFO that opens it to the wiping of its keys."""

    def __init__(
        self, keys: SessionKeys, session: int, version: int, answer: HelloRsp, now: int
    ) -> None:
        self.id = session
        self.version = version
        self.sealer = Sealer(keys.send, session, version)
        self.opener = Opener(keys.receive, session, version)
        self.device_class: DeviceClass = answer.device_class
        self.opening: PendingCommand | None = None
        """INFO or RESUME, as long as they are not answered."""
        self.began = now
        self.beat_at = now + _BEAT
        self.spent = False
        """Its counters are used up: it cannot say anything more."""
        self._before = -1
        self._largest = int(answer.largest)
        self._heard = now
        self._asked: int | None = None
        self.ask_at: int | None = None
        """When TIME_ASK is due; None before RESUME was answered."""
        self.stuck: RecordMissing | None = None
        """The record that does not come: the session is to end."""
        self.other_ring = False
        """Its ring is not the one that was resumed: the session is to end."""
        self._missed = (0, 0)  # the record that was missed last, and since when
        self._ask_missed_at = 0

    @property
    def over(self) -> SessionEnding | None:
        """Why it is to end now; None: it goes on."""
        if self.other_ring:
            return SessionEnding.OTHER_RING
        if self.stuck is not None:
            return SessionEnding.BEHIND
        return SessionEnding.SPENT if self.spent else None

    @property
    def dead_at(self) -> int:
        return self._heard + _DEAD

    def open(self, frame: Frame) -> bytes:
        """The plaintext of this frame, or the ProtocolError that Opener has for it."""
        self._before = self.opener.last
        return self.opener.open(frame)

    @property
    def leap(self) -> OutOfRange | None:
        """What is odd about the counter of the frame that was opened last. It counts all the same:
        what was lost is nobody's fault, but nobody sends so much between two signs of life."""
        last = self.opener.last
        if last - self._before <= MAX_LOST:
            return None
        return OutOfRange(f"DATA: counter {last} after {self._before}")

    @property
    def frames(self) -> int:
        """The higher of both counters."""
        return max(self.sealer.counter, self.opener.last + 1)

    def takes(self, plaintext: bytes) -> bool:
        """Whether the device takes frames as long as this one's."""
        return len(plaintext) + _AROUND <= self._largest

    def seal(self, plaintext: bytes) -> bytes:
        """The frame for the wire; nothing when the session is spent."""
        try:
            return self.sealer.seal(plaintext).encode()
        except SessionSpent:
            self.spent = True
            return b""

    def heard(self, now: int) -> None:
        """Valid DATA came."""
        self._heard = now

    def beaten(self, now: int) -> None:
        """A heartbeat was sent. Those that were missed are not made up for."""
        self.beat_at += _BEAT * ((now - self.beat_at) // _BEAT + 1)

    def asked(self, now: int) -> None:
        self._asked = now
        self.ask_at = now + _TIME_AGAIN

    def read_clock(self, answer: TimeAnswer, now: int) -> ClockMeasured | None:
        """What the answer says; None if it is to no question that is open. OutOfRange if the
        device's clock went back in between."""
        t1, t2, t3 = answer.t1, answer.t2, answer.t3
        if t1 != self._asked:
            return None
        self._asked = None
        self.ask_at = t1 + _TIME_EVERY
        if t3 < t2:
            raise OutOfRange("TIME_ANSWER: t3 is before t2")
        # Below zero where a coarse clock claims more time at the device than the whole exchange
        # took: then it is as far off as that.
        on_the_way = abs((now - t1) - (t3 - t2))
        return ClockMeasured(((t2 - t1) + (t3 - now)) // 2, (on_the_way + 1) // 2)

    def misses(self, seq: int, head: int, now: int) -> bool:
        """A heartbeat tells of this record, which may come and has not. Whether to ask for it."""
        if self._missed[0] != seq:
            self._missed = seq, now
            self._ask_missed_at = now + BEHIND_ASK
        if now >= self._missed[1] + BEHIND_END:
            self.stuck = RecordMissing(seq, head)
            return False
        if now < self._ask_missed_at:
            return False
        self._ask_missed_at = now + _ASK_AGAIN
        return True

    def misses_nothing(self) -> None:
        """All that may come has come, as far as anybody knows by now."""
        self._missed = (0, 0)
        self.stuck = None

    def wipe(self) -> None:
        self.sealer.wipe()
        self.opener.wipe()


class HostSessions:
    """Those that are alive: the running one, and the one that will take its place."""

    def __init__(self) -> None:
        self.running: HostSession | None = None
        self.pending: HostSession | None = None
        """Its keys are agreed on, and wait for their first valid DATA."""

    def __iter__(self) -> Iterator[HostSession]:
        if self.running is not None:
            yield self.running
        if self.pending is not None:
            yield self.pending

    def find(self, session: int) -> HostSession | None:
        return next((one for one in self if one.id == session), None)
