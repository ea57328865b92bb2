"""Many rounds of a game in one or more processes; the tally does not depend on their number.

The rounds are divided into blocks with separate seeds. Tallies are integers and are added in the
order of the blocks.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from random import Random
from typing import Final

from msgspec import Struct

from controller.errors import UsageProblem
from controller.games import unburned_game
from controller.procedure.engine import Procedure
from controller.procedure.model.game import Game
from controller.rules.options import Options
from controller.sim.par.counters import ParTally, RoundCounter, empty_tally
from controller.sim.play import Play, PlaySetup, Strategy, stakes_for

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


SET: Final = "--set"


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


@contextmanager
def workers(plan: ParPlan, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes that play blocks of the plan; all have ended on exit."""
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(plan,)
    )
    try:
        with _interrupts_held_back():
            for _ in range(jobs):
                pool.submit(_ready)
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def ordered_tallies(pool: ProcessPoolExecutor, blocks: range, jobs: int) -> Iterator[ParTally]:
    """Yields the tallies in order; the queue of submitted blocks is limited."""
    out: deque[Future[ParTally]] = deque()
    for block in blocks:
        out.append(pool.submit(play_block, block))
        if len(out) >= jobs * _WAITING_PER_JOB:
            yield out.popleft().result()
    while out:
        yield out.popleft().result()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Blocks SIGINT, also in processes started meanwhile. The parent handles it on exit and stops
    the workers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In a worker process

_plan: ParPlan | None = None


def _begin(plan: ParPlan) -> None:
    global _plan  # noqa: PLW0603 - an initializer has no other way to leave something behind
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _plan = plan


def _end_with_parent() -> None:
    """Exit if the parent process is killed, since a worker would wait for blocks forever."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _ready() -> None:
    """Does nothing: submitting it starts a process."""


@cache
def _player() -> BlockPlayer:
    # Created with the first block, whose future can carry its exception.
    assert _plan is not None
    return BlockPlayer(_plan)


def play_block(block: int) -> ParTally:
    return _player().play(block)
