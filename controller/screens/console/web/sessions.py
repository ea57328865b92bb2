"""Sessions of browsers at the console, each with one screen.

A session is found by its cookie and ends soon without an open page. Who is signed in belongs to the
screen, as for any program.

Where pages are served on a network, any host there may watch. To keep one host from shutting out
the others, sessions and attempts are limited per address; after a sign-in they are not.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from hmac import compare_digest
from operator import itemgetter
from typing import Final
from weakref import WeakValueDictionary

from controller.api.contract.errors import Problem
from controller.api.http import Rank, SessionRank, no_session, screen_rank, subscriber_address
from controller.api.service import SCREEN_IDLE_TIMEOUT, ScreenSession, TableApi, close_screen
from controller.screens.common.sessions import Appearance, AttemptLimit

NAME: Final = "console"
"""The name of a browser's screen; a number is added if it is taken."""
MAX_BROWSERS: Final = 256
IDLE_TIMEOUT: Final = 120.0
"""Seconds without a request or a stream until a session ends."""
MIN_IDLE: Final = 10.0
"""Seconds of idleness that suffice if the limit is reached and no person is signed in there."""
UNUSED_IDLE: Final = 1.0
"""The same for a session whose cookie never came back: a browser opens its stream within this time,
and a program that only asks for pages does not."""
REVIEW_IDLE_TIMEOUT: Final = SCREEN_IDLE_TIMEOUT
"""The idle timeout where surveillance is signed in: a page is read for some time."""
ATTEMPTS: Final = 10
"""Badges and PINs that one browser may send at once; then one every ATTEMPT_INTERVAL seconds."""
ATTEMPT_INTERVAL: Final = 6.0
ALL_ATTEMPTS: Final = 40
"""The same for all browsers without a sign-in. The desk limits wrong PINs as well."""
ALL_ATTEMPTS_INTERVAL: Final = 2.0
ADDRESS_ATTEMPTS: Final = 20
"""The same for one address: half of all, so that one address cannot use them up."""
ADDRESS_ATTEMPTS_INTERVAL: Final = 4.0
_BYTES: Final = 32


class Browser:
    """One session."""

    def __init__(
        self,
        token: str,
        screen: ScreenSession,
        attempts: AttemptLimit,
        address: str,
        address_attempts: AttemptLimit,
    ) -> None:
        self.id = secrets.token_urlsafe(_BYTES)
        """The value of its cookie."""
        self.secret = secrets.token_urlsafe(_BYTES)
        """Sent back by each form of its pages."""
        self.token = token
        """Of its screen; never sent to the browser."""
        self.screen = screen
        self.attempts = attempts
        self.address = address
        self.address_attempts = address_attempts
        """Shared by all browsers of the address."""
        self.known = False
        """Whether a person has signed in here."""
        self.returned = False
        """Whether its cookie has come back."""
        self.appearance = Appearance()

    def has_secret(self, said: str) -> bool:
        return compare_digest(self.secret.encode(), said.encode())


class Browsers:
    """All browsers at one table."""

    def __init__(self, api: TableApi, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds, the same clock as the API's."""
        self._api = api
        self._clock = clock
        self._browsers: dict[str, Browser] = {}
        self._attempts = AttemptLimit(ALL_ATTEMPTS, ALL_ATTEMPTS_INTERVAL, clock)
        self._by_address: WeakValueDictionary[str, AttemptLimit] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._browsers)

    def __iter__(self) -> Iterator[Browser]:
        return iter(self._browsers.values())

    def begin(self, host: str = "") -> Browser:
        """Start a session for a browser at `host`. Raises Problem if there are too many."""
        address = subscriber_address(host)
        if len(self._browsers) >= MAX_BROWSERS and not self._make_room(address):
            raise Problem(
                429,
                "screens_full",
                f"{MAX_BROWSERS} browsers look at this table",
                "one less: close one",
                wait=round(MIN_IDLE),
            )
        token, screen = self._api.screens.open(NAME)
        shared = self._by_address.get(address)
        if shared is None:
            shared = AttemptLimit(ADDRESS_ATTEMPTS, ADDRESS_ATTEMPTS_INTERVAL, self._clock)
            self._by_address[address] = shared
        own = AttemptLimit(ATTEMPTS, ATTEMPT_INTERVAL, self._clock)
        made = Browser(token, screen, own, address, shared)
        self._browsers[made.id] = made
        return made

    def find(self, name: str | None) -> Browser | None:
        """Returns the session of a cookie and mark it as used; None if it is invalid."""
        found = self._browsers.get(name or "")
        if found is None or not self.alive(found):
            return None
        found.screen.used = self._clock()
        found.returned = True
        return found

    def rank(self, name: str | None) -> Rank:
        """Returns the function that ranks the connections of a cookie, without marking its session
        as used."""
        found = self._browsers.get(name or "")
        return no_session if found is None else partial(self._rank, found)

    def _rank(self, browser: Browser) -> SessionRank:
        if self._browsers.get(browser.id) is not browser:
            return SessionRank.NONE
        return screen_rank(self._api, browser.screen)

    def alive(self, browser: Browser) -> bool:
        """Returns whether the session is valid, without marking it as used."""
        there = self._browsers.get(browser.id) is browser
        return there and self._api.screens.is_open(browser.screen) and not self._expired(browser)

    def renew(self, browser: Browser) -> None:
        """Change the cookie after a sign-in: a copy of the old one is worthless."""
        del self._browsers[browser.id]
        browser.id = secrets.token_urlsafe(_BYTES)
        browser.known = True
        self._browsers[browser.id] = browser

    def may_try(self, browser: Browser) -> bool:
        """Count an attempt to sign in; False if it exceeds a limit."""
        if not browser.attempts.one():
            return False
        return browser.known or (browser.address_attempts.one() and self._attempts.one())

    async def end(self, browser: Browser) -> None:
        """End the session and close its screen. The dealer stays signed in."""
        if self._browsers.pop(browser.id, None) is not None:
            await close_screen(self._api, browser.screen)

    async def end_idle(self) -> None:
        for browser in [one for one in self._browsers.values() if not self.alive(one)]:
            try:
                await self.end(browser)
            except Problem:  # nothing can be recorded; its screen is closed anyway
                continue

    def _expired(self, browser: Browser) -> bool:
        reviews = "surveillance" in browser.screen.badges
        limit = REVIEW_IDLE_TIMEOUT if reviews else IDLE_TIMEOUT
        return browser.screen.idle(self._clock()) >= limit

    def _make_room(self, address: str) -> bool:
        """End the session without a sign-in that has been idle longest. If all are in use, end one
        of the address with the most sessions, if it has more than the new one's would have."""
        now = self._clock()
        watching = [one for one in self._browsers.values() if not one.screen.badges]
        spare = [one for one in watching if one.screen.idle(now) >= _min_idle(one)]
        if not spare:
            at = Counter(one.address for one in watching)
            most, count = max(at.items(), key=itemgetter(1), default=("", 0))
            if count <= at[address] + 1:
                return False
            spare = [one for one in watching if one.address == most]
        gone = min(spare, key=lambda one: (one.known, one.screen.used))
        del self._browsers[gone.id]
        self._api.screens.close(gone.screen)
        return True


def _min_idle(browser: Browser) -> float:
    return MIN_IDLE if browser.returned else UNUSED_IDLE
