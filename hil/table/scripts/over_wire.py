"""`holecard script run --over wire`: scripted rounds, each dealt at a whole table.

The daemon is a child process; its devices run in this process behind real ports. Each event of the
script is done at the table, and the result is read from the record. The daemon is started once for
all rounds of one configuration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec.structs import asdict

from controller.audit.read.follow import Follower
from controller.audit.replay import decode_decision
from controller.audit.simulate import check_recordable
from controller.procedure.engine import Procedure
from controller.procedure.model import events
from controller.procedure.model.effects import Effect, Prompt, Tell
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.holds import IN_ROUND
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.sim.play import ScriptVault
from controller.sim.scripts import (
    OverFailed,
    PlaysScript,
    RoundResult,
    RoundWatcher,
    ScriptRound,
    ScriptStart,
    play_at,
)
from hil.table.robots import (
    ROBOT_TIMEOUT,
    TABLE_FAULTS,
    Console,
    MimicPlayers,
    PlayerChoice,
    Robot,
    RobotOptions,
    RobotStuck,
    fault_text,
    open_console,
)
from hil.table.scripts.shoe import rounds_of, shoe_of
from hil.table.setup import FEW, DidNotServe, Stage, staged, until
from hil.table.setup import scripted as deals_of

TABLE: Final = "scripts"
_MAX_STEPS: Final = 400
Answer: TypeAlias = Decision | Refused
Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine in the table's event loop and returns its result."""
_Answers: TypeAlias = list[tuple[Event, Answer]]
_Round: TypeAlias = tuple[ScriptRound, Procedure]

_DRAWING: Final = frozenset({Tell.DEAL, Tell.TAKE_WAGERS})
_CHOICES: Final[Mapping[type[Event], str]] = MappingProxyType(
    {
        events.Hit: "hit",
        events.Stand: "stand",
        events.Double: "double",
        events.Split: "split",
        events.Surrender: "surrender",
        events.Insure: "insure",
        events.EvenMoney: "even_money",
        events.Decline: "decline",
        events.PayTaken: "take_pay",
        events.PayDeclined: "decline_pay",
    }
)
_ACTS: Final[Mapping[type[Event], str]] = MappingProxyType(
    {events.HoleChecked: "CheckHole", events.HoleRevealed: "RevealHole"}
)
_NOT_SUBMITTED: Final = frozenset({"actor", "commitment", "opening", "spare"})
"""Fields of an event that are not submitted: its actor, and what only the table has."""


@contextmanager
def over_wire(rounds: Sequence[_Round]) -> Iterator[PlaysScript]:
    """Yields a function that plays these rounds. Raises UsageProblem, and OverFailed if the table
    fails."""
    for scripted, procedure in rounds:
        check_recordable(scripted, procedure)
    try:
        with (
            TemporaryDirectory(prefix="holecard-wire-") as folder,
            playing(Path(folder), rounds) as runner,
        ):
            yield runner.play
    except TABLE_FAULTS as problem:
        raise OverFailed(fault_text(problem)) from problem


@contextmanager
def playing(folder: Path, rounds: Sequence[_Round]) -> Iterator[ScriptRunner]:
    """Yields a runner in this folder, where the record remains. Raises UsageProblem and
    TABLE_FAULTS."""
    with asyncio.Runner() as loop:
        stack = AsyncExitStack()
        try:
            stage = loop.run(stack.enter_async_context(staged(folder, FEW, name=TABLE)))
            yield ScriptRunner(stage, rounds, loop.run)
        finally:
            loop.run(stack.aclose())


class ScriptRunner:
    """Plays rounds of several configurations at one table, grouped by configuration."""

    def __init__(self, stage: Stage, rounds: Sequence[_Round], run: Run) -> None:
        self.stage = stage
        self._rounds = rounds
        self._run = run
        self._played: dict[int, tuple[RoundResult, _Answers]] = {}
        """Results and events with their decisions, by the round's id()."""

    def play(
        self, scripted: ScriptRound, watch: RoundWatcher | None, procedure: Procedure
    ) -> RoundResult:
        """Returns a round's result, and passes its events to `watch`."""
        if id(scripted) not in self._played:
            self._play_all(procedure)
        result, answers = self._played.pop(id(scripted))
        if watch is not None:
            for event, answer in answers:
                watch(event, answer)
        return result

    def _play_all(self, procedure: Procedure) -> None:
        """Play all rounds of this procedure. Raises DidNotServe if the daemon fails."""
        rounds = [one for one, other in self._rounds if other is procedure]
        daemon, run = self.stage.daemon, self._run
        run(self.stage.serve(deals_of(rounds[0].script)))
        stack = AsyncExitStack()
        try:
            console = run(stack.enter_async_context(open_console(self.stage.control)))
            table = WireTable(self.stage, console, procedure, run)
            for one in rounds:
                answers: _Answers = []

                def watch(event: Event, answer: Answer, to: _Answers = answers) -> None:
                    to.append((event, answer))

                self._played[id(one)] = (table.play(one, watch), answers)
            run(table.close())
        finally:
            run(stack.aclose())
        code = run(daemon.stop())
        if code != 0:
            raise DidNotServe(f"holecard serve: ended with {code}")


