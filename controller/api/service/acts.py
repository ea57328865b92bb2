"""Acts: whose they are, and what came of them.

Whoever deals has signed in at the screen; the floor has signed for the one act there. Nobody can
say in a message who they are.

Both are looked at twice: when an act is sent, and when its turn at the table has come. At its turn
the dealer who sent it deals still, and at that screen: not one who has been relieved, has signed
out, or has signed in elsewhere meanwhile. The floor has signed for what stands there then, and does
not deal. Else nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from controller.api.contract.errors import Problem, denied
from controller.api.contract.messages import Acted, AdoptDevice, Adopted, Answer
from controller.api.service.approvals import act_for, adoption, again, kind_of_sent, supervisor_of
from controller.api.service.context import ServedTable
from controller.api.service.screens import ScreenSession
from controller.api.service.sign_in import (
    dealer_here,
    people_news,
    signed_in,
    spent_if_done,
    take,
    told_of_the_record,
)
from controller.api.service.views import ViewCache
from controller.audit.format.hole_cards import SealProblem
from controller.people import Act, ActSigners, Denied, SignInSession
from controller.procedure.model.permissions import DECISIONS, WHO
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State
from controller.table.intake import EventAnswer
from controller.table.loop import BadAct, CaseChanged, NotDealing, RequestResult
from controller.table.memory import NotInVault
from drivers.keys import TwoPeopleNeeded, same_person
from drivers.session import NothingHeld, StoreFailed

_NOT_KNOWN: Final = "the card that lies face down is not known: call the floor"


def at_any_time() -> None:
    """It is about nothing that was shown."""


async def act(
    served: ServedTable,
    views: ViewCache,
    screen: ScreenSession,
    sent: Mapping[str, Any],
    *,
    asked: Callable[[], None] = at_any_time,
    floor: bool = False,
) -> Acted:
    """Recorded, whether it is taken or refused. `asked` raises MovedOn at its turn where what it
    answers is not asked any more; `floor`: it is the floor's that has signed for it here, and
    becomes nobody else's. Problem: nothing has happened."""
    kind = kind_of_sent(sent)
    table = served.table
    _goes(served)
    news = await people_news(served)

    def floors_act(state: State) -> Act | None:
        if kind is None:
            return None
        return act_for(kind, sent, state, table.parts.game, table.case)

    floors = floors_act(table.shown.state)
    dealers = not floor and (kind is None or kind in DECISIONS or "dealer" in WHO[kind])
    former = served.desk.standing
    people = _people(served, screen, floors, news, dealers=dealers)
    theirs = _theirs(served, screen, people)
    signed = floors if people.first.role == "floor" else None

    def still(state: State) -> None:
        theirs(state)
        asked()
        if signed is not None and floors_act(state) != signed:
            raise CaseChanged

    with (
        told_of_the_record(),
        _told_of_the_act(),
        spent_if_done(served, screen, signed, former),
    ):
        done = await table.act(sent, people.first, second=people.second, still=still)
    return acted(done, views)


async def shuffle_again(
    served: ServedTable, views: ViewCache, screen: ScreenSession, *, floor: bool = False
) -> Acted:
    _goes(served)
    news = await people_news(served)
    former = served.desk.standing
    people = _people(served, screen, again(), news, dealers=not floor)
    theirs = _theirs(served, screen, people)
    signed = again() if people.first.role == "floor" else None
    with (
        told_of_the_record(),
        _told_of_the_act(),
        spent_if_done(served, screen, signed, former),
    ):
        done = await served.table.shuffle_again(people.first, still=theirs)
    return acted(done, views)


async def adopt(
    served: ServedTable, screen: ScreenSession, serial: str, sent: AdoptDevice
) -> Adopted:
    supervisor = supervisor_of(served.table, serial)
    _goes(served)
    news = await people_news(served)
    people = news or take(served, screen, adoption(supervisor, skip=sent.skip))
    if isinstance(people, Denied):
        raise denied(people)
    assert people.second is not None  # it takes two
    names = (people.first.name, people.second.name)
    try:
        await supervisor.adopt(names, skip=sent.skip)
    except TwoPeopleNeeded as problem:
        raise Problem(403, "same_person", str(problem)) from None
    except NothingHeld as problem:
        raise Problem(409, "nothing_held", str(problem)) from None
    except StoreFailed as problem:
        raise Problem(503, "not_kept", str(problem)) from None
    return Adopted(served.table.fittings.served[serial].fitted.device, serial, names)


def acted(done: RequestResult, views: ViewCache) -> Acted:
    answers = tuple(answer_of(one) for one in done.answered)
    return Acted(done.appended[-1].seq, answers, views.now().view)


def answer_of(one: EventAnswer) -> Answer:
    name, answer = type(one.event).__name__, one.answer
    if isinstance(answer, Decision):
        return Answer(name, True, answer.rows)
    return Answer(name, False, (), answer.why, answer.id, dict(answer.detail))


# --- who does it ------------------------------------------------------------------------------


def _people(
    served: ServedTable,
    screen: ScreenSession,
    floors: Act | None,
    news: Denied | None,
    *,
    dealers: bool,
) -> ActSigners:
    """Who has signed for it here, or else who deals here. `news`: why nobody knows whether the
    floor may still sign; whoever deals goes on. Problem."""
    if floors is not None:
        signed = screen.signed_for(floors)
        taken = news if news is not None and signed else take(served, screen, floors)
        if isinstance(taken, ActSigners):
            return taken
        if not dealers or taken.why != "not authorised":
            raise denied(taken)
    dealer = dealer_here(served, screen)
    if dealer is None or not dealers:
        what = "this screen only watches: the dealer is not signed in here"
        raise Problem(403, "no_dealer", what, "POST /api/v1/sign-in, and then this")
    return ActSigners(dealer, None)


def _theirs(
    served: ServedTable, screen: ScreenSession, people: ActSigners
) -> Callable[[State], None]:
    """Whether it is theirs to do when its turn has come. The table is asked who deals: it knows
    before the desk does, and nothing is between what it knows and what it does."""
    table, first = served.table, people.first
    session = signed_in(served, screen, "dealer")

    def theirs(state: State) -> None:
        deals = table.deals
        if first.role == "floor":
            if deals is not None and same_person(deals.name, first.name):
                raise NotDealing
        elif session is None or deals is None or _place(deals) != _place(session):
            raise NotDealing

    return theirs


def _place(session: SignInSession) -> tuple[str, str]:
    return (session.badge, session.screen)


def _goes(served: ServedTable) -> None:
    """Nothing is spent on what cannot be done. Problem."""
    stopped = served.table.shown.stopped
    if served.stopping.is_set():
        stopped = "the table is closing"
    if stopped:
        raise Problem(503, "stopped", stopped)


@contextmanager
def _told_of_the_act() -> Iterator[None]:
    """Why it cannot be, as the answer to a request."""
    try:
        yield
    except NotDealing as problem:
        what = "POST /api/v1/sign-in, and then this"
        raise Problem(403, "no_dealer", str(problem), what) from None
    except CaseChanged as problem:
        raise Problem(409, "moved_on", str(problem)) from None
    except BadAct as problem:
        raise Problem(400, "no_act", str(problem)) from None
    except (NotInVault, SealProblem):
        raise Problem(409, "not_known", _NOT_KNOWN) from None
