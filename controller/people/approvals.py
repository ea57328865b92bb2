"""Acts of the floor, which take badge and PIN each time, some with a second person."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from controller.people.person import HouseRole
from controller.procedure.model import events
from controller.procedure.model.events import Event
from controller.procedure.model.permissions import WHO

SECONDS: Final[tuple[HouseRole, ...]] = ("floor", "dealer", "surveillance")
"""Roles of a second person, as the procedure accepts them."""
TWO: Final[frozenset[type[Event]]] = frozenset(
    {
        events.TableOpened,
        events.TableClosed,
        events.DecksChanged,
        events.PaymentCorrected,
        events.CountersAccepted,
        events.RoundVoided,
    }
)
"""Acts that need two people unless the jurisdiction says otherwise."""


class Act(Struct, frozen=True):
    """An act to authorise."""

    name: str
    roles: tuple[HouseRole, ...]
    two: bool = False
    about: str = ""
    """The round, device or payment to which the authority is limited."""


ADOPTED: Final = Act("adopted", ("floor",), two=True)
"""Accepting a device's log that does not continue the record."""


def act_of(event: type[Event], *, two: bool | None = None, about: str = "") -> Act:
    """The act that brings this event. Raises ValueError if it is not one of the floor."""
    if "floor" not in WHO.get(event, ()):
        raise ValueError(f"a {event.__name__} is not an act of the floor")
    if two and "second" not in event.__struct_fields__:
        raise ValueError(f"a {event.__name__} has no second person")
    return Act(event.__name__, ("floor",), event in TWO if two is None else two, about)
