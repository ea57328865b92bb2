"""Dealer handover: a sign-in and the dealer's relief in the procedure are one atomic append."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from controller.audit.format.records import RecordEntry
from controller.people import SignInData, SignInSession, SignOutData
from controller.procedure.model.events import Actor, DealerRelieved
from controller.procedure.model.state import Step
from controller.table.intake import TableInput, TableSnapshot
from controller.table.loop.requests import InputFactory
from drivers.keys import same_person


def is_relief(signed_in: SignInData, dealt: str) -> bool:
    """Whether the dealer changes. `dealt` is the dealer before, who may have signed out."""
    return bool(signed_in.relieved or (dealt and not same_person(dealt, signed_in.name)))


def relief_input(signed_in: RecordEntry) -> InputFactory:
    """The sign-in and, at an open table, the procedure's event: it may require a burn."""

    def make(now: TableSnapshot) -> TableInput:
        note = replace(signed_in, round=now.state.round)
        if now.state.step is Step.CLOSED:
            return TableInput(notes=(note,))
        actor = Actor("dealer", signed_in.by.name)
        return TableInput((DealerRelieved(actor),), notes=(note,))

    return make


def dealer_after(
    dealer: SignInSession | None, entries: Iterable[RecordEntry]
) -> SignInSession | None:
    """The dealer's session after these recorded entries. The sign-in service is updated later, and
    other acts are processed in between."""
    for entry in entries:
        match entry.data:
            case SignInData(role="dealer", name=name, badge=badge, screen=screen):
                dealer = SignInSession("dealer", name, badge, screen, 0)
            case SignOutData(role="dealer"):
                dealer = None
    return dealer
