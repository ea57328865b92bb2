"""Runs the events of a script at a served table.

Each event is done at a device or at the dealer's screen; the decision is read from the record. The
caller may be in another thread than the table's event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from controller.audit.read.follow import Follower
from controller.audit.replay import DecisionData, decode_decision
from controller.procedure.engine import Procedure
from controller.procedure.model import events
from controller.procedure.model.effects import Effect, Prompt, Tell
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State
from hil.table.robots import ROBOT_TIMEOUT, Console, PlayerChoice, Robot, RobotStuck
from hil.table.setup import until

_T = TypeVar("_T")
Run: TypeAlias = Callable[[Coroutine[Any, Any, _T]], _T]
"""Runs a coroutine in the table's event loop and returns its result."""

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
_UNTOLD: Final = frozenset({"actor", "commitment", "opening", "spare"})
"""Fields of an event that are not submitted: its actor, and what only the table has."""


class WiredTable(Struct, frozen=True):
    """A served table: its robot, its console and its record."""

    robot: Robot
    console: Console
    record: Follower


class WireTable:
    """The table interface of the script runner. Its states are those that the screen shows."""

    def __init__(self, procedure: Procedure, wired: WiredTable, run: Run[Any]) -> None:
        """`procedure` only provides the texts of refusals for scripts."""
        self._procedure = procedure
        self._wired = wired
        self._run = run

    @property
    def game(self) -> Game:
        return self._procedure.game

    @property
    def state(self) -> State:
        """The state that is shown."""
        return self._wired.console.shown.state

    def shows(self, s: State, /) -> tuple[Effect, ...]:
        return self._wired.console.shown.effects

    def step(self, s: State, event: Event, /) -> Decision | Refused:
        """Do an event. Raises RobotStuck if the table records a different one."""
        answer: Decision | Refused = self._run(self._step(event))
        return self._in_script_words(s, event, answer)

    def _in_script_words(
        self, s: State, event: Event, answer: Decision | Refused
    ) -> Decision | Refused:
        """Returns the refusal with the script's text: scripts have no currency."""
        if isinstance(answer, Refused):
            ours = self._procedure.step(s, event)
            if isinstance(ours, Refused) and ours.id == answer.id:
                return ours
        return answer

    async def _step(self, event: Event) -> Decision | Refused:
        robot, console = self._wired.robot, self._wired.console
        before, refusals = console.shown, len(robot.refused)
        prompt = before.prompt
        if prompt is None:
            raise RobotStuck(f"nothing is asked for, and a script wants {type(event).__name__}")
        await _does(robot, prompt, event)
        if len(robot.refused) > refusals:
            return robot.refused[-1]
        await until(lambda: console.shown is not before, ROBOT_TIMEOUT)
        return self._decision(event)

    def _decision(self, event: Event) -> Decision:
        """Returns the decisions recorded since the event, as one."""
        made = list(self._made())
        if not made or not _is(made[0].event, event):
            told = ", ".join(repr(one.event) for one in made) or "nothing"
            raise RobotStuck(f"{event!r} was handed in, and recorded was {told}")
        rows = tuple(row for one in made for row in one.rows)
        effects = tuple(effect for one in made for effect in one.effects)
        return Decision(rows, self.state, effects)

    def _made(self) -> Iterator[DecisionData]:
        for told in self._wired.record.more():
            if told.record.kind == "decision":
                yield decode_decision(told.record.data)


async def _does(robot: Robot, prompt: Prompt, event: Event) -> None:
    """Do what a person does for this event."""
    kind = type(event)
    fields = {
        name: value
        for name, value in asdict(event).items()
        if name not in _UNTOLD and value is not None
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
        await robot.decided(prompt, PlayerChoice(_CHOICES[kind], amount, seat, max(hand, 0)))
    elif kind in _ACTS:
        await robot.act(_ACTS[kind])
    elif isinstance(event, events.PaymentApproved):
        await robot.act(kind.__name__, "floor")
    else:
        await robot.act(kind.__name__, **fields)


def _is(found: Event, wanted: Event) -> bool:
    """Whether the recorded event is the one that was submitted."""
    if type(found) is not type(wanted):
        return False
    return all(
        getattr(found, name) == value
        for name, value in asdict(wanted).items()
        if name not in _UNTOLD and value is not None
    )
