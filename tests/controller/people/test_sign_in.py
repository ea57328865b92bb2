"""Who is signed in where, from what happened and from the record of it."""

import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from controller.audit.errors import RecordDamaged
from controller.audit.format.records import CONTROLLER, Moment, RecordActor, RecordEntry
from controller.audit.format.segments import numbers
from controller.audit.format.validation import check_data
from controller.audit.log import RecordOpening
from controller.audit.read import reader
from controller.people import (
    ADOPTED,
    NO_SIGN_INS,
    SECONDS,
    Act,
    SignInData,
    SignInState,
    SignOutData,
    act_of,
    entry_for,
    restore_sign_ins,
    sign_in,
)
from controller.people.person import ROLES, TWO
from controller.people.rate_limit import BADGE, SCREEN
from controller.people.records import (
    Authorisation,
    RefusalReason,
    SignInDelayed,
    SignInEntry,
    SignInRefused,
    read_sign_in_entry,
)
from controller.people.sign_in import (
    AUTHORITY_SECONDS,
    SESSION_SECONDS,
    authority,
    delay_is_recorded,
    fold,
    session,
    state_after,
    state_at,
    wait_seconds,
    without_used,
)
from controller.procedure.model import events
from controller.procedure.model.events import Actor, Event
from controller.procedure.model.felt import second_person
from controller.procedure.model.game import WHO
from tests.support.audit.record.table import TABLE, FakeClock, begun, everything, note
from tests.support.table.simulated.house import NOON, Ledger, Time
from tests.support.table.typed.at_desk import at_table

VOID: Final = act_of(events.RoundVoided)
ANN: Final = SignInData("dealer", "Ann Lee", "D-17", "aa", "dealer", 0)
GIL: Final = SignInData("dealer", "Gil Ode", "D-18", "bb", "dealer", 0, "Ann Lee")
BO: Final = Authorisation(
    "floor", "Bo Chan", "F-2", "cc", "dealer", VOID.name, "", False, AUTHORITY_SECONDS
)
CY: Final = Authorisation(
    "dealer", "Cy Moss", "D-19", "dd", "dealer", VOID.name, "", True, AUTHORITY_SECONDS
)


def turned(
    why: RefusalReason = "wrong PIN", lock: str = "aa", screen: str = "dealer"
) -> SignInRefused:
    return SignInRefused(why, "Ann Lee", "D-17", lock, screen, "dealer")


class Table:
    """What happens, as the desk does it: recorded, then true."""

    def __init__(self) -> None:
        self.time = Time()
        self.ledger = Ledger(self.time)
        self.standing = NO_SIGN_INS
        self.ledger.add(RecordEntry("opened", CONTROLLER, {}))
        self.tick()

    def tick(self, seconds: float = 0) -> SignInState:
        self.time.go(seconds)
        self.standing = state_at(self.standing, self.ledger.boot, self.time.now)
        return self.standing

    def say(self, *all_said: SignInEntry) -> SignInState:
        for said in all_said:
            self.tick()
            self.ledger.add(entry_for(said))
            self.standing = state_after(self.standing, said)
        return self.standing

    def waits(self, *of: tuple[str, str]) -> list[int]:
        """Seconds to wait for each badge's lock at a screen."""
        return [wait_seconds(self.standing, lock, screen) for lock, screen in of]

    def restart(self, boot: str, seconds: float = 1) -> SignInState:
        """The controller starts again and reads what was recorded."""
        self.standing = fold(self.ledger.records)
        self.ledger.boot = boot
        self.ledger.add(RecordEntry("opened", CONTROLLER, {}))  # each boot begins with it
        return self.tick(seconds)


@pytest.fixture
def table() -> Table:
    return Table()


# --- who is signed in -------------------------------------------------------------------------


def test_one_dealer_is_at_the_table_until_somebody_takes_the_place(table: Table) -> None:
    assert at_table(table.standing) is None
    table.say(ANN)
    assert at_table(table.tick(30 * 3600)) == Actor("dealer", "Ann Lee")
    assert at_table(table.say(GIL)) == Actor("dealer", "Gil Ode")
    assert len(table.standing.sessions) == 1
    assert not table.say(SignOutData("dealer", "Gil Ode", "D-18", "other", "closed")).sessions


