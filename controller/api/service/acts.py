"""What people do at the table: sign in and out, acts, the floor's signatures, self-tests.

The dealer has signed in at the screen; the floor has signed there for this one act. Both are
checked twice: when an act is sent, and when the table processes it. By then the dealer may have
been relieved, or the case on the table may have changed: the act is rejected without side effects.

A signature is valid for exactly one act with exactly these fields: this ruling, this amount, this
device with its log in this state. Any other act needs another signature.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from controller.api.contract.errors import Problem, granted
from controller.api.contract.messages import (
    AdoptDevice,
    Adopted,
    Answer,
    Authorise,
    SignedFor,
    SignedIn,
    SignedOut,
    SignIn,
    SignsIn,
    Tested,
)
from controller.api.service.screens import ScreenSession
from controller.api.service.table_api import ServedTable, TableApi, table_problems
from controller.audit.format.records import RecordEntry
from controller.audit.replay import record_actor
from controller.people import ADOPTED, Act, ActSigners, Denied, SignInSession, SignInState, act_of
from controller.procedure.model import events
from controller.procedure.model.events import Event
from controller.procedure.model.game import DECISIONS, WHO, Game
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State
from controller.rules.cards import NAMES
from controller.rules.irregularities import Way
from controller.table.intake import EventAnswer
from controller.table.loop import (
    CaseChanged,
    NotDealing,
    QueueFull,
    RequestResult,
    TableStopped,
    kind_of,
)
from controller.table.running import RunningTable
from drivers.devices import CommandRefusedError, CommandUnansweredError, NotReady
from drivers.keys import same_person
from drivers.session import Supervisor
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages import FaultCode

ADOPT: Final = "DeviceAdopted"
AGAIN: Final = "ShuffleAgain"
NON_EVENT_ACTS: Final = (ADOPT, AGAIN)
"""Acts that need a signature and are no events of the procedure."""
SIGNED: Final = frozenset(kind for kind, roles in WHO.items() if "floor" in roles)
"""Events that the floor may bring."""
CASE_INDEPENDENT: Final[frozenset[type[Event]]] = frozenset(
    {
        events.TableOpened,
        events.TableClosed,
        events.ShuffleCalled,
        events.ShuffleStarted,
        events.ShuffleDone,
        events.ShoeLoaded,
        events.DecksChanged,
        events.PaymentCorrected,
    }
)
"""Acts that refer to no round, or whose fields name everything they refer to."""
_SHUFFLE_AGAIN: Final = Act(AGAIN, ("floor",))

StateCheck: TypeAlias = Callable[[State], None]
"""Raises if the act may not be done in this state."""
Submit: TypeAlias = Callable[[ActSigners, StateCheck], Awaitable[RequestResult]]


class ActOutcome(Struct, frozen=True):
    """A recorded act, accepted or refused by the procedure."""

    seq: int
    """Of its last record."""
    answers: tuple[Answer, ...]


async def submit_act(
    api: TableApi,
    screen: ScreenSession,
    sent: Mapping[str, Any],
    *,
    check_prompt: Callable[[], None] | None = None,
    floor: bool = False,
) -> ActOutcome:
    """Submit an act to the table. Raises Problem if nothing was done.

    `check_prompt` is called when the table processes the act, and raises CaseChanged if the prompt
    that it answers is gone. `floor`: only the floor's signature counts, not the dealer's session.
    """
    kind = kind_of_sent(sent)
    table = api.served.table

    def floors_act(state: State) -> Act | None:
        if kind is None:
            return None
        return act_for(kind, sent, state, table.parts.game, table.case)

    def submit(people: ActSigners, check: StateCheck) -> Awaitable[RequestResult]:
        def check_both(state: State) -> None:
            check(state)
            if check_prompt is not None:
                check_prompt()

        return table.act(sent, people.first, second=people.second, check=check_both)

    dealers = not floor and (kind is None or kind in DECISIONS or "dealer" in WHO[kind])
    return await _submit(api, screen, floors_act, submit, dealers=dealers)


async def shuffle_again(api: TableApi, screen: ScreenSession, *, floor: bool = False) -> ActOutcome:
    """Have the shuffler start again after it was inspected. `floor` as in submit_act(). Raises
    Problem."""

    def submit(people: ActSigners, check: StateCheck) -> Awaitable[RequestResult]:
        return api.served.table.shuffle_again(people.first, check=check)

    return await _submit(api, screen, lambda state: _SHUFFLE_AGAIN, submit, dealers=not floor)


async def _submit(
    api: TableApi,
    screen: ScreenSession,
    floors_act: Callable[[State], Act | None],
    submit: Submit,
    *,
    dealers: bool,
) -> ActOutcome:
    """Check the signers, submit the act and return its outcome. Raises Problem.

    `floors_act` returns what the floor signs for in a state; `dealers`: a dealer may do it."""
    served = api.served
    _check_running(served)
    unreadable = await refresh_people(served)
    wanted = floors_act(served.table.shown.state)
    former = served.desk.standing
    people = _signers(served, screen, wanted, unreadable, dealers=dealers)
    check_signer = _signer_check(served, screen, people)
    signed = wanted if people.first.role == "floor" else None

    def check(state: State) -> None:
        check_signer(state)
        if signed is not None and floors_act(state) != signed:
            raise CaseChanged

    with table_problems(), _signature_restored(served, screen, signed, former):
        done = await submit(people, check)
    return ActOutcome(done.appended[-1].seq, tuple(map(answer_of, done.answered)))


async def authorise(api: TableApi, screen: ScreenSession, sent: Authorise) -> SignedFor:
    """Sign for one act of the floor at this screen. Raises Problem."""
    served = api.served
    act = floor_act(served.table, sent.act)
    if sent.second and not act.two:
        raise Problem(400, "one_person", f"{act.name} takes no second person", "second: false")
    try:
        with table_problems():
            answer = granted(
                await served.desk.authorise(
                    act, sent.badge, sent.pin, screen.name, served.moment(), second=sent.second
                )
            )
    finally:
        api.views.notify()
    if not sent.second:
        screen.sign_for(act)
    return SignedFor(answer.actor.name, answer.actor.role, act.two)


async def adopt_device(
    api: TableApi, screen: ScreenSession, serial: str, sent: AdoptDevice
) -> Adopted:
    """Adopt a device's log with the signatures of two people. Raises Problem."""
    served = api.served
    supervisor = supervisor_of(served.table, serial)
    _check_running(served)
    unreadable = await refresh_people(served)
    people = granted(
        unreadable or _use_signatures(served, screen, _adoption(supervisor, skip=sent.skip))
    )
    assert people.second is not None  # ADOPTED takes two people
    names = (people.first.name, people.second.name)
    with table_problems():
        await supervisor.adopt(names, skip=sent.skip)
    return Adopted(served.table.devices.supervised[serial].config.device, serial, names)


