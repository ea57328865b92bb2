"""The dealer's screen as values, without HTTP."""

from __future__ import annotations

from controller.screens.console.view.page import console_of
from controller.screens.console.view.status import ROLES, Viewer

__all__ = [
    "ROLES",
    "Viewer",
    "console_of",
]
