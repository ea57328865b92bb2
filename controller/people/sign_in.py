"""Who is signed in where, who may do one act now, and whose PIN is not looked at for a while.

    standing = fold(records)
    standing = at(standing, boot, moment)           # nothing lapses without being told the time
    standing = after(standing, said)                # once it is in the record

No I/O. It is made anew from the record of people, so a restart forgets no wrong PIN. The records
needed are those since the table was last without a dealer, and those of the last day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.records import Moment, Record
from controller.people import rate_limit
from controller.people.approvals import Act
from controller.people.person import HouseRole, People, Person
from controller.people.rate_limit import (
    BADGE,
    NO_GUESSES,
    SCREEN,
    SECOND,
    GuessLimits,
    WrongGuesses,
)
from controller.people.records import (
    GUESSES,
    Authorisation,
    RoleRefusal,
    SignIn,
    SignInDelayed,
    SignInEntry,
    SignInRefused,
    SignOut,
    entry_for,
    read_sign_in_entry,
)
from controller.procedure.model.events import Actor
from drivers.keys import same_person

__all__ = [
    "AT_CLOSED",
    "AUTHORITY_SECONDS",
    "NO_SIGN_INS",
    "SESSION_SECONDS",
    "ActAuthority",
    "BootClock",
    "SignInSession",
    "SignInState",
    "act_refusal",
    "authority",
    "counts",
    "dealer",
    "deals",
    "delay_is_recorded",
    "entry_for",
    "fold",
    "one_person",
    "session",
    "sign_in_refusal",
    "state_after",
    "state_at",
    "wait_seconds",
    "with_given_back",
    "without_lapsed",
    "without_used",
]

AUTHORITY_SECONDS: Final = 60
"""Seconds for which a badge and PIN stand for the act that they were given for."""
SESSION_SECONDS: Final[Mapping[HouseRole, int]] = MappingProxyType(
    {"dealer": 0, "surveillance": 12 * 3600, "technician": 3600}
)
"""Seconds for which each role is signed in; 0: until the dealer is relieved, signs out, or the
table closes. The floor is not in it: each of its acts takes badge and PIN."""
AT_CLOSED: Final[frozenset[HouseRole]] = frozenset({"technician"})
"""Roles that are signed in only while the table is closed."""


class BootClock(Struct, frozen=True):
    """A time that never goes back and that nobody sets: within a boot the machine's own count of
    nanoseconds, and between two boots what the clock of the day says, if that went forward."""

    boot: str = ""
    utc: int = 0
    mono: int = 0
    at: int = 0
    """Nanoseconds."""


class SignInSession(Struct, frozen=True):
    """Somebody is signed in. A dealer is at the table, all others at a screen of their own."""

    role: HouseRole
    name: str
    badge: str
    screen: str
    until: int
    """0: without an end."""

    @property
    def actor(self) -> Actor:
        return Actor(self.role, self.name)


class ActAuthority(Struct, frozen=True):
    """Somebody may do one act, once."""

    act: str
    about: str
    second: bool
    role: HouseRole
    name: str
    badge: str
    screen: str
    until: int

    @property
    def actor(self) -> Actor:
        return Actor(self.role, self.name)


class SignInState(Struct, frozen=True):
    """All that is known of people at this table."""

    clock: BootClock = BootClock()
    sessions: tuple[SignInSession, ...] = ()
    authorities: tuple[ActAuthority, ...] = ()
    badges: Mapping[str, WrongGuesses] = MappingProxyType({})
    """Wrong PINs, by the badge's lock."""
    screens: Mapping[str, WrongGuesses] = MappingProxyType({})


NO_SIGN_INS: Final = SignInState()

# --- time -------------------------------------------------------------------------------------


def state_at(standing: SignInState, boot: str, moment: Moment) -> SignInState:
    """At that time. What has lapsed is gone, and so is every authority of another boot."""
    clock = standing.clock
    if not clock.boot:
        now = moment.utc * 1000
    elif boot == clock.boot:
        now = clock.at + max(0, moment.mono - clock.mono)
    else:
        now = clock.at + max(0, moment.utc - clock.utc) * 1000
    mono = max(moment.mono, clock.mono) if boot == clock.boot else moment.mono
    same = boot == clock.boot
    return replace(
        standing,
        clock=BootClock(boot, moment.utc, mono, now),
        sessions=tuple(one for one in standing.sessions if not one.until or now < one.until),
        authorities=tuple(one for one in standing.authorities if same and now < one.until),
    )


