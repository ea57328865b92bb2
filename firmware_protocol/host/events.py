"""What a link tells its owner: frozen values, in the order in which things happened.

None of them shows a card: a record's event hides its fields, and so does the reply to REREAD.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from firmware_protocol.messages.codec import Command, Reply
from firmware_protocol.messages.common import InfoReply
from firmware_protocol.messages.control import DeviceBeat
from firmware_protocol.messages.enums import Verdict
from firmware_protocol.messages.errors import ProtocolError
from firmware_protocol.messages.frames import Alert, HelloRsp
from firmware_protocol.tablelink.framing import Cause
from firmware_protocol.tablelink.plaintext import EventRecord


class SessionEnding(Enum):
    """Why a session is over."""

    SILENT = "silent"
    """No valid DATA came for DEAD."""
    CLOSED = "closed"
    """The port has gone, or the link was closed."""
    SPENT = "spent"
    """Its counters are used up, and no new handshake came about in time."""
    BEHIND = "behind"
    """A record did not come although it was asked for: StuckBehind says which."""
    OTHER_RING = "other ring"
    """Heartbeats told of another ring than the one that was resumed, or of one that ends before a
    record that has come. It is Held at the next RESUME, which says how it stands."""


# --- how a session comes about, and ends ----------------------------------------------------


class HelloReceived(Struct, frozen=True):
    """The device introduced itself. Nothing of it is proven yet."""

    answer: HelloRsp


class HandshakeFailed(Struct, frozen=True):
    """An attempt at a session failed, and why. The link tries again by itself."""

    error: ProtocolError


class LinkSessionStarted(Struct, frozen=True):
    """The first valid DATA came under new keys: the device is the one that was paired."""

    session: int
    version: int
    rekeyed: bool
    """It took over from a living session."""


class DeviceInfoReceived(Struct, frozen=True):
    """What runs on the device. Once for each session, after SessionBegan."""

    info: InfoReply


class RingResumed(Struct, frozen=True):
    """The ring continues the host's record, or was adopted: events flow."""

    epoch: int
    oldest: int
    head: int


class RingHeld(Struct, frozen=True):
    """Ring and record do not go together. Nothing is delivered until two people adopt()."""

    verdict: Verdict
    """GAP, FORK or NEW_EPOCH: the worse of the device's and the host's own."""
    epoch: int
    oldest: int
    """Lowest seq in the ring as far as known; 1 when a record was all that told of it."""
    head: int
    chain: bytes
    """Chain of `head`."""


class LinkSessionEnded(Struct, frozen=True):
    """The session is over and its keys are wiped."""

    why: SessionEnding


# --- what runs in it ------------------------------------------------------------------------


class RecordReceived(Struct, frozen=True):
    """A record, each exactly once and in order. The device is told only by Link.kept()."""

    record: EventRecord


class ReplyReceived(Struct, frozen=True):
    """The device answered a command; the reply may be Refused. INFO and RESUME that the link
    sends by itself are told here only when they were refused."""

    command_id: int
    command: Command
    reply: Reply


class CommandUnanswered(Struct, frozen=True):
    """No reply came in time. Of a command that is not idempotent nobody knows whether it was
    carried out: look for its result event. INFO and RESUME of the link itself are told here too,
    and tried again."""

    command_id: int
    command: Command
    sent: bool = True
    """False: it never left the host, so it was not carried out."""


class BeatReceived(Struct, frozen=True):
    """The device lives, and how it is."""

    beat: DeviceBeat


class ClockMeasured(Struct, frozen=True):
    """The device's clock minus the host's, and how far off that may be."""

    offset_us: int
    uncertainty_us: int


# --- what should not be ---------------------------------------------------------------------


class RecordMissing(Struct, frozen=True):
    """The device's heartbeats tell of a record that does not come, asked for or not. SessionEnded
    follows: RESUME is the last way to get it."""

    next: int
    """The first record that is missing."""
    head: int
    """How far the ring goes."""


class AlertReceived(Struct, frozen=True):
    """A hint in clear. Anyone can send one: it is shown, and nothing else follows."""

    alert: Alert


class FramesDamaged(Struct, frozen=True):
    """Bytes that were no frame: for each cause once after all else that one receive() led to."""

    cause: Cause
    count: int


class FrameRejected(Struct, frozen=True):
    """A whole DATA frame that the running session does not accept: another session's, an old
    counter, a wrong tag. With a wrong tag it was made or changed on the way."""

    error: ProtocolError


class ProtocolViolated(Struct, frozen=True):
    """The device itself said something that TableLink does not allow."""

    error: ProtocolError


LinkEvent: TypeAlias = (
    HelloReceived
    | HandshakeFailed
    | LinkSessionStarted
    | DeviceInfoReceived
    | RingResumed
    | RingHeld
    | LinkSessionEnded
    | RecordReceived
    | ReplyReceived
    | CommandUnanswered
    | BeatReceived
    | ClockMeasured
    | AlertReceived
    | FramesDamaged
    | FrameRejected
    | ProtocolViolated
    | RecordMissing
)
