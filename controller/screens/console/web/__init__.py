"""The dealer's console over HTTP."""

from __future__ import annotations

from controller.screens.console.web.app import COOKIE, ConsoleApp, problem_response
from controller.screens.console.web.post import PostedForm, PostResult
from controller.screens.console.web.sessions import ATTEMPT_INTERVAL, Browser, Browsers
from controller.screens.console.web.streams import ConsoleRenderer, PageRenderer

__all__ = [
    "ATTEMPT_INTERVAL",
    "COOKIE",
    "Browser",
    "Browsers",
    "ConsoleApp",
    "ConsoleRenderer",
    "PageRenderer",
    "PostResult",
    "PostedForm",
    "problem_response",
]
