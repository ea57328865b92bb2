"""What random play is carried out by: one engine, or two whose answers are compared."""

from __future__ import annotations

from typing import Protocol

from controller.procedure.engine import Procedure
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State


class Engine(Protocol):
    """What carries the rows out."""

    @property
    def game(self) -> Game: ...
    def step(self, s: State, event: Event, /) -> Decision | Refused: ...


class Stuck(AssertionError):
    """The procedure does not take what a table would bring, and the round does not end."""


class Differs(AssertionError):
    """Two engines answered one event differently."""


class Both:
    """Two engines as one: each has its own state, and every answer is compared; also what the first
    one says before whether it would take the event."""

    def __init__(self, first: Procedure, second: Engine) -> None:
        self.game = first.game
        self._first, self._second = first, second
        self._theirs = State()

    def step(self, s: State, event: Event, /) -> Decision | Refused:
        takes = self._first.takes(s, event)
        one = self._first.step(s, event)
        if takes is not isinstance(one, Decision):
            raise Differs(f"{event} at {s}\ntakes: {takes}\n step: {one}")
        two = self._second.step(self._theirs, event)
        if one != two or type(one) is not type(two):
            raise Differs(f"{event} at {s}\n first: {one}\nsecond: {two}")
        if isinstance(two, Decision):
            self._theirs = two.state
        return one
