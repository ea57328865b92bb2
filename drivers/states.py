"""How a device stands, and what changes that: one table, from which `transitions` picks.

A trigger that no row answers in a state is an error (MachineError): a supervisor that does not
know where it stands must not go on. Rows that stay say so, with the reason why nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from msgspec import Struct
from transitions import Machine

from firmware_protocol.link_events import (
    Alerted,
    Arrived,
    Beat,
    ClockRead,
    Damaged,
    Defective,
    Greeted,
    Held,
    Informed,
    Replied,
    Resumed,
    SessionBegan,
    SessionEnded,
    Suspicious,
    TurnedAway,
    Unanswered,
)


class State(Enum):
    """Where a device stands, as the table sees it."""

    ABSENT = "absent"
    """No such device is plugged in."""
    OPENING = "opening"
    """Its port is being looked for and opened."""
    IDENTIFYING = "identifying"
    """The port is open; who is there?"""
    HANDSHAKING = "handshaking"
    """It says that it is the wanted one; now it has to prove it."""
    RESUMING = "resuming"
    """It has proven itself; where does the record go on? Waits here for two people if it does
    not."""
    READY = "ready"
    """Events flow, commands are taken."""
    UNKEPT = "unkept"
    """What it tells cannot be kept: nothing is acknowledged, and only what is safe is done."""
    LOST = "lost"
    """The port has gone or the device has fallen silent; it is looked for again at once."""
    REFUSED = "refused"
    """Someone else is there, or the keys are not in order; tried again slowly."""


S = State

PORT_OPEN: Final = (S.IDENTIFYING, S.HANDSHAKING, S.RESUMING, S.READY, S.UNKEPT)
"""The states in which a port is open, bytes come, and the link's events change something."""
WITHOUT_PORT: Final = (S.ABSENT, S.OPENING, S.LOST, S.REFUSED)
IN_SESSION: Final = (S.RESUMING, S.READY, S.UNKEPT)


class Row(Struct, frozen=True):
    """`trigger` in one of the states `at` leads to `to`; None: it stays, because of `text`."""

    trigger: str
    at: tuple[State, ...]
    to: State | None
    text: str


ROWS: Final = (
    # --- looking for it -----------------------------------------------------------------------
    Row("look", (S.LOST,), S.OPENING, "its time to try again has come"),
    Row("look", (S.ABSENT, S.OPENING, S.REFUSED), None, "nothing is known that was not before"),
    Row("nowhere", (S.OPENING, S.REFUSED), S.ABSENT, "no port has it, or its port is not there"),
    Row("nowhere", (S.ABSENT,), None, "it is not there still"),
    Row("port_denied", (S.ABSENT,), S.OPENING, "it is there, and its port cannot be opened"),
    Row("port_denied", (S.OPENING, S.REFUSED), None, "its port cannot be opened; tried again"),
    Row("keys_denied", (S.ABSENT, S.OPENING), S.REFUSED, "the host's own keys are not in order"),
    Row("keys_denied", (S.REFUSED,), None, "the keys are not in order still"),
    Row("port_opened", (S.ABSENT, S.OPENING, S.REFUSED), S.IDENTIFYING, "the port is open"),
    Row("port_lost", PORT_OPEN, S.LOST, "the port has gone"),
    # --- who is there -------------------------------------------------------------------------
    Row("greeted", (S.IDENTIFYING,), S.HANDSHAKING, "it introduced itself as the wanted one"),
    Row("greeted", (S.HANDSHAKING,), None, "the attempt before came to nothing; a new one"),
    Row("greeted", IN_SESSION, None, "new keys are being agreed on; the session goes on"),
    Row("swapped", (S.IDENTIFYING, S.HANDSHAKING), S.REFUSED, "it is another device"),
    Row("swapped", IN_SESSION, None, "someone answers in its name; the session is the proof"),
    Row("turned_away", (S.IDENTIFYING, S.HANDSHAKING), S.IDENTIFYING, "the next attempt follows"),
    Row("turned_away", IN_SESSION, None, "new keys were not agreed on; the session goes on"),
    Row("disproved", (S.IDENTIFYING, S.HANDSHAKING), S.REFUSED, "it cannot be the wanted one"),
    Row("disproved", IN_SESSION, None, "new keys were not agreed on; the session goes on"),
    Row(
        "no_answer",
        (S.IDENTIFYING, S.HANDSHAKING, S.RESUMING, S.READY),
        S.LOST,
        "HELLO, the handshake or RESUME was not answered for too long",
    ),
    # --- the session --------------------------------------------------------------------------
    Row("session_began", (S.IDENTIFYING, S.HANDSHAKING), S.RESUMING, "it has proven itself"),
    Row("session_began", (S.UNKEPT,), None, "it has proven itself; nothing can be kept still"),
    Row("rekeyed", IN_SESSION, None, "new keys; events and commands wait until it has resumed"),
    Row("resumed", (S.RESUMING,), S.READY, "its ring continues the record"),
    Row("resumed", (S.READY,), None, "it was asked once more, and all is well"),
    Row("resumed", (S.UNKEPT,), None, "its ring continues the record; nothing can be kept still"),
    Row("held", (S.RESUMING,), None, "its ring does not continue the record: two people decide"),
    Row("held", (S.READY,), S.RESUMING, "a record does not fit: two people decide"),
    Row("held", (S.UNKEPT,), None, "nothing can be kept; that comes first"),
    Row("session_ended", IN_SESSION, S.LOST, "the session is over"),
    Row("session_ended", (S.IDENTIFYING, S.HANDSHAKING), None, "there was none to speak of yet"),
    # --- keeping ------------------------------------------------------------------------------
    Row("keep_failed", PORT_OPEN, S.UNKEPT, "what came could not be kept"),
    Row("keep_failed", WITHOUT_PORT, None, "said already, or the port has gone with it"),
    Row("mended", (S.UNKEPT,), S.LOST, "it can be kept again: all begins anew from what is kept"),
    Row("mended", WITHOUT_PORT, None, "the next session begins from what is kept"),
    # --- the end ------------------------------------------------------------------------------
    Row("stop", tuple(State), S.ABSENT, "the host has stopped"),
)

