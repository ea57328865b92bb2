"""What a section of the bench is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from hil.bench.measure import Pace


class Line(Struct, frozen=True):
    """One figure."""

    name: str
    text: str
    value: float | None
    """None: it could not be measured here; the note says why."""
    unit: str
    at_least: float | None = None
    note: str = ""
    at_most: float | None = None

    @property
    def digits(self) -> int:
        return 2 if self.value is not None and self.value < 100 else 0

    @property
    def missed(self) -> bool:
        if self.value is None:
            return False
        below = self.at_least is not None and self.value < self.at_least
        return below or (self.at_most is not None and self.value > self.at_most)

    @property
    def aim(self) -> str:
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return "" if self.at_most is None else f"at most {self.at_most:g}"

    @property
    def verdict(self) -> str:
        if not self.aim or self.value is None:
            return self.note
        return f"{self.aim}: {'missed' if self.missed else 'met'} {self.note}"


class Section(Struct, frozen=True):
    """What is measured together."""

    name: str
    summary: str
    measure: Callable[[Pace], list[Line]]


def rate(name: str, text: str, value: float, of: str = "rounds") -> Line:
    return Line(name, text, value, f"{of}/s")


def ratio(name: str, text: str, value: float, at_least: float | None = None) -> Line:
    return Line(name, text, value, "times", at_least)
