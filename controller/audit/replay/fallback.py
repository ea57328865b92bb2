"""What is known of a table whose decisions were made by other code: whether a round is open.

Other code may use values that this version does not know. The table counts as at rest only if
known values say so.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from controller.audit.format.records import Record
from controller.audit.read.lookup import EffectOutline, decode_outline
from controller.procedure.model.effects import DecksOut, RoundOver, Tell
from controller.procedure.model.events import DecksChanged
from controller.procedure.model.state import Shoe, State, Step
from controller.procedure.rows import BETWEEN


class OtherCodeState(Struct, frozen=True):
    """The known part of a state under other code."""

    rests: bool
    """No round is open and no wager is on the felt, as far as known."""
    round: int = 0
    decks_out: bool = False

    def closed(self) -> State:
        """The state with which this version's procedure takes over."""
        return State(round=self.round, shoe=Shoe(decks_out=self.decks_out))


class _Shoe(Struct):
    decks_out: bool = False


class _State(Struct):
    step: str
    round: int
    seats: tuple[msgspec.Raw, ...]
    shoe: _Shoe


_STATE: Final = msgspec.json.Decoder(_State | None)
_AT_REST: Final = frozenset(step.value for step in (Step.CLOSED, *BETWEEN))
_SHUFFLES: Final = frozenset({Tell.SHUFFLE.value, Tell.CHANGE_DECKS.value})


def other_code_state(state: bytes) -> OtherCodeState:
    """Decode the state of a snapshot."""
    try:
        found = _STATE.decode(state)
    except msgspec.DecodeError:
        return OtherCodeState(False)
    if found is None:
        return OtherCodeState(True)
    rests = found.step in _AT_REST and not found.seats
    return OtherCodeState(rests, found.round, found.shoe.decks_out)


def other_code_state_after(before: OtherCodeState, record: Record) -> OtherCodeState:
    """The state after a decision, judged by the prompts that it shows."""
    try:
        made = decode_outline(record.data)
    except msgspec.DecodeError:
        return OtherCodeState(False, record.round, before.decks_out)
    types = {effect.type for effect in made.effects}
    decks_out = DecksOut.__name__ in types or (
        before.decks_out and made.event.type != DecksChanged.__name__
    )
    over = RoundOver.__name__ in types
    rests = any(_rests(effect, over=over) for effect in made.effects)
    return OtherCodeState(rests, record.round, decks_out)


def _rests(effect: EffectOutline, *, over: bool) -> bool:
    if effect.tell == Tell.TAKE_WAGERS.value:
        return effect.count == 0  # seats with a wager
    return effect.tell == Tell.OPEN_TABLE.value or (over and effect.tell in _SHUFFLES)
