"""Money: integers of the smallest unit, odds as pairs, and the one place that rounds."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from controller.errors import UsageProblem

Amount: TypeAlias = int
Rounding: TypeAlias = Literal["floor", "half_up", "ceil"]

_ODDS: Final = re.compile(r"([1-9][0-9]{0,5}):([1-9][0-9]{0,5})")


class Odds(Struct, frozen=True, order=False):
    """`pays` to `on`, kept as the sheet writes them: 12:5 stays 12:5, 6:3 would stay 6:3."""

    pays: int
    on: int

    def __str__(self) -> str:
        return f"{self.pays}:{self.on}"


EVEN: Final = Odds(1, 1)


def parse_odds(text: str, where: str) -> Odds:
    match = _ODDS.fullmatch(text)
    if match is None:
        raise UsageProblem(where, f"{text!r} are not odds", 'two whole numbers such as "3:2"')
    return Odds(int(match[1]), int(match[2]))


class Denomination(Struct, frozen=True):
    """A chip of the house."""

    name: str
    value: Amount


class Money(Struct, frozen=True):
    """Rounding: the unit, and the direction for amounts between two units."""

    rounding: Rounding = "floor"
    unit: Amount = 1

    def fraction(self, amount: Amount, times: int, over: int) -> Amount:
        """Returns amount x times / over in whole units. The only function that rounds money."""
        unit = self.unit
        whole, rest = divmod(amount * times, over * unit)
        if rest and (
            self.rounding == "ceil" or (self.rounding == "half_up" and 2 * rest >= over * unit)
        ):
            whole += 1
        return whole * unit

    def winnings(self, stake: Amount, odds: Odds) -> Amount:
        return self.fraction(stake, odds.pays, odds.on)

    def max_within(self, amount: Amount, over: int) -> Amount:
        """Returns the most whole units within amount / over; independent of the rounding option."""
        return amount // (over * self.unit) * self.unit

    def half(self, stake: Amount) -> Amount:
        """Returns the half of a wager that a surrender gives back."""
        return self.fraction(stake, 1, 2)


def in_chips(amount: Amount, chips: tuple[Denomination, ...]) -> tuple[tuple[int, str], ...]:
    """Returns `amount` in chips, largest first, as (count, name).

    Empty if the house has no chips, or if its chips cannot make the amount.
    """
    counts: list[tuple[int, str]] = []
    for chip in sorted(chips, key=lambda chip: -chip.value):
        count, amount = divmod(amount, chip.value)
        if count:
            counts.append((count, chip.name))
    return tuple(counts) if amount == 0 else ()
