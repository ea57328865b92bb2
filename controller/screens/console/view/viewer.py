"""What is known of the screen that a picture is made for.

Nothing else varies between screens, so that one picture serves all that watch.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

ROLES: Final = ("dealer", "technician")
"""Those in which people sign in at a console."""


class Viewer(Struct, frozen=True):
    controls: bool
    """The dealer is signed in at this very screen."""
    tests: bool = False
    """A technician is."""

    @property
    def signed(self) -> str:
        """Which roles are signed in here."""
        there = zip(ROLES, (self.controls, self.tests), strict=True)
        return " ".join(role for role, here in there if here)
