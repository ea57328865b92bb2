"""Open screens: their tokens, and who has signed in or signed for an act at each.

The desk knows people by the name of their screen. A name can be reused, so a sign-in is valid only
for the token with which it was made: the next screen of that name does not inherit it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from controller.api.contract.errors import Problem
from controller.api.contract.messages import SignsIn
from controller.people import Act, PeopleDesk, SignInSession, session

MAX_SCREENS: Final = 320
"""Open screens: those of programs, and one for each browser."""
SCREEN_IDLE_TIMEOUT: Final = 600.0
"""Seconds without a request or a stream until a screen is closed."""
MIN_IDLE: Final = 60.0
"""Seconds of idleness that suffice if the limit is reached and no person is signed in there."""
TOKEN_BYTES: Final = 32
MAX_TOKEN: Final = 64


class ScreenSession:
    """One open screen."""

    def __init__(self, name: str, digest: bytes, at: float) -> None:
        self.name = name
        self.digest = digest
        self.used = at
        self.streams = 0
        self.badges: dict[SignsIn, str] = {}
        """Badges that have signed in with this token, by role."""
        self._signed: set[tuple[str, str]] = set()
        """Acts signed for here: name and subject."""

    def signed_in(self, desk: PeopleDesk, role: SignsIn) -> SignInSession | None:
        """Returns the valid session of this role that was started with this token."""
        found = session(desk.standing, role, self.name)
        if found is None or found.screen != self.name or found.badge != self.badges.get(role):
            return None
        return found

    def anyone_signed_in(self, desk: PeopleDesk) -> bool:
        return any(self.signed_in(desk, role) for role in self.badges)

    def sign_for(self, act: Act) -> None:
        self._signed.add((act.name, act.about))

    def signed_for(self, act: Act) -> bool:
        return (act.name, act.about) in self._signed

    def spend(self, act: Act) -> None:
        self._signed.discard((act.name, act.about))

    def idle(self, at: float) -> float:
        return 0.0 if self.streams else at - self.used


class ScreenRegistry:
    """All open screens of a table, found by their tokens."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._clock = clock
        self._open: list[ScreenSession] = []

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[ScreenSession]:
        return iter(self._open)

    def open(self, name: str) -> tuple[str, ScreenSession]:
        """Returns a new screen and its token. Raises Problem if the limit is reached."""
        now = self._clock()
        self._close_idle(now)
        if len(self._open) >= MAX_SCREENS and not self._make_room(now):
            raise Problem(
                429,
                "screens_full",
                f"{MAX_SCREENS} screens are open",
                "one less: close one",
                wait=round(MIN_IDLE),
            )
        token = secrets.token_urlsafe(TOKEN_BYTES)
        screen = ScreenSession(self._free(name), _digest(token), now)
        self._open.append(screen)
        return token, screen

    def find(self, token: str) -> ScreenSession:
        """Returns the open screen of a token, and marks it as used. Raises Problem."""
        now = self._clock()
        self._close_idle(now)
        found = self.peek(token)
        if found is None:
            what = "no open screen has this token" if token else "the token of a screen is missing"
            allowed = "Authorization: Bearer TOKEN, of POST /api/v1/screens"
            headers = {"WWW-Authenticate": "Bearer"}
            raise Problem(401, "no_screen", what, allowed, headers=headers)
        found.used = now
        return found

    def peek(self, token: str) -> ScreenSession | None:
        """Returns the screen of a token, compared in constant time, without marking it as used."""
        wanted = _digest(token[: MAX_TOKEN + 1])
        found = [one for one in self._open if hmac.compare_digest(one.digest, wanted)]
        return found[0] if found else None

    def close(self, screen: ScreenSession) -> None:
        if screen in self._open:
            self._open.remove(screen)

    def is_open(self, screen: ScreenSession) -> bool:
        return screen in self._open

    @contextmanager
    def streaming(self, screen: ScreenSession) -> Iterator[None]:
        """Count an open stream: a screen with one is not idle."""
        screen.streams += 1
        try:
            yield
        finally:
            screen.streams -= 1
            screen.used = self._clock()

    def _close_idle(self, now: float) -> None:
        self._open = [one for one in self._open if one.idle(now) < SCREEN_IDLE_TIMEOUT]

    def _make_room(self, now: float) -> bool:
        """Close the screen that has been idle longest, among those without a sign-in."""
        spare = [one for one in self._open if not one.badges and one.idle(now) >= MIN_IDLE]
        if not spare:
            return False
        self.close(max(spare, key=lambda one: one.idle(now)))
        return True

    def _free(self, name: str) -> str:
        """Returns the name, with the lowest free number if it is taken."""
        taken = {one.name for one in self._open}
        if name not in taken:
            return name
        return next(
            made
            for number in range(2, MAX_SCREENS + 2)
            if (made := f"{name}-{number}") not in taken
        )


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
