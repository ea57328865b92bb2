"""What the table shows and which buttons are armed. Absolute, so that showing it is idempotent."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from controller.procedure.model.effects import Effect, Prompt, Tell
from controller.procedure.model.state import State, Step
from firmware_protocol.messages import ButtonMask

PAYMENTS: Final = frozenset({Tell.PAY, Tell.COLLECT, Tell.GIVE_BACK, Tell.FLOOR_FIRST})
NO_BUTTONS: Final = ButtonMask(0)


class SeatButtons(Struct, frozen=True):
    """The armed buttons of a seat."""

    seat: int
    buttons: ButtonMask
    token: int
    question: tuple[Any, ...]
    """Changes when the question to the seat changes."""


class ButtonTokens(Struct, frozen=True):
    """The armed buttons of all seats."""

    last: int = 0
    """The number of questions so far, including those before this start. It starts at the number
    of entries in the record, of which each brought at most one question. So a token is reused only
    after 65535 others."""
    seats: tuple[SeatButtons, ...] = ()


NO_TOKENS: Final = ButtonTokens()


class TableDisplay(Struct, frozen=True):
    """The current state for screens, shoe, shuffler and stations."""

    seq: int
    """Sequence number of the record's entry that brought it."""
    state: State
    effects: tuple[Effect, ...]
    arms: ButtonTokens = NO_TOKENS
    again: bool = False
    """The payment was shown before the controller restarted: it may have been made already."""
    stopped: str = ""
    """Why nothing can be recorded or done; empty if the table works."""
    soon: bool = False
    """The cause of `stopped` ends automatically within a moment."""

    @property
    def prompt(self) -> Prompt | None:
        return prompt_of(self.effects)


class WitnessStatus(Struct, frozen=True):
    """Whether a witness has cosigned the record recently."""

    size: int = 0
    """Number of records that a witness has cosigned; 0: none, or not checked yet."""
    since: int = 0
    """`utc` of the record since which none was cosigned; 0 if that is recent."""


NO_WITNESS: Final = WitnessStatus()


class SpaceStatus(Struct, frozen=True):
    """Whether the record has room for further play."""

    problem: str = ""
    """Why the next segment of the record cannot be made; empty if it can."""
    minutes: int = 0
    """Minutes of play that can still be recorded then: an estimate, in steps of ten minutes."""


SPACE_LEFT: Final = SpaceStatus()
"""The next segment exists or can be made."""


def prompt_of(effects: tuple[Effect, ...]) -> Prompt | None:
    return next((effect for effect in effects if isinstance(effect, Prompt)), None)


def without_holds(s: State) -> State:
    """Returns the state of the table when all holds are lifted."""
    return replace(s, step=s.holds[0].back, holds=()) if s.holds else s


def payment_prompt(s: State, effects: tuple[Effect, ...]) -> Prompt | None:
    """The prompt of the payment that is shown, if one is."""
    prompt = prompt_of(effects)
    shows = s.step is Step.PAYING and prompt is not None and prompt.tell in PAYMENTS
    return prompt if shows else None
