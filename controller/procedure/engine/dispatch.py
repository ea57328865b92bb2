"""The dictionary engine: rows by step and event, for simulation and replay.

`apply` makes the new state and the row's effects, for this engine and for the live table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias, TypeVar

from msgspec.structs import force_setattr, replace

from controller.procedure.engine.row_table import REFUSALS, ROWS, RowFault
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import Actor, Event, Go, Role
from controller.procedure.model.game import NOBODY, Game
from controller.procedure.model.row import Decision, Do, Makes, Refused, Row, When
from controller.procedure.model.state import PASSING, State, Step
from controller.procedure.prompts import SHOWS

T = TypeVar("T")

GO: Final = Go(Actor("device", "controller"))
MAX_PASSED: Final = 64
"""Limit of rows that fire after one event; four split hands on every seat need far fewer."""


def rows_of(game: Game) -> tuple[Row, ...]:
    """Returns the rows of a game."""
    return tuple(row for row in ROWS if row.needs is None or row.needs(game.options))


def theirs(event: Event, allowed: frozenset[Role]) -> bool:
    """Whether the actor's role may bring the event; a player only for the own seat."""
    who = event.actor
    return who.role in allowed and (
        who.role != "player" or getattr(event, "seat", 0) in (0, who.seat)
    )


def moved(s: State, new: State, to: Step) -> State:
    """Returns `new` at the step `to`. A state that an act has just made is not shared yet, so its
    step is set in place: another copy for every row took a seventh of the time."""
    if new is s:
        return replace(s, step=to)
    force_setattr(new, "step", to)
    return new


def apply(
    g: Game, do: Do | None, to: Step, makes: Makes | None, s: State, e: Event
) -> tuple[State, tuple[Effect, ...]]:
    """Returns the new state and the row's effects, from the row's act, step and effects."""
    new = moved(s, s if do is None else do(g, s, e), to)
    return new, () if makes is None else makes(g, s, e, new)


# A row in the engine: guard, act, step, effects, and its id in a tuple. Unpacking a tuple is faster
# than reading a row's fields, and this is done at every event.
_Fast: TypeAlias = tuple[When | None, Do | None, Step, Makes | None, tuple[str, ...]]


def _fast(row: Row) -> _Fast:
    return (row.when, row.do, row.to, row.effects, (row.id,))


def _by_step_and_event(
    items: Iterable[tuple[tuple[Step, ...], type[Event], T]],
) -> dict[Step, dict[type[Event], tuple[T, ...]]]:
    found: dict[Step, dict[type[Event], tuple[T, ...]]] = {step: {} for step in Step}
    for steps, event, item in items:
        for step in steps:
            found[step][event] = (*found[step].get(event, ()), item)
    return found


class Procedure:
    """A game's rows, indexed by step and event."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.rows = rows_of(game)
        self._at = _by_step_and_event((row.at, row.event, _fast(row)) for row in self.rows)
        self._go = {step: self._at[step].get(Go, ()) for step in PASSING}
        self._refusals = _by_step_and_event((ref.at, ref.event, ref) for ref in REFUSALS)

    def step(self, s: State, e: Event) -> Decision | Refused:
        """Returns the decision of the rows that fire, up to a waiting step, or the refusal."""
        g = self.game
        kind = type(e)
        if not theirs(e, g.who.get(kind, NOBODY)):
            return self.refuse(s, e)
        for when, do, to, makes, fired in self._at[s.step].get(kind, ()):
            if when is None or when(g, s, e):
                break
        else:
            return self.refuse(s, e)
        new, effects = apply(g, do, to, makes, s, e)
        go = self._go
        while (onward := go.get(to)) is not None:
            for when, do, to, makes, row in onward:
                if when is None or when(g, new, GO):
                    break
            else:
                raise RowFault(f"no row continues from {to.value}")
            new, more = apply(g, do, to, makes, new, GO)
            effects += more
            fired += row
            if len(fired) > MAX_PASSED:
                raise RowFault(f"too many rows from {s.step.value}: {fired}")
        return Decision(fired, new, effects + SHOWS[to](g, new))

    def takes(self, s: State, e: Event) -> bool:
        """Whether step() would return a decision."""
        g, kind = self.game, type(e)
        rows = self._at[s.step].get(kind, ())
        return theirs(e, g.who.get(kind, NOBODY)) and any(
            when is None or when(g, s, e) for when, *_ in rows
        )

    def refuse(self, s: State, e: Event) -> Refused:
        """Returns why the event is refused."""
        g = self.game
        for ref in self._refusals[s.step].get(type(e), ()):
            if ref.when is None or ref.when(g, s, e):
                detail = ref.detail(g, s, e) if ref.detail is not None else {}
                return Refused(ref.id, ref.why.format(**detail), tuple(detail.items()))
        for row in self.rows:
            if row.event is type(e) and row.why and s.step in row.at:
                return Refused(row.id, row.why)
        return Refused("not_now", f"{type(e).__name__} has no place at {s.step.value}")

    def shows(self, s: State) -> tuple[Effect, ...]:
        """Returns the effects that a waiting state shows, as when it was reached."""
        return SHOWS[s.step](self.game, s)
