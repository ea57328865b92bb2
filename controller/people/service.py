"""Authentication of people: serialized, and each result is recorded before it counts.

    desk = PeopleDesk(PeopleFile(file, keys), record, boot, fold(records), shut=closed)
    answer = await desk.sign_in("D-17", "402931", "dealer", moment)
    void = act_of(RoundVoided)
    answer = await desk.authorise(void, "F-2", "775010", "dealer", moment)
    answer = await desk.authorise(void, "D-17", "402931", "dealer", moment, second=True)
    taken = desk.take(void, "dealer", moment)        # both people, exactly once
    await desk.close()

Exceptions of `record` are raised to the caller, without side effects. A cancelled request does not
withdraw a guess: it is still recorded and counted. An unknown badge, a wrong PIN and a disabled
badge take the same steps and the same time.
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
from msgspec.structs import replace

from controller.audit.format.records import CONTROLLER, Moment, RecordEntry
from controller.people import sign_in as states
from controller.people.directory import FileMetadata, PeopleFile
from controller.people.person import SECONDS, Act, HouseRole, People, Person
from controller.people.pins import COST, CannotHash, Cost
from controller.people.records import (
    Authorisation,
    PinRefusal,
    RefusalReason,
    RoleRefusal,
    SignInData,
    SignInDelayed,
    SignInEntry,
    SignInRefused,
    SignOutData,
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

UNKNOWN_PERSON: Final = Person("", "", (), True, "")


class PinCheck(Struct, frozen=True):
    """The result for a badge and a PIN."""

    lock: str
    person: Person
    """The person with the badge; UNKNOWN_PERSON if there is none."""
    why: PinRefusal | None
    """None if the PIN is right."""
    cost: Cost
    """The cost of the verifier that was used."""


def read_lock(file: PeopleFile, badge: str) -> tuple[People, str]:
    """Read the people, and the key for wrong PINs of this badge. Raises KeyProblem."""
    people = file.read()
    return people, people.lock(badge)


def check_pin_of(people: People, badge: str, pin: str) -> PinCheck:
    """Check a PIN. Raises CannotHash."""
    person, verifier = people.asked(badge)
    fits = people.key.fits(verifier, badge, pin)
    why: PinRefusal | None = None
    if person is None:
        why = "unknown badge"
    elif not fits:
        why = "wrong PIN"
    elif person.disabled:
        why = "disabled"
    return PinCheck(people.lock(badge), person or UNKNOWN_PERSON, why, verifier.cost)


def renew_verifier(file: PeopleFile, proven: Person, pin: str, cost: Cost, at: str) -> None:
    """Replace the verifier of a right PIN by one of the current cost. Raises KeyProblem, also if
    the person was changed since or the file is locked, and CannotHash."""
    made = str(file.key().verifier(proven.badge, pin, cost))

    def change(people: People) -> Person:
        now = people.find(proven.badge)
        if now is None or now.pin != proven.pin:
            raise KeyProblem(str(file.file), f"{proven.badge} has another PIN by now", None)
        return replace(now, pin=made)

    file.change("verifier renewed", proven.badge, change, (proven.name,), at, timeout=0)


DenialReason: TypeAlias = (
    RoleRefusal
    | Literal["not right", "wait", "busy", "unreadable", "not authorised", "no second", "closing"]
)
DENIAL_TEXTS: Final[Mapping[DenialReason, str]] = MappingProxyType(
    {
        "not right": "badge or PIN is not right",
        "wait": "too many wrong PINs: wait",
        "busy": "one at a time: try again",
        "unreadable": "badges and PINs cannot be checked now: call a technician",
        "not theirs": "this badge is for other work",
        "table open": "the table is open: technicians sign in while it is closed",
        "another dealer": "another dealer is signed in: relieve them, or they sign out",
        "deals here": "the dealer of this table cannot be the floor too",
        "no first person": "the first person signs for it before the second",
        "same person": "that is the same person: a different one is needed",
        "not authorised": "it was not signed for, or too long ago",
        "no second": "a second person has to sign for it",
        "closing": "the controller is closing",
    }
)


class SignInResult(Struct, frozen=True):
    """A person was authenticated, which is recorded."""

    actor: Actor
    badge: str
    screen: str
    life: int
    """Seconds; 0: no expiry."""
    relieved: Actor | None = None
    """The dealer who was relieved."""


class Denied(Struct, frozen=True):
    """Not authenticated. Unknown badge, wrong PIN and disabled badge are not distinguished."""

    why: DenialReason
    wait: int = 0
    """Seconds until the next PIN is checked."""

    def __str__(self) -> str:
        text = DENIAL_TEXTS[self.why]
        return f"{text} ({self.wait} s)" if self.wait else text


class ActSigners(Struct, frozen=True):
    """The people who do an act."""

    first: Actor
    second: Actor | None


MAX_WAITING: Final = 8
"""Limit of concurrent requests, one for each screen."""
CHECK_TIMEOUT: Final = 10.0
"""Timeout in seconds for reading the file, or checking a PIN; both usually take below 1 s."""

_log: Final = structlog.get_logger()
_T = TypeVar("_T")

AppendEntry: TypeAlias = Callable[[RecordEntry], Awaitable[object]]


class PeopleUnavailable(Exception):
    """Badges and PINs cannot be checked now."""


class PeopleDesk:
    """The authentication of one table. `standing` is its current state."""

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
        """`record` returns when the entry is durable. `shut` returns whether the table is
        closed."""
        self.standing = standing
        self.shut = shut
        self._file = file
        self._record = record
        self._boot = boot
        self._cost = cost
        self._lock = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "people")
        self._late: asyncio.Future[Any] | None = None
        """Work of the thread that exceeded its timeout."""
        self._asking: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._reported = ""
        """The problem that was recorded last."""
        self._people: People | None = None
        """The people as last read, with the metadata of that file below."""
        self._seen: FileMetadata = None
        self._closed = False

    # --- requests -------------------------------------------------------------------------

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
        """Sign in a dealer at the table, or surveillance or a technician at a screen. With
        `relieve` a dealer replaces the current one; the procedure must allow that now. Raises
        ValueError for the floor, whose every act takes badge and PIN."""
        if role not in SESSION_SECONDS:
            raise ValueError(f"the {role} does not sign in: each act takes badge and PIN")
        return await self._ask(
            screen, lambda: self._sign_in(badge, pin, screen, now, role, relieve)
        )

    async def authorise(
        self, act: Act, badge: str, pin: str, screen: str, now: Moment, *, second: bool = False
    ) -> SignInResult | Denied:
        """Authorise one act for AUTHORITY_SECONDS; with `second` as its second person."""
        if second and not act.two:
            raise ValueError(f"{act.name} takes no second person")
        return await self._ask(
            screen, lambda: self._authorise(act, badge, pin, screen, now, second)
        )

    def take(self, act: Act, screen: str, now: Moment) -> ActSigners | Denied:
        """Use up the authorities for an act. They are valid by the file as last read: call
        refresh_if_changed() first."""
        self._at(now)
        if self._people is not None:
            self.standing = states.without_lapsed(self.standing, self._people)
        first = states.authority(self.standing, act, screen, second=False)
        if first is None:
            return Denied("not authorised")
        if first.role == "floor" and states.deals(self.standing, first):
            return Denied("deals here")
        second = states.authority(self.standing, act, screen, second=True)
        if act.two:
            if second is None:
                return Denied("no second")
            if one_person(first, second.name, second.badge):
                return Denied("same person")
        self.standing = states.without_used(self.standing, act, screen)
        return ActSigners(first.actor, second.actor if act.two and second is not None else None)

    def give_back(self, act: Act, screen: str, former: SignInState, now: Moment) -> None:
        """Undo take() for an act that was not done. `former` is the state before take()."""
        self.standing = states.with_given_back(self.standing, former, act, screen)
        self._at(now)

    async def sign_out(
        self, screen: str, now: Moment, *, role: HouseRole = "dealer", why: SignOutReason = "asked"
    ) -> bool | Denied:
        """Sign out a role at a screen. Returns whether a person was signed in."""
        return await self._ask(screen, lambda: self._sign_out(screen, now, role, why))

    async def refresh(self, now: Moment) -> int | Denied:
        """Read the file, and sign out people who were disabled or lost their role. Returns how
        many. Their authorities are removed."""
        return await self._ask("", lambda: self._refresh(now))

    def expire(self, now: Moment) -> tuple[SignInSession, ...]:
        """Remove expired sessions, and return them."""
        before = self.standing.sessions
        self._at(now)
        return tuple(one for one in before if one not in self.standing.sessions)

    async def refresh_if_changed(self, now: Moment) -> Denied | None:
        """refresh() if the file has changed since it was last read; to be called before an act.
        Expired sessions are removed in any case."""
        self._at(now)
        if self._is_read():
            return None

        async def read() -> Denied | None:
            try:
                await self._refresh(now, force=False)
            except PeopleUnavailable as problem:
                await self._report(str(problem))
                return Denied("unreadable")
            return None

        return Denied("closing") if self._closed else await asyncio.shield(self._begin(read()))

    async def close(self) -> None:
        """Reject new requests, and wait until the running ones are recorded."""
        self._closed = True
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._thread.shutdown(wait=self._late is None or self._late.done())

    @property
    def busy(self) -> bool:
        """Whether a request is running."""
        return bool(self._asking)

    # --- serialized -----------------------------------------------------------------------

    async def _ask(self, screen: str, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T | Denied:
        """Run a request to completion, also if the caller is cancelled."""
        if self._closed:
            return Denied("closing")
        if screen in self._asking or len(self._asking) >= MAX_WAITING:
            return Denied("busy")
        self._asking.add(screen)

        async def asked() -> _T | Denied:
            try:
                return await make()
            except PeopleUnavailable as problem:
                await self._report(str(problem))
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
        async with self._lock:
            proof = await self._check(badge, pin, screen, now, role)
            if isinstance(proof, Denied):
                return proof
            person = proof.person
            why = states.sign_in_refusal(
                self.standing, person, role, relieve=relieve, shut=self.shut()
            )
            if why is not None:
                return await self._refuse(proof, screen, role, why)
            at_table = states.dealer(self.standing) if role == "dealer" else None
            if states.deals(self.standing, person):
                at_table = None  # the same person again, or at a different screen
            life = SESSION_SECONDS[role]
            relieved = at_table.name if at_table is not None else ""
            await self._append(
                SignInData(role, person.name, person.badge, proof.lock, screen, life, relieved)
            )
        self._renew_if_stale(proof, pin, now)
        relieved_actor = None if at_table is None else at_table.actor
        return SignInResult(Actor(role, person.name), person.badge, screen, life, relieved_actor)

    async def _authorise(
        self, act: Act, badge: str, pin: str, screen: str, now: Moment, second: bool
    ) -> SignInResult | Denied:
        async with self._lock:
            proof = await self._check(badge, pin, screen, now, act.name)
            if isinstance(proof, Denied):
                return proof
            person = proof.person
            roles = SECONDS if second else act.roles
            role = next((one for one in roles if one in person.roles), None)
            why = states.act_refusal(self.standing, act, person, role, screen, second=second)
            if role is None or why is not None:
                return await self._refuse(proof, screen, act.name, why or "not theirs")
            who = (role, person.name, person.badge, proof.lock, screen)
            await self._append(Authorisation(*who, act.name, act.about, second, AUTHORITY_SECONDS))
        self._renew_if_stale(proof, pin, now)
        return SignInResult(Actor(role, person.name), person.badge, screen, AUTHORITY_SECONDS)

    async def _sign_out(
        self, screen: str, now: Moment, role: HouseRole, why: SignOutReason
    ) -> bool:
        async with self._lock:
            self._at(now)
            found = states.session(self.standing, role, screen)
            if found is None:
                return False
            await self._append(SignOutData(role, found.name, found.badge, found.screen, why))
            return True

    async def _refresh(self, now: Moment, *, force: bool = True) -> int:
        async with self._lock:
            if not force and self._is_read():
                return 0
            found = self._file.metadata()
            people = await self._in_thread(self._file.read)
            self._at(now)
            return await self._update(people, found)

    async def _update(self, people: People, found: FileMetadata) -> int:
        """Apply the file as just read: sign out people who are not valid any more. Returns how
        many."""
        self._people = people
        self.standing = states.without_lapsed(self.standing, people)
        lapsed = [one for one in self.standing.sessions if not states.counts(one, people)]
        for one in lapsed:
            await self._append(SignOutData(one.role, one.name, one.badge, one.screen, "disabled"))
        self._seen = found
        return len(lapsed)

    def _is_read(self) -> bool:
        return self._seen is not None and self._file.metadata() == self._seen

    # --- badges and PINs ------------------------------------------------------------------

    async def _check(
        self, badge: str, pin: str, screen: str, now: Moment, wanted: str
    ) -> PinCheck | Denied:
        """Check a PIN; the caller holds the lock. During a delay it is rejected unchecked."""
        found = self._file.metadata()
        people, lock = await self._in_thread(lambda: read_lock(self._file, badge))
        self._at(now)
        await self._update(people, found)
        wait = states.wait_seconds(self.standing, lock, screen)
        if wait:
            if not states.delay_is_recorded(self.standing, lock, screen):
                await self._append(SignInDelayed(lock, screen, wait))
            return Denied("wait", wait)
        proof = await self._in_thread(lambda: check_pin_of(people, badge, pin))
        self._reported = ""
        if proof.why is None:
            return proof
        await self._append(_refused_entry(proof, screen, wanted, proof.why))
        return Denied("not right", states.wait_seconds(self.standing, lock, screen))

    async def _refuse(self, proof: PinCheck, screen: str, wanted: str, why: RoleRefusal) -> Denied:
        """Record a refusal after a right PIN."""
        await self._append(_refused_entry(proof, screen, wanted, why))
        return Denied(why)

    def _renew_if_stale(self, proof: PinCheck, pin: str, now: Moment) -> None:
        """Start to renew a verifier of an old cost, after the answer, so that its time reveals
        nothing about the PIN."""
        if proof.cost == self._cost:
            return
        at = datetime.fromtimestamp(now.utc / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

        async def renewing() -> None:
            try:
                await self._in_thread(
                    lambda: renew_verifier(self._file, proof.person, pin, self._cost, at)
                )
            except PeopleUnavailable as problem:  # still valid; the next sign-in retries
                _log.warning(
                    "a verifier is not renewed", badge=proof.person.badge, why=str(problem)
                )

        self._begin(renewing())

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        """Run blocking work in the thread, with a timeout. Raises PeopleUnavailable."""
        if self._late is not None and not self._late.done():
            raise PeopleUnavailable(f"the last check has not finished within {CHECK_TIMEOUT:g} s")
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        done, _ = await asyncio.wait({future}, timeout=CHECK_TIMEOUT)
        if not done:
            future.add_done_callback(_forget)
            self._late = future
            raise PeopleUnavailable(f"not finished within {CHECK_TIMEOUT:g} s")
        try:
            return future.result()
        except (KeyProblem, CannotHash) as problem:
            raise PeopleUnavailable(str(problem)) from None

    # --- the record -----------------------------------------------------------------------

    async def _append(self, entry: SignInEntry) -> None:
        """Record an entry, and update the state once it is durable."""
        await self._record(entry_for(entry))
        self.standing = states.state_after(self.standing, entry)

    async def _report(self, problem: str) -> None:
        """Log a problem, and record it unless it is the last recorded one."""
        _log.warning("badges and PINs cannot be looked at", why=problem)
        if problem != self._reported:
            former, self._reported = self._reported, problem  # set first: others may fail too
            try:
                data = {"what": "people", "detail": problem}
                await self._record(RecordEntry("fault", CONTROLLER, data))
            except BaseException:
                self._reported = former
                raise

    def _at(self, now: Moment) -> None:
        self.standing = states.state_at(self.standing, self._boot, now)


def _refused_entry(proof: PinCheck, screen: str, wanted: str, why: RefusalReason) -> SignInRefused:
    person = proof.person
    return SignInRefused(why, person.name, person.badge, proof.lock, screen, wanted)


def _forget(future: asyncio.Future[Any]) -> None:
    """Retrieve the exception of work that exceeded its timeout."""
    if not future.cancelled():
        future.exception()
