"""No sequence of times lets more guesses through than the house allows."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert waits[: limits.free] == [0] * limits.free
    assert waits[limits.free] == limits.first
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
