"""What a section of the bench is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from hil.contest import Pace


class Line(Struct, frozen=True):
    """One figure."""

    name: str
    text: str
    value: float | None
    """None: it could not be measured here; the note says why."""
    unit: str
    at_least: float | None = None
    note: str = ""

    @property
    def digits(self) -> int:
        return 2 if self.value is not None and self.value < 100 else 0

    @property
    def missed(self) -> bool:
        return self.at_least is not None and self.value is not None and self.value < self.at_least

    @property
    def verdict(self) -> str:
        if self.at_least is None or self.value is None:
            return self.note
        return f"at least {self.at_least:g}: {'missed' if self.missed else 'met'} {self.note}"


class Section(Struct, frozen=True):
    """What is measured together."""

    name: str
    summary: str
    measure: Callable[[Pace], list[Line]]


def rate(name: str, text: str, value: float) -> Line:
    return Line(name, text, value, "rounds/s")


def ratio(name: str, text: str, value: float, at_least: float | None = None) -> Line:
    return Line(name, text, value, "times", at_least)
