"""A dealer takes another one's place: who signs in, and what the procedure is told of it, are one
thing for the record."""

from __future__ import annotations

from msgspec.structs import replace

from controller.audit.records import Entry
from controller.procedure.events import Actor, DealerRelieved
from controller.procedure.states import Step
from controller.table.hearing import Heard, Now
from controller.table.items import Make
from controller.table.person_entries import SignedIn
from drivers.people import same_person


def relieves(said: SignedIn, dealt: str) -> bool:
    """Whether it is another one than dealt before: `dealt`, who may have signed out meanwhile."""
    return bool(said.relieved or (dealt and not same_person(dealt, said.name)))


def relief(signed_in: Entry) -> Make:
    """It is told to the procedure where the table is open: cards may have to be burned for it."""

    def make(now: Now) -> Heard:
        note = replace(signed_in, round=now.state.round)
        if now.state.step is Step.CLOSED:
            return Heard(notes=(note,))
        actor = Actor("dealer", signed_in.by.name)
        return Heard((DealerRelieved(actor),), notes=(note,))

    return make
