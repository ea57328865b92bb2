"""The screens that are open, each with its token, and who has shown a badge and PIN at which.

The desk knows people by the name of a screen. A name can be had again by whoever comes next, so
what was signed at a screen counts for its token only: nobody inherits it.
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
from controller.people import Act

MAX_SCREENS: Final = 320
"""Screens open at once: those of programs, and one for each browser."""
IDLE_TIMEOUT: Final = 600.0
"""Seconds after which a screen is closed that asks for nothing and has no stream."""
MIN_IDLE: Final = 60.0
"""The same where there is no room for another one, and nobody is signed in there."""
TOKEN_BYTES: Final = 32
MAX_TOKEN: Final = 64


class ScreenSession:
    """One that is open."""

    def __init__(self, name: str, digest: bytes, at: float) -> None:
        self.name = name
        self.digest = digest
        self.used = at
        self.streams = 0
        self.badges: dict[SignsIn, str] = {}
        """Who has signed in here, by role."""
        self._signed: set[tuple[str, str]] = set()
        """Acts that somebody has signed for here, and what about."""

    def sign_for(self, act: Act) -> None:
        self._signed.add((act.name, act.about))

    def signed_for(self, act: Act) -> bool:
        return (act.name, act.about) in self._signed

    def spend(self, act: Act) -> None:
        self._signed.discard((act.name, act.about))

    def idle(self, at: float) -> float:
        return 0.0 if self.streams else at - self.used


class ScreenRegistry:
    """All of them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: seconds that never go back."""
        self._clock = clock
        self._open: list[ScreenSession] = []

    def __len__(self) -> int:
        return len(self._open)

    def open(self, name: str) -> tuple[str, ScreenSession]:
        """A token, and the screen that it stands for. Problem where there is no room."""
        now = self._clock()
        self._close_idle(now)
        if len(self._open) >= MAX_SCREENS and not self._make_room(now):
            what = f"{MAX_SCREENS} screens are open"
            raise Problem(429, "screens_full", what, "one less: close one", wait=round(MIN_IDLE))
        token = secrets.token_urlsafe(TOKEN_BYTES)
        screen = ScreenSession(self._free(name), _digest(token), now)
        self._open.append(screen)
        return token, screen

    def find(self, token: str) -> ScreenSession:
        """The open screen of a token. Problem; that takes as long for a token that is nearly
        right as for any other one."""
        now = self._clock()
        self._close_idle(now)
        wanted = _digest(token[: MAX_TOKEN + 1])
        found = [one for one in self._open if hmac.compare_digest(one.digest, wanted)]
        if not found:
            what = "no open screen has this token" if token else "the token of a screen is missing"
            allowed = "Authorization: Bearer TOKEN, of POST /api/v1/screens"
            headers = {"WWW-Authenticate": "Bearer"}
            raise Problem(401, "no_screen", what, allowed, headers=headers)
        found[0].used = now
        return found[0]

    def close(self, screen: ScreenSession) -> None:
        if screen in self._open:
            self._open.remove(screen)

    def is_open(self, screen: ScreenSession) -> bool:
        return screen in self._open

    @contextmanager
    def streaming(self, screen: ScreenSession) -> Iterator[None]:
        """It has a stream, and so is in use."""
        screen.streams += 1
        try:
            yield
        finally:
            screen.streams -= 1
            screen.used = self._clock()

    def _close_idle(self, now: float) -> None:
        self._open = [one for one in self._open if one.idle(now) < IDLE_TIMEOUT]

    def _make_room(self, now: float) -> bool:
        """Closes the one that only watched, and that was not used for longest."""
        spare = [one for one in self._open if not one.badges and one.idle(now) >= MIN_IDLE]
        if not spare:
            return False
        self.close(max(spare, key=lambda one: one.idle(now)))
        return True

    def _free(self, name: str) -> str:
        """The name, or the name with the lowest number that is free."""
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
