"""States of a device and the table of their transitions, from which `transitions` picks.

A trigger without a row for the state is an error (MachineError): a supervisor that does not know
its state must not continue. Rows that change nothing say why.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any, Final

from msgspec import Struct
from transitions import Machine


class LinkState(Enum):
    """State of a device, as seen by the table."""

    ABSENT = "absent"
    """No such device is plugged in."""
    OPENING = "opening"
    """Its port is searched and opened."""
    IDENTIFYING = "identifying"
    """The port is open; the device is asked who it is."""
    HANDSHAKING = "handshaking"
    """It claims to be the wanted device, and has to prove it."""
    RESUMING = "resuming"
    """It is authenticated; its ring is compared with the record. Waits here for two people if it
    does not continue the record."""
    READY = "ready"
    """Events arrive, commands are accepted."""
    UNKEPT = "unkept"
    """Its records cannot be stored: none is acknowledged, and only safe commands are sent. If not
    even the last stored record is known, the port is closed, and the device is in its safe
    state."""
    LOST = "lost"
    """The port was lost or the device stopped answering; it is searched for after a backoff of up
    to 1 s."""
    REFUSED = "refused"
    """A different device is there, or the keys are not valid; retried slowly."""


S = LinkState

PORT_OPEN: Final = (S.IDENTIFYING, S.HANDSHAKING, S.RESUMING, S.READY, S.UNKEPT)
"""States in which a port is open (UNKEPT: may be) and events of the link change something."""
WITHOUT_PORT: Final = (S.ABSENT, S.OPENING, S.LOST, S.REFUSED)
IN_SESSION: Final = (S.RESUMING, S.READY, S.UNKEPT)


class Trigger(StrEnum):
    """What can change the state of a device."""

    SEARCH = "search"
    NOWHERE = "nowhere"
    PORT_DENIED = "port_denied"
    KEYS_DENIED = "keys_denied"
    PORT_OPENED = "port_opened"
    PORT_LOST = "port_lost"
    GREETED = "greeted"
    SWAPPED = "swapped"
    HANDSHAKE_FAILED = "handshake_failed"
    DISPROVED = "disproved"
    NO_ANSWER = "no_answer"
    SESSION_BEGAN = "session_began"
    REKEYED = "rekeyed"
    RESUMED = "resumed"
    HELD = "held"
    SESSION_ENDED = "session_ended"
    STALLED = "stalled"
    BEHIND = "behind"
    STORE_FAILED = "store_failed"
    RECORD_UNKNOWN = "record_unknown"
    RECOVERED = "recovered"
    ADOPTED_LATE = "adopted_late"
    STOP = "stop"


T = Trigger


class StateRow(Struct, frozen=True):
    """`trigger` in one of the states `at` leads to `to`; None: no change. `text` says why."""

    trigger: Trigger
    at: tuple[LinkState, ...]
    to: LinkState | None
    text: str


ROWS: Final = (
    # --- looking for it -----------------------------------------------------------------------
    StateRow(T.SEARCH, (S.LOST,), S.OPENING, "the next retry"),
    StateRow(T.SEARCH, (S.ABSENT, S.OPENING, S.REFUSED), None, "nothing new is known"),
    StateRow(
        T.NOWHERE, (S.OPENING, S.REFUSED), S.ABSENT, "no port has it, or its port is not there"
    ),
    StateRow(T.NOWHERE, (S.ABSENT,), None, "it is still not there"),
    StateRow(T.PORT_DENIED, (S.ABSENT,), S.OPENING, "it is there, and its port cannot be opened"),
    StateRow(T.PORT_DENIED, (S.OPENING, S.REFUSED), None, "its port cannot be opened; retried"),
    StateRow(T.KEYS_DENIED, (S.ABSENT, S.OPENING), S.REFUSED, "the host's keys are not valid"),
    StateRow(T.KEYS_DENIED, (S.REFUSED,), None, "the keys are still not valid"),
    StateRow(T.PORT_OPENED, (S.ABSENT, S.OPENING, S.REFUSED), S.IDENTIFYING, "the port is open"),
    StateRow(T.PORT_LOST, PORT_OPEN, S.LOST, "the port was lost"),
    # --- who is there -------------------------------------------------------------------------
    StateRow(T.GREETED, (S.IDENTIFYING,), S.HANDSHAKING, "it introduced itself as the wanted one"),
    StateRow(T.GREETED, (S.HANDSHAKING,), None, "the attempt before failed; a new one"),
    StateRow(T.GREETED, IN_SESSION, None, "a new handshake runs; the session continues"),
    StateRow(T.SWAPPED, (S.IDENTIFYING, S.HANDSHAKING), S.REFUSED, "it is another device"),
    StateRow(T.SWAPPED, IN_SESSION, None, "a reply in clear proves nothing; the session does"),
    StateRow(
        T.HANDSHAKE_FAILED,
        (S.IDENTIFYING, S.HANDSHAKING),
        S.IDENTIFYING,
        "the next attempt follows",
    ),
    StateRow(
        T.HANDSHAKE_FAILED, IN_SESSION, None, "the new handshake failed; the session continues"
    ),
    StateRow(T.DISPROVED, (S.IDENTIFYING, S.HANDSHAKING), S.REFUSED, "it cannot be the wanted one"),
    StateRow(T.DISPROVED, IN_SESSION, None, "the new handshake failed; the session continues"),
    StateRow(
        T.NO_ANSWER,
        (S.IDENTIFYING, S.HANDSHAKING, S.RESUMING, S.READY),
        S.LOST,
        "HELLO, the handshake or RESUME was not answered for too long",
    ),
    # --- the session --------------------------------------------------------------------------
    StateRow(T.SESSION_BEGAN, (S.IDENTIFYING, S.HANDSHAKING), S.RESUMING, "it is authenticated"),
    StateRow(T.SESSION_BEGAN, (S.UNKEPT,), None, "it is authenticated; nothing can be stored yet"),
    StateRow(
        T.REKEYED, IN_SESSION, None, "new keys; events and commands wait until it has resumed"
    ),
    StateRow(T.RESUMED, (S.RESUMING,), S.READY, "its ring continues the record"),
    StateRow(T.RESUMED, (S.READY,), None, "it was asked again, and nothing is wrong"),
    StateRow(
        T.RESUMED, (S.UNKEPT,), None, "its ring continues the record; nothing can be stored yet"
    ),
    StateRow(
        T.HELD, (S.RESUMING,), None, "its ring does not continue the record: two people decide"
    ),
    StateRow(T.HELD, (S.READY,), S.RESUMING, "a record does not fit: two people decide"),
    StateRow(T.HELD, (S.UNKEPT,), None, "nothing can be stored; that comes first"),
    StateRow(T.SESSION_ENDED, IN_SESSION, S.LOST, "the session is over"),
    StateRow(T.SESSION_ENDED, (S.IDENTIFYING, S.HANDSHAKING), None, "there was no session yet"),
    StateRow(
        T.STALLED,
        (S.RESUMING, S.READY),
        S.IDENTIFYING,
        "this host stood still and the device has ended the session: the next one, at this port",
    ),
    StateRow(T.STALLED, (S.UNKEPT,), None, "the next session starts; nothing can be stored yet"),
    StateRow(T.STALLED, (S.IDENTIFYING, S.HANDSHAKING), None, "there was no session yet"),
    StateRow(T.BEHIND, IN_SESSION, S.LOST, "a record does not come; the next session asks for it"),
    # --- keeping ------------------------------------------------------------------------------
    StateRow(T.STORE_FAILED, PORT_OPEN, S.UNKEPT, "a record could not be stored"),
    StateRow(T.STORE_FAILED, WITHOUT_PORT, None, "reported already, or the port was lost too"),
    StateRow(
        T.RECORD_UNKNOWN,
        (S.ABSENT, S.OPENING, S.REFUSED),
        S.UNKEPT,
        "the last stored record is not known: no session is started",
    ),
    StateRow(
        T.RECOVERED,
        (S.UNKEPT,),
        S.LOST,
        "records can be stored again: restart from the stored position",
    ),
    StateRow(T.RECOVERED, WITHOUT_PORT, None, "the next session starts at the stored position"),
    StateRow(
        T.ADOPTED_LATE,
        PORT_OPEN,
        S.LOST,
        "the adopted ring is gone: restart from the stored position",
    ),
    StateRow(T.ADOPTED_LATE, WITHOUT_PORT, None, "the next session starts at the stored position"),
    # --- the end ------------------------------------------------------------------------------
    StateRow(T.STOP, tuple(LinkState), S.ABSENT, "the host has stopped"),
)


class StateMachine:
    """State of one device."""

    def __init__(self) -> None:
        self.state = LinkState.ABSENT
        self._machine = Machine(
            model=self,
            states=LinkState,
            initial=LinkState.ABSENT,
            auto_transitions=False,
            queued=False,
        )
        for row in ROWS:
            self._machine.add_transition(row.trigger.value, list(row.at), row.to)

    def on(self, trigger: Trigger) -> bool:
        """Handle a trigger. Returns whether the state has changed. Raises MachineError."""
        former = self.state
        # `transitions` adds a method for each trigger; trigger() calls it by name.
        self.trigger(trigger.value)
        return self.state is not former

    trigger: Any
    """Set by the machine."""
