"""What a row of the procedure is, and what a refusal is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from controller.procedure.model.effects import Effect
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import State, Step
from controller.rules.options import Options

# Guards and acts take the game beside state and event: the options are worked out once a sheet and
# stay out of the state, which is pure data. Their event is the class that the row names, which
# Python's types cannot say of a table; `rows.check` sees to it at import.
Needs: TypeAlias = Callable[[Options], bool]
When: TypeAlias = Callable[[Game, State, Any], bool]
Do: TypeAlias = Callable[[Game, State, Any], State]
Makes: TypeAlias = Callable[[Game, State, Any, State], tuple[Effect, ...]]


class Row(Struct, frozen=True):
    """At `at`, on `event`, if `when`: the state becomes `do`, the step `to`.

    `needs` picks the rows of a game; `effects` are those beside what the new step shows; `why` is
    the refusal's text when the guard fails; `rule` names the clauses of the sheets that the row
    carries out; `text` is what a dealer or a regulator reads.
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
    """Nothing has changed. `id` names the row or refusal that says why."""

    id: str
    why: str
    detail: tuple[tuple[str, str], ...] = ()
    """What `why` names: by field, in the procedure's own terms. It stands in no record, which has
    `why` already."""


class Decision(Struct, frozen=True, gc=False):
    """The rows that fired, in order, the new state, and the effects."""

    rows: tuple[str, ...]
    state: State
    effects: tuple[Effect, ...]
