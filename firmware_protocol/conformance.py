"""The conformance items for devices, which PROTOCOL.md lists and `holecard conform` tests."""

from __future__ import annotations

from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct

Profile = Literal["shoe", "shuffler", "station"]
Need = Literal["activity", "power", "service", "ring", "eyes"]


class ConformanceItem(Struct, frozen=True, forbid_unknown_fields=True):
    """One rule: its id, the section of PROTOCOL.md that explains it, and its text."""

    id: str
    page: str
    text: str
    profiles: tuple[Profile, ...] = ()
    """Classes of devices that it applies to; empty for all."""
    needs: tuple[Need, ...] = ()
    """What the test needs besides the cable."""

    def concerns(self, profile: Profile) -> bool:
        return not self.profiles or profile in self.profiles

    @property
    def link(self) -> str:
        """Link to the section that explains the rule."""
        return f"firmware_protocol/PROTOCOL.md#{self.page}"


class _ConformanceFile(Struct, frozen=True, forbid_unknown_fields=True):
    item: tuple[ConformanceItem, ...]


def load_items() -> tuple[ConformanceItem, ...]:
    """Returns all items in the order of the page."""
    text = resources.files("firmware_protocol").joinpath("conformance.toml").read_bytes()
    return msgspec.toml.decode(text, type=_ConformanceFile).item
