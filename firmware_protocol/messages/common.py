"""Messages of every class of device. Generated from messages.toml by firmware_protocol.generate.
Not to be edited."""

from typing import ClassVar

from firmware_protocol.messages import codec
from firmware_protocol.messages.codec import Command, Event, Reply, Spec
from firmware_protocol.messages.enums import (
    DeviceState,
    FaultCode,
    PowerCause,
    Refusal,
    ResumeMode,
    TamperSource,
    Verdict,
)


class Power(Event, frozen=True, gc=False):
    """The device has started. The first event of every start."""

    cause: PowerCause
    """Why."""

    SPEC: ClassVar = Spec("POWER", "<B", "cause", codec.one_of("cause", PowerCause), ID=0x01)


class Tamper(Event, frozen=True, gc=False):
    """Tampering with the device was detected, or ended."""

    source: TamperSource
    """What."""
    active: bool
    """1 it began, 0 it is over; a source that has no end sends 1 only."""

    SPEC: ClassVar = Spec(
        "TAMPER",
        "<BB",
        "source active",
        codec.one_of("source", TamperSource),
        codec.truth("active"),
        ID=0x02,
    )


class Fault(Event, frozen=True, gc=False):
    """A fault was detected."""

    code: FaultCode
    """What; never NONE."""
    arg: int
    """As the code says, else 0."""

    SPEC: ClassVar = Spec("FAULT", "<BI", "code arg", codec.one_of("code", FaultCode, 1), ID=0x03)


class LogPressure(Event, frozen=True, gc=False):
    """The ring fills up: once when it reaches 75 %, once when it is full up to its spare slots."""

    used: int
    """Percent of the ring that is not acknowledged, rounded down."""

    SPEC: ClassVar = Spec("LOG_PRESSURE", "<B", "used", codec.whole("used", 0, 100), ID=0x04)


class Paired(Event, frozen=True, gc=False):
    """A host was paired; it has replaced the former one."""

    fingerprint: bytes
    """Of the host's key."""
    pairings: int
    """Pairings so far, this one included."""

    SPEC: ClassVar = Spec(
        "PAIRED",
        "<16sI",
        "fingerprint pairings",
        codec.exactly("fingerprint", 16),
        codec.whole("pairings", 1, 0xFFFFFFFF),
        ID=0x05,
    )


class InfoReply(Reply, frozen=True, gc=False):
    """Returns the firmware and state of the device."""

    firmware: bytes
    """SHA-256 of the firmware image that runs."""
    boot: int
    """Starts of the device so far, this one included."""
    cause: PowerCause
    """Why it started."""
    capacity: int
    """Records that the ring holds."""
    state: DeviceState
    """How the device is."""

    SPEC: ClassVar = Spec(
        "INFO_REPLY",
        "<32sIBHH",
        "firmware boot cause capacity state",
        codec.exactly("firmware", 32),
        codec.whole("boot", 1, 0xFFFFFFFF),
        codec.one_of("cause", PowerCause),
        codec.whole("capacity", 128, 65535),
        codec.some_of("state", DeviceState),
        ID=0xC0,
        SIZE=120,
    )


class ResumeReply(Reply, frozen=True, gc=False):
    """Returns the state of the ring."""

    epoch: int
    """The ring's name."""
    oldest: int
    """Lowest seq in the ring; head + 1 when it is empty."""
    head: int
    """Highest seq in the ring; 0 when nothing was ever recorded."""
    chain: bytes
    """Chain of `head`; zeros for head 0."""
    verdict: Verdict
    """What it amounts to."""
    acked_seq: int
    """Highest seq that was acknowledged; 0 none. After OK it is `next` - 1."""
    acked_chain: bytes
    """Chain of `acked_seq`; zeros for 0, and if the device does not have it any more."""

    SPEC: ClassVar = Spec(
        "RESUME_REPLY",
        "<III8sBI8s",
        "epoch oldest head chain verdict acked_seq acked_chain",
        codec.whole("epoch", 1, 0xFFFFFFFF),
        codec.whole("oldest", 1, 0xFFFFFFFF),
        codec.exactly("chain", 8),
        codec.one_of("verdict", Verdict),
        codec.exactly("acked_chain", 8),
        ID=0xC1,
    )


class SelftestReply(Reply, frozen=True, gc=False):
    """Returns the first fault. Each fault is recorded as an event FAULT too."""

    code: FaultCode
    """NONE when all is well."""
    arg: int
    """As the code says, else 0."""

    SPEC: ClassVar = Spec(
        "SELFTEST_REPLY", "<BI", "code arg", codec.one_of("code", FaultCode), ID=0xC2
    )


class Refused(Reply, frozen=True, gc=False):
    """The command was rejected."""

    command: int
    """Id of the command."""
    why: Refusal
    """Why."""
    arg: int
    """As the reason says, else 0."""

    SPEC: ClassVar = Spec(
        "REFUSED", "<BBH", "command why arg", codec.one_of("why", Refusal), ID=0xFF
    )


class Info(Command, frozen=True, gc=False):
    """Request for the firmware and state of the device. The first DATA of a session."""

    SPEC: ClassVar = Spec("INFO", "<", ID=0x40, IDEMPOTENT=True, DEADLINE_MS=500, REPLY=InfoReply)


class Resume(Command, frozen=True, gc=False):
    """Request to send events after the end of the host's record. Events are sent after the response
    OK."""

    epoch: int
    """The ring that the host knows; 0 none yet."""
    next: int
    """The first seq that the host has not got; 0 with epoch 0."""
    chain: bytes
    """Chain of the record before it; zeros for next 1 and for ADOPT."""
    mode: ResumeMode
    """How to continue."""

    SPEC: ClassVar = Spec(
        "RESUME",
        "<II8sB",
        "epoch next chain mode",
        codec.exactly("chain", 8),
        codec.one_of("mode", ResumeMode),
        ID=0x41,
        IDEMPOTENT=True,
        DEADLINE_MS=500,
        REPLY=ResumeReply,
    )


class Selftest(Command, frozen=True, gc=False):
    """Request for a self-test of all that can be tested without moving a card."""

    SPEC: ClassVar = Spec(
        "SELFTEST", "<", ID=0x42, IDEMPOTENT=False, DEADLINE_MS=10000, REPLY=SelftestReply
    )
