"""The live table: `transitions` picks the row, `apply` does the rest.

The machine keeps no state: each event gets a temporary model at the step of the table's state.
"""

from __future__ import annotations

from typing import Any

from transitions import EventData, Machine, Transition

from controller.procedure.engine.dispatch import GO, MAX_PASSED, Procedure, RowFault, apply, theirs
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import Event
from controller.procedure.model.game import NOBODY, Game
from controller.procedure.model.row import Decision, Refused, Row, When
from controller.procedure.model.state import PASSING, State, Step
from controller.procedure.prompts import SHOWS


class _StepModel:
    """A model at one step for one event; receives the row that was picked."""

    def __init__(self, step: Step) -> None:
        self.state = step
        self.row: Row | None = None


class _Fires(Transition):
    """A row. There are no callbacks for leaving or entering a step, so they are not looked up: that
    took more than half of the time of every card."""

    def _change_state(self, event_data: EventData) -> None:
        assert self.dest is not None  # every row leads to a step
        event_data.machine.set_state(self.dest, event_data.model)


class _Rows(Machine):
    transition_cls = _Fires


def trigger_of(event: type[Event]) -> str:
    return f"on_{event.__name__}"


class LiveTable:
    """The same rows as `Procedure`, chosen by a state machine."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self._procedure = Procedure(game)
        self.machine = _Rows(
            model=None,
            states=Step,
            initial=Step.CLOSED,
            auto_transitions=False,
            send_event=True,
            queued=False,
        )
        for row in self._procedure.rows:
            self.machine.add_transition(
                trigger_of(row.event),
                list(row.at),
                row.to,
                conditions=[] if row.when is None else [self._guard(row.when)],
                before=[_chosen(row)],
            )

    def _guard(self, when: When) -> Any:
        def condition(data: EventData) -> bool:
            return when(self.game, data.kwargs["s"], data.kwargs["e"])

        return condition

    def _pick(self, s: State, e: Event) -> Row | None:
        known = self.machine.events.get(trigger_of(type(e)))
        if known is None or s.step.name not in known.transitions:
            return None
        model = _StepModel(s.step)
        known.trigger(model, s=s, e=e)
        if model.row is not None and model.state is not model.row.to:
            raise RowFault(f"{model.row.id} leads to {model.row.to}, not to {model.state}")
        return model.row

    def step(self, s: State, e: Event) -> Decision | Refused:
        row = self._pick(s, e) if theirs(e, self.game.who.get(type(e), NOBODY)) else None
        if row is None:
            return self._procedure.refuse(s, e)
        new, effects = apply(self.game, row.do, row.to, row.effects, s, e)
        fired = [row.id]
        while new.step in PASSING:
            row = self._pick(new, GO)
            if row is None:
                raise RowFault(f"no row continues from {new.step.value}")
            new, more = apply(self.game, row.do, row.to, row.effects, new, GO)
            effects += more
            fired.append(row.id)
            if len(fired) > MAX_PASSED:
                raise RowFault(f"too many rows from {s.step.value}: {fired}")
        return Decision(tuple(fired), new, effects + SHOWS[new.step](self.game, new))

    def shows(self, s: State) -> tuple[Effect, ...]:
        """Returns the effects that a waiting state shows."""
        return self._procedure.shows(s)


def _chosen(row: Row) -> Any:
    def note(data: EventData) -> None:
        model = data.model
        assert isinstance(model, _StepModel)
        model.row = row

    return note
