"""Sign-in state: sessions, authorities for single acts, and rate limits after wrong PINs.

    standing = fold(records)
    standing = state_at(standing, boot, moment)     # expires sessions and authorities
    standing = state_after(standing, entry)         # once the entry is durable

Pure, except restore_sign_ins(), which rebuilds the state from the record after a restart, so that
wrong PINs stay counted. That needs the records since the table last had no dealer, and those of
the last day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from controller.audit.errors import RecordDamaged
from controller.audit.format.records import Moment, Record
from controller.audit.format.segments import HEADER_SIZE, RecordFrame, numbers, segment_file, unpack
from controller.audit.log import RecordOpening
from controller.audit.read.reader import ASK, load, record_of
from controller.people import rate_limit
from controller.people.person import Act, HouseRole, People, Person
from controller.people.rate_limit import (
    BADGE,
    DAY,
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
    SignInData,
    SignInDelayed,
    SignInEntry,
    SignInRefused,
    SignOutData,
    read_sign_in_entry,
)
from controller.procedure.model.events import Actor
from drivers.keys import same_person

AUTHORITY_SECONDS: Final = 60
"""Seconds for which badge and PIN authorise the act that they were entered for."""
SESSION_SECONDS: Final[Mapping[HouseRole, int]] = MappingProxyType(
    {"dealer": 0, "surveillance": 12 * 3600, "technician": 3600}
)
"""Duration of a session by role in seconds; 0: until the dealer is relieved, signs out, or the
table closes. The floor has no sessions: each of its acts takes badge and PIN."""
AT_CLOSED: Final[frozenset[HouseRole]] = frozenset({"technician"})
"""Roles that can be signed in only while the table is closed."""


class BootClock(Struct, frozen=True):
    """A clock that never goes back: monotonic within a boot, and advanced by the wall clock between
    two boots if that went forward."""

    boot: str = ""
    utc: int = 0
    mono: int = 0
    at: int = 0
    """The time in nanoseconds."""


class ProvenPerson(Struct, frozen=True):
    """A person whose badge and PIN were right at a screen."""

    role: HouseRole
    name: str
    badge: str
    screen: str
    until: int
    """Expiry in nanoseconds of the BootClock; 0: none."""

    @property
    def actor(self) -> Actor:
        return Actor(self.role, self.name)


class SignInSession(ProvenPerson, frozen=True):
    """A person is signed in: a dealer at the table, other roles at one screen."""


class ActAuthority(ProvenPerson, frozen=True):
    """A person may do one act, exactly once."""

    act: str
    about: str
    second: bool


class SignInState(Struct, frozen=True):
    """All sessions, authorities and wrong PINs at this table."""

    clock: BootClock = BootClock()
    sessions: tuple[SignInSession, ...] = ()
    authorities: tuple[ActAuthority, ...] = ()
    badges: Mapping[str, WrongGuesses] = MappingProxyType({})
    """Wrong PINs by `People.lock` of the badge."""
    screens: Mapping[str, WrongGuesses] = MappingProxyType({})


NO_SIGN_INS: Final = SignInState()

# --- time -------------------------------------------------------------------------------------


def state_at(standing: SignInState, boot: str, moment: Moment) -> SignInState:
    """The state at this time, without expired sessions and authorities, and without authorities of
    an earlier boot."""
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


# --- queries ----------------------------------------------------------------------------------


def dealer(standing: SignInState) -> SignInSession | None:
    """The dealer's session."""
    return next((one for one in standing.sessions if one.role == "dealer"), None)


def session(standing: SignInState, role: HouseRole, screen: str) -> SignInSession | None:
    """The session of a role at a screen. The dealer's is independent of the screen."""
    wanted = ("dealer", "") if role == "dealer" else (role, screen)
    return next((one for one in standing.sessions if _place(one) == wanted), None)


def authority(standing: SignInState, act: Act, screen: str, *, second: bool) -> ActAuthority | None:
    """The authority for an act at a screen, of its first or second person."""
    wanted = (act.name, act.about, screen, second)
    return next((one for one in standing.authorities if _use(one) == wanted), None)


