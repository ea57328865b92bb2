"""Many rounds of a game in one or more processes; the tally does not depend on their number.

The rounds are divided into blocks with separate seeds. Tallies are integers and are added in the
order of the blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from functools import cache
from hashlib import sha256
from math import sqrt
from random import Random
from typing import Final

from msgspec import Struct

from controller.config import SET
from controller.errors import UsageProblem
from controller.games import unburned_game
from controller.procedure.engine import Procedure
from controller.procedure.model.effects import Settled
from controller.procedure.model.events import Paid
from controller.procedure.model.game import Game
from controller.procedure.model.state import State
from controller.rules.cards import ACE, Card
from controller.rules.options import Options
from controller.rules.payouts import in_diamonds, wins_insurance
from controller.sim.play import ALL_PAID, Play, PlaySetup, RoundRecord, Strategy, stakes_for
from controller.worker_processes import in_order, worker_processes

# --- counters: integers only, so that sums are exact in any order -------------------------------


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


# --- rounds -------------------------------------------------------------------------------------

BLOCK: Final = 10_000
"""Rounds in a block. Changing it changes the cards of every seed."""
_WAITING_PER_JOB: Final = 2
"""Blocks queued for each process, so that none is idle."""


class ParPlan(Struct, frozen=True):
    """The rounds to play; pickled for worker processes."""

    game: str
    settings: dict[str, object]
    options: Options
    """The resulting options; every process checks that it gets the same."""
    strategy: Strategy
    seats: int
    rounds: int
    seed: int
    cut: bool
    side: bool

    @property
    def blocks(self) -> int:
        return -(-self.rounds // BLOCK)


def game_for(name: str, settings: Mapping[str, object]) -> Game:
    return unburned_game(name, settings, SET)


class BlockPlayer:
    """Plays any block of a plan."""

    def __init__(self, plan: ParPlan) -> None:
        game = game_for(plan.game, plan.settings)
        if game.options != plan.options:
            raise UsageProblem(plan.game, "changed while its rounds were played")
        self.plan = plan
        self._table = Procedure(game)
        self._setup = PlaySetup(plan.seats, stakes_for(game, side=plan.side), plan.cut)

    def play(self, block: int) -> ParTally:
        """Play one block. The result is independent of the process and of other blocks."""
        plan = self.plan
        random = Random(seed_of(plan.seed, block)).random
        play = Play(self._table, plan.strategy, self._setup, random)
        watch = RoundCounter(self._table.game, completes=self._setup.stakes.of("buster") > 0)
        for _ in range(min(BLOCK, plan.rounds - block * BLOCK)):
            watch.note(play.round(), play.record, play.hole)
        return watch.tally


def seed_of(seed: int, block: int) -> int:
    return int.from_bytes(sha256(f"holecard par {seed} {block}".encode()).digest(), "big")


def run(
    plan: ParPlan, jobs: int, on_progress: Callable[[int], None] = lambda rounds: None
) -> ParTally:
    """Play the plan; the callback `on_progress` gets the number of rounds of each block."""
    whole = empty_tally()
    with played(plan, min(jobs, plan.blocks)) as blocks:
        for tally in blocks:
            whole.add(tally)
            on_progress(tally.main.count)
    return whole


@contextmanager
def played(plan: ParPlan, jobs: int) -> Iterator[Iterator[ParTally]]:
    """Yields the tallies of the plan's blocks, in order."""
    if jobs == 1:
        yield map(BlockPlayer(plan).play, range(plan.blocks))
        return
    with workers(plan, jobs) as pool:
        yield ordered_tallies(pool, range(plan.blocks), jobs)


def workers(plan: ParPlan, jobs: int) -> AbstractContextManager[ProcessPoolExecutor]:
    """A pool of processes that play blocks of the plan; all have ended on exit."""
    return worker_processes(jobs, _set_plan, plan)


def ordered_tallies(pool: ProcessPoolExecutor, blocks: range, jobs: int) -> Iterator[ParTally]:
    """Yields the tallies in order; the queue of submitted blocks is limited."""
    return in_order(pool, play_block, blocks, jobs * _WAITING_PER_JOB)


# In a worker process

_plan: ParPlan | None = None


def _set_plan(plan: ParPlan) -> None:
    global _plan  # noqa: PLW0603 - a process is set up for all its blocks
    _plan = plan


@cache
def _player() -> BlockPlayer:
    # Created with the first block, whose future can carry its exception.
    assert _plan is not None
    return BlockPlayer(_plan)


def play_block(block: int) -> ParTally:
    return _player().play(block)
