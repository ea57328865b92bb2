"""Types of the row table: rows, refusals, and the decisions made from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from controller.procedure.model.effects import Effect
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import State, Step
from controller.rules.options import Options

# Guards and acts take the game as well as state and event: options are computed once a sheet and
# are not part of the state. Python's types cannot express that their event has the row's class; the
# row table validates that when it is imported.
Needs: TypeAlias = Callable[[Options], bool]
When: TypeAlias = Callable[[Game, State, Any], bool]
Do: TypeAlias = Callable[[Game, State, Any], State]
Makes: TypeAlias = Callable[[Game, State, Any, State], tuple[Effect, ...]]


class Row(Struct, frozen=True):
    """At `at`, on `event`, if `when`: the state becomes `do`, the step `to`.

    `needs` picks the rows of a game; `effects` are those beside what the new step shows; `why` is
    the refusal's text when the guard fails; `rule` names the clauses of the sheets that the row
    carries out; `text` is the description for a dealer or a regulator.
    """

    id: str
    at: tuple[Step, ...]
    event: type[Event]
    to: Step
    text: str
    when: When | None = None
    do: Do | None = None
    effects: Makes | None = None
    needs: Needs | None = None
    why: str = ""
    rule: tuple[str, ...] = ()


class Refusal(Struct, frozen=True):
    """Why `event` is refused at `at` when no row takes it; the first whose `when` holds."""

    id: str
    at: tuple[Step, ...]
    event: type[Event]
    why: str
    """May name {fields} that `detail` fills."""
    when: When | None = None
    detail: Callable[[Game, State, Any], dict[str, str]] | None = None
    rule: tuple[str, ...] = ()


class Refused(Struct, frozen=True, gc=False):
    """The event is refused and has no effect. `id` names the row or refusal with the reason."""

    id: str
    why: str
    detail: tuple[tuple[str, str], ...] = ()
    """The values of the fields in `why`, by field. Not recorded: the record has `why`."""


class Decision(Struct, frozen=True, gc=False):
    """The rows that fired, in order, the new state, and the effects."""

    rows: tuple[str, ...]
    state: State
    effects: tuple[Effect, ...]
