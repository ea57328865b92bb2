"""Browsers that look at the table: each has a session, and with it a screen of its own.

The session goes by a cookie, and its life is short: a page that is open keeps it, and a page that
is loaded again finds it. Who is signed in is known by the screen, as it is for any program.

Anybody on the network may look where pages are shown there, and nobody is to shut others out by it:
whoever comes from one address has a share, and where people have signed in nobody else counts.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hmac import compare_digest
from ipaddress import IPv6Address, ip_address, ip_network
from operator import itemgetter
from typing import Final
from weakref import WeakValueDictionary

from controller.api.contract.errors import Problem
from controller.api.http import TableApi
from controller.api.service import ScreenSession, screens, sign_in
from controller.screens.common.sessions import Appearance, AttemptLimit

NAME: Final = "console"
"""What a browser's screen is called; where one is called so, with a number."""
MAX_BROWSERS: Final = 256
"""Browsers at once."""
IDLE_TIMEOUT: Final = 120.0
"""Seconds after which a session ends that asks for nothing and has no stream."""
MIN_IDLE: Final = 10.0
"""The same where there is no room for another one, and nobody is signed in there."""
REVIEW_IDLE_TIMEOUT: Final = screens.IDLE_TIMEOUT
"""The same where surveillance is signed in: a page is read for some time."""
ATTEMPTS: Final = 10
"""Badges and PINs that may be shown at one screen at once; then one every so many seconds."""
ATTEMPT_INTERVAL: Final = 6.0
ALL_ATTEMPTS: Final = 40
"""The same at all pages of a table together where nobody has signed in yet. Beside it the desk
makes whoever guesses wait."""
ALL_ATTEMPTS_INTERVAL: Final = 2.0
ADDRESS_ATTEMPTS: Final = 20
"""The same at those of one address: half of that, so that it is not used up from there."""
ADDRESS_ATTEMPTS_INTERVAL: Final = 4.0
_BYTES: Final = 32
_OURS: Final = 64
"""Bits of an IPv6 address that its owner does not choose."""


class Browser:
    """One session."""

    def __init__(
        self,
        token: str,
        screen: ScreenSession,
        tries: AttemptLimit,
        address: str,
        here: AttemptLimit,
    ) -> None:
        """`address`: where it is; `here`: of all who come from there."""
        self.id = secrets.token_urlsafe(_BYTES)
        """What its cookie says."""
        self.secret = secrets.token_urlsafe(_BYTES)
        """What each form of its pages brings back."""
        self.token = token
        """Of its screen. No browser is ever told."""
        self.screen = screen
        self.tries = tries
        self.address = address
        self.here = here
        self.known = False
        """Somebody has signed in here."""
        self.looks = Appearance()

    def has_secret(self, said: str) -> bool:
        return compare_digest(self.secret.encode(), said.encode())


class Browsers:
    """All of one table."""

    def __init__(self, api: TableApi, clock: Callable[[], float]) -> None:
        """`clock`: seconds that never go back: the one that the API's screens go by."""
        self._api = api
        self._clock = clock
        self._browsers: dict[str, Browser] = {}
        self._tries = AttemptLimit(ALL_ATTEMPTS, ALL_ATTEMPTS_INTERVAL, clock)
        self._here: WeakValueDictionary[str, AttemptLimit] = WeakValueDictionary()
        """Of each address that a browser is at."""

    def __len__(self) -> int:
        return len(self._browsers)

    def begin(self, host: str = "") -> Browser:
        """A new one, of whoever is there. Problem where there is no room."""
        address = _address(host)
        if len(self._browsers) >= MAX_BROWSERS and not self._make_room(address):
            what = f"{MAX_BROWSERS} browsers look at this table"
            raise Problem(429, "screens_full", what, "one less: close one", wait=round(MIN_IDLE))
        token, screen = self._api.screens.open(NAME)
        here = self._here.get(address) or AttemptLimit(
            ADDRESS_ATTEMPTS, ADDRESS_ATTEMPTS_INTERVAL, self._clock
        )
        self._here[address] = here
        made = Browser(
            token, screen, AttemptLimit(ATTEMPTS, ATTEMPT_INTERVAL, self._clock), address, here
        )
        self._browsers[made.id] = made
        return made

    def find(self, name: str | None) -> Browser | None:
        """The session of that cookie, used now; None where there is none any more."""
        found = self._browsers.get(name or "")
        if found is None or not self.alive(found):
            return None
        found.screen.used = self._clock()
        return found

    def alive(self, browser: Browser) -> bool:
        """Without using it."""
        there = self._browsers.get(browser.id) is browser
        return there and self._api.screens.is_open(browser.screen) and not self._over(browser)

    def renew(self, browser: Browser) -> None:
        """Somebody has said who they are: whoever else had this cookie has nothing of it."""
        del self._browsers[browser.id]
        browser.id = secrets.token_urlsafe(_BYTES)
        browser.known = True
        self._browsers[browser.id] = browser

    def may_try(self, browser: Browser) -> bool:
        """Whether a badge and PIN are looked at that were shown here now."""
        if not browser.tries.one():
            return False
        return browser.known or (browser.here.one() and self._tries.one())

    @contextmanager
    def streaming(self, browser: Browser) -> Iterator[None]:
        """It has a stream, and so is in use."""
        with self._api.screens.streaming(browser.screen):
            yield

    async def end(self, browser: Browser) -> None:
        """Its screen is closed: whoever deals goes on dealing, all others are signed out."""
        if self._browsers.pop(browser.id, None) is None:
            return
        try:
            await sign_in.close(self._api.served, browser.screen)
        finally:
            self._api.screens.close(browser.screen)
            self._api.views.notify()

    async def end_idle(self) -> None:
        """Those whose time is over."""
        for browser in [one for one in self._browsers.values() if not self.alive(one)]:
            try:
                await self.end(browser)
            except Problem:  # nothing can be recorded: its screen is closed, and counts for nobody
                continue

    def _over(self, browser: Browser) -> bool:
        life = REVIEW_IDLE_TIMEOUT if "surveillance" in browser.screen.badges else IDLE_TIMEOUT
        return browser.screen.idle(self._clock()) >= life

    def _make_room(self, address: str) -> bool:
        """Drops the one that only watched, and that was not used for longest. Where all are in use,
        one of those at the address with the most of them: it has more than the address of who comes
        would have."""
        now = self._clock()
        watching = [one for one in self._browsers.values() if not one.screen.badges]
        spare = [one for one in watching if one.screen.idle(now) >= MIN_IDLE]
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


def _address(host: str) -> str:
    """What one subscriber of a network has: an address, or the network that it is given."""
    try:
        found = ip_address(host)
    except ValueError:
        return host
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or ip_network((int(found), _OURS), strict=False).network_address
    return str(found)
