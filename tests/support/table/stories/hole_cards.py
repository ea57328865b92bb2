"""Hole cards that were seen early, not checked, or are not what the check said: over the wire and
in each house."""

from __future__ import annotations

from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from tests.support.table.simulated.irregular import TWO, VOID, irregular
from tests.support.table.simulated.telling import Told, entered, told_of

# --- hole card and check disagree: held, floor and surveillance told --------------------------

MISMATCH_WAYS = (Way.RESUME, Way.VOID, Way.DECKS_OUT)
ACE_UP = ("9c", "8c", "As", "2h", "Kc", "Kd", "9d")


@irregular(
    Odd.HOLE_MISMATCH, "hole_mismatch", ways=MISMATCH_WAYS, cards=ACE_UP, nets={1: -1000, 2: -1000}
)
async def a_blackjack_that_the_check_has_missed(t: Told, way: Way) -> None:
    """The shoe takes the king for an ace, and is not sure."""
    await t.to_deal(5)
    await t.draws(read="wrong", confidence=60)
    await t.to_step(Step.REVEAL)
    assert t.state.checked is False
    await t.reveals()
    await entered(t, "Kd")
    await t.reveals()
    told_of(t, Odd.HOLE_MISMATCH, "")
    t.shows(
        "Floor: rule on hole card and its check disagree, king of diamonds - play on, or void the "
        f"round, or decks out of play{TWO}"
    )
    await t.ruled(Odd.HOLE_MISMATCH, way)


@irregular(
    Odd.HOLE_MISMATCH,
    "hole_mismatch",
    ways=MISMATCH_WAYS,
    cards=("9c", "8c", "As", "2h", "Kc", "9h", "9d"),
    nets={1: 0, 2: -1000},
)
async def a_blackjack_that_is_none(t: Told, way: Way) -> None:
    """The shoe takes the nine for a ten: nobody has played yet, and play begins."""
    await t.to_deal(5)
    await t.draws(read="wrong", confidence=60)
    await t.to_step(Step.REVEAL)
    assert t.state.checked is True
    await t.reveals()
    await entered(t, "9h")
    await t.reveals()
    told_of(t, Odd.HOLE_MISMATCH, "")
    await t.ruled(Odd.HOLE_MISMATCH, way)
    if way is Way.RESUME:
        t.shows("Seat 1 - hard 11 - hit, stand or double")


# --- hole card exposed early, hole card not checked: the floor decides ------------------------


@irregular(Odd.HOLE_EXPOSED, "hole_exposed", ways=(Way.RESUME, Way.VOID))
async def a_hole_card_that_was_seen_early(t: Told, way: Way) -> None:
    await t.to_step(Step.TURN)
    await t.does("HoleExposed")
    t.shows(f"Floor: rule on hole card seen early - play on, or void the round{TWO}")
    await t.ruled(Odd.HOLE_EXPOSED, way)


@irregular(
    Odd.HOLE_UNCHECKED,
    "hole_unchecked",
    ways=(Way.RESUME, Way.VOID),
    cards=(*ACE_UP[:5], "5d", "9d", "4c", "9h"),
    nets=None,
)
async def a_hole_card_that_was_not_checked(t: Told, way: Way) -> None:
    """The dealer has given seat 1 a card; the check itself cannot be passed over."""
    await t.to_step(Step.CHECK)
    t.shows("Check hole card")
    assert await t.refuses("Hit", seat=1, hand=0) == "no_decision_now"
    await t.forces()
    await t.ruled(Odd.ERROR_CARD, Way.USE_NEXT)
    await t.does("HoleUnchecked")
    t.shows(f"Floor: rule on hole card not checked - play on, or void the round{TWO}")
    await t.ruled(Odd.HOLE_UNCHECKED, way)
    if way is Way.RESUME:
        t.shows("Check hole card")
    await t.to_end()
    if way is Way.VOID:
        assert t.nets() == VOID
        return
    assert t.names().index("HoleUnchecked") < t.names().index("HoleChecked")
