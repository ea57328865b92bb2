"""The lamps of one seat: what LAMPS made them show, and what one sees of that at a moment."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from firmware_protocol.device.interfaces import Answer
from firmware_protocol.messages.enums import LampPattern
from firmware_protocol.messages.station import Lamps

DARK: Final = bytes(3)


class LampDisplay(Struct, frozen=True):
    """What LAMPS said, and when."""

    rgb: bytes = DARK
    pattern: LampPattern = LampPattern.OFF
    period_us: int = 0
    since: int = 0
    until: int | None = 0
    """When the lease is over; None: never, which is a defect."""

    def leased(self, now: int) -> bool:
        return self.until is None or now < self.until

    def lights(self, now: int) -> bool:
        """Whether the lamps are in use: some of the time, at least, some of them are lit."""
        return self.leased(now) and self.pattern is not LampPattern.OFF and self.rgb != DARK

    def brightness(self, now: int, index: int, count: int) -> int:
        """Of one lamp of `count`, in percent of its colour."""
        if not self.lights(now):
            return 0
        if self.pattern is LampPattern.STEADY or not self.period_us:
            return 100
        # Thousandths of the period that have gone by.
        phase = (now - self.since) % self.period_us * 1000 // self.period_us
        if self.pattern is LampPattern.BLINK:
            return 100 if phase < 500 else 0
        if self.pattern is LampPattern.PULSE:
            return (phase if phase < 500 else 1000 - phase) // 5
        return 100 if phase * count // 1000 == index else 0


def display_after(said: Lamps, now: int, *, colour: bool, lease_ends: bool) -> LampDisplay:
    """What a seat shows from now on."""
    return LampDisplay(
        rgb=said.rgb if colour else bytes((max(said.rgb),)) * 3,
        pattern=said.pattern,
        period_us=said.period * 1000,
        since=now,
        until=now + said.lease * 1000 if lease_ends else None,
    )


class SeatLamps:
    """All lamps of a seat. Which of them are broken is nobody's business but theirs."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.broken: set[int] = set()
        self.forget()

    def forget(self) -> None:
        """The firmware starts: dark, and nothing was noticed yet."""
        self.shown = LampDisplay()
        self._noticed: set[int] = set()

    def mend(self, index: int) -> None:
        self.broken.discard(index)
        self._noticed.discard(index)

    def notice(self, now: int) -> list[int]:
        """The lamps that should light and do not, each once: current flows only in lit ones."""
        if not self.shown.lights(now):
            return []
        fresh = sorted(self.broken - self._noticed)
        self._noticed.update(fresh)
        return fresh

    def describe(self, now: int) -> Answer:
        """What one sees now, and how long the lease has to go."""
        left = self.shown
        levels = [
            0 if index in self.broken else left.brightness(now, index, self.count)
            for index in range(self.count)
        ]
        leased = left.leased(now)
        return {
            "rgb": list(left.rgb if leased else DARK),
            "pattern": (left.pattern if leased else LampPattern.OFF).name.lower(),
            "period_ms": left.period_us // 1000 if leased else 0,
            "lit": any(levels),
            "percent": levels,
            "lease_ms": None if left.until is None else max(0, left.until - now) // 1000,
            "broken": sorted(self.broken),
        }
