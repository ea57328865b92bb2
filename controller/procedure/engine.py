"""step(): an event meets a state. The rows sit in a dictionary; nothing else decides.

`apply` makes the new state and the row's effects, here and at the live table (`live`) alike.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from controller.procedure.effects import Effect
from controller.procedure.events import Actor, Event, Go
from controller.procedure.game import Game
from controller.procedure.row import Decision, Refusal, Refused, Row
from controller.procedure.rows import REFUSALS, ROWS, RowFault
from controller.procedure.shows import SHOWS
from controller.procedure.states import PASSING, State, Step

GO: Final = Go(Actor("device", "controller"))
_MOST_PASSED: Final = 64
"""Rows that may fire after one event: four split hands on every seat stay far below."""


def rows_of(game: Game) -> tuple[Row, ...]:
    """The rows that a game has."""
    return tuple(row for row in ROWS if row.needs is None or row.needs(game.options))


def apply(g: Game, row: Row, s: State, e: Event) -> tuple[State, tuple[Effect, ...]]:
    """The new state and the row's own effects."""
    do = row.do
    new = replace(s if do is None else do(g, s, e), step=row.to)
    makes = row.effects
    return new, () if makes is None else makes(g, s, e, new)


class Procedure:
    """A game's rows, ready to step through."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.rows = rows_of(game)
        self._rows: dict[Step, dict[type[Event], tuple[Row, ...]]] = {step: {} for step in Step}
        for row in self.rows:
            for step in row.at:
                here = self._rows[step]
                here[row.event] = (*here.get(row.event, ()), row)
        self._go = {step: self._rows[step].get(Go, ()) for step in PASSING}
        self._refusals: dict[Step, dict[type[Event], tuple[Refusal, ...]]] = {
            step: {} for step in Step
        }
        for ref in REFUSALS:
            for step in ref.at:
                said = self._refusals[step]
                said[ref.event] = (*said.get(ref.event, ()), ref)

    def rows_at(self, step: Step, event: type[Event]) -> tuple[Row, ...]:
        return self._rows[step].get(event, ())

    def step(self, s: State, e: Event) -> Decision | Refused:
        g = self.game
        for row in self._rows[s.step].get(type(e), ()):
            when = row.when
            if when is None or when(g, s, e):
                break
        else:
            return self.refuse(s, e)
        do = row.do
        new = replace(s if do is None else do(g, s, e), step=row.to)
        effects = row.effects(g, s, e, new) if row.effects is not None else ()
        fired = [row.id]
        go = self._go
        while (onward := go.get(new.step)) is not None:
            for row in onward:
                when = row.when
                if when is None or when(g, new, GO):
                    break
            else:
                raise RowFault(f"nothing goes on from {new.step.value}")
            before = new
            do = row.do
            new = replace(before if do is None else do(g, before, GO), step=row.to)
            if row.effects is not None:
                effects += row.effects(g, before, GO, new)
            fired.append(row.id)
            if len(fired) > _MOST_PASSED:
                raise RowFault(f"no end from {s.step.value}: {fired}")
        return Decision(tuple(fired), new, effects + SHOWS[new.step](g, new))

    def refuse(self, s: State, e: Event) -> Refused:
        """Why nothing happens."""
        g = self.game
        for ref in self._refusals[s.step].get(type(e), ()):
            if ref.when is None or ref.when(g, s, e):
                detail = ref.detail(g, s, e) if ref.detail is not None else {}
                return Refused(ref.id, ref.why.format(**detail))
        for row in self._rows[s.step].get(type(e), ()):
            if row.why:
                return Refused(row.id, row.why)
        return Refused("not_now", f"{type(e).__name__} has no place at {s.step.value}")

    def shows(self, s: State) -> tuple[Effect, ...]:
        """What a waiting state shows, the same as when it was reached."""
        return SHOWS[s.step](self.game, s)