def answer_of(one: EventAnswer) -> Answer:
    name, answer = type(one.event).__name__, one.answer
    if isinstance(answer, Decision):
        return Answer(name, True, answer.rows)
    return Answer(name, False, (), answer.why, answer.id, dict(answer.detail))


# --- who does it ------------------------------------------------------------------------------


def _check_running(served: ServedTable) -> None:
    """Checked before a signature is used. Raises Problem."""
    stopped = served.table.shown.stopped
    if served.stopping.is_set():
        stopped = "the table is closing"
    if stopped:
        raise Problem(503, "stopped", stopped)


async def refresh_people(served: ServedTable) -> Denied | None:
    """Apply changes of the people's file: people who were disabled or have lost their role are
    signed out, and their signatures void. Returns Denied if the file cannot be read."""
    with table_problems():
        return await served.desk.refresh_if_changed(served.moment())


def _signers(
    served: ServedTable,
    screen: ScreenSession,
    act: Act | None,
    unreadable: Denied | None,
    *,
    dealers: bool,
) -> ActSigners:
    """Returns who signed for the act here, or else the dealer. `unreadable`: why the floor's
    signatures cannot be checked; that does not stop the dealer. Raises Problem."""
    if act is not None:
        signed = screen.signed_for(act)
        found = (
            unreadable
            if unreadable is not None and signed
            else _use_signatures(served, screen, act)
        )
        if isinstance(found, ActSigners) or not dealers or found.why != "not authorised":
            return granted(found)
    dealer = screen.signed_in(served.desk, "dealer")
    if dealer is None or not dealers:
        raise Problem(
            403,
            "no_dealer",
            "this screen only watches: the dealer is not signed in here",
            "POST /api/v1/sign-in, and then this",
        )
    return ActSigners(dealer.actor, None)


def _signer_check(served: ServedTable, screen: ScreenSession, people: ActSigners) -> StateCheck:
    """Returns the check that is made when the table processes the act. It asks the table who deals:
    the table's state is ahead of the desk's."""
    table, first = served.table, people.first
    session = screen.signed_in(served.desk, "dealer")

    def check(state: State) -> None:
        deals = table.dealer
        if first.role == "floor":
            if deals is not None and same_person(deals.name, first.name):
                raise NotDealing
        elif session is None or deals is None or _place(deals) != _place(session):
            raise NotDealing

    return check


def _place(session: SignInSession) -> tuple[str, str]:
    return (session.badge, session.screen)


