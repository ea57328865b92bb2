"""One session on the host: keys, heartbeat, timeouts and clock requests; and the link's output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from firmware_protocol.host.commands import PendingCommand
from firmware_protocol.host.events import ClockMeasured, LinkEvent, RecordMissing, SessionEnding
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
"""A record that is missing for so long is requested, and again after each RESEND_MOST. The device
has retried twice by then."""
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

    @property
    def frames(self) -> int:
        """The higher of both counters."""
        return max(self.sealer.counter, self.opener.last + 1)

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
        """Schedule the next heartbeat. Missed ones are skipped."""
        self.beat_at += _BEAT * ((now - self.beat_at) // _BEAT + 1)

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

    def __iter__(self) -> Iterator[HostSession]:
        if self.running is not None:
            yield self.running
        if self.pending is not None:
            yield self.pending

    def find(self, session: int) -> HostSession | None:
        return next((one for one in self if one.id == session), None)
