"""The review over HTTP."""

from __future__ import annotations

from controller.screens.review.web.app import COOKIE, application, pages_of
from controller.screens.review.web.login import BadgeLogin, LinkLogin

__all__ = [
    "COOKIE",
    "BadgeLogin",
    "LinkLogin",
    "application",
    "pages_of",
]
