"""Where people say who they are: one after the other, each recorded before it counts.

    desk = PeopleDesk(PeopleFile(file, keys), record, boot, fold(records), shut=closed)
    answer = await desk.sign_in("D-17", "402931", "dealer", moment)
    void = act_of(RoundVoided)
    answer = await desk.authorise(void, "F-2", "775010", "dealer", moment)
    answer = await desk.authorise(void, "D-17", "402931", "dealer", moment, second=True)
    taken = desk.take(void, "dealer", moment)        # both people, once
    await desk.close()

Whatever `record` raises goes on to whoever asked, and then nothing has happened. Who gives up
waiting does not call off a guess: it is recorded and counted all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeVar

import structlog
from msgspec import Struct

from controller.audit.format.records import CONTROLLER, Moment, RecordEntry
from controller.people import sign_in as standing_of
from controller.people.approvals import SECONDS, Act
from controller.people.directory import FileFingerprint, PeopleFile
from controller.people.person import HouseRole, People
from controller.people.pin_check import PinCheck, check_pin_of, read_lock, renew_verifier
from controller.people.pins import COST, CannotHash, Cost
from controller.people.records import (
    Authorisation,
    RefusalReason,
    RoleRefusal,
    SignIn,
    SignInDelayed,
    SignInEntry,
    SignInRefused,
    SignOut,
    SignOutReason,
    entry_for,
)
from controller.people.sign_in import (
    AUTHORITY_SECONDS,
    NO_SIGN_INS,
    SESSION_SECONDS,
    SignInSession,
    SignInState,
    one_person,
)
from controller.procedure.model.events import Actor
from drivers.keys import KeyProblem

DenialReason: TypeAlias = (
    RoleRefusal
    | Literal["not right", "wait", "busy", "unreadable", "not authorised", "no second", "closing"]
)
DENIAL_TEXTS: Final[Mapping[DenialReason, str]] = MappingProxyType(
    {
        "not right": "badge or PIN is not right",
        "wait": "too many wrong PINs: wait",
        "busy": "one at a time: try again",
        "unreadable": "badges and PINs cannot be looked at now: call a technician",
        "not theirs": "this badge is for other work",
        "table open": "the table is open: technicians sign in while it is closed",
        "another dealer": "another dealer is signed in: relieve them, or they sign out",
        "deals here": "whoever deals here cannot be the floor too",
        "no first person": "the first person signs for it before the second",
        "same person": "that is the same person: another one is needed",
        "not authorised": "nobody has signed for it, or that is too long ago",
        "no second": "a second person has to sign for it",
        "closing": "the controller is closing",
    }
)


class SignInResult(Struct, frozen=True):
    """It is them, and it stands in the record."""

    actor: Actor
    badge: str
    screen: str
    life: int
    """Seconds; 0 without an end."""
    relieved: Actor | None = None
    """Whose place a dealer takes."""


class Denied(Struct, frozen=True):
    """Nothing came of it. Of an unknown badge, a wrong PIN and a disabled badge nobody is told
    which of them it was."""

    why: DenialReason
    wait: int = 0
    """Seconds until a PIN is looked at again."""

    def __str__(self) -> str:
        words = DENIAL_TEXTS[self.why]
        return f"{words} ({self.wait} s)" if self.wait else words


class ActSigners(Struct, frozen=True):
    """Who does an act."""

    first: Actor
    second: Actor | None


MAX_WAITING: Final = 8
"""Screens at which somebody waits for an answer; each may ask one thing at a time."""
CHECK_TIMEOUT: Final = 10.0
"""Seconds for a file that is read, or a PIN that is looked at. Both take a fraction of one."""

_log: Final = structlog.get_logger()
_T = TypeVar("_T")

AppendEntry: TypeAlias = Callable[[RecordEntry], Awaitable[object]]


class PeopleUnavailable(Exception):
    """Neither badge nor PIN can be looked at now."""


class PeopleDesk:
    """One table's. `standing` is for anybody to read."""

    def __init__(
        self,
        file: PeopleFile,
        record: AppendEntry,
        boot: str,
        standing: SignInState = NO_SIGN_INS,
        *,
        shut: Callable[[], bool],
        cost: Cost = COST,
    ) -> None:
        """`record` returns when the entry is on the disk. `shut`: whether the table is closed."""
        self.standing = standing
        self.shut = shut
        self._file = file
        self._record = record
        self._boot = boot
        self._cost = cost
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "people")
        self._late: asyncio.Future[Any] | None = None
        """What the thread has not come back from."""
        self._asking: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._told = ""
        """The trouble that stands in the record."""
        self._people: People | None = None
        """Who there is, as last read; and of which file that was."""
        self._seen: FileFingerprint = None
        self._closed = False

    # --- what people ask for --------------------------------------------------------------

    async def sign_in(
        self,
        badge: str,
        pin: str,
        screen: str,
        now: Moment,
        *,
        role: HouseRole = "dealer",
        relieve: bool = False,
    ) -> SignInResult | Denied:
        """A dealer at the table, surveillance or a technician at a screen, the latter while the
        table is closed. `relieve`: a dealer takes the place of another one, which the procedure
        must allow now. ValueError for the floor, whose every act takes badge and PIN."""
        if role not in SESSION_SECONDS:
            raise ValueError(f"the {role} does not sign in: each act takes badge and PIN")
        return await self._ask(
            screen, lambda: self._sign_in(badge, pin, screen, now, role, relieve)
        )

    async def authorise(
        self, act: Act, badge: str, pin: str, screen: str, now: Moment, *, second: bool = False
    ) -> SignInResult | Denied:
        """For one act, once, within ACT_LIFE; `second`: as its second person."""
        if second and not act.two:
            raise ValueError(f"{act.name} takes no second person")
        return await self._ask(
            screen, lambda: self._authorise(act, badge, pin, screen, now, second)
        )

    def take(self, act: Act, screen: str, now: Moment) -> ActSigners | Denied:
        """Who does the act: nobody can do it again with the same badge and PIN. Whoever has signed
        for it counts by the file as it was read last: ask news() first."""
        self._at(now)
        if self._people is not None:
            self.standing = standing_of.without_lapsed(self.standing, self._people)
        first = standing_of.authority(self.standing, act, screen, second=False)
        if first is None:
            return Denied("not authorised")
        if first.role == "floor" and standing_of.deals(self.standing, first):
            return Denied("deals here")
        second = standing_of.authority(self.standing, act, screen, second=True)
        if act.two:
            if second is None:
                return Denied("no second")
            if one_person(first, second.name, second.badge):
                return Denied("same person")
        self.standing = standing_of.without_used(self.standing, act, screen)
        return ActSigners(first.actor, second.actor if act.two and second is not None else None)

    def give_back(self, act: Act, screen: str, former: SignInState, now: Moment) -> None:
        """What was taken is not used up: the act was never done, and whoever asked has been told
        so. `former`: before it was taken."""
        self.standing = standing_of.with_given_back(self.standing, former, act, screen)
        self._at(now)

    async def sign_out(
        self, screen: str, now: Moment, *, role: HouseRole = "dealer", why: SignOutReason = "asked"
    ) -> bool | Denied:
        """Whether anybody was signed in. `why`: "closed" when the table closes."""
        return await self._ask(screen, lambda: self._sign_out(screen, now, role, why))

    async def look_again(self, now: Moment) -> int | Denied:
        """Whoever was disabled, or lost the role, is signed out: how many. What they had signed for
        lapses."""
        return await self._ask("", lambda: self._look_again(now))

    def time_goes_on(self, now: Moment) -> tuple[SignInSession, ...]:
        """Those whose time is up since somebody last asked: they are signed in no more."""
        before = self.standing.sessions
        self._at(now)
        return tuple(one for one in before if one not in self.standing.sessions)

    async def news(self, now: Moment) -> Denied | None:
        """As look_again(), at once and for whoever is about to do something, where the file is
        another one than when it was read last. Whose time is up is gone in any case."""
        self._at(now)
        if self._is_read():
            return None

        async def read() -> Denied | None:
            try:
                await self._look_again(now, anew=False)
            except PeopleUnavailable as problem:
                await self._tell(str(problem))
                return Denied("unreadable")
            return None

        return Denied("closing") if self._closed else await asyncio.shield(self._begin(read()))

    async def close(self) -> None:
        """What was begun is recorded; nobody is asked any more."""
        self._closed = True
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._thread.shutdown(wait=self._late is None or self._late.done())

    # --- one after the other --------------------------------------------------------------

    async def _ask(self, screen: str, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T | Denied:
        """What is begun goes on to its end, whoever waits for it."""
        if self._closed:
            return Denied("closing")
        if screen in self._asking or len(self._asking) >= MAX_WAITING:
            return Denied("busy")
        self._asking.add(screen)

        async def asked() -> _T | Denied:
            try:
                return await make()
            except PeopleUnavailable as problem:
                await self._tell(str(problem))
                return Denied("unreadable")
            finally:
                self._asking.discard(screen)

        return await asyncio.shield(self._begin(asked()))

    def _begin(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _sign_in(
        self, badge: str, pin: str, screen: str, now: Moment, role: HouseRole, relieve: bool
    ) -> SignInResult | Denied:
        async with self._turn:
            proof = await self._look(badge, pin, screen, now, role)
            if isinstance(proof, Denied):
                return proof
            person = proof.person
            why = standing_of.sign_in_refusal(
                self.standing, person, role, relieve=relieve, shut=self.shut()
            )
            if why is not None:
                return await self._refuse(proof, screen, role, why)
            at_table = standing_of.dealer(self.standing) if role == "dealer" else None
            if standing_of.deals(self.standing, person):
                at_table = None  # back, or at another screen
            life = SESSION_SECONDS[role]
            relieved = at_table.name if at_table is not None else ""
            await self._say(
                SignIn(role, person.name, person.badge, proof.lock, screen, life, relieved)
            )
        self._renew_if_stale(proof, pin, now)
        gone = None if at_table is None else at_table.actor
        return SignInResult(Actor(role, person.name), person.badge, screen, life, gone)

    async def _authorise(
        self, act: Act, badge: str, pin: str, screen: str, now: Moment, second: bool
    ) -> SignInResult | Denied:
        async with self._turn:
            proof = await self._look(badge, pin, screen, now, act.name)
            if isinstance(proof, Denied):
                return proof
            person = proof.person
            roles = SECONDS if second else act.roles
            role = next((one for one in roles if one in person.roles), None)
            why = standing_of.act_refusal(self.standing, act, person, role, screen, second=second)
            if role is None or why is not None:
                return await self._refuse(proof, screen, act.name, why or "not theirs")
            who = (role, person.name, person.badge, proof.lock, screen)
            await self._say(Authorisation(*who, act.name, act.about, second, AUTHORITY_SECONDS))
        self._renew_if_stale(proof, pin, now)
        return SignInResult(Actor(role, person.name), person.badge, screen, AUTHORITY_SECONDS)

    async def _sign_out(
        self, screen: str, now: Moment, role: HouseRole, why: SignOutReason
    ) -> bool:
        async with self._turn:
            self._at(now)
            found = standing_of.session(self.standing, role, screen)
            if found is None:
                return False
            await self._say(SignOut(role, found.name, found.badge, found.screen, why))
            return True

    async def _look_again(self, now: Moment, *, anew: bool = True) -> int:
        async with self._turn:
            if not anew and self._is_read():
                return 0
            found = self._file.print_of()
            people = await self._in_thread(self._file.read)
            self._at(now)
            return await self._learn(people, found)

    async def _learn(self, people: People, found: FileFingerprint) -> int:
        """The file as it was just read. Whoever may not be here is out: how many."""
        self._people = people
        self.standing = standing_of.without_lapsed(self.standing, people)
        gone = [one for one in self.standing.sessions if not standing_of.counts(one, people)]
        for one in gone:
            await self._say(SignOut(one.role, one.name, one.badge, one.screen, "disabled"))
        self._seen = found
        return len(gone)

    def _is_read(self) -> bool:
        return self._seen is not None and self._file.print_of() == self._seen

    # --- badges and PINs ------------------------------------------------------------------

    async def _look(
        self, badge: str, pin: str, screen: str, now: Moment, wanted: str
    ) -> PinCheck | Denied:
        """The turn is ours. Too early, nothing is looked at; a wrong one counts."""
        found = self._file.print_of()
        people, lock = await self._in_thread(lambda: read_lock(self._file, badge))
        self._at(now)
        await self._learn(people, found)
        wait = standing_of.wait_seconds(self.standing, lock, screen)
        if wait:
            if not standing_of.delay_is_recorded(self.standing, lock, screen):
                await self._say(SignInDelayed(lock, screen, wait))
            return Denied("wait", wait)
        proof = await self._in_thread(lambda: check_pin_of(people, badge, pin))
        self._told = ""
        if proof.why is None:
            return proof
        await self._say(_turned(proof, screen, wanted, proof.why))
        return Denied("not right", standing_of.wait_seconds(self.standing, lock, screen))

    async def _refuse(self, proof: PinCheck, screen: str, wanted: str, why: RoleRefusal) -> Denied:
        """The PIN was right, and it comes to nothing all the same."""
        await self._say(_turned(proof, screen, wanted, why))
        return Denied(why)

    def _renew_if_stale(self, proof: PinCheck, pin: str, now: Moment) -> None:
        """Once they have their answer: how long it takes tells nothing of a PIN then."""
        if proof.cost == self._cost:
            return
        at = datetime.fromtimestamp(now.utc / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

        async def renewing() -> None:
            try:
                await self._in_thread(
                    lambda: renew_verifier(self._file, proof.person, pin, self._cost, at)
                )
            except PeopleUnavailable as problem:  # it fits as before; the next sign-in tries again
                _log.warning(
                    "a verifier is not renewed", badge=proof.person.badge, why=str(problem)
                )

        self._begin(renewing())

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        """_CannotLook."""
        if self._late is not None and not self._late.done():
            raise PeopleUnavailable(f"the last one has not come back within {CHECK_TIMEOUT:g} s")
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._thread, work)
        done, _ = await asyncio.wait({future}, timeout=CHECK_TIMEOUT)
        if not done:
            future.add_done_callback(_forget)
            self._late = future
            raise PeopleUnavailable(f"has not come back within {CHECK_TIMEOUT:g} s")
        try:
            return future.result()
        except (KeyProblem, CannotHash) as problem:
            raise PeopleUnavailable(str(problem)) from None

    # --- the record -----------------------------------------------------------------------

    async def _say(self, said: SignInEntry) -> None:
        """On the disk before it is true."""
        await self._record(entry_for(said))
        self.standing = standing_of.state_after(self.standing, said)

    async def _tell(self, trouble: str) -> None:
        """Once, until it has been mended."""
        _log.warning("badges and PINs cannot be looked at", why=trouble)
        if trouble != self._told:
            data = {"what": "people", "detail": trouble}
            await self._record(RecordEntry("fault", CONTROLLER, data))
            self._told = trouble

    def _at(self, now: Moment) -> None:
        self.standing = standing_of.state_at(self.standing, self._boot, now)


def _turned(proof: PinCheck, screen: str, wanted: str, why: RefusalReason) -> SignInRefused:
    person = proof.person
    return SignInRefused(why, person.name, person.badge, proof.lock, screen, wanted)


def _forget(future: asyncio.Future[Any]) -> None:
    """What came of it when nobody waited any more."""
    if not future.cancelled():
        future.exception()
