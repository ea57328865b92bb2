"""The row table, validated when it is imported, and the dictionary engine over it.

The engine has the rows by step and event, for simulation and replay. `apply` makes the new state
and the row's effects, for this engine and for the live table.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Final, TypeAlias, TypeVar

from msgspec.structs import force_setattr, replace

from controller.procedure import irregularities, rows
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import Actor, Event, Go, Role
from controller.procedure.model.game import NOBODY, Game
from controller.procedure.model.row import Decision, Do, Makes, Refusal, Refused, Row, When
from controller.procedure.model.state import PASSING, WAITING, State, Step
from controller.procedure.prompts import SHOWS

T = TypeVar("T")

ROWS: Final[tuple[Row, ...]] = (*rows.ROWS, *irregularities.ROWS)
REFUSALS: Final[tuple[Refusal, ...]] = (*rows.REFUSALS, *irregularities.REFUSALS)


def refusal_name(code: str) -> str:
    """Returns the name that the refusals of one act share at all steps."""
    return code.partition("_at_")[0]


_WHYS: Final[tuple[Refusal | Row, ...]] = (*REFUSALS, *ROWS)
REFUSAL_TEXTS: Final = {refusal_name(one.id): one.why for one in _WHYS if one.why}
"""Why an act is refused, by that name. A text may have {fields}."""


def _leaves(kind: type[Event]) -> list[type[Event]]:
    below = kind.__subclasses__()
    if not below:
        return [kind]
    return [leaf for each in below for leaf in _leaves(each)]


EVENTS: Final[tuple[type[Event], ...]] = tuple(kind for kind in _leaves(Event) if kind is not Go)
"""All events that can be submitted from outside."""


class RowFault(Exception):
    """The table of rows contradicts itself."""


def _by_step_and_event(
    items: Iterable[tuple[tuple[Step, ...], type[Event], T]],
) -> dict[Step, dict[type[Event], tuple[T, ...]]]:
    found: dict[Step, dict[type[Event], tuple[T, ...]]] = {step: {} for step in Step}
    for steps, event, item in items:
        for step in steps:
            found[step][event] = (*found[step].get(event, ()), item)
    return found


def _check_names(rows: tuple[Row, ...], refusals: tuple[Refusal, ...]) -> None:
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise RowFault(f"row {row.id} is defined twice")
        seen.add(row.id)
        if not row.text or not row.at:
            raise RowFault(f"row {row.id} has no text or no step")
        if any((step in PASSING) != (row.event is Go) for step in row.at):
            raise RowFault(f"row {row.id}: Go is the event of PASSING steps only")
    for ref in refusals:
        if ref.id in seen:
            raise RowFault(f"refusal {ref.id} has the id of a row")


def _check_events(rows: tuple[Row, ...]) -> None:
    """Checks that guards and acts accept their row's event, or a base class of it."""
    hints = cache(typing.get_type_hints)  # many rows share an act
    for row in rows:
        for act in (row.when, row.do, row.effects):
            if act is None or getattr(act, "__name__", "") == "<lambda>":
                continue
            kind = hints(act).get("e")
            kinds = typing.get_args(kind) or (kind,)
            if not any(isinstance(k, type) and issubclass(row.event, k) for k in kinds):
                raise RowFault(f"row {row.id}: {act} does not accept {row.event.__name__}")


def _check_reach(rows: tuple[Row, ...]) -> None:
    reached = {Step.CLOSED}
    more = True
    while more:
        found = {row.to for row in rows if any(step in reached for step in row.at)} - reached
        reached |= found
        more = bool(found)
    lost = set(Step) - reached
    if lost:
        raise RowFault(f"no row leads to {sorted(step.value for step in lost)}")


def _check_answers(rows: tuple[Row, ...], refusals: tuple[Refusal, ...]) -> None:
    """Checks that every waiting step has an answer to every event."""
    silent: list[str] = []
    rows_at = _by_step_and_event((row.at, row.event, row) for row in rows)
    refusals_at = _by_step_and_event((ref.at, ref.event, ref) for ref in refusals)
    for step in WAITING:
        if step not in SHOWS:
            raise RowFault(f"{step.value} has no prompt")
        for event in EVENTS:
            here = rows_at[step].get(event, ())
            said = refusals_at[step].get(event, ())
            answered = (
                any(row.when is None or row.why for row in here)
                or any(ref.when is None for ref in said)
                or len(here) > 1  # two guards that cover all cases
            )
            if not answered:
                silent.append(f"{event.__name__} at {step.value}")
    if silent:
        raise RowFault(f"no answer to {', '.join(silent)}")


def check(rows: tuple[Row, ...] = ROWS, refusals: tuple[Refusal, ...] = REFUSALS) -> None:
    _check_names(rows, refusals)
    _check_events(rows)
    _check_reach(rows)
    _check_answers(rows, refusals)


check()

_REFUSALS_AT: Final = _by_step_and_event((ref.at, ref.event, ref) for ref in REFUSALS)

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


_Index: TypeAlias = dict[Step, dict[type[Event], tuple[_Fast, ...]]]


@lru_cache(maxsize=64)
def _index_of(ids: tuple[str, ...]) -> _Index:
    """Returns the index of these rows; games that differ in amounts only have the same rows."""
    chosen = frozenset(ids)
    return _by_step_and_event((r.at, r.event, _fast(r)) for r in ROWS if r.id in chosen)


class Procedure:
    """A game's rows, indexed by step and event."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.rows = rows_of(game)
        self._at = _index_of(tuple(row.id for row in self.rows))
        self._go = {step: self._at[step].get(Go, ()) for step in PASSING}

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
        for ref in _REFUSALS_AT[s.step].get(type(e), ()):
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
