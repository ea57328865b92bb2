"""The items that a device is held to: what PROTOCOL.md lists and `holecard conform` tries."""

from __future__ import annotations

from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct

Profile = Literal["shoe", "shuffler", "station"]
Need = Literal["activity", "power", "service", "ring", "eyes"]


class ConformanceItem(Struct, frozen=True, forbid_unknown_fields=True):
    """One rule: its name, the section of PROTOCOL.md that explains it, and what it says."""

    id: str
    page: str
    text: str
    profiles: tuple[Profile, ...] = ()
    """Classes of devices that it is for; empty for all."""
    needs: tuple[Need, ...] = ()
    """What it takes beside the cable."""

    def concerns(self, profile: Profile) -> bool:
        return not self.profiles or profile in self.profiles

    @property
    def link(self) -> str:
        """The page that explains the rule."""
        return f"firmware_protocol/PROTOCOL.md#{self.page}"


class _ConformanceFile(Struct, frozen=True, forbid_unknown_fields=True):
    item: tuple[ConformanceItem, ...]


def load() -> tuple[ConformanceItem, ...]:
    """All items, in the order of the page."""
    text = resources.files("firmware_protocol").joinpath("conformance.toml").read_bytes()
    return msgspec.toml.decode(text, type=_ConformanceFile).item
