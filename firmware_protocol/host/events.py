"""Events of a link, as frozen values in the order of their occurrence.

No repr shows a card: the event of a record and the reply to REREAD hide their fields.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from firmware_protocol.messages import (
    Alert,
    Command,
    DeviceBeat,
    HelloRsp,
    InfoReply,
    ProtocolError,
    Reply,
    Verdict,
)
from firmware_protocol.tablelink import NO_CHAIN, Cause, EventRecord


class SessionEnding(Enum):
    """Why a session ended."""

    SILENT = "silent"
    """Timeout: no valid DATA arrived for DEAD, while this host was running."""
    STALLED = "stalled"
    """This host sent nothing for DEAD, because it was not running: so the device has ended the
    session. The next one starts at once, on the same port."""
    CLOSED = "closed"
    """The port disconnected, or the link was closed."""
    SPENT = "spent"
    """Its counters are used up, and no new handshake succeeded in time."""
    BEHIND = "behind"
    """A requested record did not arrive; RecordMissing names it."""
    OTHER_RING = "other ring"
    """Heartbeats reported another ring than the one that was resumed, or one that ends before a
    received record. The next RESUME returns its state, and RingHeld follows."""


# --- start and end of a session ----------------------------------------------------


class HelloReceived(Struct, frozen=True):
    """The device answered HELLO. Nothing of the answer is authenticated yet."""

    answer: HelloRsp


class HandshakeFailed(Struct, frozen=True):
    """An attempt to start a session failed. The link retries automatically."""

    error: ProtocolError


class LinkSessionStarted(Struct, frozen=True):
    """The first valid DATA arrived under new keys: the device is the one that was paired."""

    session: int
    version: int
    rekeyed: bool
    """It replaced a running session."""


class DeviceInfoReceived(Struct, frozen=True):
    """The reply to INFO: exactly once for each session, after LinkSessionStarted."""

    info: InfoReply


class RingResumed(Struct, frozen=True):
    """The ring continues the host's record or was adopted; the device sends records."""

    epoch: int
    oldest: int
    head: int


class RingHeld(Struct, frozen=True):
    """The ring does not continue the host's record. No record is delivered before adopt()."""

    verdict: Verdict
    """Any but OK: the worse of the verdicts of device and host."""
    epoch: int
    oldest: int
    """Lowest seq in the ring; 1 if only a record has shown the ring."""
    head: int
    chain: bytes
    """Chain of `head`."""
    acked_seq: int = 0
    """Highest seq that a host has acknowledged; 0 if none, or if only a record has shown the
    ring."""
    acked_chain: bytes = NO_CHAIN
    """Chain of `acked_seq`; zeros if it is not known."""

    @property
    def next(self) -> int:
        """The first record that is wanted if the ring is adopted. Behind, the records up to
        `acked_seq` were stored before: they happened long ago."""
        return max(self.oldest, self.acked_seq + 1) if self.is_behind else self.oldest

    @property
    def is_behind(self) -> bool:
        """Whether the host's record ends before acknowledged records."""
        return self.verdict is Verdict.BEHIND

    @property
    def is_stored_elsewhere(self) -> bool:
        """Whether events of the ring were acknowledged that the host's record does not have: it is
        behind, or it is a new one or a copy from before the ring was adopted."""
        return self.is_behind or (self.verdict is Verdict.NEW_EPOCH and self.acked_seq > 0)

    def chain_before(self, seq: int) -> bytes | None:
        """The chain of the record before this one; None if it is not known."""
        known = {0: NO_CHAIN, self.head: self.chain}
        if self.acked_seq and self.acked_chain != NO_CHAIN:
            known[self.acked_seq] = self.acked_chain
        return known.get(seq - 1)


class LinkSessionEnded(Struct, frozen=True):
    """The session ended, and its keys are wiped."""

    why: SessionEnding


# --- during a session ------------------------------------------------------------------------


class RecordReceived(Struct, frozen=True):
    """A record, each exactly once and in order. Only HostLink.stored() acknowledges it."""

    record: EventRecord


class ReplyReceived(Struct, frozen=True):
    """The response to a command, which may be Refused. For INFO and RESUME that the link sends
    itself, only a refusal is reported."""

    command_id: int
    command: Command
    reply: Reply


class CommandTimedOut(Struct, frozen=True):
    """Timeout of a command. If it is not idempotent, only its result event shows whether it was
    executed. INFO and RESUME of the link itself are reported too, and retried."""

    command_id: int
    command: Command
    sent: bool = True
    """False: it was never sent, so it was not executed."""


class BeatReceived(Struct, frozen=True):
    """A heartbeat of the device."""

    beat: DeviceBeat


class ClockMeasured(Struct, frozen=True):
    """The device's clock minus the host's, and the maximum error."""

    offset_us: int
    uncertainty_us: int


# --- errors ---------------------------------------------------------------------


class RecordMissing(Struct, frozen=True):
    """Heartbeats report a record that does not arrive, even after requests. LinkSessionEnded
    follows: RESUME is the last way to get the record."""

    next: int
    """The first missing record."""
    head: int
    """The last record of the ring."""


class AlertReceived(Struct, frozen=True):
    """A hint in clear. It is not authenticated: it is displayed and has no other effect."""

    alert: Alert


class FramesDamaged(Struct, frozen=True):
    """Bytes that are no valid frame: at most one event per cause and receive(), after all
    others."""

    cause: Cause
    count: int


class FrameRejected(Struct, frozen=True):
    """A DATA frame that the running session rejects: another session, an old counter or a wrong
    tag. With a wrong tag it was forged or changed."""

    error: ProtocolError


class ProtocolViolated(Struct, frozen=True):
    """The device itself sent something that TableLink does not allow."""

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
    | CommandTimedOut
    | BeatReceived
    | ClockMeasured
    | AlertReceived
    | FramesDamaged
    | FrameRejected
    | ProtocolViolated
    | RecordMissing
)
