"""The review over HTTP."""

from __future__ import annotations

from controller.screens.review.web.app import COOKIE, application, pages_of
from controller.screens.review.web.badge_login import ByBadge
from controller.screens.review.web.link_login import ByLink

__all__ = [
    "COOKIE",
    "ByBadge",
    "ByLink",
    "application",
    "pages_of",
]
