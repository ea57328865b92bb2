"""Who has come in: links that open once, and sessions that end by themselves.

Nothing here is written down: when the process ends, so do they.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from typing import Final, Literal, Protocol, TypeAlias

from msgspec import Struct

Clock: TypeAlias = Callable[[], float]
Role: TypeAlias = Literal["surveillance", "floor"]

IDLE_TIMEOUT: Final = 30 * 60.0
"""Seconds without a request after which a session ends."""
MAX_AGE: Final = 12 * 3600.0
"""Seconds after which it ends in any case: a shift."""
LINK_MAX_AGE: Final = 3600.0
"""Seconds for which a link may be opened."""
MAX_SESSIONS: Final = 32
_BYTES: Final = 32


class PageUser(Struct, frozen=True):
    name: str
    role: Role = "surveillance"


class Appearance(Struct, frozen=True):
    """How somebody wants their pages."""

    theme: Literal["auto", "light", "dark"] = "auto"
    suits: Literal["two", "four"] = "two"


class PageSession(Struct):
    id: str
    person: PageUser
    secret: str
    """What a form of this session brings back."""
    began: float
    seen: float
    looks: Appearance = Appearance()


class SessionStore(Protocol):
    """Who looks at pages."""

    def find(self, name: str | None) -> PageSession | None:
        """The session of that cookie, used now; None where there is none any more."""

    def alive(self, session: PageSession) -> bool:
        """For what goes on by itself."""

    def end(self, session: PageSession) -> None:
        """They leave. For a thread that is not the loop's."""


class LinkSessions:
    def __init__(
        self,
        clock: Clock = time.monotonic,
        ended: Callable[[PageUser], None] = lambda person: None,
    ) -> None:
        """`ended` is told of each whose time is over, once somebody comes with it again, and of
        each that was left."""
        self._clock = clock
        self._ended = ended
        self._sessions: dict[str, PageSession] = {}

    def begin(self, person: PageUser) -> PageSession:
        """A new one; the one that was used least lately makes room for it."""
        if len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[min(self._sessions.values(), key=lambda one: one.seen).id]
        now = self._clock()
        made = PageSession(_secret(), person, _secret(), now, now)
        self._sessions[made.id] = made
        return made

    def find(self, name: str | None) -> PageSession | None:
        """The session of that name, used now; None where there is none any more."""
        found = self._sessions.get(name or "")
        if found is None:
            return None
        now = self._clock()
        if now - found.seen > IDLE_TIMEOUT or now - found.began > MAX_AGE:
            self.end(found)
            return None
        found.seen = now
        return found

    def end(self, session: PageSession) -> None:
        if self._sessions.pop(session.id, None) is not None:
            self._ended(session.person)

    def alive(self, session: PageSession) -> bool:
        """Without using it: for what goes on by itself."""
        now = self._clock()
        over = now - session.seen > IDLE_TIMEOUT or now - session.began > MAX_AGE
        return session.id in self._sessions and not over


def is_secret_of(session: PageSession, said: str) -> bool:
    return compare_digest(session.secret.encode(), said.encode())


class LoginLinks:
    """Words that let somebody in, once."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._links: dict[bytes, tuple[PageUser, float]] = {}

    def make(self, person: PageUser) -> str:
        """A new one; older ones of the same person open nothing any more."""
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
    """How often something may be tried: so many at once, and one more every so many seconds."""

    def __init__(self, most: int, seconds: float, clock: Clock = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._left, self._at = float(most), clock()

    def one(self) -> bool:
        """One is used up; False where none is left."""
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
    """Looked up by its hash: how long that takes says nothing about the word."""
    return sha256(word.encode()).digest()
