"""The dealer's console over HTTP."""

from __future__ import annotations

from controller.screens.console.web.app import COOKIE, Console, telling
from controller.screens.console.web.page import Draws, Face
from controller.screens.console.web.post import Answered, Sent
from controller.screens.console.web.sessions import TRY_EVERY, Browser, Browsers

__all__ = [
    "COOKIE",
    "TRY_EVERY",
    "Answered",
    "Browser",
    "Browsers",
    "Console",
    "Draws",
    "Face",
    "Sent",
    "telling",
]
