"""What a void takes away, what it gives back, and what it leaves to be done."""

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
"""What is still to be ruled or done when the round is void; other holds were about the round."""


def _ended(s: State, back: Step, outlive: frozenset[Irregularity]) -> tuple[Hold, ...]:
    """The holds that are left, the last of them to be lifted first, then on to `back`."""
    deeper = tuple(held for held in s.holds[:-1] if held.what in outlive)
    first, *rest = (*deeper, top(s))
    return (replace(first, back=back), *rest)


def void_round(g: Game, s: State, e: Event) -> State:
    """Unresolved wagers go back, without a device and whatever the felt shows.

    A shoe that is gone stops the next round instead, and one that ran out is shuffled before it.
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
    """With the decks goes all that was to be done with them; wagers on the felt go back."""
    shoe = replace(s.shoe, loaded=False, decks_out=True)
    dues = refunds(g, s, "void")
    after = Step.CLEARING if s.hands else Step.NEXT_ROUND
    bare = replace(s, shoe=shoe, asking=0, approved=False, spare=None, burn=0)
    holds = _ended(s, Step.PAYING if dues else after, frozenset())
    return replace(bare, due=dues, after=after, holds=holds)
