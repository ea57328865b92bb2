"""The dealer's screen as values, without HTTP."""

from __future__ import annotations

from controller.screens.console.view.page import console_of
from controller.screens.console.view.viewer import ROLES, Here

__all__ = [
    "ROLES",
    "Here",
    "console_of",
]
