"""What is to be seen and done at the table now: absolute, so that showing it twice is harmless."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from controller.procedure.model.effects import Effect, Prompt, Tell
from controller.procedure.model.state import State, Step
from controller.table.memory.button_tokens import NO_TOKENS, ButtonTokens

PAYMENTS: Final = frozenset({Tell.PAY, Tell.COLLECT, Tell.GIVE_BACK, Tell.FLOOR_FIRST})


class TableDisplay(Struct, frozen=True):
    """Where the table stands, for screens, shoe, shuffler and stations."""

    seq: int
    """Of the record's entry that brought it."""
    state: State
    effects: tuple[Effect, ...]
    arms: ButtonTokens = NO_TOKENS
    again: bool = False
    """It is a payment that was shown before the controller was started: it may have been made
    already, and whoever makes it looks first."""
    stopped: str = ""
    """Why nothing can be recorded, and so nothing be done."""
    soon: bool = False
    """That is over in a moment, by itself."""

    @property
    def prompt(self) -> Prompt | None:
        return prompt_of(self.effects)


class WitnessStatus(Struct, frozen=True):
    """Whether somebody else has seen the record lately."""

    size: int = 0
    """So many records a witness has countersigned; 0: none, or it has not been looked at."""
    since: int = 0
    """Since when none has, as the record's `utc`; 0 while that is not long ago."""


NO_WITNESS: Final = WitnessStatus()


def prompt_of(effects: tuple[Effect, ...]) -> Prompt | None:
    for effect in effects:
        if isinstance(effect, Prompt):
            return effect
    return None


def without_holds(s: State) -> State:
    """The state as it is without what holds it."""
    if not s.holds:
        return s
    back = s.holds[0].back
    return replace(s, step=back, holds=())


def payment_prompt(s: State, effects: tuple[Effect, ...]) -> Prompt | None:
    """The payment that a state shows, if it does."""
    prompt = prompt_of(effects)
    shows = s.step is Step.PAYING and prompt is not None and prompt.tell in PAYMENTS
    return prompt if shows else None
