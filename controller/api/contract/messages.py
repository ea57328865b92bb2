"""Requests and responses of the API, except the view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from controller.api.contract.view import View
from controller.people import HouseRole
from controller.procedure.model.events import Device, Role

MAX_BADGE: Final = 64
MAX_PIN: Final = 64

ScreenName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][a-z0-9-]{0,31}(?![\s\S])",
        description="What a screen is called: a letter, then up to 31 of a to z, 0 to 9 and -.",
    ),
]
Badge: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_BADGE)]
Pin: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_PIN)]
SignsIn: TypeAlias = Literal["dealer", "surveillance", "technician"]

# --- what is sent -----------------------------------------------------------------------------


class Sent(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request."""


class OpenScreen(Sent, frozen=True):
    """A screen begins to watch."""

    name: ScreenName


class SignIn(Sent, frozen=True):
    """Signs a person in. `relieve`: a dealer takes the place of the one who deals."""

    badge: Badge
    pin: Pin
    role: SignsIn = "dealer"
    relieve: bool = False

    def __repr__(self) -> str:
        return f"SignIn({self.badge!r}, {self.role!r})"


class SignOut(Sent, frozen=True):
    """Signs out the person who is signed in at this screen."""


class Authorise(Sent, frozen=True):
    """One person signs for one act, with the same body as the later request: valid once, from this
    screen, for a minute. `second`: as the second person of the act."""

    act: Mapping[str, Any]
    badge: Badge
    pin: Pin
    second: bool = False

    def __repr__(self) -> str:
        return f"Authorise({self.badge!r}, second={self.second})"


class AdoptDevice(Sent, frozen=True):
    """Adopts the log of a device as it is. `skip`: its events that are not recorded are skipped."""

    skip: bool = False


class SelfTest(Sent, frozen=True):
    """A device is to test itself."""


class ShuffleAgain(Sent, frozen=True):
    """Starts the shuffle again, after a person has checked that the shuffler does not run."""


# --- what is answered -------------------------------------------------------------------------


class Opened(Struct, frozen=True):
    """A screen. Its token goes with each request: `Authorization: Bearer TOKEN`."""

    token: str
    screen: str
    """Its name, with a number if the name was taken."""

    def __repr__(self) -> str:
        return f"Opened({self.screen!r})"


class SignedIn(Struct, frozen=True):
    """Who is signed in at this screen now."""

    badge: str
    name: str
    role: HouseRole
    life: int
    """Seconds; 0: no limit."""


class SignedOut(Struct, frozen=True):
    """Who was signed in, by role."""

    roles: tuple[HouseRole, ...]


class SignedFor(Struct, frozen=True):
    """Who has signed for the act."""

    name: str
    role: Role
    two: bool
    """Whether it needs a second person."""


class Answer(Struct, frozen=True, omit_defaults=True):
    """What the procedure made of an event: the rows that took it, or why it was refused."""

    event: str
    taken: bool
    rows: tuple[str, ...] = ()
    why: str = ""
    code: str = ""
    detail: dict[str, str] = {}
    """The values in `why`, by field, for texts in other words."""


class Acted(Struct, frozen=True):
    """Response to an act that is in the record, whether it was accepted or refused."""

    seq: int
    answers: tuple[Answer, ...]
    table: View


class Tested(Struct, frozen=True):
    """What a device has found when it tested itself, and who asked for it."""

    device: Device
    serial: str
    name: str
    found: str
    """`none`, or the first fault found."""
    arg: int
    """The argument of the fault, as the device reports it."""


class Adopted(Struct, frozen=True):
    """Who has adopted the device's log."""

    device: Device
    serial: str
    people: tuple[str, str]


class LinkShown(Struct, frozen=True):
    """How a device is linked."""

    device: Device
    serial: str
    state: str
    held: str = ""
    """Why its log waits for two people who adopt it; empty while it does not."""
    why: str = ""
    """The same as text; empty while its log is not held."""


class Health(Struct, frozen=True):
    """Whether the table can be played at."""

    table: str
    ready: bool
    """Whether events can be recorded and every device is ready."""
    stopped: str
    seq: int
    """Of the last record."""
    links: tuple[LinkShown, ...]
    full: str = ""
    """Why the disk has no room for the next segment of the record; empty if it has. The table is
    ready until no more can be recorded."""
    minutes: int = 0
    """Minutes of play that can still be recorded then, as an estimate."""


# --- errors -----------------------------------------------------------------------------------


class ErrorBody(Struct, frozen=True, omit_defaults=True):
    """Response with the error of a request, which has had no effect."""

    code: str
    what: str
    allowed: str = ""
    """What is allowed, if that can be said."""
    wait: int = 0
    """Seconds until a retry is allowed."""


class ErrorAnswer(Struct, frozen=True):
    error: ErrorBody
