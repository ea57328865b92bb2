"""The table of a device's states: whole, without contradiction, and what the machine does."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Final, get_args

import pytest
from transitions import MachineError

from drivers.devices import PORT_OPEN, LinkState, StateMachine, Trigger
from drivers.devices.state import ROWS, WITHOUT_PORT, StateRow
from drivers.session import reports, supervisor
from firmware_protocol.host import (
    HandshakeFailed,
    HelloReceived,
    LinkEvent,
    LinkSessionEnded,
    LinkSessionStarted,
    RecordMissing,
    RingHeld,
    RingResumed,
)

S, T = LinkState, Trigger

TRIGGERS: Final[dict[type, tuple[Trigger, ...]]] = {
    HelloReceived: (T.GREETED, T.SWAPPED),
    HandshakeFailed: (T.HANDSHAKE_FAILED, T.DISPROVED),
    LinkSessionStarted: (T.SESSION_BEGAN, T.REKEYED),
    RingResumed: (T.RESUMED,),
    RingHeld: (T.HELD,),
    RecordMissing: (T.BEHIND,),
    LinkSessionEnded: (T.SESSION_ENDED, T.STALLED),
}
"""The link's events that may change a state, each with the triggers it comes as."""

IMPOSSIBLE: Final = frozenset(
    {
        (what, at)
        for what in (T.RESUMED, T.HELD, T.REKEYED, T.BEHIND)
        for at in (S.IDENTIFYING, S.HANDSHAKING)
    }
    | {(T.SESSION_BEGAN, at) for at in (S.RESUMING, S.READY)}
)
"""What no link says there: only a session is resumed or gets new keys, and one that runs does not
begin. If one says it, that is an error."""


def rows_at(state: LinkState) -> Iterator[StateRow]:
    """What can happen to a device that stands here."""
    return (row for row in ROWS if state in row.at)


def standing(state: LinkState) -> StateMachine:
    one = StateMachine()
    one.state = state
    return one


def test_every_state_is_reached_from_the_start() -> None:
    reached, open_ends = {LinkState.ABSENT}, [LinkState.ABSENT]
    while open_ends:
        for row in rows_at(open_ends.pop()):
            if row.to is not None and row.to not in reached:
                reached.add(row.to)
                open_ends.append(row.to)
    assert reached == set(LinkState)


def test_every_state_is_left_again_for_ready() -> None:
    """From wherever a device stands there is a way back to the game."""
    back = {LinkState.READY}
    while more := {
        state
        for row in ROWS
        if row.trigger is not T.STOP and row.to in back
        for state in row.at
        if state not in back
    }:
        back |= more
    assert back == set(LinkState)


def test_a_port_is_open_or_it_is_not() -> None:
    assert set(PORT_OPEN) | set(WITHOUT_PORT) == set(LinkState)
    assert not set(PORT_OPEN) & set(WITHOUT_PORT)


def test_no_trigger_has_two_rows_in_a_state() -> None:
    pairs = [(row.trigger, state) for row in ROWS for state in row.at]
    assert len(pairs) == len(set(pairs))


def test_these_events_of_the_link_may_change_a_state() -> None:
    assert set(TRIGGERS) == set(reports.TRIGGERS)
    assert set(TRIGGERS) < set(get_args(LinkEvent))


@pytest.mark.parametrize("state", PORT_OPEN, ids=lambda state: state.value)
@pytest.mark.parametrize("trigger", [one for names in TRIGGERS.values() for one in names])
def test_every_event_of_the_link_has_an_answer_in_every_state(
    trigger: Trigger, state: LinkState
) -> None:
    answered = trigger in {row.trigger for row in rows_at(state)}
    assert answered != ((trigger, state) in IMPOSSIBLE)


def test_the_machine_does_what_the_rows_say() -> None:
    for row in ROWS:
        for state in row.at:
            machine = standing(state)
            to = state if row.to is None else row.to
            assert machine.on(row.trigger) == (to is not state), row
            assert machine.state is to, row


@pytest.mark.parametrize("state", LinkState, ids=lambda state: state.value)
def test_what_has_no_row_is_an_error(state: LinkState) -> None:
    known = {row.trigger for row in rows_at(state)}
    for trigger in {row.trigger for row in ROWS} - known:
        with pytest.raises(MachineError):
            standing(state).on(trigger)


def test_an_unknown_trigger_is_an_error() -> None:
    with pytest.raises(AttributeError):
        StateMachine().trigger("to_ready")  # an automatic transition, which there are none of


def test_every_trigger_has_its_rows_and_a_source() -> None:
    assert {row.trigger for row in ROWS} == set(Trigger)
    sources = "".join(inspect.getsource(one) for one in (supervisor, reports))
    assert [one.name for one in Trigger if f"Trigger.{one.name}" not in sources] == []
