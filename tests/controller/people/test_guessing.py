"""Whoever guesses a PIN, in whatever way, learns nothing and has to wait; and when nobody can be
looked at, nobody gets in. The delays by themselves are checked too."""

import asyncio
import threading
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from argon2 import low_level
from argon2.exceptions import HashingError
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.audit.format.validation import check_data
from controller.audit.log import LogWriter
from controller.people import DENIAL_TEXTS, Denied, PeopleFile, act_of, pins, service
from controller.people.rate_limit import (
    BADGE,
    DAY,
    HOUR,
    NO_GUESSES,
    SCREEN,
    SECOND,
    GuessLimits,
    WrongGuesses,
    right,
    stale,
    wait,
    with_delay_recorded,
    wrong,
)
from controller.people.service import SignInResult
from controller.people.sign_in import fold
from controller.procedure.model.events import Actor, PaymentApproved
from tests.support.asynchronous import asynchronous
from tests.support.audit.record.table import begun, everything
from tests.support.table.simulated.house import CHEAP, DEARER, PINS, everybody, house, person
from tests.support.table.typed.at_desk import SCREEN_1, WRONG, Desk, at_table, change

APPROVE: Final = act_of(PaymentApproved)


# --- the same answer --------------------------------------------------------------------------

ASKS: Final = {
    "wrong PIN": ("D-17", WRONG),
    "somebody else's PIN": ("D-17", PINS["D-18"]),
    "nobody's badge": ("D-77", PINS["D-17"]),
    "disabled": ("X-1", PINS["X-1"]),
    "disabled, wrong PIN": ("X-1", WRONG),
    "no badge at all": ("", ""),
    "odd badge": ("\ud800\x00" * 40, WRONG),
    "odd PIN": ("D-17", "\ud800" * 1000),
    "PIN in place of the badge": (PINS["D-17"], "D-17"),
}


class Hashing:
    """What argon2 was asked for, by which thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[int, ...]] = []
        self.threads: set[str] = set()

        def watched(secret: bytes, salt: bytes, *rest: object) -> bytes:
            self.asked.append((len(secret), len(salt), *rest[:4]))  # type: ignore[arg-type]
            self.threads.add(threading.current_thread().name)
            return low_level.hash_secret_raw(secret, salt, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(pins, "hash_secret_raw", watched)


@pytest.mark.parametrize("name", ASKS)
@asynchronous
async def test_whatever_is_wrong_has_one_answer_and_costs_the_same(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The same number of hashes at the same cost, and the same fields in the record."""
    hashing = Hashing(monkeypatch)
    badge, pin = ASKS[name]

    asking = badge, pin, SCREEN_1, desk.time.now
    for _ in range(BADGE.free):
        assert await desk.desk.sign_in(*asking) == Denied("not right")
    assert await desk.desk.authorise(APPROVE, *asking) == Denied("not right", 30)
    assert await desk.desk.sign_in(*asking) == Denied("wait", 30)
    assert hashing.asked == [(32, 16, 1, 8, 1, 32)] * (BADGE.free + 1)
    assert all(name.startswith("people") for name in hashing.threads)
    assert desk.ledger.what() == [*["refused"] * (BADGE.free + 1), "turned away"]
    assert [record.by.name for record in desk.ledger.records] == ["controller"] * 5


