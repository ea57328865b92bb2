"""Messages of the shuffler. Generated from messages.toml by firmware_protocol.generate. Not to be
edited."""

from typing import ClassVar

from firmware_protocol.messages import codec
from firmware_protocol.messages.codec import Command, Event, Reply, Spec
from firmware_protocol.messages.common import Fault
from firmware_protocol.messages.enums import DeviceClass, JamCode


class Started(Event, frozen=True, gc=False):
    """A shuffle has started."""

    shuffle: int
    """Number of this shuffle, one more than the last, stored over restarts."""
    decks: int
    """Decks as START said."""

    ID: ClassVar = 0x20
    CLASS: ClassVar = DeviceClass.SHUFFLER
    SPEC: ClassVar = Spec(
        "STARTED",
        "<IB",
        "shuffle decks",
        codec.whole("shuffle", 1, 0xFFFFFFFF),
        codec.whole("decks", 1, 12),
    )


class Progress(Event, frozen=True, gc=False):
    """Progress of the shuffle: at most one for every 5 percent."""

    percent: int
    """Percent done."""

    ID: ClassVar = 0x21
    CLASS: ClassVar = DeviceClass.SHUFFLER
    SPEC: ClassVar = Spec("PROGRESS", "<B", "percent", codec.whole("percent", 0, 100))


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

    ID: ClassVar = 0x22
    CLASS: ClassVar = DeviceClass.SHUFFLER
    SPEC: ClassVar = Spec(
        "DONE",
        "<IHHHB",
        "shuffle count missing extra rng_ok",
        codec.whole("shuffle", 1, 0xFFFFFFFF),
        codec.truth("rng_ok"),
    )


class CountError(Event, frozen=True, gc=False):
    """The number of cards is wrong; no DONE follows for this shuffle."""

    expected: int
    """Cards that the decks should have."""
    got: int
    """Cards counted."""

    ID: ClassVar = 0x23
    CLASS: ClassVar = DeviceClass.SHUFFLER
    SPEC: ClassVar = Spec("COUNT_ERROR", "<HH", "expected got")


class Door(Event, frozen=True, gc=False):
    """The door was opened or closed, by hand or by EJECT."""

    open: bool
    """1 opened, 0 closed."""

    ID: ClassVar = 0x24
    CLASS: ClassVar = DeviceClass.SHUFFLER
    SPEC: ClassVar = Spec("DOOR", "<B", "open", codec.truth("open"))


class ShufflerJam(Event, frozen=True, gc=False):
    """A jam in the shuffler started or ended."""

    code: JamCode
    """Where."""

    ID: ClassVar = 0x25
    CLASS: ClassVar = DeviceClass.SHUFFLER
    SPEC: ClassVar = Spec("SHUFFLER_JAM", "<B", "code", codec.one_of("code", JamCode))


class StartReply(Reply, frozen=True, gc=False):
    """The shuffle starts; STARTED reports when it has."""

    shuffle: int
    """Number that STARTED will carry."""

    ID: ClassVar = 0xE0
    CLASS: ClassVar = DeviceClass.SHUFFLER
    SPEC: ClassVar = Spec("START_REPLY", "<I", "shuffle", codec.whole("shuffle", 1, 0xFFFFFFFF))


class EjectReply(Reply, frozen=True, gc=False):
    """The door opens; DOOR reports when it has."""

    ID: ClassVar = 0xE1
    CLASS: ClassVar = DeviceClass.SHUFFLER
    SPEC: ClassVar = Spec("EJECT_REPLY", "<")


class AbortReply(Reply, frozen=True, gc=False):
    """No shuffle runs, or it is being ended."""

    ID: ClassVar = 0xE2
    CLASS: ClassVar = DeviceClass.SHUFFLER
    SPEC: ClassVar = Spec("ABORT_REPLY", "<")


class Start(Command, frozen=True, gc=False):
    """Starts a shuffle. Refused NOT_NOW while the door is open, cards are stuck or a shuffle
    runs."""

    decks: int
    """Decks that were put in."""
    profile: int
    """The maker's number of a way to shuffle; 0 the usual one."""

    ID: ClassVar = 0x60
    CLASS: ClassVar = DeviceClass.SHUFFLER
    IDEMPOTENT: ClassVar = False
    DEADLINE_MS: ClassVar = 500
    REPLY: ClassVar = StartReply
    RESULT: ClassVar = Started
    SPEC: ClassVar = Spec("START", "<BB", "decks profile", codec.whole("decks", 1, 12))


class Eject(Command, frozen=True, gc=False):
    """Opens the door and releases the cards."""

    ID: ClassVar = 0x61
    CLASS: ClassVar = DeviceClass.SHUFFLER
    IDEMPOTENT: ClassVar = False
    DEADLINE_MS: ClassVar = 500
    REPLY: ClassVar = EjectReply
    RESULT: ClassVar = Door
    SPEC: ClassVar = Spec("EJECT", "<")


class Abort(Command, frozen=True, gc=False):
    """Ends a running shuffle, as FAULT ABORTED records; without one it changes nothing."""

    ID: ClassVar = 0x62
    CLASS: ClassVar = DeviceClass.SHUFFLER
    IDEMPOTENT: ClassVar = True
    DEADLINE_MS: ClassVar = 500
    REPLY: ClassVar = AbortReply
    RESULT: ClassVar = Fault
    SPEC: ClassVar = Spec("ABORT", "<")
