"""Messages of kind control. Generated from messages.toml by firmware_protocol.generate. Not to be
edited."""

from typing import ClassVar

from firmware_protocol.messages import codec
from firmware_protocol.messages.codec import Control, Spec
from firmware_protocol.messages.enums import DeviceState, NakWhy


class HostBeat(Control, frozen=True, gc=False):
    """Heartbeat of the host. It acknowledges as EVT_ACK does, as a retry of a lost one."""

    epoch: int
    """The ring; 0 before RESUME was answered with OK."""
    seq: int
    """Highest seq that the host has stored durably."""
    window: int
    """How many records after seq may be on their way."""

    SPEC: ClassVar = Spec(
        "HOST_BEAT", "<IIB", "epoch seq window", codec.whole("window", 0, 8), ID=0x80, FROM="host"
    )


class DeviceBeat(Control, frozen=True, gc=False):
    """Heartbeat of the device, with its state."""

    epoch: int
    """The ring."""
    head: int
    """Highest seq in the ring."""
    boot: int
    """Starts of the device so far."""
    t_us: int
    """Device's clock."""
    used: int
    """Percent of the ring that is not acknowledged, rounded down."""
    state: DeviceState
    """How the device is."""
    damaged: int
    """Damaged frames since the start."""
    refused: int
    """Valid frames that were ignored, and malformed plaintexts, since the start."""

    SPEC: ClassVar = Spec(
        "DEVICE_BEAT",
        "<IIIQBHII",
        "epoch head boot t_us used state damaged refused",
        codec.whole("epoch", 1, 0xFFFFFFFF),
        codec.whole("boot", 1, 0xFFFFFFFF),
        codec.whole("used", 0, 100),
        codec.some_of("state", DeviceState),
        ID=0x81,
    )


class EvtAck(Control, frozen=True, gc=False):
    """The host has stored all records up to this one durably."""

    epoch: int
    """The ring."""
    seq: int
    """Highest seq that the host has stored durably."""
    window: int
    """How many records after seq may be on their way; 0 stops them."""

    SPEC: ClassVar = Spec(
        "EVT_ACK",
        "<IIB",
        "epoch seq window",
        codec.whole("epoch", 1, 0xFFFFFFFF),
        codec.whole("window", 0, 8),
        ID=0x82,
        FROM="host",
    )


class EvtNak(Control, frozen=True, gc=False):
    """Request of the host to send records again."""

    epoch: int
    """The ring."""
    next: int
    """The first record that is wanted."""
    why: NakWhy
    """Why."""

    SPEC: ClassVar = Spec(
        "EVT_NAK",
        "<IIB",
        "epoch next why",
        codec.whole("epoch", 1, 0xFFFFFFFF),
        codec.whole("next", 1, 0xFFFFFFFF),
        codec.one_of("why", NakWhy),
        ID=0x83,
        FROM="host",
    )


class TimeAsk(Control, frozen=True, gc=False):
    """Request for the device's clock."""

    t1: int
    """Host's clock when this was sent, microseconds."""

    SPEC: ClassVar = Spec("TIME_ASK", "<Q", "t1", ID=0x84, FROM="host")


class TimeAnswer(Control, frozen=True, gc=False):
    """Returns the device's clock."""

    t1: int
    """As asked."""
    t2: int
    """Device's clock when TIME_ASK arrived, microseconds."""
    t3: int
    """Device's clock when this was sent, microseconds."""

    SPEC: ClassVar = Spec("TIME_ANSWER", "<QQQ", "t1 t2 t3", ID=0x85)


class PairDone(Control, frozen=True, gc=False):
    """The device has stored the host's key. Sent exactly once, under the keys of the pairing; any
    other message there is ignored."""

    fingerprint: bytes
    """Of the host's key that was stored."""
    pairings: int
    """As in PAIRED."""

    SPEC: ClassVar = Spec(
        "PAIR_DONE",
        "<16sI",
        "fingerprint pairings",
        codec.exactly("fingerprint", 16),
        codec.whole("pairings", 1, 0xFFFFFFFF),
        ID=0x86,
    )
