"""Voids: the wagers that are given back, and the holds that remain."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.events import Event, Go
from controller.procedure.model.felt import top
from controller.procedure.model.game import Game
from controller.procedure.model.holds import beside
from controller.procedure.model.payments import refunds
from controller.procedure.model.state import Hold, State, Step
from controller.rules.irregularities import Irregularity

_OUTLIVE_VOID = frozenset(
    {Irregularity.DECK_SUSPECT, Irregularity.UNKNOWN_CARD, Irregularity.DEALER_RELIEVED}
)
"""Holds that survive a void; all others concern the round."""


def _ended(s: State, back: Step, outlive: frozenset[Irregularity]) -> tuple[Hold, ...]:
    """Returns the remaining holds, the last to be released first, then the step `back`."""
    deeper = tuple(held for held in s.holds[:-1] if held.what in outlive)
    first, *rest = (*deeper, top(s))
    return (replace(first, back=back), *rest)


def void_round(g: Game, s: State, e: Event) -> State:
    """Gives unresolved wagers back; needs no device.

    A lost shoe holds the next round instead, and an empty shoe is shuffled before it.
    """
    dues = refunds(g, s, "void")
    empty = any(held.what is Irregularity.SHOE_RAN_OUT for held in s.holds)
    return replace(
        s,
        due=dues,
        after=Step.CLEARING,
        shoe=replace(s.shoe, rounds_left=0) if empty else s.shoe,
        holds=_ended(s, Step.PAYING if dues else Step.CLEARING, _OUTLIVE_VOID),
        asking=0,
        approved=False,
        spare=beside(s),
    )


def decks_out(g: Game, s: State, e: Go) -> State:
    """Takes the decks out of play with all steps that need them; gives wagers on the felt back."""
    shoe = replace(s.shoe, loaded=False, decks_out=True)
    dues = refunds(g, s, "void")
    after = Step.CLEARING if s.hands else Step.NEXT_ROUND
    bare = replace(s, shoe=shoe, asking=0, approved=False, spare=None, burn=0)
    holds = _ended(s, Step.PAYING if dues else after, frozenset())
    return replace(bare, due=dues, after=after, holds=holds)
