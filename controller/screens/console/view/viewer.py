"""The properties of a screen on which its rendering depends. Screens with equal ones share a cached
rendering."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

ROLES: Final = ("dealer", "technician")
"""Roles that sign in at a console."""


class Viewer(Struct, frozen=True):
    controls: bool
    """The dealer is signed in at this screen."""
    tests: bool = False
    """A technician is signed in at this screen."""

    @property
    def signed(self) -> str:
        """The signed-in roles."""
        there = zip(ROLES, (self.controls, self.tests), strict=True)
        return " ".join(role for role, here in there if here)