def _use_signatures(served: ServedTable, screen: ScreenSession, act: Act) -> ActSigners | Denied:
    """Use up the signatures for the act at this screen."""
    if not screen.signed_for(act):
        return Denied("not authorised")
    answer = served.desk.take(act, screen.name, served.moment())
    if isinstance(answer, ActSigners) or answer.why == "not authorised":  # it has expired
        screen.spend(act)
    return answer


@contextmanager
def _signature_restored(
    served: ServedTable, screen: ScreenSession, act: Act | None, former: SignInState
) -> Iterator[None]:
    """Give a used signature back if the act was certainly not done: the table is stopped, its queue
    is full, or the case has changed. It is then valid for the same act until its minute is over.
    `former`: the desk's state before the signature was used. `act` None: none was."""
    try:
        yield
    except (TableStopped, QueueFull, CaseChanged):
        if act is not None:
            served.desk.give_back(act, screen.name, former, served.moment())
            screen.sign_for(act)
        raise


# --- what the floor signs for -----------------------------------------------------------------


def floor_act(table: RunningTable, sent: Mapping[str, Any]) -> Act:
    """Returns the act that a badge and PIN are to sign for. Raises Problem if the floor does not
    sign for it."""
    name = sent.get("type")
    if name == ADOPT:
        check_fields(sent, ("serial", "skip"))
        serial, skip = sent.get("serial"), sent.get("skip", False)
        if not isinstance(serial, str) or not isinstance(skip, bool):
            raise Problem(
                400,
                "no_act",
                f"{ADOPT} says which device",
                "serial: its serial number; skip: true or false",
            )
        return _adoption(supervisor_of(table, serial), skip=skip)
    if name == AGAIN:
        check_fields(sent, ())
        return _SHUFFLE_AGAIN
    kind = kind_of_sent(sent)
    act = None
    if kind is not None:
        act = act_for(kind, sent, table.shown.state, table.parts.game, table.case)
    if act is None:
        allowed = ", ".join((*sorted(one.__name__ for one in SIGNED), *NON_EVENT_ACTS))
        raise Problem(400, "no_floor_act", f"the floor does not sign for {name}", allowed)
    return act


def kind_of_sent(sent: Mapping[str, Any]) -> type[Event] | None:
    """Returns the event that an act brings; None if only the vault knows it. Raises Problem."""
    with table_problems():
        return kind_of(sent)


def act_for(
    kind: type[Event], sent: Mapping[str, Any], s: State, game: Game, case: str
) -> Act | None:
    """Returns what the floor signs for; None for acts of others. `case`: the current hold."""
    if kind not in SIGNED:
        return None
    fields = {name: sent[name] for name in sorted(sent) if name != "type"}
    words = msgspec.json.encode(fields).decode() if fields else ""
    subject = "" if kind in CASE_INDEPENDENT else _case(kind, s, case)
    about = ": ".join(filter(None, (subject, words)))  # stored in the record
    return act_of(kind, two=takes_two(kind, sent, s, game), about=about)


def takes_two(kind: type[Event], sent: Mapping[str, Any], s: State, game: Game) -> bool | None:
    """Returns whether the game requires a second person; None: as for every act of this kind."""
    if kind is events.FloorRuled:
        return bool(s.holds) and game.needs_two(s.holds[-1].what, Way(sent["way"]))
    return None


def _case(kind: type[Event], s: State, name: str) -> str:
    """The case before the floor, as text. It contains face-up cards only. `name` distinguishes
    two holds that look the same."""
    parts = [f"round {s.round}"]
    if s.holds:
        held = s.holds[-1]
        parts.append(held.what.value)
        parts += [held.device] if held.device else []
        parts += [f"seat {held.seat}"] if held.seat else []
        parts += [NAMES[held.card]] if held.card >= 0 else []
        parts += [name] if name else []
    elif s.due and kind is events.PaymentApproved:
        due = s.due[0]
        hand = f"hand {due.hand}, " if due.hand > 0 else ""  # hands of a split may win the same
        parts.append(f"seat {due.seat}, {hand}{due.bet}, {due.outcome} {due.moves}")
    return ", ".join(parts)


def _adoption(supervisor: Supervisor, *, skip: bool) -> Act:
    """The adoption of a log in its current state. Raises Problem if the log is not held."""
    held, serial = supervisor.held, supervisor.wanted.serial
    if held is None:
        raise Problem(
            409,
            "nothing_held",
            f"{serial} waits for nobody: it is {supervisor.state.value}",
            "a device whose log is held",
        )
    verdict = held.verdict.name.lower()
    log = f"epoch {held.epoch}, {held.oldest} to {held.head}"
    return Act(
        ADOPTED.name,
        ADOPTED.roles,
        ADOPTED.two,
        f"{serial}: {verdict}, {log}{', skipped' if skip else ''}",
    )


