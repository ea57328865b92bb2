"""Sessions of pages, and links that open one. They are in memory only."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from typing import Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from controller.api.http import Rank, SessionRank, no_session

Clock: TypeAlias = Callable[[], float]
Role: TypeAlias = Literal["surveillance", "floor"]

IDLE_TIMEOUT: Final = 30 * 60.0
"""Seconds without a request until a session ends."""
MAX_AGE: Final = 12 * 3600.0
"""Seconds until a session ends in any case: a shift."""
LINK_MAX_AGE: Final = 3600.0
"""Seconds until an unused link expires."""
MAX_SESSIONS: Final = 32
_BYTES: Final = 32


class PageUser(Struct, frozen=True):
    name: str
    role: Role = "surveillance"


class Appearance(Struct, frozen=True):
    """How a user wants the pages to look."""

    theme: Literal["auto", "light", "dark"] = "auto"
    suits: Literal["two", "four"] = "two"


class PageSession(Struct):
    id: str
    person: PageUser
    secret: str
    """Sent back by each form of this session."""
    began: float
    seen: float
    appearance: Appearance = Appearance()


class SessionStore(Protocol):
    """The sessions of pages."""

    def find(self, name: str | None) -> PageSession | None:
        """Returns the valid session of a cookie and mark it as used."""

    def alive(self, session: PageSession) -> bool:
        """Returns whether it is valid, without marking it as used."""

    def end(self, session: PageSession) -> None:
        """End the session. Not to be called in the event loop."""


class LinkSessions:
    def __init__(
        self,
        clock: Clock = time.monotonic,
        ended: Callable[[PageUser], None] = lambda person: None,
    ) -> None:
        """`ended` is called with the user of a session that expired, at its next request, or was
        ended."""
        self._clock = clock
        self._ended = ended
        self._sessions: dict[str, PageSession] = {}

    def begin(self, person: PageUser) -> PageSession:
        """Start a session. If there are too many, the least recently used one is dropped."""
        if len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[min(self._sessions.values(), key=lambda one: one.seen).id]
        now = self._clock()
        made = PageSession(_secret(), person, _secret(), now, now)
        self._sessions[made.id] = made
        return made

    def find(self, name: str | None) -> PageSession | None:
        """Returns the valid session with this id and mark it as used."""
        found = self._sessions.get(name or "")
        if found is None:
            return None
        now = self._clock()
        if now - found.seen > IDLE_TIMEOUT or now - found.began > MAX_AGE:
            self.end(found)
            return None
        found.seen = now
        return found

    def rank(self, name: str | None) -> Rank:
        """Returns the function that ranks the connections of a cookie, without marking its session
        as used: each is of a person who entered by a link."""
        found = self._sessions.get(name or "")
        if found is None:
            return no_session
        return lambda: SessionRank.SIGNED_IN if self.alive(found) else SessionRank.NONE

    def end(self, session: PageSession) -> None:
        if self._sessions.pop(session.id, None) is not None:
            self._ended(session.person)

    def alive(self, session: PageSession) -> bool:
        now = self._clock()
        over = now - session.seen > IDLE_TIMEOUT or now - session.began > MAX_AGE
        return session.id in self._sessions and not over


def is_secret_of(session: PageSession, said: str) -> bool:
    return compare_digest(session.secret.encode(), said.encode())


class LoginLinks:
    """Tokens of links that open one session each."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._links: dict[bytes, tuple[PageUser, float]] = {}

    def make(self, person: PageUser) -> str:
        """Returns a new token; earlier ones of the same user become invalid."""
        self._links = {key: one for key, one in self._links.items() if one[0] != person}
        word = _secret()
        self._links[_key(word)] = person, self._clock()
        return word

    def take(self, word: str) -> PageUser | None:
        found = self._links.pop(_key(word), None)
        if found is None or self._clock() - found[1] > LINK_MAX_AGE:
            return None
        return found[0]


class AttemptLimit:
    """A rate limit: `most` attempts at once, and one more every `seconds`."""

    def __init__(self, most: int, seconds: float, clock: Clock = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._left, self._at = float(most), clock()

    def one(self) -> bool:
        """Count an attempt; False if it exceeds the limit."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._at) / self._seconds)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _secret() -> str:
    return secrets.token_urlsafe(_BYTES)


def _key(word: str) -> bytes:
    """The token is stored as a hash, so that the lookup time reveals nothing about it."""
    return sha256(word.encode()).digest()
