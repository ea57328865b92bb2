"""Messages of the station. Generated from messages.toml by firmware_protocol.generate. Not to be
edited."""

from typing import ClassVar

from firmware_protocol.messages import codec
from firmware_protocol.messages.codec import Command, Event, Reply, Spec
from firmware_protocol.messages.enums import (
    ButtonMask,
    BuzzPattern,
    DeviceClass,
    Edge,
    LampPattern,
    WhichButton,
)


class Button(Event, frozen=True, gc=False):
    """An armed button was pressed, or one that was pressed while armed was released."""

    seat: int
    """Seat."""
    button: WhichButton
    """Which."""
    edge: Edge
    """Which way."""
    held: int
    """UP: milliseconds that it was held, 65535 for longer; DOWN: 0."""
    press: int
    """Number of the press since the start; both edges carry it."""
    token: int
    """Token of the ARM that was in force when the button went down."""

    SPEC: ClassVar = Spec(
        "BUTTON",
        "<BBBHIH",
        "seat button edge held press token",
        codec.whole("seat", 1, 15),
        codec.one_of("button", WhichButton),
        codec.one_of("edge", Edge),
        codec.whole("press", 1, 0xFFFFFFFF),
        ID=0x30,
        CLASS=DeviceClass.STATION,
    )


class Stuck(Event, frozen=True, gc=False):
    """A button has been down for 10 s. It does not count until it is released."""

    seat: int
    """Seat."""
    button: WhichButton
    """Which."""

    SPEC: ClassVar = Spec(
        "STUCK",
        "<BB",
        "seat button",
        codec.whole("seat", 1, 15),
        codec.one_of("button", WhichButton),
        ID=0x31,
        CLASS=DeviceClass.STATION,
    )


class LampFault(Event, frozen=True, gc=False):
    """A lamp does not light."""

    seat: int
    """Seat."""
    index: int
    """Which of the seat's lamps, from 0."""

    SPEC: ClassVar = Spec(
        "LAMP_FAULT",
        "<BB",
        "seat index",
        codec.whole("seat", 1, 15),
        ID=0x32,
        CLASS=DeviceClass.STATION,
    )


class ArmReply(Reply, frozen=True, gc=False):
    """The seat is armed, or disarmed."""

    SPEC: ClassVar = Spec("ARM_REPLY", "<", ID=0xF0, CLASS=DeviceClass.STATION)


class LampsReply(Reply, frozen=True, gc=False):
    """The lamps are set."""

    SPEC: ClassVar = Spec("LAMPS_REPLY", "<", ID=0xF1, CLASS=DeviceClass.STATION)


class BuzzReply(Reply, frozen=True, gc=False):
    """The sound is playing or was played."""

    SPEC: ClassVar = Spec("BUZZ_REPLY", "<", ID=0xF2, CLASS=DeviceClass.STATION)


class Arm(Command, frozen=True, gc=False):
    """Arms buttons of a seat for a limited time and with a token. Replaces the seat's former
    ARM."""

    seat: int
    """Seat."""
    mask: ButtonMask
    """Buttons that count; 0 disarms."""
    token: int
    """Returned with each press."""
    ttl: int
    """Milliseconds from now until the seat is disarmed automatically; 0 disarms."""

    SPEC: ClassVar = Spec(
        "ARM",
        "<BHHH",
        "seat mask token ttl",
        codec.whole("seat", 1, 15),
        codec.some_of("mask", ButtonMask),
        ID=0x70,
        CLASS=DeviceClass.STATION,
        IDEMPOTENT=True,
        DEADLINE_MS=500,
        REPLY=ArmReply,
    )


class Lamps(Command, frozen=True, gc=False):
    """Sets all lamps of a seat. Replaces their former state."""

    seat: int
    """Seat."""
    rgb: bytes
    """Red, green, blue; without COLOUR the largest of the three is the brightness."""
    pattern: LampPattern
    """How."""
    period: int
    """Milliseconds of one period; OFF and STEADY ignore it; 0 for another pattern means STEADY."""
    lease: int
    """Milliseconds from now until the lamps go dark automatically; 0 at once."""

    SPEC: ClassVar = Spec(
        "LAMPS",
        "<B3sBHH",
        "seat rgb pattern period lease",
        codec.whole("seat", 1, 15),
        codec.exactly("rgb", 3),
        codec.one_of("pattern", LampPattern),
        ID=0x71,
        CLASS=DeviceClass.STATION,
        IDEMPOTENT=True,
        DEADLINE_MS=500,
        REPLY=LampsReply,
    )


class Buzz(Command, frozen=True, gc=False):
    """Plays a sound once. Refused UNSUPPORTED without BUZZER."""

    pattern: BuzzPattern
    """Which."""

    SPEC: ClassVar = Spec(
        "BUZZ",
        "<B",
        "pattern",
        codec.one_of("pattern", BuzzPattern),
        ID=0x72,
        CLASS=DeviceClass.STATION,
        IDEMPOTENT=False,
        DEADLINE_MS=500,
        REPLY=BuzzReply,
    )