def test_others_sign_in_at_their_screens_for_so_long(table: Table) -> None:
    life = SESSION_SECONDS["technician"]
    eve = SignInData("technician", "Eve Pond", "T-1", "ee", "bench", life)
    dee = SignInData(
        "surveillance", "Dee Faro", "S-1", "ff", "review", SESSION_SECONDS["surveillance"]
    )
    table.say(ANN, eve, dee)
    assert session(table.standing, "technician", "bench") is not None
    assert session(table.standing, "technician", "review") is None
    table.tick(life - 1)
    assert len(table.standing.sessions) == 3
    assert [one.name for one in table.tick(1).sessions] == ["Ann Lee", "Dee Faro"]
    table.say(SignOutData("surveillance", "Dee Faro", "S-1", "review", "asked"))
    assert [one.name for one in table.standing.sessions] == ["Ann Lee"]


def test_every_role_signs_in_or_is_asked_each_time() -> None:
    assert set(ROLES) == {*SESSION_SECONDS, "floor"}


# --- one act ----------------------------------------------------------------------------------


def test_authority_is_for_one_act_at_one_screen_and_a_minute(table: Table) -> None:
    table.say(BO)
    other = act_of(events.RoundVoided, about="12")
    found = authority(table.standing, VOID, "dealer", second=False)
    assert found is not None
    assert found.actor == Actor("floor", "Bo Chan")
    for act, screen, second in (
        (VOID, "dealer", True),
        (VOID, "other", False),
        (other, "dealer", False),
    ):
        assert authority(table.standing, act, screen, second=second) is None, (act, screen, second)
    table.tick(AUTHORITY_SECONDS - 0.001)
    assert authority(table.standing, VOID, "dealer", second=False) is not None
    table.tick(0.001)
    assert authority(table.standing, VOID, "dealer", second=False) is None


def test_an_act_that_was_done_leaves_nobody_authorised_for_it(table: Table) -> None:
    table.say(BO, CY, replace(BO, act="FloorRuled"))
    left = without_used(table.standing, VOID, "dealer").authorities
    assert [one.act for one in left] == ["FloorRuled"]


def test_whoever_stands_by_does_so_for_one_person(table: Table) -> None:
    table.say(BO, CY)
    assert len(table.standing.authorities) == 2
    left = table.say(replace(BO, name="Dee Faro", badge="F-4", lock="xx")).authorities
    assert [(one.name, one.second) for one in left] == [("Dee Faro", False)]


def test_no_authority_outlives_the_controller(table: Table) -> None:
    table.say(ANN, BO, CY)
    standing = table.restart("b2", 0)
    assert (standing.authorities, at_table(standing)) == ((), Actor("dealer", "Ann Lee"))


def test_acts_are_those_that_the_procedure_gives_the_floor() -> None:
    every = [event for event, roles in WHO.items() if "floor" in roles]
    for event in every:
        assert act_of(event, about="7") == Act(event.__name__, ("floor",), event in TWO, "7")
    assert len(every) > 20
    alone, both = act_of(events.RoundVoided, two=False), act_of(events.FloorRuled, two=True)
    assert (alone.two, both.two, ADOPTED.two) == (False, True, True)
    with pytest.raises(ValueError, match="a Paid is not an act of the floor"):
        act_of(events.Paid)
    with pytest.raises(ValueError, match="a CardConfirmed has no second person"):
        act_of(events.CardConfirmed, two=True)


def test_what_takes_two_people_has_room_for_both() -> None:
    assert all("second" in event.__struct_fields__ for event in TWO)


@pytest.mark.parametrize("role", ROLES)
def test_second_persons_are_those_that_the_procedure_takes(role: str) -> None:
    event: Event = events.RoundVoided(Actor("floor", "Bo"), "reason", None)
    second = Actor(role, "Cy")  # type: ignore[arg-type]  # each of them is one of the procedure's
    assert second_person(event, second) == (role in SECONDS)


# --- what the record says ---------------------------------------------------------------------

SAID: Final = (
    ANN,
    GIL,
    SignOutData("dealer", "Gil Ode", "D-18", "dealer", "asked"),
    SignOutData("dealer", "Gil Ode", "D-18", "dealer", "closed"),
    BO,
    CY,
    turned(),
    turned("not theirs"),
    SignInDelayed("aa", "dealer", 30),
)


