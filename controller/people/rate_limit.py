"""Rate limit for wrong PINs: delays that double with each one, and a maximum per hour.

Times are nanoseconds of a monotonic clock. A PIN is checked at `at` only if `at >= tries.until`; a
wrong one sets the next `until`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

SECOND: Final = 1_000_000_000
HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR


class GuessLimits(Struct, frozen=True):
    """The limits for a badge or a screen."""

    free: int
    """Number of wrong PINs without a delay."""
    first: int
    """The delay after the next one; it doubles with each more, up to `longest`."""
    longest: int
    an_hour: int
    """Maximum number of wrong PINs in any hour."""
    until_right: bool
    """The delay depends on wrong PINs since the last right one; else on those of the last hour."""


BADGE: Final = GuessLimits(3, 30 * SECOND, HOUR, 10, until_right=True)
"""Enough for a user who remembers the PIN after a few tries. An attacker has 10 tries in the first
hour and then one per hour, out of a million PINs."""
SCREEN: Final = GuessLimits(6, 15 * SECOND, HOUR, 30, until_right=False)
"""A right PIN does not reset a screen: an attacker could enter their own between guesses."""


class WrongGuesses(Struct, frozen=True, gc=False):
    """The wrong PINs for one badge, or at one screen."""

    streak: int = 0
    """Number since the last right PIN, or since a day without a wrong one."""
    recent: tuple[int, ...] = ()
    """Times within the hour before the last one."""
    last: int = 0
    until: int = 0
    """No PIN is checked before this time."""
    delay_recorded: bool = False
    """A rejection before `until` has been recorded."""


NO_GUESSES: Final = WrongGuesses()


def wait(tries: WrongGuesses, at: int) -> int:
    """Nanoseconds until a PIN is checked; 0: now."""
    return max(0, tries.until - at)


def wrong(tries: WrongGuesses, at: int, limits: GuessLimits) -> WrongGuesses:
    """After a wrong PIN."""
    streak = 1 if stale(tries, at) else tries.streak + 1
    recent = (*(one for one in tries.recent if one > at - HOUR), at)
    until = at + _pause(streak if limits.until_right else len(recent), limits)
    if len(recent) >= limits.an_hour:
        until = max(until, recent[-limits.an_hour] + HOUR)
    return WrongGuesses(streak, recent, at, until)


def right(tries: WrongGuesses) -> WrongGuesses:
    """After the right PIN. Wrong ones still count for the limit per hour."""
    return replace(tries, streak=0)


def with_delay_recorded(tries: WrongGuesses) -> WrongGuesses:
    return replace(tries, delay_recorded=True)


def stale(tries: WrongGuesses, at: int) -> bool:
    """Whether a day has passed without a wrong PIN, so that the count can be deleted. That is
    longer than every delay, so an attacker gains nothing by waiting."""
    return at - tries.last >= DAY and at >= tries.until


def _pause(wrongs: int, limits: GuessLimits) -> int:
    over = wrongs - limits.free
    if over <= 0:
        return 0
    return min(limits.first << min(over - 1, 32), limits.longest)
