"""Scripted rounds at a running table: the cards lie in its shoe, the players do what it says."""

from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from controller.procedure.model.effects import Effect, Prompt, Settled, Tell
from controller.procedure.model.events import WagerPlaced
from controller.procedure.model.game import BETS
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.sim.scripts import RoundResult, ScriptRound
from controller.sim.scripts.format import RejectedBet, read_scripts
from controller.sim.scripts.runner import differences, procedure_for, result_of
from controller.table.loop import RequestResult
from controller.table.running import RunningTable
from hil.table.robots import PlayerChoice, Robot
from hil.table.scripts.shoe import rounds_of, shoe_of
from tests.support.drivers.simulated import simulate
from tests.support.paths import SCRIPT_FILES
from tests.support.table.simulated.serving import AtTable, Room, ready, room

_OVER: Final = (Step.WAGERING, Step.SHUFFLE_NEEDED, Step.CLOSED)


class ScriptPlayers:
    """Players who follow a script, as far as prompts tell when it is their turn."""

    def __init__(self, scripted: ScriptRound) -> None:
        self._script = scripted.script
        self._actions = list(scripted.script.actions)

    def wagers(self) -> list[tuple[int, str, int]]:
        seats = sorted(self._script.seats, key=lambda seat: seat.seat)
        return [
            (seat.seat, bet, seat.bets[bet]) for seat in seats for bet in BETS if bet in seat.bets
        ]

    def choose(self, prompt: Prompt) -> PlayerChoice:
        match prompt.tell:
            case Tell.ASK_NATURAL:
                doubles = any(
                    action.do == "double" and action.seat == prompt.seat and not action.rejected
                    for action in self._actions
                )
                return PlayerChoice("decline_pay" if doubles else "take_pay")
            case Tell.ASK_INSURANCE:
                return self._insures(prompt)
            case _:
                return self._plays(prompt)

    def _insures(self, prompt: Prompt) -> PlayerChoice:
        if self._actions and [action for action in self._actions if action.phase == "insurance"]:
            action = self._actions[0]
            if action.rejected or (action.phase == "insurance" and action.seat <= prompt.seat):
                return self._take()
        return PlayerChoice("decline")

    def _plays(self, prompt: Prompt) -> PlayerChoice:
        while self._actions:
            action = self._actions[0]
            theirs = (action.seat, action.hand or 0) == (prompt.seat, prompt.hand)
            if action.rejected or theirs or action.phase != "play":
                return self._take()
            if action.do != "stand" and not action.implicit:
                break  # for another hand, whose turn comes
            if prompt.total == 21:
                break
            self._actions.pop(0)  # of a hand that stood by itself
        assert prompt.total == 21, prompt
        return PlayerChoice("stand")

    def _take(self) -> PlayerChoice:
        action = self._actions.pop(0)
        if action.rejected:
            return PlayerChoice(action.do, action.amount, action.seat, action.hand or 0)
        return PlayerChoice(action.do, action.amount)


class Watching:
    """What comes of a round, from what was recorded of it."""

    def __init__(self) -> None:
        self.settled: list[Settled] = []
        self.rejected: list[RejectedBet] = []
        self.before = State()
        self.over = State()

    def told(self, done: RequestResult) -> None:
        for one in done.answered:
            if isinstance(one.answer, Refused):
                if isinstance(one.event, WagerPlaced):
                    event = one.event
                    bet = RejectedBet(event.seat, event.bet, event.amount, one.answer.why)
                    self.rejected.append(bet)
                continue
            self.take(one.answer)

    def take(self, decision: Decision) -> None:
        facts: tuple[Effect, ...] = decision.effects
        self.settled += [fact for fact in facts if isinstance(fact, Settled)]
        if decision.state.step is Step.CLEARING:
            self.over = decision.state

    def result(self, scripted: ScriptRound) -> RoundResult:
        script = scripted.script
        seats = [seat.seat for seat in script.seats]
        return result_of(script.id, seats, self.over, self.settled, self.rejected, [], [])


def failures(scripted: ScriptRound, result: RoundResult) -> list[str]:
    wanted: Any = msgspec.to_builtins(scripted.script.expect)
    wanted.pop("rejected_actions", None)  # numbered by who reads the script
    return differences(wanted, msgspec.to_builtins(result))


class Played(NamedTuple):
    result: RoundResult
    robot: Robot


async def play(folder: Path, scripted: ScriptRound) -> Played:
    """The round, dealt at a table of its own."""
    procedure = procedure_for(scripted)
    rounds = rounds_of(scripted, procedure)
    shoe = shoe_of(procedure.game, *rounds)
    async with room(folder, procedure.game) as made:
        table = made.serve()
        async with table:
            await ready(table)
            for one in rounds[:-1]:
                await play_one(made, table, one, shoe)
            return await play_one(made, table, rounds[-1], shoe)


async def play_one(
    made: Room, table: RunningTable, scripted: ScriptRound, shoe: tuple[str, ...]
) -> Played:
    """From the wagers, or from the shuffle before them, to the next wagers."""
    watching, former = Watching(), table.shown.state.round
    table.add_result_listener(watching.told)
    robot = Robot(made, AtTable(table), ScriptPlayers(scripted), cards=lambda: shoe)
    await robot.play(lambda s: s.state.step in _OVER and s.state.round > former)
    return Played(watching.result(scripted), robot)


def scripts(name: str) -> list[ScriptRound]:
    return read_scripts(SCRIPT_FILES / f"{name}.json")


def played(folder: Path, scripted: ScriptRound) -> Played:
    return simulate(play(folder, scripted))
