"""Counters of simulated rounds: integers only, so that sums are exact in any order."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import sqrt

from msgspec import Struct

from controller.procedure.model.effects import Settled
from controller.procedure.model.events import Paid
from controller.procedure.model.game import Game
from controller.procedure.model.state import State
from controller.rules.cards import ACE, Card
from controller.rules.payouts import in_diamonds, wins_insurance
from controller.sim.play import ALL_PAID, RoundRecord


class Sum(Struct):
    """The number of values, their sum, and the sum of their squares."""

    count: int = 0
    total: int = 0
    squares: int = 0

    def note(self, value: int) -> None:
        self.count += 1
        self.total += value
        self.squares += value * value

    def add(self, other: Sum) -> None:
        self.count += other.count
        self.total += other.total
        self.squares += other.squares

    def mean(self, unit: int) -> float:
        """Returns the mean value in units."""
        return float(Fraction(self.total, self.count * unit)) if self.count else 0.0

    def error(self, unit: int) -> float | None:
        """Returns the mean's standard error in units; None for fewer than two rounds."""
        n = self.count
        if n < 2:
            return None
        spread = n * self.squares - self.total * self.total
        return sqrt(Fraction(spread, n * n * (n - 1))) / unit


class Share(Struct):
    """How often something happened, and how often it could."""

    of: int = 0
    found: int = 0

    def note(self, found: bool) -> None:
        self.of += 1
        self.found += found

    def add(self, other: Share) -> None:
        self.of += other.of
        self.found += other.found

    def mean(self) -> float:
        return self.found / self.of if self.of else 0.0

    def error(self) -> float:
        if not self.of:
            return 0.0
        return sqrt(Fraction(self.found * (self.of - self.found), self.of**3))


class ParTally(Struct):
    """The counters of many rounds. A value of a sum is that of one round, over all seats."""

    main: Sum
    sides: dict[str, Sum]
    outcomes: Counter[str]
    """Hands by how they ended."""
    blackjacks: Share
    diamonds: Share
    insurance: Share
    """Of the rounds with an ace up: a ten-valued hole card."""
    busts: Counter[int]
    """Busts of the dealer by number of cards, if every hand was completed."""
    total_22: int = 0

    def add(self, other: ParTally) -> None:
        self.main.add(other.main)
        for bet, values in other.sides.items():
            self.sides.setdefault(bet, Sum()).add(values)
        self.outcomes.update(other.outcomes)
        self.blackjacks.add(other.blackjacks)
        self.diamonds.add(other.diamonds)
        self.insurance.add(other.insurance)
        self.busts.update(other.busts)
        self.total_22 += other.total_22


def empty_tally() -> ParTally:
    return ParTally(Sum(), {}, Counter(), Share(), Share(), Share(), Counter())


class RoundCounter:
    """Counts the record and the last state of each round."""

    def __init__(self, game: Game, *, completes: bool) -> None:
        self.tally = empty_tally()
        self._insures = game.insures
        self._completes = completes
        """The dealer completes every hand, because every round has a Buster wager."""

    def note(self, s: State, record: RoundRecord, hole: Card) -> None:
        """Count a round: its state before the felt is cleared, its record, and the hole card."""
        tally = self.tally
        net = 0
        sides: dict[str, int] = {}
        for event, _, effects in record:
            if event is not ALL_PAID and type(event) is not Paid:
                continue
            for fact in effects:
                if type(fact) is not Settled:
                    continue
                if fact.bet == "main":
                    net += fact.returned - fact.stake
                    tally.outcomes[fact.outcome] += 1
                else:
                    sides[fact.bet] = sides.get(fact.bet, 0) + fact.returned - fact.stake
        tally.main.note(net)
        for bet, value in sides.items():
            tally.sides.setdefault(bet, Sum()).note(value)
        self._note_cards(s, hole)

    def _note_cards(self, s: State, hole: Card) -> None:
        tally = self.tally
        for hand in s.hands:
            if hand.number == 0:
                tally.blackjacks.note(hand.natural)
                tally.diamonds.note(hand.natural and in_diamonds(hand.cards))
        if s.up == ACE and self._insures:
            tally.insurance.note(wins_insurance(s.dealer[0], hole))
        if self._completes and s.dealer_total > 21:
            tally.busts[len(s.dealer)] += 1
            tally.total_22 += s.dealer_total == 22