TRIGGERS: Final[dict[type, tuple[str, ...]]] = {
    Greeted: ("greeted", "swapped"),
    TurnedAway: ("turned_away", "disproved"),
    SessionBegan: ("session_began", "rekeyed"),
    Resumed: ("resumed",),
    Held: ("held",),
    SessionEnded: ("session_ended",),
}
"""The link's events that may change a state, each with the triggers it comes as."""

IMPOSSIBLE: Final = frozenset(
    {(what, at) for what in ("resumed", "held", "rekeyed") for at in (S.IDENTIFYING, S.HANDSHAKING)}
    | {("session_began", at) for at in (S.RESUMING, S.READY)}
)
"""What no link says there: only a session is resumed or gets new keys, and one that runs does not
begin. If one says it, that is an error."""

CHANGES_NOTHING: Final = frozenset(
    {
        Alerted,
        Arrived,
        Beat,
        ClockRead,
        Damaged,
        Defective,
        Informed,
        Replied,
        Suspicious,
        Unanswered,
    }
)
"""The link's events that are told and change no state."""


class Standing:
    """One device's state: triggers in, states out."""

    def __init__(self) -> None:
        self.state = State.ABSENT
        self._machine = Machine(
            model=self,
            states=State,
            initial=State.ABSENT,
            auto_transitions=False,
            queued=False,
        )
        for row in ROWS:
            self._machine.add_transition(row.trigger, list(row.at), row.to)

    def on(self, trigger: str) -> bool:
        """Whether this trigger changed the state. MachineError if no row answers it here."""
        former = self.state
        # transitions gives the model a method for each trigger; by name it is the same call.
        self.trigger(trigger)
        return self.state is not former

    trigger: Any
    """Set by the machine."""


def rows_at(state: State) -> Iterator[Row]:
    """What can happen to a device that stands here."""
    return (row for row in ROWS if state in row.at)


def diagram() -> str:
    """The table as a Mermaid state diagram: what changes a state, without what stays."""
    lines = ["stateDiagram-v2", f"    [*] --> {S.ABSENT.value}"]
    for row in ROWS:
        if row.trigger == "stop" or row.to is None:
            continue
        lines += [
            f"    {one.value} --> {row.to.value}: {row.trigger}"
            for one in row.at
            if one is not row.to
        ]
    return "\n".join(lines) + "\n"
