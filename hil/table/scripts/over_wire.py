"""`holecard script run --over wire`: scripted rounds, each dealt at a whole table.

The daemon is a child process; its devices run in this process behind real ports. Each event of the
script is done at the table, and the result is read from the record. The daemon is started once for
all rounds of one configuration.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

from msgspec import Struct

from controller.audit.read.follow import Follower
from controller.audit.simulate import check_recordable
from controller.procedure.engine import Procedure
from controller.procedure.model.events import Event
from controller.procedure.model.holds import IN_ROUND
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.sim.play import ScriptVault
from controller.sim.scripts import (
    PlaysScript,
    RoundResult,
    RoundWatcher,
    ScriptRound,
    ScriptStart,
    play_at,
)
from hil.table.robots import Console, MimicPlayers, Robot, RobotOptions, RobotStuck, open_console
from hil.table.scripts.shoe import rounds_of, shoe_of
from hil.table.scripts.wire_table import WiredTable, WireTable
from hil.table.setup import FEW, DidNotServe, Stage, staged
from hil.table.setup import scripted as deals_of

TABLE: Final = "scripts"
_MAX_STEPS: Final = 400
_Round = tuple[ScriptRound, Procedure]
_T = TypeVar("_T")


@contextmanager
def over_wire(rounds: Sequence[_Round]) -> Iterator[PlaysScript]:
    """Yields a function that plays these rounds. Raises UsageProblem, and OverFailed if the table
    fails."""
    for scripted, procedure in rounds:
        check_recordable(scripted, procedure)
    with (
        TemporaryDirectory(prefix="holecard-wire-") as folder,
        playing(Path(folder), rounds) as all_of,
    ):
        yield all_of.play


@contextmanager
def playing(folder: Path, rounds: Sequence[_Round]) -> Iterator[ScriptRunner]:
    """Yields a runner in this folder, where the record remains. Raises UsageProblem and FAULTS."""
    with _beside() as run:
        stack = AsyncExitStack()
        try:
            stage = run(stack.enter_async_context(staged(folder, FEW, name=TABLE)))
            made = ScriptRunner(stage, rounds, run)
            yield made
            run(made.close())
        finally:
            run(stack.aclose())


class PlayedScript(Struct, frozen=True):
    """The result of a round and its events with their decisions."""

    result: RoundResult
    seen: list[tuple[Event, Decision | Refused]]


class ScriptRunner:
    """Plays rounds of several configurations at one table, grouped by configuration."""

    def __init__(
        self, stage: Stage, rounds: Sequence[_Round], run: Callable[[Coroutine[Any, Any, Any]], Any]
    ) -> None:
        self.stage = stage
        self._rounds = rounds
        self._run = run
        self._played: dict[int, PlayedScript] = {}
        self._open: AsyncExitStack | None = None
        self._at: _RobotsAtTable | None = None

    def play(
        self, scripted: ScriptRound, watch: RoundWatcher | None, procedure: Procedure
    ) -> RoundResult:
        """Returns a round's result, and passes its events to `watch`."""
        if id(scripted) not in self._played:
            self._play_all(procedure)
        found = self._played.pop(id(scripted))
        if watch is not None:
            for event, answer in found.seen:
                watch(event, answer)
        return found.result

    def _play_all(self, procedure: Procedure) -> None:
        """Play all rounds of this procedure."""
        theirs = [one for one, other in self._rounds if other is procedure]
        at: _RobotsAtTable = self._run(self._begin(theirs[0]))
        for one in theirs:
            self._played[id(one)] = _play(at, one, procedure, self._run)
        self._run(self.close())

    async def _begin(self, scripted: ScriptRound) -> _RobotsAtTable:
        await self.stage.serve(deals_of(scripted.script))
        self._open = AsyncExitStack()
        screen = await self._open.enter_async_context(open_console(self.stage.control))
        self._at = _RobotsAtTable(self.stage, screen)
        return self._at

    async def close(self) -> None:
        """Close the table and stop the daemon. Raises DidNotServe if its exit code is not 0."""
        if self._open is None or self._at is None:
            return
        await self._at.close()
        await self._open.aclose()
        self._open = self._at = None
        code = await self.stage.daemon.stop()
        if code != 0:
            raise DidNotServe(f"holecard serve: ended with {code}")


class _RobotsAtTable:
    """The robots at the served table."""

    def __init__(self, stage: Stage, screen: Console) -> None:
        self.cards: tuple[str, ...] = ()
        """The order of the next shoe."""
        buttons = stage.table.sheet.options.decisions.by != "signals"
        ways = RobotOptions(buttons=buttons, dwell_ms=0)
        robot = Robot(stage, screen, MimicPlayers(), ways, cards=lambda: self.cards)
        self.wired = WiredTable(robot, screen, Follower(stage.house.record))

    @property
    def _state(self) -> State:
        return self.wired.console.shown.state

    async def fresh(self, cards: tuple[str, ...]) -> None:
        """Open the table with these cards in its shoe."""
        self.cards = cards
        await self._rest()
        robot = self.wired.robot
        if self._state.step is Step.WAGERING:
            await robot.act("ShuffleCalled")
        await robot.play(lambda shown: shown.state.step is Step.WAGERING)
        for _ in self.wired.record.more():
            continue  # decisions before the script are skipped

    async def close(self) -> None:
        await self._rest()
        if self._state.step is not Step.CLOSED:
            await self.wired.robot.act("TableClosed", "two", bank=100_000)

    async def _rest(self) -> None:
        """End what is open: void the round, return wagers."""
        for _ in range(_MAX_STEPS):
            s = self._state
            if s.step in IN_ROUND and s.step not in (Step.PAYING, Step.CLEARING):
                await self.wired.robot.act("RoundVoided", "two", reason="nobody goes on with it")
            elif s.seats and not s.hands and s.step is Step.WAGERING:
                await self.wired.robot.act("WagerRemoved", seat=s.seats[0].number, bet="main")
            elif s.step in IN_ROUND or s.holds:
                await self.wired.robot.step()
            else:
                return
        raise RobotStuck(f"no end after {_MAX_STEPS} steps, at {self._state.step.value}")


def _play(
    at: _RobotsAtTable,
    scripted: ScriptRound,
    procedure: Procedure,
    run: Callable[[Coroutine[Any, Any, Any]], Any],
) -> PlayedScript:
    """Play one round after a shuffle."""
    rounds = rounds_of(scripted, procedure)
    run(at.fresh(shoe_of(procedure.game, *rounds)))
    table = WireTable(procedure, at.wired, run)
    seen: list[tuple[Event, Decision | Refused]] = []

    def watch(event: Event, answer: Decision | Refused) -> None:
        seen.append((event, answer))

    for plain in rounds[:-1]:
        before = play_at(ScriptStart(table, table.state, ScriptVault()), plain)
        if not before.ok or table.state.step is not Step.WAGERING:
            raise RobotStuck(f"{plain.where}: no round can stand before it: {before.failures}")
    result = play_at(ScriptStart(table, table.state, ScriptVault()), rounds[-1], watch)
    return PlayedScript(result, seen)


# --- the event loop ---------------------------------------------------------------------------


@contextmanager
def _beside() -> Iterator[Callable[[Coroutine[Any, Any, _T]], _T]]:
    """Yields a function that runs a coroutine in an event loop of another thread, and waits."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="table")
    thread.start()

    def run(work: Coroutine[Any, Any, _T]) -> _T:
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    try:
        yield run
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
