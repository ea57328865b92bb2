"""Cards drawn in error, seen and not, and by a dealer who has enough: over the wire and in each
house."""

from __future__ import annotations

import pytest

from controller.procedure.model import events
from controller.procedure.model.effects import Burned, RoundVoid
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from controller.table.loop import BadAct
from hil.table.robots.robot import card_of
from tests.support.drivers.simulated import until
from tests.support.table.simulated.irregular import VOID, WON, irregular
from tests.support.table.simulated.serving import DEALER
from tests.support.table.simulated.telling import DEAL, Told

# --- card drawn in error, not exposed: the next card ------------------------------------------

ERROR = {
    "default": "Seat 1 - hard 11 - hit, stand or double",
    "strict": (
        "Floor: rule on card drawn in error, not seen - use it as the next card, or burn, or void "
        "the round - bring a second person"
    ),
}


@irregular(
    Odd.ERROR_CARD,
    "error_card",
    default=(Way.USE_NEXT,),
    strict=(Way.USE_NEXT, Way.BURN, Way.VOID),
    cards=(*DEAL, "9d", "9h"),
    nets=None,
)
async def a_card_drawn_in_error(t: Told, way: Way) -> None:
    await t.to_step(Step.TURN)
    await t.forces()
    t.shows(**ERROR)
    sealed = t.made()[-1]
    assert isinstance(sealed.event, events.ErrorCardDrawn)
    assert sealed.sealed  # nobody has seen it; surveillance can open it
    await t.ruled(Odd.ERROR_CARD, way)
    if way is Way.USE_NEXT:
        await t.to_card(1)
        t.shows("Use the card beside the shoe: seat 1, third card")
        await until(lambda: t.locked)
        await t.does("LaySpare")
        assert t.state.hands[0].cards[-1] == card_of("9d")
    if way is Way.BURN:
        assert t.facts(Burned)[-1] == Burned()
        assert t.state.spare is None
    await t.to_end()
    assert t.nets() == (VOID if way is Way.VOID else WON)
    assert len(t.facts(RoundVoid)) == (way is Way.VOID)


@irregular(
    Odd.ERROR_CARD, "error_card", ways=(Way.BURN, Way.VOID), cards=(*DEAL, "9d", "4d"), nets=None
)
async def a_second_card_drawn_in_error(t: Told, way: Way) -> None:
    """One is the next card already: the other one cannot be it too."""
    await t.to_step(Step.TURN)
    await t.forces()
    await t.ruled(Odd.ERROR_CARD, Way.USE_NEXT)
    await t.forces()
    t.shows(
        "Floor: rule on card drawn in error, not seen - burn, or void the round - bring a second "
        "person"
    )
    await t.ruled(Odd.ERROR_CARD, way)
    await t.to_end()
    if way is Way.BURN:
        assert t.facts(Burned)[-1] == Burned()
        assert t.nets() == WON
    else:
        assert t.nets() == VOID
        assert t.state.spare is not None  # the first card of the next round


# --- card drawn in error and exposed ----------------------------------------------------------


async def exposed(t: Told) -> None:
    """A card came out when none was due, and somebody saw it."""
    await t.to_step(Step.TURN)
    await t.forces()
    await t.ruled(Odd.ERROR_CARD, Way.USE_NEXT)
    with pytest.raises(BadAct, match="another card"):
        await t.does("ErrorCardExposed", card=card_of("Ks"))
    detail = t.data("fault")[-1]["detail"]  # nobody tries one card after the other unseen
    assert detail.startswith(f"the shoe has read another card than {DEALER.name} says")
    await t.does("ErrorCardExposed", card=card_of(t.out))
    assert t.data("device")[-1]["what"] == "CardSeen"


@irregular(
    Odd.ERROR_CARD_EXPOSED,
    "error_card_exposed",
    default=(Way.DEAL_ON,),
    strict=(Way.DEAL_ON, Way.BURN, Way.VOID),
    cards=(*DEAL, "9d", "9h"),
)
async def a_card_drawn_in_error_and_seen(t: Told, way: Way) -> None:
    await exposed(t)
    t.shows(
        default="Seat 1 - hard 11 - hit, stand, double or refuse the exposed card",
        strict="Floor: rule on card drawn in error and seen, 9 of diamonds - deal it on, or "
        "burn, or void the round - bring a second person",
    )
    await t.ruled(Odd.ERROR_CARD_EXPOSED, way)
    if way is Way.DEAL_ON:
        await t.to_card(1)
        t.shows("Use the exposed card beside the shoe: seat 1, third card")
    if way is Way.BURN:
        assert t.facts(Burned)[-1] == Burned(card_of("9d"))


@irregular(
    Odd.ERROR_CARD_EXPOSED,
    "error_card_exposed",
    "refuse_spare",
    ways=(Way.DEAL_ON,),
    nets=None,
)
async def a_seen_card_that_nobody_wants_is_burned(t: Told, way: Way) -> None:
    await exposed(t)
    await t.ruled(Odd.ERROR_CARD_EXPOSED, way)
    assert await t.refuses("SpareRefused", seat=2, hand=0) == "refuse_spare"
    await t.does("SpareRefused", seat=1, hand=0)
    t.shows("Seat 2 - hard 18 - hit, stand, double or refuse the exposed card")
    await t.does("SpareRefused", seat=2, hand=0)
    await t.to_end()
    assert t.facts(Burned)[-1] == Burned(card_of("9d"))  # the dealer has no use for it either
    assert t.nets() == {1: -1000, 2: 0}
    assert t.state.spare is None


@irregular(
    Odd.ERROR_CARD_EXPOSED,
    "card_while_spare_waits",
    ways=(Way.BURN, Way.VOID),
    cards=(*DEAL, "9d", "4d"),
)
async def a_new_card_though_one_beside_the_shoe_waits(t: Told, way: Way) -> None:
    await t.to_step(Step.TURN)
    await t.forces()
    await t.ruled(Odd.ERROR_CARD, Way.USE_NEXT)
    await t.to_card(1)
    await t.forces()
    t.shows(
        "Floor: rule on card drawn in error and seen, 4 of diamonds - burn, or void the round - "
        "bring a second person"
    )
    await t.ruled(Odd.ERROR_CARD_EXPOSED, way)
    if way is Way.BURN:
        assert t.facts(Burned)[-1] == Burned(card_of("4d"))
        t.shows("Use the card beside the shoe: seat 1, third card")


# --- dealer draws on a standing total: burned -------------------------------------------------


@irregular(Odd.DEALER_OVERDREW, "error_card", ways=(Way.BURN,))
async def the_dealer_draws_on_a_standing_total(t: Told, way: Way) -> None:
    await t.to(lambda s: s.step is Step.PAYING and s.after is Step.CLEARING)
    dealer, due, words = t.state.dealer, t.state.due, t.words
    await t.forces()
    await t.ruled(Odd.DEALER_OVERDREW, way)
    t.shows(words)
    assert (t.state.dealer, t.state.due) == (dealer, due)
    await t.to_step(Step.CLEARING)
    await t.forces()
    t.shows("Pick up the cards")
    assert t.facts(Burned)[-2:] == [Burned(), Burned()]