def wait_seconds(standing: SignInState, lock: str, screen: str) -> int:
    """Seconds until the next PIN for this badge at this screen is checked; 0: now."""
    now = standing.clock.at
    both = (standing.badges.get(lock, NO_GUESSES), standing.screens.get(screen, NO_GUESSES))
    return max(-(-rate_limit.wait(tries, now) // SECOND) for tries in both)


def delay_is_recorded(standing: SignInState, lock: str, screen: str) -> bool:
    """Whether a rejection because of the current delay has been recorded."""
    now = standing.clock.at
    both = (standing.badges.get(lock, NO_GUESSES), standing.screens.get(screen, NO_GUESSES))
    return all(tries.delay_recorded for tries in both if rate_limit.wait(tries, now))


def counts(one: ProvenPerson, people: People) -> bool:
    """Whether the badge still exists with the same name and role, and is not disabled."""
    person = people.find(one.badge)
    return (
        person is not None
        and not person.disabled
        and one.role in person.roles
        and same_person(person.name, one.name)
    )


def deals(standing: SignInState, who: Person | ActAuthority) -> bool:
    """Whether this person is the current dealer, with any of their badges."""
    at_table = dealer(standing)
    return at_table is not None and one_person(at_table, who.name, who.badge)


def sign_in_refusal(
    standing: SignInState, person: Person, role: HouseRole, *, relieve: bool, shut: bool
) -> RoleRefusal | None:
    """Why the person cannot sign in; None if they can. `shut`: the table is closed."""
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
    """Why the person cannot authorise the act in this role; None if they can."""
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


# --- updates ----------------------------------------------------------------------------------


def state_after(standing: SignInState, entry: SignInEntry) -> SignInState:
    """The state after a recorded entry, at the state's current time."""
    return _AFTER[type(entry)](standing, entry)


def without_used(standing: SignInState, act: Act, screen: str) -> SignInState:
    """The act was done, so its authorities are removed. The act is recorded separately."""
    gone = (act.name, act.about, screen)
    left = tuple(one for one in standing.authorities if _use(one)[:3] != gone)
    return replace(standing, authorities=left)


def without_lapsed(standing: SignInState, people: People) -> SignInState:
    """Remove authorities of people who lost their role or were disabled. They do not come back."""
    left = tuple(one for one in standing.authorities if counts(one, people))
    return replace(standing, authorities=left)


def with_given_back(
    standing: SignInState, former: SignInState, act: Act, screen: str
) -> SignInState:
    """Restore the authorities for an act that was not done from the `former` state, unless the act
    has been authorised again."""
    wanted = (act.name, act.about, screen)
    if any(_use(one)[:3] == wanted for one in standing.authorities):
        return standing
    spent = tuple(one for one in former.authorities if _use(one)[:3] == wanted)
    return replace(standing, authorities=(*standing.authorities, *spent))


def fold(records: Iterable[Record], standing: SignInState = NO_SIGN_INS) -> SignInState:
    """The state after these records, at the time of the last one. Raises ValueError if an entry
    about people cannot be decoded."""
    for record in records:
        moment = Moment(record.utc, record.mono, record.clock)
        standing = state_at(standing, record.boot, moment)
        try:
            entry = read_sign_in_entry(record)
        except ValueError as problem:
            raise ValueError(
                f"seq {record.seq}: an invalid entry about people: {problem}"
            ) from None
        if entry is not None:
            standing = state_after(standing, entry)
    return standing


def _signed_in(standing: SignInState, entry: SignInData) -> SignInState:
    until = standing.clock.at + entry.life * SECOND if entry.life else 0
    made = SignInSession(entry.role, entry.name, entry.badge, entry.screen, until)
    others = tuple(one for one in standing.sessions if _place(one) != _place(made))
    return _pin_was_right(replace(standing, sessions=(*others, made)), entry.lock)


def _signed_out(standing: SignInState, entry: SignOutData) -> SignInState:
    gone = (entry.role, "" if entry.role == "dealer" else entry.screen)
    return replace(
        standing, sessions=tuple(one for one in standing.sessions if _place(one) != gone)
    )


def _authorised(standing: SignInState, entry: Authorisation) -> SignInState:
    until = standing.clock.at + entry.life * SECOND
    made = ActAuthority(
        role=entry.role,
        name=entry.name,
        badge=entry.badge,
        screen=entry.screen,
        until=until,
        act=entry.act,
        about=entry.about,
        second=entry.second,
    )
    # The second person approves for this first person; a different one needs a new approval.
    gone = {_use(made), (*_use(made)[:3], True)}
    others = tuple(one for one in standing.authorities if _use(one) not in gone)
    return _pin_was_right(replace(standing, authorities=(*others, made)), entry.lock)


def _refused(standing: SignInState, entry: SignInRefused) -> SignInState:
    if entry.why not in GUESSES:
        return _pin_was_right(standing, entry.lock)
    now = standing.clock.at
    return replace(
        standing,
        badges=_counted(standing.badges, entry.lock, now, BADGE),
        screens=_counted(standing.screens, entry.screen, now, SCREEN),
    )


def _delayed(standing: SignInState, entry: SignInDelayed) -> SignInState:
    return replace(
        standing,
        badges=_changed(standing.badges, entry.lock, rate_limit.with_delay_recorded),
        screens=_changed(standing.screens, entry.screen, rate_limit.with_delay_recorded),
    )


def _pin_was_right(standing: SignInState, lock: str) -> SignInState:
    return replace(standing, badges=_changed(standing.badges, lock, rate_limit.right))


_AFTER: Final[dict[type[SignInEntry], Callable[[SignInState, Any], SignInState]]] = {
    SignInData: _signed_in,
    SignOutData: _signed_out,
    Authorisation: _authorised,
    SignInRefused: _refused,
    SignInDelayed: _delayed,
}


def _counted(
    every: Mapping[str, WrongGuesses], key: str, now: int, limits: GuessLimits
) -> Mapping[str, WrongGuesses]:
    """With one more wrong PIN, and without stale counts."""
    kept = {name: tries for name, tries in every.items() if not rate_limit.stale(tries, now)}
    kept[key] = rate_limit.wrong(every.get(key, NO_GUESSES), now, limits)
    return MappingProxyType(kept)


def _changed(
    every: Mapping[str, WrongGuesses], key: str, change: Callable[[WrongGuesses], WrongGuesses]
) -> Mapping[str, WrongGuesses]:
    if key not in every:
        return every
    return MappingProxyType({**every, key: change(every[key])})


def one_person(first: ProvenPerson, name: str, badge: str) -> bool:
    """Whether it is the same person, with any of their badges."""
    return first.badge == badge or same_person(first.name, name)


MAX_SEGMENTS: Final = 64
"""Maximum number of segments that are searched for the dealer's sign-in."""
_DAY_US: Final = DAY // 1000
_COUNTS: Final = (b'"kind":"person"', b'"kind":"opened"')
"""Entries about people, and starts of boots, where the clocks change."""


def restore_sign_ins(opening: RecordOpening) -> SignInState:
    """Raises RecordDamaged if an entry about people cannot be decoded."""
    if opening.last is None:
        return SignInState()
    since = opening.last.utc - _DAY_US
    found = _counting(opening.records)
    begins = opening.records[0].utc
    for number in _before(opening):
        if begins <= since and _knows_dealer(found):
            break
        begins, records = _read(opening.record, number)
        found = [*records, *found]
    if opening.last not in found[-1:]:
        found.append(opening.last)  # for its time
    try:
        return fold(found)
    except ValueError as problem:
        raise RecordDamaged(opening.record, str(problem), ASK) from None


def _before(opening: RecordOpening) -> Iterator[int]:
    """The numbers of the segments before the last one, newest first."""
    last = 0 if opening.segment is None else opening.segment.number
    left = [number for number in numbers(opening.record) if number < last]
    yield from reversed(left[-MAX_SEGMENTS:])


def _counting(records: list[Record]) -> list[Record]:
    """Entries about people, those before and after the start of a boot, and the last one: the
    next segment may begin with a snapshot of the next boot."""
    boots = {at for at, record in enumerate(records) if record.kind == "opened"}
    return [
        record
        for at, record in enumerate(records)
        if record.kind == "person" or at in boots or at + 1 in {*boots, len(records)}
    ]


def _knows_dealer(found: list[Record]) -> bool:
    """Whether a dealer's sign-in or sign-out is among them."""
    entries = (_entry_of(record) for record in found)
    return any(
        isinstance(one, SignInData | SignOutData) and one.role == "dealer" for one in entries
    )


def _entry_of(record: Record) -> object:
    try:
        return read_sign_in_entry(record)
    except ValueError:  # reported by fold()
        return None


def _read(record: Path, number: int) -> tuple[int, list[Record]]:
    """The start time of a segment, and its entries that matter. Only these are decoded."""
    file = segment_file(record, number)
    buffer = load(file, number)
    first = unpack(buffer, HEADER_SIZE)
    if first is None:
        raise RecordDamaged(file, f"offset {HEADER_SIZE}: its first record is incomplete", ASK)
    wanted: dict[int, RecordFrame] = {}
    before: RecordFrame | None = None
    for frame in _frames(buffer):
        if any(one in frame.data for one in _COUNTS):
            wanted |= {one.seq: one for one in (before, frame) if one is not None}
        before = frame
    wanted |= {one.seq: one for one in (before,) if one is not None}
    records = [record_of(file, one) for one in wanted.values()]
    return record_of(file, first).utc, _counting(records)


def _frames(buffer: bytes) -> Iterator[RecordFrame]:
    at = HEADER_SIZE
    while (frame := unpack(buffer, at)) is not None:
        yield frame
        at = frame.end