# --- questions --------------------------------------------------------------------------------


def dealer(standing: SignInState) -> SignInSession | None:
    """Who deals."""
    return next((one for one in standing.sessions if one.role == "dealer"), None)


def session(standing: SignInState, role: HouseRole, screen: str) -> SignInSession | None:
    """Who is signed in there. For a dealer the screen does not matter: there is one table."""
    wanted = ("dealer", "") if role == "dealer" else (role, screen)
    return next((one for one in standing.sessions if _place(one) == wanted), None)


def authority(standing: SignInState, act: Act, screen: str, *, second: bool) -> ActAuthority | None:
    """Who may do this act now, or stands by as its second person."""
    wanted = (act.name, act.about, screen, second)
    return next((one for one in standing.authorities if _use(one) == wanted), None)


def wait_seconds(standing: SignInState, lock: str, screen: str) -> int:
    """Seconds until a PIN is looked at for this badge at this screen; 0: now."""
    now = standing.clock.at
    both = (standing.badges.get(lock, NO_GUESSES), standing.screens.get(screen, NO_GUESSES))
    return max(-(-rate_limit.wait(tries, now) // SECOND) for tries in both)


def delay_is_recorded(standing: SignInState, lock: str, screen: str) -> bool:
    """Whether it stands in the record that somebody was turned away for this wait."""
    now = standing.clock.at
    both = (standing.badges.get(lock, NO_GUESSES), standing.screens.get(screen, NO_GUESSES))
    return all(tries.told for tries in both if rate_limit.wait(tries, now))


def counts(one: SignInSession | ActAuthority, people: People) -> bool:
    """Whether who is signed in, or has signed for an act, may still do so: there, not disabled, and
    in the same role."""
    person = people.find(one.badge)
    return (
        person is not None
        and not person.disabled
        and one.role in person.roles
        and same_person(person.name, one.name)
    )


def deals(standing: SignInState, who: Person | ActAuthority) -> bool:
    """Whether it is they who deal, by whichever badge."""
    at_table = dealer(standing)
    return at_table is not None and one_person(at_table, who.name, who.badge)


def sign_in_refusal(
    standing: SignInState, person: Person, role: HouseRole, *, relieve: bool, shut: bool
) -> RoleRefusal | None:
    """What keeps them from signing in. `shut`: the table is closed."""
    if role not in person.roles:
        return "not theirs"
    if role in AT_CLOSED and not shut:
        return "table open"
    if role != "dealer" or relieve:
        return None
    return None if dealer(standing) is None or deals(standing, person) else "another dealer"


def act_refusal(
    standing: SignInState,
    act: Act,
    person: Person,
    role: HouseRole | None,
    screen: str,
    *,
    second: bool,
) -> RoleRefusal | None:
    """What keeps them from signing for the act; `role`: as which they would."""
    if role is None:
        return "not theirs"
    if second:
        first = authority(standing, act, screen, second=False)
        if first is None:
            return "no first person"
        return "same person" if one_person(first, person.name, person.badge) else None
    return "deals here" if role == "floor" and deals(standing, person) else None


def _place(one: SignInSession) -> tuple[str, str]:
    return (one.role, "" if one.role == "dealer" else one.screen)


def _use(one: ActAuthority) -> tuple[str, str, str, bool]:
    return (one.act, one.about, one.screen, one.second)


# --- what happens -----------------------------------------------------------------------------


def state_after(standing: SignInState, said: SignInEntry) -> SignInState:
    """What a record of people makes of it, at the time that it is."""
    return _AFTER[type(said)](standing, said)


def without_used(standing: SignInState, act: Act, screen: str) -> SignInState:
    """The act was done: nobody's authority for it is left. That it was done, and by whom, is the
    act's own record."""
    gone = (act.name, act.about, screen)
    left = tuple(one for one in standing.authorities if _use(one)[:3] != gone)
    return replace(standing, authorities=left)


def without_lapsed(standing: SignInState, people: People) -> SignInState:
    """What was signed by who may not sign for it any more stands for nothing. Enabled again, they
    sign again."""
    left = tuple(one for one in standing.authorities if counts(one, people))
    return replace(standing, authorities=left)


def with_given_back(
    standing: SignInState, former: SignInState, act: Act, screen: str
) -> SignInState:
    """The act was not done, and nothing of it ever will be: whoever had signed for it in the
    former standing may do it, as long as they might have. Not where somebody signs for it anew."""
    wanted = (act.name, act.about, screen)
    if any(_use(one)[:3] == wanted for one in standing.authorities):
        return standing
    spent = tuple(one for one in former.authorities if _use(one)[:3] == wanted)
    return replace(standing, authorities=(*standing.authorities, *spent))


def fold(records: Iterable[Record], standing: SignInState = NO_SIGN_INS) -> SignInState:
    """What the record comes to, its last record being the time. ValueError where one of people
    cannot be read."""
    for record in records:
        moment = Moment(record.utc, record.mono, record.clock)
        standing = state_at(standing, record.boot, moment)
        try:
            said = read_sign_in_entry(record)
        except ValueError as problem:
            raise ValueError(f"seq {record.seq}: a {record.kind} that is none: {problem}") from None
        if said is not None:
            standing = state_after(standing, said)
    return standing


def _signed_in(standing: SignInState, said: SignIn) -> SignInState:
    now = standing.clock.at
    until = now + said.life * SECOND if said.life else 0
    made = SignInSession(said.role, said.name, said.badge, said.screen, until)
    others = tuple(one for one in standing.sessions if _place(one) != _place(made))
    return _right(replace(standing, sessions=(*others, made)), said.lock)


def _signed_out(standing: SignInState, said: SignOut) -> SignInState:
    gone = (said.role, "" if said.role == "dealer" else said.screen)
    return replace(
        standing, sessions=tuple(one for one in standing.sessions if _place(one) != gone)
    )


def _authorised(standing: SignInState, said: Authorisation) -> SignInState:
    made = ActAuthority(
        said.act,
        said.about,
        said.second,
        said.role,
        said.name,
        said.badge,
        said.screen,
        standing.clock.at + said.life * SECOND,
    )
    # Whoever stands by does so for the one who asked; another one has to be asked again.
    gone = {_use(made), (*_use(made)[:3], True)}
    others = tuple(one for one in standing.authorities if _use(one) not in gone)
    return _right(replace(standing, authorities=(*others, made)), said.lock)


def _turned(standing: SignInState, said: SignInRefused) -> SignInState:
    if said.why not in GUESSES:
        return _right(standing, said.lock)
    now = standing.clock.at
    return replace(
        standing,
        badges=_counted(standing.badges, said.lock, now, BADGE),
        screens=_counted(standing.screens, said.screen, now, SCREEN),
    )


def _turned_away(standing: SignInState, said: SignInDelayed) -> SignInState:
    return replace(
        standing,
        badges=_changed(standing.badges, said.lock, rate_limit.delay_recorded),
        screens=_changed(standing.screens, said.screen, rate_limit.delay_recorded),
    )


def _right(standing: SignInState, lock: str) -> SignInState:
    return replace(standing, badges=_changed(standing.badges, lock, rate_limit.right))


_AFTER: Final[dict[type[SignInEntry], Callable[[SignInState, Any], SignInState]]] = {
    SignIn: _signed_in,
    SignOut: _signed_out,
    Authorisation: _authorised,
    SignInRefused: _turned,
    SignInDelayed: _turned_away,
}


def _counted(
    every: Mapping[str, WrongGuesses], key: str, now: int, limits: GuessLimits
) -> Mapping[str, WrongGuesses]:
    """With a wrong PIN more; what a day of quiet has made stale is left behind."""
    kept = {name: tries for name, tries in every.items() if not rate_limit.stale(tries, now)}
    kept[key] = rate_limit.wrong(every.get(key, NO_GUESSES), now, limits)
    return MappingProxyType(kept)


def _changed(
    every: Mapping[str, WrongGuesses], key: str, change: Callable[[WrongGuesses], WrongGuesses]
) -> Mapping[str, WrongGuesses]:
    if key not in every:
        return every
    return MappingProxyType({**every, key: change(every[key])})


def one_person(first: SignInSession | ActAuthority, name: str, badge: str) -> bool:
    """Whether that is the same person, by whichever badge."""
    return first.badge == badge or same_person(first.name, name)