@pytest.mark.parametrize("said", SAID, ids=lambda said: type(said).__name__)
def test_what_is_recorded_is_read_back(said: SignInEntry) -> None:
    ledger = Ledger(Time())
    made = ledger.add(entry_for(said))
    assert made.kind == "person"
    check_data("person", bytes(made.data))
    assert read_sign_in_entry(made) == said


def test_who_did_it_is_whoever_proved_it() -> None:
    for said, by in (
        (ANN, RecordActor("dealer", "Ann Lee")),
        (BO, RecordActor("floor", "Bo Chan")),
        (SAID[2], RecordActor("dealer", "Gil Ode")),
        *((said, CONTROLLER) for said in (SAID[3], turned(), SAID[-1])),
    ):
        assert entry_for(said).by == by


def test_other_words_about_people_are_passed_over_and_broken_ones_are_not() -> None:
    ledger = Ledger(Time())
    ledger.add(RecordEntry("note", CONTROLLER, {"text": "hello"}))
    ledger.add(RecordEntry("person", CONTROLLER, {"what": "looked", "of": "round 12"}))
    assert fold(ledger.records).sessions == ()
    ledger.add(RecordEntry("person", CONTROLLER, {"what": "signed in", "who": "Al"}))
    with pytest.raises(ValueError, match="seq 3: an invalid entry about people"):
        fold(ledger.records)
    broken = replace(ledger.records[1], data=Raw(b'{"text":"no what"}'))
    with pytest.raises(ValueError, match="seq 2: "):
        fold([broken])


# --- wrong PINs -------------------------------------------------------------------------------


def test_waits_are_of_the_badge_and_of_the_screen(table: Table) -> None:
    table.say(*[turned()] * (BADGE.free + 1))
    assert table.waits(("aa", "dealer"), ("aa", "elsewhere"), ("zz", "dealer")) == [30, 30, 0]
    table.say(*[turned(lock=f"n{number}") for number in range(SCREEN.free - BADGE.free)])
    assert table.waits(("zz", "dealer"), ("zz", "elsewhere")) == [15, 0]
    table.tick(29.5)
    assert wait_seconds(table.standing, "aa", "dealer") == 1
    assert wait_seconds(table.tick(0.5), "aa", "dealer") == 0


@pytest.mark.parametrize("why", ["not theirs", "same person", "another dealer"])
def test_what_is_refused_after_the_right_pin_is_no_guess(table: Table, why: RefusalReason) -> None:
    table.say(*[turned(why)] * 20)
    assert wait_seconds(table.standing, "aa", "dealer") == 0


def test_being_turned_away_is_told_once_for_each_wait(table: Table) -> None:
    table.say(*[turned()] * (BADGE.free + 1))
    assert not delay_is_recorded(table.standing, "aa", "dealer")
    table.say(SignInDelayed("aa", "dealer", 30))
    assert all(delay_is_recorded(table.standing, "aa", one) for one in ("dealer", "elsewhere"))
    table.tick(30)
    assert not delay_is_recorded(table.say(turned()), "aa", "dealer")


def test_a_restart_forgets_no_wrong_pin(table: Table) -> None:
    table.say(*[turned()] * (BADGE.free + 2))
    assert wait_seconds(table.restart("b2", 1), "aa", "dealer") == 59


def test_what_is_long_past_is_left_behind(table: Table) -> None:
    for number in range(50):
        table.say(turned(lock=f"n{number}", screen=f"s{number}"))
        table.tick(3600)
    assert max(len(table.standing.badges), len(table.standing.screens)) <= 25


# --- time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [-3600, -NOON / 1e6, 3600, 365 * 86400])
def test_setting_the_clock_of_the_day_changes_nothing(table: Table, seconds: float) -> None:
    table.say(BO, *[turned()] * (BADGE.free + 2))
    table.time.set(seconds)
    table.tick()
    assert wait_seconds(table.standing, "aa", "dealer") == 60
    assert authority(table.standing, VOID, "dealer", second=False) is not None
    table.tick(59)
    assert wait_seconds(table.standing, "aa", "dealer") == 1
    assert wait_seconds(table.tick(1), "aa", "dealer") == 0
    assert table.standing.authorities == ()


