"""Messages of the shuffler. Generated from messages.toml by firmware_protocol.generate. Not to be
edited."""

from typing import ClassVar

from firmware_protocol.messages import codec
from firmware_protocol.messages.codec import Command, Event, Reply, Spec
from firmware_protocol.messages.common import Fault
from firmware_protocol.messages.enums import DeckKind, DeviceClass, JamCode


class Started(Event, frozen=True, gc=False):
    """A shuffle has started."""

    shuffle: int
    """Number of this shuffle, one more than the last, stored over restarts."""
    decks: int
    """Decks as START said."""

    SPEC: ClassVar = Spec(
        "STARTED",
        "<IB",
        "shuffle decks",
        codec.whole("shuffle", 1, 0xFFFFFFFF),
        codec.whole("decks", 1, 12),
        ID=0x20,
        CLASS=DeviceClass.SHUFFLER,
    )


class Progress(Event, frozen=True, gc=False):
    """Progress of the shuffle: at most one for every 5 percent."""

    percent: int
    """Percent done."""

    SPEC: ClassVar = Spec(
        "PROGRESS",
        "<B",
        "percent",
        codec.whole("percent", 0, 100),
        ID=0x21,
        CLASS=DeviceClass.SHUFFLER,
    )


class Done(Event, frozen=True, gc=False):
    """The shuffle is finished and the cards wait."""

    shuffle: int
    """Its number."""
    count: int
    """Cards counted."""
    missing: int
    """Cards that the decks should have and this batch has not; 0 without DECK_CHECK."""
    extra: int
    """Cards that this batch has beyond its decks; 0 without DECK_CHECK."""
    rng_ok: bool
    """1: the random generator's own tests passed during this shuffle."""

    SPEC: ClassVar = Spec(
        "DONE",
        "<IHHHB",
        "shuffle count missing extra rng_ok",
        codec.whole("shuffle", 1, 0xFFFFFFFF),
        codec.truth("rng_ok"),
        ID=0x22,
        CLASS=DeviceClass.SHUFFLER,
    )


class CountError(Event, frozen=True, gc=False):
    """The number of cards is wrong; no DONE follows for this shuffle."""

    expected: int
    """Cards that the decks should have."""
    got: int
    """Cards counted."""

    SPEC: ClassVar = Spec("COUNT_ERROR", "<HH", "expected got", ID=0x23, CLASS=DeviceClass.SHUFFLER)


class Door(Event, frozen=True, gc=False):
    """The door was opened or closed, by hand or by EJECT."""

    open: bool
    """1 opened, 0 closed."""

    SPEC: ClassVar = Spec(
        "DOOR", "<B", "open", codec.truth("open"), ID=0x24, CLASS=DeviceClass.SHUFFLER
    )


class ShufflerJam(Event, frozen=True, gc=False):
    """A jam in the shuffler started or ended."""

    code: JamCode
    """Where."""

    SPEC: ClassVar = Spec(
        "SHUFFLER_JAM",
        "<B",
        "code",
        codec.one_of("code", JamCode),
        ID=0x25,
        CLASS=DeviceClass.SHUFFLER,
    )


class StartReply(Reply, frozen=True, gc=False):
    """The shuffle starts; STARTED reports when it has."""

    shuffle: int
    """Number that STARTED will carry."""

    SPEC: ClassVar = Spec(
        "START_REPLY",
        "<I",
        "shuffle",
        codec.whole("shuffle", 1, 0xFFFFFFFF),
        ID=0xE0,
        CLASS=DeviceClass.SHUFFLER,
    )


class EjectReply(Reply, frozen=True, gc=False):
    """The door opens; DOOR reports when it has."""

    SPEC: ClassVar = Spec("EJECT_REPLY", "<", ID=0xE1, CLASS=DeviceClass.SHUFFLER)


class AbortReply(Reply, frozen=True, gc=False):
    """No shuffle runs, or it is being ended."""

    SPEC: ClassVar = Spec("ABORT_REPLY", "<", ID=0xE2, CLASS=DeviceClass.SHUFFLER)


class Start(Command, frozen=True, gc=False):
    """Starts a shuffle. Refused NOT_NOW while the door is open, cards are stuck or a shuffle runs;
    EMPTY without cards."""

    decks: int
    """Decks that were put in."""
    profile: int
    """The maker's number of a way to shuffle; 0 the usual one."""
    kind: DeckKind
    """Kind of the decks; never UNKNOWN."""

    SPEC: ClassVar = Spec(
        "START",
        "<BBB",
        "decks profile kind",
        codec.whole("decks", 1, 12),
        codec.one_of("kind", DeckKind, 1),
        ID=0x60,
        CLASS=DeviceClass.SHUFFLER,
        IDEMPOTENT=False,
        DEADLINE_MS=500,
        REPLY=StartReply,
        RESULT=Started,
    )


class Eject(Command, frozen=True, gc=False):
    """Opens the door and releases the cards."""

    SPEC: ClassVar = Spec(
        "EJECT",
        "<",
        ID=0x61,
        CLASS=DeviceClass.SHUFFLER,
        IDEMPOTENT=False,
        DEADLINE_MS=500,
        REPLY=EjectReply,
        RESULT=Door,
    )


class Abort(Command, frozen=True, gc=False):
    """Ends a running shuffle, as FAULT ABORTED records; without one it changes nothing."""

    SPEC: ClassVar = Spec(
        "ABORT",
        "<",
        ID=0x62,
        CLASS=DeviceClass.SHUFFLER,
        IDEMPOTENT=True,
        DEADLINE_MS=500,
        REPLY=AbortReply,
        RESULT=Fault,
    )