def supervisor_of(table: RunningTable, serial: str) -> Supervisor:
    try:
        return table.supervisor(serial)
    except LookupError:
        raise Problem(
            404, "no_device", "this table has no such device", ", ".join(table.devices.supervised)
        ) from None


def check_fields(sent: Mapping[str, Any], fields: tuple[str, ...]) -> None:
    """Raises Problem if the act has a field that is not among these."""
    unknown = sorted(set(sent) - {"type", *fields})
    if unknown:
        raise Problem(
            400,
            "no_act",
            f"{sent['type']} has no {unknown[0][:40]!r}",
            ", ".join(fields) or "no fields",
        )


ROLES: Final[tuple[SignsIn, ...]] = ("dealer", "surveillance", "technician")


async def sign_in(api: TableApi, screen: ScreenSession, sent: SignIn) -> SignedIn:
    """Sign a person in at the screen. Raises Problem."""
    desk, now = api.served.desk, api.served.moment()
    with _at_desk(api):
        answer = granted(
            await desk.sign_in(
                sent.badge, sent.pin, screen.name, now, role=sent.role, relieve=sent.relieve
            )
        )
        screen.badges[sent.role] = answer.badge
    return SignedIn(answer.badge, answer.actor.name, sent.role, answer.life)


async def sign_out(
    api: TableApi, screen: ScreenSession, roles: tuple[SignsIn, ...] = ROLES
) -> SignedOut:
    """Sign out the people of these roles who are signed in at the screen. Raises Problem."""
    desk, gone = api.served.desk, []
    with _at_desk(api):
        for role in roles:
            if screen.signed_in(desk, role) is None:
                continue
            answer = granted(await desk.sign_out(screen.name, api.served.moment(), role=role))
            screen.badges.pop(role, None)
            if answer:
                gone.append(role)
    return SignedOut(tuple(gone))


async def close_screen(api: TableApi, screen: ScreenSession) -> SignedOut:
    """Close a screen, even if its sign-outs cannot be recorded. The dealer stays signed in, and
    can continue at another screen. Raises Problem."""
    try:
        return await sign_out(api, screen, ("surveillance", "technician"))
    finally:
        api.screens.close(screen)
        api.views.notify()


@contextmanager
def _at_desk(api: TableApi) -> Iterator[None]:
    """The desk's state changes only after the record, so the views are notified at the end."""
    try:
        with table_problems():
            yield
    finally:
        api.views.notify()


TEST: Final = "SelfTest"
"""The type of the act that a page sends for it."""
TESTED: Final = "self test"
MEANWHILE: Final = "the table was opened meanwhile"
NO_ANSWER: Final = "not answered"
NOTHING_FOUND: Final = FaultCode.NONE.name.lower()
_CODES: Final[Mapping[type[Exception], str]] = MappingProxyType(
    {
        CommandRefusedError: "test_refused",
        CommandUnansweredError: "not_tested",
        LinkBusy: "test_busy",
        NotReady: "not_tested",
    }
)
"""The code of the problem if the device does not test itself."""


async def run_self_test(served: ServedTable, screen: ScreenSession, serial: str) -> Tested:
    """Have a device test itself, which takes up to 10 s and moves no card. Raises Problem if this
    person may not, or if the device does not answer; the latter is recorded too."""
    supervisor_of(served.table, serial)
    device = served.table.devices.supervised[serial]
    granted(await refresh_people(served))
    technician = screen.signed_in(served.desk, "technician")
    if technician is None:
        what = "no technician is signed in here"
        raise Problem(403, "no_technician", what, "POST /api/v1/sign-in, and then this")
    if not served.table.shut:
        what = "the table is open: devices are tested while it is closed"
        raise Problem(409, "table_open", what)

    async def record(found: str, *details: str) -> None:
        said = {"what": TESTED, "device": device.config.device, "serial": serial}
        data = {**said, "found": found, "detail": "; ".join(filter(None, details))}
        with table_problems():
            await served.table.record(RecordEntry("person", record_actor(technician.actor), data))

    try:
        reply = await device.supervisor.driver.selftest()
    except tuple(_CODES) as problem:
        await record(NO_ANSWER, str(problem))
        raise Problem(409, _CODES[type(problem)], str(problem)) from None
    found = reply.code.name.lower()
    await record(found, str(reply.arg or ""), _meanwhile(served))
    return Tested(device.config.device, serial, technician.name, found, reply.arg)


def _meanwhile(served: ServedTable) -> str:
    return "" if served.table.shut else MEANWHILE
