"""How often somebody may guess: waits that grow with each wrong PIN, and a most for any hour.

Times are nanoseconds of a clock that never goes back. A guess is let through at `at` only when
`at >= tries.until`; a wrong one then makes the next `until`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

SECOND: Final = 1_000_000_000
HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR


class GuessLimits(Struct, frozen=True):
    """What is let through."""

    free: int
    """Wrong PINs without a wait."""
    first: int
    """The wait after the next one, which doubles with each more."""
    longest: int
    an_hour: int
    """Wrong PINs in any hour, whatever comes between them."""
    until_right: bool
    """What counts for the wait: all since the last right PIN; else those of the last hour."""


BADGE: Final = GuessLimits(3, 30 * SECOND, HOUR, 10, until_right=True)
"""Whoever has forgotten theirs finds it in a few tries. A guesser has 10 in the first hour and one
an hour then, of the million that there are."""
SCREEN: Final = GuessLimits(6, 15 * SECOND, HOUR, 30, until_right=False)
"""Nobody's right PIN frees a screen: a guesser would put their own between the guesses."""


class WrongGuesses(Struct, frozen=True, gc=False):
    """The wrong PINs at one badge, or at one screen."""

    streak: int = 0
    """Since the last right one, or a day of quiet."""
    recent: tuple[int, ...] = ()
    """When, as far as an hour back from the last one."""
    last: int = 0
    until: int = 0
    """Nobody's PIN is looked at before."""
    told: bool = False
    """It stands in the record that somebody was turned away before then."""


NO_GUESSES: Final = WrongGuesses()


def wait(tries: WrongGuesses, at: int) -> int:
    """How long until a PIN is looked at; 0: now."""
    return max(0, tries.until - at)


def wrong(tries: WrongGuesses, at: int, limits: GuessLimits) -> WrongGuesses:
    """Another wrong PIN."""
    streak = 1 if stale(tries, at) else tries.streak + 1
    recent = (*(one for one in tries.recent if one > at - HOUR), at)
    until = at + _pause(streak if limits.until_right else len(recent), limits)
    if len(recent) >= limits.an_hour:
        until = max(until, recent[-limits.an_hour] + HOUR)
    return WrongGuesses(streak, recent, at, until)


def right(tries: WrongGuesses) -> WrongGuesses:
    """The right PIN. What was guessed within the hour still counts for the hour."""
    return replace(tries, streak=0)


def delay_recorded(tries: WrongGuesses) -> WrongGuesses:
    return replace(tries, told=True)


def stale(tries: WrongGuesses, at: int) -> bool:
    """A day went by without a wrong PIN. That is longer than any wait, so that who waits for it
    gains nothing, and all that was guessed need not be remembered for ever."""
    return at - tries.last >= DAY and at >= tries.until


def _pause(wrongs: int, limits: GuessLimits) -> int:
    over = wrongs - limits.free
    if over <= 0:
        return 0
    return min(limits.first << min(over - 1, 32), limits.longest)
