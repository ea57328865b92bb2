"""The lamps of one seat: what LAMPS set, and their brightness at a moment."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from firmware_protocol.device import Answer
from firmware_protocol.messages import LampPattern, Lamps

DARK: Final = bytes(3)


class LampDisplay(Struct, frozen=True):
    """The values of a LAMPS command and the time of its arrival."""

    rgb: bytes = DARK
    pattern: LampPattern = LampPattern.OFF
    period_us: int = 0
    since: int = 0
    until: int | None = 0
    """End of the lease; None: never, which is a defect."""

    def is_leased(self, now: int) -> bool:
        return self.until is None or now < self.until

    def is_active(self, now: int) -> bool:
        """Whether some lamp is lit during some part of the pattern."""
        return self.is_leased(now) and self.pattern is not LampPattern.OFF and self.rgb != DARK

    def brightness(self, now: int, index: int, count: int) -> int:
        """Of one lamp of `count`, in percent of its colour."""
        if not self.is_active(now):
            return 0
        if self.pattern is LampPattern.STEADY or not self.period_us:
            return 100
        phase = (now - self.since) % self.period_us * 1000 // self.period_us  # in thousandths
        if self.pattern is LampPattern.BLINK:
            return 100 if phase < 500 else 0
        if self.pattern is LampPattern.PULSE:
            return (phase if phase < 500 else 1000 - phase) // 5
        return 100 if phase * count // 1000 == index else 0


def display_after(command: Lamps, now: int, *, colour: bool, lease_ends: bool) -> LampDisplay:
    """What a seat displays after this command."""
    return LampDisplay(
        rgb=command.rgb if colour else bytes((max(command.rgb),)) * 3,
        pattern=command.pattern,
        period_us=command.period * 1000,
        since=now,
        until=now + command.lease * 1000 if lease_ends else None,
    )


class SeatLamps:
    """All lamps of a seat. A broken one stays dark."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.broken: set[int] = set()
        self.reset()

    def reset(self) -> None:
        """The firmware starts: all lamps are dark, and no fault is reported yet."""
        self.display = LampDisplay()
        self._reported: set[int] = set()

    def repair(self, index: int) -> None:
        self.broken.discard(index)
        self._reported.discard(index)

    def new_faults(self, now: int) -> list[int]:
        """The broken lamps that should be lit, each exactly once. A dark lamp cannot be checked,
        since no current flows through it."""
        if not self.display.is_active(now):
            return []
        found = sorted(self.broken - self._reported)
        self._reported.update(found)
        return found

    def describe(self, now: int) -> Answer:
        display = self.display
        levels = [
            0 if index in self.broken else display.brightness(now, index, self.count)
            for index in range(self.count)
        ]
        leased = display.is_leased(now)
        return {
            "rgb": list(display.rgb if leased else DARK),
            "pattern": (display.pattern if leased else LampPattern.OFF).name.lower(),
            "period_ms": display.period_us // 1000 if leased else 0,
            "lit": any(levels),
            "percent": levels,
            "lease_ms": None if display.until is None else max(0, display.until - now) // 1000,
            "broken": sorted(self.broken),
        }