def test_a_clock_that_is_behind_after_a_restart_keeps_waits_and_adds_none(table: Table) -> None:
    table.say(*[turned()] * (BADGE.free + 2))
    table.time.set(-10 * 365 * 86400)
    assert wait_seconds(table.restart("b2"), "aa", "dealer") == 60
    assert wait_seconds(table.tick(60), "aa", "dealer") == 0


def test_a_moment_that_comes_late_sets_nothing_back(table: Table) -> None:
    table.tick(10)
    before = table.standing.clock.at
    early = Moment(table.time.utc - 5_000_000, table.time.mono - 5 * 10**9)
    table.standing = state_at(table.standing, "b1", early)
    assert (table.standing.clock.at, table.tick().clock.at) == (before, before)


STEPS: Final = st.lists(
    st.one_of(
        st.builds(lambda lock, screen: ("guess", lock, screen), *[st.sampled_from("ab")] * 2),
        st.builds(lambda lock, screen: ("right", lock, screen), *[st.sampled_from("ab")] * 2),
        st.builds(lambda s: ("go", s, ""), st.sampled_from([0.0, 1.0, 31.0, 700.0, 4000.0, 90000])),
        st.builds(lambda s: ("set", s, ""), st.integers(-(10**7), 10**7)),
        st.builds(lambda s: ("restart", s, ""), st.integers(0, 10**6)),
        st.just(("wait", "", "")),
    ),
    min_size=20,
    max_size=120,
)


@given(STEPS)
def test_no_clock_and_no_restart_lets_more_guesses_through(
    steps: list[tuple[str, str | float, str]],
) -> None:
    """However the clock of the day is set while it runs, and set back before a start; counted by a
    clock on the wall. A clock that is set forward before a start is believed: it is in the record
    for surveillance to see."""
    table = Table()
    wall = 0.0
    boots = 0
    guesses: dict[str, list[float]] = {}
    for what, value, screen in steps:
        if what == "go":
            wall += float(value)
            table.tick(float(value))
        elif what == "set":
            table.time.set(float(value))
            table.tick()
        elif what == "restart":
            boots += 1
            table.ledger.add(RecordEntry("note", CONTROLLER, {"text": "the last words"}))
            table.time.set(-float(value))
            before = table.standing
            standing = table.restart(f"b{boots}", 0)
            assert (standing.badges, standing.screens) == (before.badges, before.screens)
        elif what == "wait":
            seconds = wait_seconds(table.standing, "a", "a")
            wall += seconds
            table.tick(seconds)
        elif not wait_seconds(table.standing, str(value), screen):
            if what == "guess":
                guesses.setdefault(f"badge {value}", []).append(wall)
                guesses.setdefault(f"screen {screen}", []).append(wall)
                table.say(turned(lock=str(value), screen=screen))
            else:
                table.say(replace(ANN, lock=str(value), screen=screen))
    for name, times in guesses.items():
        most = BADGE.an_hour if name.startswith("badge") else SCREEN.an_hour
        assert all(sum(t <= one < t + 3600 for one in times) <= most for t in times)
    folded = state_at(fold(table.ledger.records), table.ledger.boot, table.time.now)
    assert (folded.sessions, folded.badges) == (table.standing.sessions, table.standing.badges)
    assert folded.screens == table.standing.screens


HOUR: Final = 3600
DEALING: Final = SignInData("dealer", "Ann Lee", "D-17", "l17", "dealer", 0)
DEE: Final = SignInData("surveillance", "Dee Faro", "S-1", "l1", "eye", 12 * HOUR)
OUT: Final = SignOutData("dealer", "Ann Lee", "D-17", "dealer", "asked")
GUESS: Final = SignInRefused("wrong PIN", "Ann Lee", "D-17", "l17", "dealer", "dealer")
Doing: TypeAlias = SignInEntry | float | str
"""What somebody does; seconds that go by; `boot`, `play`, which is a lot of records, or that the
clock is set `ahead` or `back`."""


