"""Acts: whose they are, and what came of them.

Whoever deals has signed in at the screen; the floor has signed for the one act there. Nobody can
say in a message who they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from controller.api.answers import Acted, AdoptDevice, Adopted, Answer
from controller.api.errors import Problem, denied
from controller.api.floor_acts import (
    act_for,
    adoption,
    again,
    kind_of_sent,
    supervisor_of,
)
from controller.api.looking import Looking
from controller.api.screens import Screen
from controller.api.served import Serving
from controller.api.signing import dealer_here, take, told_of_the_record
from controller.audit.sealing import SealProblem
from controller.procedure.row import Decision
from controller.procedure.states import State
from controller.procedure.who import DECISIONS, WHO
from controller.table.acts import Act
from controller.table.items import Done
from controller.table.people_answers import Denied, Taken
from controller.table.sent_acts import BadAct
from controller.table.taking import Answered
from controller.table.vault import NotInVault
from drivers.adopting import NothingHeld
from drivers.keeping import NotKept
from drivers.people import TwoPeopleNeeded

_NOT_KNOWN: Final = "the card that lies face down is not known: call the floor"


async def act(served: Serving, looking: Looking, screen: Screen, sent: Mapping[str, Any]) -> Acted:
    """Recorded, whether it is taken or refused. Problem: nothing has happened."""
    kind = kind_of_sent(sent)
    table = served.table
    _goes(served)
    floors = None if kind is None else act_for(kind, sent, table.shown.state, table.parts.game)
    dealers = kind is None or kind in DECISIONS or "dealer" in WHO[kind]
    people = _people(served, screen, floors, dealers=dealers)

    def still(state: State) -> bool:
        """The floor has signed for one case; what waits at the table may bring another one."""
        if kind is None or people.first.role != "floor":
            return True
        return act_for(kind, sent, state, table.parts.game) == floors

    with told_of_the_record(), _told_of_the_act():
        done = await table.act(sent, people.first, second=people.second, still=still)
    return acted(done, looking)


async def shuffle_again(served: Serving, looking: Looking, screen: Screen) -> Acted:
    _goes(served)
    people = _people(served, screen, again(), dealers=True)
    with told_of_the_record(), _told_of_the_act():
        done = await served.table.shuffle_again(people.first)
    return acted(done, looking)


async def adopt(served: Serving, screen: Screen, serial: str, sent: AdoptDevice) -> Adopted:
    supervisor = supervisor_of(served.table, serial)
    _goes(served)
    people = take(served, screen, adoption(supervisor, skip=sent.skip))
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
    except NotKept as problem:
        raise Problem(503, "not_kept", str(problem)) from None
    return Adopted(served.table.fittings.served[serial].fitted.device, serial, names)


def acted(done: Done, looking: Looking) -> Acted:
    answers = tuple(answer_of(one) for one in done.answered)
    return Acted(done.appended[-1].seq, answers, looking.now().view)


def answer_of(one: Answered) -> Answer:
    name, answer = type(one.event).__name__, one.answer
    if isinstance(answer, Decision):
        return Answer(name, True, answer.rows)
    return Answer(name, False, (), answer.why, answer.id)


# --- who does it ------------------------------------------------------------------------------


def _people(served: Serving, screen: Screen, floors: Act | None, *, dealers: bool) -> Taken:
    """Who has signed for it here, or else who deals here. Problem."""
    if floors is not None:
        taken = take(served, screen, floors)
        if isinstance(taken, Taken):
            return taken
        if not dealers or taken.why != "not authorised":
            raise denied(taken)
    dealer = dealer_here(served, screen)
    if dealer is None or not dealers:
        what = "this screen only watches: the dealer is not signed in here"
        raise Problem(403, "no_dealer", what, "POST /api/v1/sign-in, and then this")
    return Taken(dealer, None)


def _goes(served: Serving) -> None:
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
    except BadAct as problem:
        raise Problem(400, "no_act", str(problem)) from None
    except (NotInVault, SealProblem):
        raise Problem(409, "not_known", _NOT_KNOWN) from None
