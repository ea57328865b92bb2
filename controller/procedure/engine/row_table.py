"""The row table, validated when it is imported."""

from __future__ import annotations

import typing
from typing import Final

from controller.procedure import irregularities, rows
from controller.procedure.model.events import Event, Go
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import PASSING, WAITING, Step
from controller.procedure.prompts import SHOWS

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
    for row in rows:
        for act in (row.when, row.do, row.effects):
            if act is None or getattr(act, "__name__", "") == "<lambda>":
                continue
            kind = typing.get_type_hints(act).get("e")
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
    for step in WAITING:
        if step not in SHOWS:
            raise RowFault(f"{step.value} has no prompt")
        for event in EVENTS:
            here = [row for row in rows if step in row.at and row.event is event]
            said = [ref for ref in refusals if step in ref.at and ref.event is event]
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
