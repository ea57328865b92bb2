"""What takes a badge and a PIN each time: acts of the floor, alone or with a second person."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from controller.people.person import HouseRole
from controller.procedure.model import events
from controller.procedure.model.events import Event
from controller.procedure.model.permissions import WHO

SECONDS: Final[tuple[HouseRole, ...]] = ("floor", "dealer", "surveillance")
"""Who may be the second person, which is what the procedure takes for one."""
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
"""Two people, unless whoever asks says otherwise of the house."""


class Act(Struct, frozen=True):
    """Something that somebody wants to do, once."""

    name: str
    roles: tuple[HouseRole, ...]
    two: bool = False
    about: str = ""
    """Which round, device or payment: the authority is for that one only."""


ADOPTED: Final = Act("adopted", ("floor",), two=True)
"""A device's log that does not continue the record is taken up where it stands."""


def act_of(event: type[Event], *, two: bool | None = None, about: str = "") -> Act:
    """The act that brings this event. ValueError for one that is not the floor's."""
    if "floor" not in WHO.get(event, ()):
        raise ValueError(f"a {event.__name__} is no act of the floor")
    if two and "second" not in event.__struct_fields__:
        raise ValueError(f"a {event.__name__} has no second person")
    return Act(event.__name__, ("floor",), event in TWO if two is None else two, about)
