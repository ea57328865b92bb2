"""Who is signed in at a screen, and who has signed for an act there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from controller.api.contract.errors import Problem, denied
from controller.api.contract.messages import (
    Authorise,
    SignedFor,
    SignedIn,
    SignedOut,
    SignIn,
    SignsIn,
)
from controller.api.service.approvals import floor_act
from controller.api.service.context import ServedTable
from controller.api.service.screens import ScreenSession
from controller.people import Act, ActSigners, Denied, SignInSession, SignInState
from controller.people import sign_in as standing_of
from controller.procedure.model.events import Actor
from controller.table.loop import CaseChanged, InputRejected, QueueFull, TableStopped

ROLES: Final[tuple[SignsIn, ...]] = ("dealer", "surveillance", "technician")


async def sign_in(served: ServedTable, screen: ScreenSession, sent: SignIn) -> SignedIn:
    with told_of_the_record():
        answer = await served.desk.sign_in(
            sent.badge,
            sent.pin,
            screen.name,
            served.moment(),
            role=sent.role,
            relieve=sent.relieve,
        )
    if isinstance(answer, Denied):
        raise denied(answer)
    screen.badges[sent.role] = answer.badge
    return SignedIn(answer.badge, answer.actor.name, sent.role, answer.life)


async def sign_out(served: ServedTable, screen: ScreenSession) -> SignedOut:
    """Everybody who is signed in at this screen."""
    return await leave(served, screen, ROLES)


async def close(served: ServedTable, screen: ScreenSession) -> SignedOut:
    """The screen is closed. Whoever deals goes on dealing, at another screen."""
    return await leave(served, screen, ("surveillance", "technician"))


async def leave(
    served: ServedTable, screen: ScreenSession, roles: tuple[SignsIn, ...]
) -> SignedOut:
    """Whoever of these is signed in at this screen."""
    gone = []
    for role in roles:
        if signed_in(served, screen, role) is None:
            continue
        with told_of_the_record():
            answer = await served.desk.sign_out(screen.name, served.moment(), role=role)
        if isinstance(answer, Denied):
            raise denied(answer)
        screen.badges.pop(role, None)
        if answer:
            gone.append(role)
    return SignedOut(tuple(gone))


async def authorise(served: ServedTable, screen: ScreenSession, sent: Authorise) -> SignedFor:
    act = floor_act(served.table, sent.act)
    if sent.second and not act.two:
        raise Problem(400, "one_person", f"{act.name} takes no second person", "second: false")
    with told_of_the_record():
        answer = await served.desk.authorise(
            act, sent.badge, sent.pin, screen.name, served.moment(), second=sent.second
        )
    if isinstance(answer, Denied):
        raise denied(answer)
    if not sent.second:
        screen.sign_for(act)
    return SignedFor(answer.actor.name, answer.actor.role, act.two)


def signed_in(served: ServedTable, screen: ScreenSession, role: SignsIn) -> SignInSession | None:
    """Who showed badge and PIN here for that role, as long as it counts."""
    found = standing_of.session(served.desk.standing, role, screen.name)
    if found is None or found.screen != screen.name or found.badge != screen.badges.get(role):
        return None
    return found


def dealer_here(served: ServedTable, screen: ScreenSession) -> Actor | None:
    """Who deals, where this is the screen at which they do."""
    found = signed_in(served, screen, "dealer")
    return None if found is None else found.actor


async def people_news(served: ServedTable) -> Denied | None:
    """Before anybody's word counts: who was disabled meanwhile, or has lost the role, is signed out
    and has signed for nothing. Denied where nobody can know."""
    with told_of_the_record():
        return await served.desk.news(served.moment())


def take(served: ServedTable, screen: ScreenSession, act: Act) -> ActSigners | Denied:
    """Who has signed for the act here: once."""
    if not screen.signed_for(act):
        return Denied("not authorised")
    answer = served.desk.take(act, screen.name, served.moment())
    if isinstance(answer, ActSigners) or answer.why == "not authorised":  # it has lapsed
        screen.spend(act)
    return answer


@contextmanager
def spent_if_done(
    served: ServedTable, screen: ScreenSession, act: Act | None, former: SignInState
) -> Iterator[None]:
    """Badge and PIN stand for one act. Where that was not done and never will be, because nothing
    can be recorded, there is no room, or another case came first, they stand for the very same act
    until their minute is over. Whatever else an act comes to, they are used up. Where a record has
    failed nobody knows what it holds; but it takes nothing before the next start, which knows of
    no signature. `former`: how the desk stood before they were taken; `act`: None for what nobody
    has signed for."""
    try:
        yield
    except (TableStopped, QueueFull, CaseChanged):
        if act is not None:
            served.desk.give_back(act, screen.name, former, served.moment())
            screen.sign_for(act)
        raise


@contextmanager
def told_of_the_record() -> Iterator[None]:
    """That nothing can be recorded, as the answer to a request."""
    try:
        yield
    except TableStopped as problem:
        raise Problem(503, "stopped", str(problem)) from None
    except QueueFull as problem:
        raise Problem(429, "full", str(problem), wait=1) from None
    except InputRejected as problem:
        raise Problem(409, "cannot_take", str(problem)) from None