def recorded(place: Path, doings: Sequence[Doing]) -> None:
    clock = FakeClock()
    log = begun(place, clock=clock)
    for doing in doings:
        if isinstance(doing, SignInEntry):
            log.write([entry_for(doing)])
        elif doing == "boot":
            log.close()
            clock.mono = 10**9  # the machine was started anew
            log = begun(place, clock=clock)
        elif doing in ("ahead", "back"):
            clock.set(600 if doing == "ahead" else -600)
            log.write([note("the time")])
        elif doing == "play":
            for _ in range(2):
                log.write([note("cards", 5000)])
        else:
            assert isinstance(doing, int | float)
            log.sign()
            clock.go(doing)
    log.write([note("the last")])
    log.close()


def found(place: Path) -> SignInState:
    with closing(RecordOpening.at(place, table=TABLE)) as opening:
        return restore_sign_ins(opening)


def told(standing: SignInState) -> tuple[object, ...]:
    """What anybody notices of it."""
    sessions = sorted(standing.sessions, key=lambda one: one.badge)
    who = [(one.role, one.badge, one.screen) for one in sessions]
    waits = wait_seconds(standing, "l17", "dealer"), wait_seconds(standing, "l1", "eye")
    return (who, waits, standing.clock)


doing = st.one_of(
    st.sampled_from(
        [
            DEALING,
            replace(DEALING, name="Bo Chan", badge="D-18", lock="l18"),
            DEE,
            OUT,
            GUESS,
            GUESS,
            GUESS,
        ]
    ),
    st.sampled_from(["boot", "play", "play", "ahead", "back"]),
    st.sampled_from([1.0, 45.0, 1.0 * HOUR]),
)
before = st.lists(st.sampled_from([DEALING, DEE, GUESS, "play", "boot", 26.0 * HOUR]), max_size=4)


@settings(max_examples=40)
@given(before, st.lists(doing, max_size=18))
@example([DEALING, DEALING, DEALING, "play"], ["ahead", 1.0, 1.0, "boot"])
def test_it_is_what_the_whole_record_comes_to(old: list[Doing], new: list[Doing]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "record"
        recorded(place, [*old, *new])
        assert told(found(place)) == told(fold(everything(place)))


@pytest.mark.parametrize("set_", ["ahead", "back"])
def test_a_clock_that_was_set_makes_no_wait_shorter_or_longer(set_: str, tmp_path: Path) -> None:
    """Within a boot the machine's own count goes on, whatever the clock says."""
    recorded(tmp_path / "r", [*[GUESS] * 5, set_, "play", "play", "boot", 1.0])
    whole = fold(everything(tmp_path / "r"))
    assert 0 < wait_seconds(whole, "l17", "dealer") < 60
    assert told(found(tmp_path / "r")) == told(whole)


def test_a_dealer_of_days_ago_still_deals(tmp_path: Path) -> None:
    recorded(
        tmp_path / "r", [DEALING, *["play"] * 6, 30.0 * HOUR, *["play"] * 6, 30.0 * HOUR, "boot"]
    )
    assert len(numbers(tmp_path / "r")) > 6
    assert at_table(found(tmp_path / "r")) == Actor("dealer", "Ann Lee")


def test_no_further_back_is_read_than_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "r", [DEALING, *["play"] * 6, OUT, 30.0 * HOUR, *["play"] * 6])
    every = numbers(tmp_path / "r")
    read: list[int] = []

    def load(file: Path, number: int) -> bytes:
        read.append(number)
        return reader.load(file, number)

    monkeypatch.setattr(sign_in, "load", load)
    assert at_table(found(tmp_path / "r")) is None
    assert 1 < len(read) < len(every) - 3
    assert read == sorted(read, reverse=True)


def test_a_dealer_of_long_ago_has_to_sign_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in, "MAX_SEGMENTS", 3)
    recorded(tmp_path / "r", [DEALING, *["play"] * 9])
    assert at_table(found(tmp_path / "r")) is None


def test_a_new_record_knows_nobody(tmp_path: Path) -> None:
    assert found(tmp_path / "r") == SignInState()


def test_one_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    log = begun(tmp_path / "r")
    (said,) = log.write(
        [RecordEntry("person", CONTROLLER, {"what": "signed in", "role": "dealer"})]
    )
    log.close()
    with pytest.raises(RecordDamaged, match=f"seq {said.seq}: an invalid entry about people"):
        found(tmp_path / "r")