@asynchronous
async def test_unknown_badges_cost_what_known_ones_do_whatever_those_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where verifiers are of two costs, badges that nobody has are of both too."""
    old, new = everybody(CHEAP), everybody(DEARER)
    file = house(tmp_path, (*old[:4], *new[4:]))
    hashing = Hashing(monkeypatch)
    async with Desk(file, cost=DEARER) as desk:
        for number in range(40):
            for _ in range(2):
                await desk.sign_in(f"N-{number}", WRONG, f"s{number}")
    costs = [asked[2:4] for asked in hashing.asked]
    assert set(costs) == {(1, 8), (2, 16)}
    assert costs[::2] == costs[1::2]


@asynchronous
async def test_neither_pins_nor_what_is_nobodys_badge_stand_in_the_record(desk: Desk) -> None:
    await desk.sign_in("D-17", WRONG)
    await desk.sign_in(PINS["D-17"], "D-17", "s2")  # each in the other's field
    await desk.sign_in("D-4711", WRONG, "s3")
    await desk.sign_in("D-17")
    await desk.void("F-2")
    recorded = b"".join(desk.ledger.said()).decode()
    assert not [text for text in (WRONG, "D-4711", *PINS.values()) if text in recorded]
    expected = {
        '"badge":"D-17"': 2,
        '"why":"wrong PIN","name":"Ann Lee","badge":"D-17"': 1,
        '"why":"unknown badge","name":"","badge":""': 2,
    }
    assert {text: recorded.count(text) for text in expected} == expected


def test_every_answer_has_its_words() -> None:
    assert str(Denied("wait", 30)) == "too many wrong PINs: wait (30 s)"
    assert str(Denied("not right")) == "badge or PIN is not right"
    assert len(set(DENIAL_TEXTS.values())) == len(DENIAL_TEXTS) == 13


# --- guessing ---------------------------------------------------------------------------------


@asynchronous
async def test_many_guesses_at_once_are_no_more_than_one_after_the_other(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashing = Hashing(monkeypatch)

    for _ in range(4):
        screens = [f"s{number}" for number in range(service.MAX_WAITING)]
        answers = await asyncio.gather(*(desk.sign_in("D-17", WRONG, one) for one in screens))
        assert {answer.why for answer in answers if isinstance(answer, Denied)} <= {
            "not right",
            "wait",
        }
    assert len(hashing.asked) == BADGE.free + 1


@asynchronous
async def test_one_thing_at_a_time_from_a_screen_and_not_too_many_screens(desk: Desk) -> None:
    first = asyncio.create_task(desk.sign_in("D-17"))
    await asyncio.sleep(0)
    assert await desk.sign_in("D-18") == Denied("busy")
    assert await desk.desk.sign_out(SCREEN_1, desk.time.now) == Denied("busy")
    others = [
        asyncio.create_task(desk.sign_in("D-17", WRONG, f"s{number}"))
        for number in range(service.MAX_WAITING - 1)
    ]
    await asyncio.sleep(0)
    assert await desk.sign_in("D-18", screen="one more") == Denied("busy")
    assert isinstance(await first, SignInResult)
    await asyncio.gather(*others)
    assert await desk.sign_in("D-18") == Denied("another dealer")


@asynchronous
async def test_a_guess_that_nobody_waits_for_any_more_counts(desk: Desk) -> None:
    """Closing the page before the answer comes is no way to guess for nothing."""

    for _ in range(BADGE.free + 1):
        asked = asyncio.create_task(desk.sign_in("D-17", WRONG))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        while desk.desk.busy:
            await asyncio.sleep(0.001)
    assert await desk.sign_in("D-17") == Denied("wait", 30)
    assert desk.ledger.what() == [*["refused"] * (BADGE.free + 1), "turned away"]


@asynchronous
async def test_a_locked_badge_opens_to_nobody_and_is_told_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(BADGE.free + 1):
        await desk.sign_in("D-17", WRONG)
    hashing = Hashing(monkeypatch)
    for _ in range(5):
        assert await desk.sign_in("D-17") == Denied("wait", 30)
        assert await desk.sign_in("D-17", WRONG) == Denied("wait", 30)
    assert hashing.asked == []
    assert isinstance(await desk.sign_in("D-18"), SignInResult)
    desk.time.go(30)
    assert isinstance(await desk.sign_in("D-17", relieve=True), SignInResult)
    assert desk.ledger.what().count("turned away") == 1


@asynchronous
async def test_a_screen_is_locked_whatever_badges_are_tried(desk: Desk) -> None:
    for number in range(SCREEN.free + 1):
        assert isinstance(await desk.sign_in(f"N-{number}", WRONG), Denied)
    assert await desk.sign_in("D-17") == Denied("wait", 15)
    assert isinstance(await desk.sign_in("D-17", screen="elsewhere"), SignInResult)


@asynchronous
async def test_another_pin_is_not_locked_by_guesses_at_the_old_one(
    desk: Desk, file: PeopleFile
) -> None:
    for number in range(BADGE.free + 1):
        await desk.sign_in("D-17", WRONG, f"s{number}")
    assert await desk.sign_in("D-17") == Denied("wait", 30)
    change(file, "D-17", lambda one: replace(one, pin=person("D-17", "", ()).pin))
    assert isinstance(await desk.sign_in("D-17"), SignInResult)


@asynchronous
async def test_a_real_record_keeps_the_locks_over_a_restart(
    tmp_path: Path, file: PeopleFile
) -> None:
    book = LogWriter(begun(tmp_path / "record"))
    async with Desk(file, record=book.append, boot="b1") as desk:
        await desk.sign_in("D-18")
        for _ in range(BADGE.free + 2):
            await desk.sign_in("D-17", WRONG)
            desk.time.go(30)
    await book.close()
    records = everything(tmp_path / "record")
    standing = fold(records)
    assert at_table(standing) == Actor("dealer", "Gil Ode")
    async with Desk(file, standing=standing, boot=records[-1].boot) as desk:
        desk.time.utc, desk.time.mono = records[-1].utc, records[-1].mono
        assert await desk.sign_in("D-17") in [Denied("wait", seconds) for seconds in range(55, 61)]


# --- trouble ----------------------------------------------------------------------------------


@asynchronous
async def test_a_file_that_cannot_be_used_lets_nobody_in_and_is_told_once(
    desk: Desk, file: PeopleFile
) -> None:
    file.file.chmod(0o666)
    for _ in range(30):
        assert await desk.sign_in("D-17") == Denied("unreadable")
    assert await desk.desk.refresh(desk.time.now) == Denied("unreadable")
    file.file.chmod(0o600)
    assert isinstance(await desk.sign_in("D-17"), SignInResult)
    file.file.chmod(0o666)
    assert await desk.sign_in("D-17") == Denied("unreadable")
    first, second = desk.ledger.said("fault")
    for one in (first, second):
        check_data("fault", one)
    assert b"others may touch it (mode 666)" in first


@asynchronous
async def test_a_machine_without_memory_lets_nobody_in(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bytes:
        raise HashingError("Memory allocation error")

    with monkeypatch.context() as patched:
        patched.setattr(pins, "hash_secret_raw", full)
        for badge in ("D-17", "N-1"):
            assert await desk.sign_in(badge, WRONG) == Denied("unreadable")
    assert isinstance(await desk.sign_in("D-17"), SignInResult)
    assert len(desk.ledger.said("fault")) == 1


@asynchronous
async def test_the_loop_goes_on_while_a_pin_is_looked_at(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go = threading.Event(), threading.Event()

    def slow(*arguments: object) -> bytes:
        asked.set()
        assert go.wait(10)
        return low_level.hash_secret_raw(*arguments)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(pins, "hash_secret_raw", slow)

    signing = asyncio.create_task(desk.sign_in("D-17"))
    while not asked.is_set():
        await asyncio.sleep(0.001)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not signing.done()
    go.set()
    assert isinstance(await signing, SignInResult)


@asynchronous
async def test_what_does_not_come_back_is_given_up_and_counts_for_nobody(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def stuck(*arguments: object) -> bytes:
        assert go.wait(10)
        return low_level.hash_secret_raw(*arguments)  # type: ignore[arg-type]  # as they came

    with monkeypatch.context() as patched:
        patched.setattr(pins, "hash_secret_raw", stuck)
        patched.setattr(service, "CHECK_TIMEOUT", 0.05)
        answers = [await desk.sign_in("D-17") for _ in range(2)]
        assert (answers, desk.desk.standing.sessions) == ([Denied("unreadable")] * 2, ())
        go.set()
    async with asyncio.timeout(20):
        while not isinstance(await desk.sign_in("D-17"), SignInResult):
            await asyncio.sleep(0.001)
    assert desk.ledger.what() == ["signed in"]


@asynchronous
async def test_a_desk_that_closes_ends_what_was_begun_and_takes_nothing_more(desk: Desk) -> None:
    asked = asyncio.create_task(desk.sign_in("D-17", WRONG))
    await asyncio.sleep(0)
    await desk.desk.close()
    assert await asked == Denied("not right")
    assert await desk.sign_in("D-17") == Denied("closing")
    assert await desk.desk.refresh(desk.time.now) == Denied("closing")
    await desk.desk.close()
    assert desk.ledger.what() == ["refused"]
    assert not [one for one in threading.enumerate() if one.name.startswith("people")]


START = 1_800_000_000 * SECOND
LIMITS = pytest.mark.parametrize("limits", [BADGE, SCREEN], ids=["badge", "screen"])


def most_in_an_hour(times: list[int]) -> int:
    """Counted the slow way, over every hour that begins with a guess."""
    return max((sum(t <= one < t + HOUR for one in times) for t in times), default=0)


def patient(limits: GuessLimits, until: int) -> list[int]:
    """When somebody guesses who does so as soon as it is let through."""
    tries, at = NO_GUESSES, START
    times = []
    while at < START + until:
        times.append(at)
        tries = wrong(tries, at, limits)
        at = max(at, tries.until)
    return times


GAPS = st.one_of(
    st.just(0),
    st.integers(0, 40 * SECOND),
    st.integers(0, 2 * HOUR),
    st.integers(DAY - SECOND, DAY + SECOND),
)


@given(
    st.sampled_from(
        [BADGE, SCREEN, GuessLimits(0, SECOND, HOUR, 3, True), GuessLimits(50, 1, 1, 5, False)]
    ),
    st.lists(
        st.tuples(GAPS, st.sampled_from(["wrong", "wrong", "wrong", "right", "wait"])),
        min_size=25,
        max_size=120,
    ),
)
def test_no_sequence_of_times_lets_more_than_the_most_through_in_an_hour(
    limits: GuessLimits, steps: list[tuple[int, str]]
) -> None:
    """Right PINs in between, days of quiet, waiting for exactly as long as it takes."""
    tries, at = NO_GUESSES, START
    times = []
    for gap, what in steps:
        at += gap
        if what == "wait":
            at += wait(tries, at)
        if wait(tries, at):
            tries = with_delay_recorded(tries)
            continue
        if what == "right":
            tries = right(tries)
        else:
            times.append(at)
            tries = wrong(tries, at, limits)
            assert tries.until >= at
            assert not tries.delay_recorded
    assert most_in_an_hour(times) <= limits.an_hour
    assert len(tries.recent) <= limits.an_hour


@LIMITS
def test_the_most_in_an_hour_holds_and_is_reached(limits: GuessLimits) -> None:
    times = patient(limits, 30 * HOUR)
    assert most_in_an_hour(times) <= limits.an_hour
    assert sum(one < START + HOUR for one in times) >= limits.an_hour - 20
    assert len(times) > limits.an_hour


def test_right_pins_between_the_guesses_do_not_lift_the_most() -> None:
    tries, at = NO_GUESSES, START
    times = []
    while at < START + 5 * HOUR:
        times.append(at)
        tries = right(wrong(tries, at, BADGE))
        at = max(at, tries.until)
    assert most_in_an_hour(times) == BADGE.an_hour
    assert len(times) == 5 * BADGE.an_hour


def test_whoever_guesses_at_a_badge_has_ten_then_one_an_hour() -> None:
    times = patient(BADGE, DAY)
    assert sum(one < START + HOUR for one in times) == BADGE.an_hour
    assert all(after - before >= HOUR for before, after in pairwise(times[BADGE.an_hour :]))
    assert len(times) <= BADGE.an_hour + 24


def test_a_day_of_quiet_gains_a_guesser_nothing() -> None:
    """As many as fit, a day of quiet, and so on: no more than one after the other."""
    in_one_go = len(patient(BADGE, 10 * DAY))
    for burst in range(1, 15):
        tries, at = NO_GUESSES, START
        guesses = 0
        while at < START + 10 * DAY:
            for _ in range(burst):
                at = max(at, tries.until)
                tries = wrong(tries, at, BADGE)
                guesses += 1
            at += DAY
            assert stale(tries, at)
        assert guesses <= in_one_go


@LIMITS
def test_a_slip_costs_nothing_and_waits_grow(limits: GuessLimits) -> None:
    tries, at = NO_GUESSES, START
    waits = []
    for _ in range(limits.an_hour - 1):
        tries = wrong(tries, at, limits)
        waits.append(wait(tries, at))
        at += 1
        tries = WrongGuesses(
            tries.streak, tries.recent, tries.last, at, tries.delay_recorded
        )  # let through at once
    assert (waits[: limits.free], waits[limits.free]) == ([0] * limits.free, limits.first)
    grown = waits[limits.free :]
    assert all(after in (2 * before, limits.longest) for before, after in pairwise(grown))


def test_a_right_pin_begins_anew_at_the_badge_and_not_at_the_screen() -> None:
    for limits, first in ((BADGE, 0), (SCREEN, SCREEN.first)):
        tries = NO_GUESSES
        for _ in range(limits.free):
            tries = right(wrong(tries, START, limits))
        assert wait(wrong(tries, START, limits), START) == first


def test_an_hour_later_a_screen_is_free() -> None:
    tries = NO_GUESSES
    for _ in range(SCREEN.free + 3):
        tries = wrong(tries, START, SCREEN)
    assert wait(tries, START)
    assert wait(wrong(tries, START + HOUR, SCREEN), START + HOUR) == 0