class WireTable:
    """A served table with its robot: the table interface of the script runner. Its states are those
    that the screen shows."""

    def __init__(self, stage: Stage, console: Console, procedure: Procedure, run: Run) -> None:
        """`procedure` only provides the texts of refusals for scripts."""
        self._procedure = procedure
        self._console = console
        self._run = run
        self._record = Follower(stage.house.record)
        self._cards: tuple[str, ...] = ()
        """The order of the next shoe."""
        buttons = stage.table.sheet.options.decisions.by != "signals"
        ways = RobotOptions(buttons=buttons, dwell_ms=0)
        self._robot = Robot(stage, console, MimicPlayers(), ways, cards=lambda: self._cards)

    # --- rounds ---------------------------------------------------------------------------

    def play(self, scripted: ScriptRound, watch: RoundWatcher) -> RoundResult:
        """Play one round after a shuffle."""
        *before, last = rounds_of(scripted, self._procedure)
        self._run(self._shuffle(shoe_of(self.game, *before, last)))
        for plain in before:
            result = play_at(ScriptStart(self, self.state, ScriptVault()), plain)
            if not result.ok or self.state.step is not Step.WAGERING:
                raise RobotStuck(f"{plain.where}: no round can stand before it: {result.failures}")
        return play_at(ScriptStart(self, self.state, ScriptVault()), last, watch)

    async def _shuffle(self, cards: tuple[str, ...]) -> None:
        """Open the table with these cards in its shoe."""
        self._cards = cards
        await self._end_round()
        if self.state.step is Step.WAGERING:
            await self._robot.act("ShuffleCalled")
        await self._robot.play(lambda shown: shown.state.step is Step.WAGERING)
        for _ in self._record.more():
            continue  # decisions before the script are skipped

    async def close(self) -> None:
        await self._end_round()
        if self.state.step is not Step.CLOSED:
            await self._robot.act("TableClosed", "two", bank=100_000)

    async def _end_round(self) -> None:
        """End what is open: void the round, return wagers."""
        for _ in range(_MAX_STEPS):
            s = self.state
            if s.step in IN_ROUND and s.step not in (Step.PAYING, Step.CLEARING):
                await self._robot.act("RoundVoided", "two", reason="nobody goes on with it")
            elif s.seats and not s.hands and s.step is Step.WAGERING:
                await self._robot.act("WagerRemoved", seat=s.seats[0].number, bet="main")
            elif s.step in IN_ROUND or s.holds:
                await self._robot.step()
            else:
                return
        raise RobotStuck(f"no end after {_MAX_STEPS} steps, at {self.state.step.value}")

    # --- the script runner's table --------------------------------------------------------

    @property
    def game(self) -> Game:
        return self._procedure.game

    @property
    def state(self) -> State:
        """The state that is shown."""
        return self._console.shown.state

    def shows(self, s: State, /) -> tuple[Effect, ...]:
        return self._console.shown.effects

    def step(self, s: State, event: Event, /) -> Answer:
        """Do an event. Raises RobotStuck if the table records a different one."""
        answer: Answer = self._run(self._step(event))
        if isinstance(answer, Refused):
            # With the text for scripts, which have no currency.
            ours = self._procedure.step(s, event)
            if isinstance(ours, Refused) and ours.id == answer.id:
                return ours
        return answer

    async def _step(self, event: Event) -> Answer:
        before, refusals = self._console.shown, len(self._robot.refused)
        prompt = before.prompt
        if prompt is None:
            raise RobotStuck(f"nothing is asked for, and a script wants {type(event).__name__}")
        await _do(self._robot, prompt, event)
        if len(self._robot.refused) > refusals:
            return self._robot.refused[-1]
        await until(lambda: self._console.shown is not before, ROBOT_TIMEOUT)
        return self._decision(event)

    def _decision(self, event: Event) -> Decision:
        """Returns the decisions recorded since the event, as one."""
        made = [
            decode_decision(entry.record)
            for entry in self._record.more()
            if entry.record.kind == "decision"
        ]
        if not made or not _matches(made[0].event, event):
            recorded = ", ".join(repr(one.event) for one in made) or "nothing"
            raise RobotStuck(f"{event!r} was handed in, and recorded was {recorded}")
        rows = tuple(row for one in made for row in one.rows)
        effects = tuple(effect for one in made for effect in one.effects)
        return Decision(rows, self.state, effects)


async def _do(robot: Robot, prompt: Prompt, event: Event) -> None:
    """Do what a person does for this event."""
    kind = type(event)
    fields = {
        name: value
        for name, value in asdict(event).items()
        if name not in _NOT_SUBMITTED and value is not None
    }
    if isinstance(event, events.CardDrawn | events.HoleDealt):
        if prompt.tell not in _DRAWING:
            raise RobotStuck(f"a script draws a card, and the prompt is {prompt.tell.value}")
        await robot.draw(prompt)
    elif kind in _CHOICES:
        hand = fields.get("hand", -1)
        asked = (fields["seat"], hand) in ((prompt.seat, prompt.hand), (prompt.seat, -1))
        amount = fields.get("amount")
        if kind is events.Insure and amount == prompt.amount:
            amount = None
        seat = 0 if asked else fields["seat"]
        await robot.send_choice(prompt, PlayerChoice(_CHOICES[kind], amount, seat, max(hand, 0)))
    elif kind in _ACTS:
        await robot.act(_ACTS[kind])
    elif isinstance(event, events.PaymentApproved):
        await robot.act(kind.__name__, "floor")
    else:
        await robot.act(kind.__name__, **fields)


def _matches(found: Event, wanted: Event) -> bool:
    """Whether the recorded event is the one that was submitted."""
    if type(found) is not type(wanted):
        return False
    return all(
        getattr(found, name) == value
        for name, value in asdict(wanted).items()
        if name not in _NOT_SUBMITTED and value is not None
    )
