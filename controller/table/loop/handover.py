"""A dealer takes another one's place: who signs in, and what the procedure is told of it, are one
thing for the record. Who deals is asked of what was recorded last."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from controller.audit.format.records import RecordEntry
from controller.people import SignIn, SignInSession, SignOut
from controller.procedure.model.events import Actor, DealerRelieved
from controller.procedure.model.state import Step
from controller.table.intake import TableInput, TableSnapshot
from controller.table.loop.requests import InputFactory
from drivers.keys import same_person


def is_relief(said: SignIn, dealt: str) -> bool:
    """Whether it is another one than dealt before: `dealt`, who may have signed out meanwhile."""
    return bool(said.relieved or (dealt and not same_person(dealt, said.name)))


def relief_input(signed_in: RecordEntry) -> InputFactory:
    """It is told to the procedure where the table is open: cards may have to be burned for it."""

    def make(now: TableSnapshot) -> TableInput:
        note = replace(signed_in, round=now.state.round)
        if now.state.step is Step.CLOSED:
            return TableInput(notes=(note,))
        actor = Actor("dealer", signed_in.by.name)
        return TableInput((DealerRelieved(actor),), notes=(note,))

    return make


def dealer_after(
    deals: SignInSession | None, entries: Iterable[RecordEntry]
) -> SignInSession | None:
    """Who deals, and at which screen, once these stand in the record. The desk knows of it a moment
    later, in which other acts have had their turn."""
    for entry in entries:
        match entry.data:
            case SignIn(role="dealer", name=name, badge=badge, screen=screen):
                deals = SignInSession("dealer", name, badge, screen, 0)
            case SignOut(role="dealer"):
                deals = None
    return deals
