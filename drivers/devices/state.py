"""How a device stands, and what changes that: one table, from which `transitions` picks.

A trigger that no row answers in a state is an error (MachineError): a supervisor that does not
know where it stands must not go on. Rows that stay say so, with the reason why nothing changes.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any, Final

from msgspec import Struct
from transitions import Machine


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
    """What it tells cannot be kept: nothing is acknowledged, and only what is safe is done. Where
    it is not even known how far the record goes, the port is left, and the device is safe by
    itself."""
    LOST = "lost"
    """The port has gone or the device has fallen silent; it is looked for again at once."""
    REFUSED = "refused"
    """Someone else is there, or the keys are not in order; tried again slowly."""


S = State

PORT_OPEN: Final = (S.IDENTIFYING, S.HANDSHAKING, S.RESUMING, S.READY, S.UNKEPT)
"""The states in which a port is open (UNKEPT: may be), bytes come, and the link's events change
something."""
WITHOUT_PORT: Final = (S.ABSENT, S.OPENING, S.LOST, S.REFUSED)
IN_SESSION: Final = (S.RESUMING, S.READY, S.UNKEPT)


class Trigger(StrEnum):
    """What can happen to a device, as far as it matters to how it stands."""

    LOOK = "look"
    NOWHERE = "nowhere"
    PORT_DENIED = "port_denied"
    KEYS_DENIED = "keys_denied"
    PORT_OPENED = "port_opened"
    PORT_LOST = "port_lost"
    GREETED = "greeted"
    SWAPPED = "swapped"
    TURNED_AWAY = "turned_away"
    DISPROVED = "disproved"
    NO_ANSWER = "no_answer"
    SESSION_BEGAN = "session_began"
    REKEYED = "rekeyed"
    RESUMED = "resumed"
    HELD = "held"
    SESSION_ENDED = "session_ended"
    BEHIND = "behind"
    KEEP_FAILED = "keep_failed"
    RECORD_UNKNOWN = "record_unknown"
    MENDED = "mended"
    ADOPTED_LATE = "adopted_late"
    STOP = "stop"


T = Trigger


class Row(Struct, frozen=True):
    """`trigger` in one of the states `at` leads to `to`; None: it stays, because of `text`."""

    trigger: Trigger
    at: tuple[State, ...]
    to: State | None
    text: str


ROWS: Final = (
    # --- looking for it -----------------------------------------------------------------------
    Row(T.LOOK, (S.LOST,), S.OPENING, "its time to try again has come"),
    Row(T.LOOK, (S.ABSENT, S.OPENING, S.REFUSED), None, "nothing is known that was not before"),
    Row(T.NOWHERE, (S.OPENING, S.REFUSED), S.ABSENT, "no port has it, or its port is not there"),
    Row(T.NOWHERE, (S.ABSENT,), None, "it is not there still"),
    Row(T.PORT_DENIED, (S.ABSENT,), S.OPENING, "it is there, and its port cannot be opened"),
    Row(T.PORT_DENIED, (S.OPENING, S.REFUSED), None, "its port cannot be opened; tried again"),
    Row(T.KEYS_DENIED, (S.ABSENT, S.OPENING), S.REFUSED, "the host's own keys are not in order"),
    Row(T.KEYS_DENIED, (S.REFUSED,), None, "the keys are not in order still"),
    Row(T.PORT_OPENED, (S.ABSENT, S.OPENING, S.REFUSED), S.IDENTIFYING, "the port is open"),
    Row(T.PORT_LOST, PORT_OPEN, S.LOST, "the port has gone"),
    # --- who is there -------------------------------------------------------------------------
    Row(T.GREETED, (S.IDENTIFYING,), S.HANDSHAKING, "it introduced itself as the wanted one"),
    Row(T.GREETED, (S.HANDSHAKING,), None, "the attempt before came to nothing; a new one"),
    Row(T.GREETED, IN_SESSION, None, "new keys are being agreed on; the session goes on"),
    Row(T.SWAPPED, (S.IDENTIFYING, S.HANDSHAKING), S.REFUSED, "it is another device"),
    Row(T.SWAPPED, IN_SESSION, None, "someone answers in its name; the session is the proof"),
    Row(T.TURNED_AWAY, (S.IDENTIFYING, S.HANDSHAKING), S.IDENTIFYING, "the next attempt follows"),
    Row(T.TURNED_AWAY, IN_SESSION, None, "new keys were not agreed on; the session goes on"),
    Row(T.DISPROVED, (S.IDENTIFYING, S.HANDSHAKING), S.REFUSED, "it cannot be the wanted one"),
    Row(T.DISPROVED, IN_SESSION, None, "new keys were not agreed on; the session goes on"),
    Row(
        T.NO_ANSWER,
        (S.IDENTIFYING, S.HANDSHAKING, S.RESUMING, S.READY),
        S.LOST,
        "HELLO, the handshake or RESUME was not answered for too long",
    ),
    # --- the session --------------------------------------------------------------------------
    Row(T.SESSION_BEGAN, (S.IDENTIFYING, S.HANDSHAKING), S.RESUMING, "it has proven itself"),
    Row(T.SESSION_BEGAN, (S.UNKEPT,), None, "it has proven itself; nothing can be kept still"),
    Row(T.REKEYED, IN_SESSION, None, "new keys; events and commands wait until it has resumed"),
    Row(T.RESUMED, (S.RESUMING,), S.READY, "its ring continues the record"),
    Row(T.RESUMED, (S.READY,), None, "it was asked once more, and all is well"),
    Row(T.RESUMED, (S.UNKEPT,), None, "its ring continues the record; nothing can be kept still"),
    Row(T.HELD, (S.RESUMING,), None, "its ring does not continue the record: two people decide"),
    Row(T.HELD, (S.READY,), S.RESUMING, "a record does not fit: two people decide"),
    Row(T.HELD, (S.UNKEPT,), None, "nothing can be kept; that comes first"),
    Row(T.SESSION_ENDED, IN_SESSION, S.LOST, "the session is over"),
    Row(T.SESSION_ENDED, (S.IDENTIFYING, S.HANDSHAKING), None, "there was none to speak of yet"),
    Row(T.BEHIND, IN_SESSION, S.LOST, "a record does not come; the next session asks for it"),
    # --- keeping ------------------------------------------------------------------------------
    Row(T.KEEP_FAILED, PORT_OPEN, S.UNKEPT, "what came could not be kept"),
    Row(T.KEEP_FAILED, WITHOUT_PORT, None, "said already, or the port has gone with it"),
    Row(
        T.RECORD_UNKNOWN,
        (S.ABSENT, S.OPENING, S.REFUSED),
        S.UNKEPT,
        "how far the record goes is not known: without that no session begins",
    ),
    Row(T.MENDED, (S.UNKEPT,), S.LOST, "it can be kept again: all begins anew from what is kept"),
    Row(T.MENDED, WITHOUT_PORT, None, "the next session begins from what is kept"),
    Row(T.ADOPTED_LATE, PORT_OPEN, S.LOST, "what was adopted has gone: all begins anew"),
    Row(T.ADOPTED_LATE, WITHOUT_PORT, None, "the next session begins from what is kept"),
    # --- the end ------------------------------------------------------------------------------
    Row(T.STOP, tuple(State), S.ABSENT, "the host has stopped"),
)


class StateMachine:
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
            self._machine.add_transition(row.trigger.value, list(row.at), row.to)

    def on(self, trigger: Trigger) -> bool:
        """Whether this trigger changed the state. MachineError if no row answers it here."""
        former = self.state
        # transitions gives the model a method for each trigger; by name it is the same call.
        self.trigger(trigger.value)
        return self.state is not former

    trigger: Any
    """Set by the machine."""
