"""Cards that cannot be read, hole cards in doubt, decks that cannot be trusted: over the wire and
in each house."""

from __future__ import annotations

from controller.procedure.model import events
from controller.procedure.model.effects import Burned, Discarded
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from hil.table.robots.robot import card_of
from tests.support.drivers.simulated import until
from tests.support.table.simulated.irregular import TWO, VOID, WON, irregular
from tests.support.table.simulated.serving import FLOOR
from tests.support.table.simulated.telling import DEAL, Told, entered, told_of

# --- misread, unreadable or low-confidence: the dealer enters it, the floor confirms ----------


@irregular(
    Odd.CARD_UNREADABLE,
    "card_unreadable",
    "enter_card",
    "reject_card",
    "confirm_card",
    ways=(Way.ENTER_CARD,),
    nets=None,
)
async def a_card_that_is_not_read(t: Told, way: Way) -> None:
    await t.to_card(1)
    await t.draws(read="unreadable")
    t.shows("Enter the card that lies on the felt - card not read, not read: unreadable")
    await until(lambda: t.locked)
    await t.ruled(Odd.CARD_UNREADABLE, way)
    await entered(t, t.out)
    t.shows("Confirm the card that was read from the felt: seat 1, third card")
    await t.to_end()
    assert t.nets() == WON
    failed = [data for data in t.data("device") if data["what"] == "ReadFailed"]
    assert [data["why"] for data in failed] == ["unreadable"]


@irregular(Odd.CARD_UNREADABLE, "card_unreadable", ways=(Way.ENTER_CARD,), nets=None)
async def a_card_that_is_not_read_surely(t: Told, way: Way) -> None:
    """The shoe takes the nine for a ten, and says that it is not sure."""
    await t.to_card(1)
    await t.draws(read="wrong", confidence=55)
    t.shows("Enter the card that lies on the felt - card not read, read with 55 % confidence")
    await t.ruled(Odd.CARD_UNREADABLE, way)
    await entered(t, "9d")
    await t.to_end()
    assert t.nets() == WON
    seen = [data for data in t.data("device") if data["what"] == "CardSeen"]
    doubted = [data for data in seen if data["confidence"] == 55]
    assert [(data["card"], data["alternative"]) for data in doubted] == [
        (card_of("Td"), card_of("Jd"))
    ]


@irregular(Odd.CARD_UNREADABLE, "card_unreadable", ways=(Way.ENTER_CARD,))
async def the_first_card_of_a_round_is_not_read(t: Told, way: Way) -> None:
    await t.to(lambda s: len(s.seats) == 2)
    await t.draws(read="no_index")
    t.shows("Enter the card that lies on the felt - card not read, not read: no index")
    await t.ruled(Odd.CARD_UNREADABLE, way)
    await entered(t, "9c")
    assert await t.refuses("WagerRemoved", seat=1, bet="main") == "first_card_is_out_already"


@irregular(
    Odd.CARD_UNREADABLE,
    "card_unreadable",
    ways=(Way.BURN, Way.VOID),
    cards=("9c", "8c", "8s", "2h", "Kc", "5h", "Td", "9d"),
    nets=None,
)
async def a_hole_card_that_is_not_read(t: Told, way: Way) -> None:
    """It lies face down: nobody reads it from the felt."""
    await t.to_deal(5)
    await t.draws(read="unreadable")
    t.shows("Floor: rule on card not read, not read: unreadable - burn, or void the round" + TWO)
    await t.ruled(Odd.CARD_UNREADABLE, way)
    await t.to_end()
    assert t.nets() == (VOID if way is Way.VOID else WON)
    assert t.facts(Burned)[-1:] == [Burned()]


@irregular(Odd.CARD_UNREADABLE, "card_unreadable", ways=(Way.ENTER_CARD,), nets=None)
async def a_hole_card_that_was_read_as_another_one(t: Told, way: Way) -> None:
    """What is odd about it waits until it is turned over; what lies on the felt counts."""
    await t.to_deal(5)
    await t.draws(read="wrong", confidence=55)
    await t.to_step(Step.REVEAL)
    assert "CardUnreadable" not in t.names()
    await t.reveals()
    t.shows("Enter the card that lies on the felt - card not read, read with 55 % confidence")
    await t.ruled(Odd.CARD_UNREADABLE, way)
    await entered(t, "Td")
    t.shows("Turn the hole card over")
    await t.to_end()
    assert t.nets() == WON  # against 8 and 10; the shoe has read a jack
    shown = [made.event for made in t.made() if isinstance(made.event, events.HoleRevealed)]
    assert [event.card for event in shown] == [card_of("Jd")]
    assert shown[0].opening


MISREAD = "Enter the card that lies on the felt - card not read, seat {}, read as another card"


@irregular(Odd.CARD_UNREADABLE, "card_misread", ways=(Way.ENTER_CARD,), nets=None)
async def cards_that_were_misread_without_a_doubt(t: Told, way: Way) -> None:
    """The screen shows others than the felt: in the deal, and for a hand."""
    await t.to_deal(1)
    await t.draws(read="wrong")
    assert t.state.hands[1].cards == (card_of("9c"),)  # it is an eight
    await t.does("CardMisread")
    t.shows(MISREAD.format(2))
    await t.ruled(Odd.CARD_UNREADABLE, way)
    await entered(t, "8c")
    t.shows("Confirm the card that was read from the felt: seat 2, first card")
    await t.to_card(1)
    await t.draws(read="wrong")
    t.shows("Seat 2 - hard 18 - hit, stand or double")  # 21 stands by itself
    await t.does("CardMisread", FLOOR)
    t.shows(MISREAD.format(1))
    await entered(t, "9d")
    await t.does("LaySpare")
    t.shows("Seat 1 - hard 20 - hit or stand")
    await t.to_end()
    assert t.nets() == WON
    faces = [face.card for face in t.table.table.now.memory.faces]
    assert faces == [card_of(name) for name in ("9c", "8c", "8s", "2h", "Kc", "9d", "Td")]


@irregular(Odd.MISDEAL, "misdeal", "card_misread", ways=(Way.VOID,), nets=VOID)
async def a_misread_card_that_something_has_followed_from(t: Told, way: Way) -> None:
    """Seat 1 has asked for another one: the dealer calls a misdeal."""
    await t.to_deal(4)
    await t.draws(read="wrong")
    await t.to_card(1)
    assert await t.refuses("CardMisread") == "card_misread"
    await t.does("MisdealCalled")
    await t.ruled(Odd.MISDEAL, way)


# --- joker or unknown card: held, floor and surveillance told ---------------------------------

UNKNOWN = "decks out of play, or enter the card from the felt, or discard the card"
THREE_WAYS = (Way.DECKS_OUT, Way.ENTER_CARD, Way.DISCARD)


async def ruled_on_unknown(t: Told, way: Way, seat: str = "") -> None:
    told_of(t, Odd.UNKNOWN_CARD, "")
    t.shows(f"Floor: rule on joker or unknown card{seat} - {UNKNOWN}{TWO}")
    await t.ruled(Odd.UNKNOWN_CARD, way)
    if way is Way.DISCARD:
        assert t.facts(Discarded)[-1] == Discarded()


@irregular(Odd.UNKNOWN_CARD, "unknown_card", ways=THREE_WAYS, cards=(*DEAL, "3d", "9d"), nets=None)
async def an_unknown_card_that_slips_out(t: Told, way: Way) -> None:
    """Nothing binds a card that was not read, so it cannot be the next one."""
    await t.to_step(Step.TURN)
    await t.forces(read="unreadable")
    await ruled_on_unknown(t, way)
    if way is Way.ENTER_CARD:
        await entered(t, "3d")
        t.players.wants(1, "stand")
        assert t.state.spare is not None
    await t.to_end()
    nets = {Way.DECKS_OUT: VOID, Way.ENTER_CARD: {1: -1000, 2: 0}, Way.DISCARD: WON}
    assert t.nets() == nets[way]


@irregular(Odd.UNKNOWN_CARD, "entered_card_unknown", ways=THREE_WAYS, cards=(*DEAL, "3d", "9d"))
async def a_joker_in_a_hand(t: Told, way: Way) -> None:
    """The shoe cannot read it, and the dealer sees why."""
    await t.to_card(1)
    await t.draws(read="no_index")
    t.shows("Enter the card that lies on the felt - card not read, not read: no index")
    await t.does("UnknownCardDrawn")
    assert [held.what for held in t.state.holds] == [Odd.UNKNOWN_CARD]
    await ruled_on_unknown(t, way, ", seat 1")
    if way is Way.ENTER_CARD:  # it was a card after all, badly printed
        await entered(t, "9h")
    if way is Way.DISCARD:
        t.shows("Deal seat 1, third card")


@irregular(Odd.UNKNOWN_CARD, "another_card_unknown", ways=(Way.DISCARD, Way.DECKS_OUT))
async def a_card_under_another_one(t: Told, way: Way) -> None:
    """Two come out together: the upper one is entered from the felt, the other one ruled on."""
    await t.to_card(1)
    await t.draws(double=True)
    await until(lambda: len(t.state.holds) == 2)
    await ruled_on_unknown(t, way)
    if way is Way.DISCARD:
        t.shows("Enter the card that lies on the felt - card not read, two cards came out together")
        await entered(t, "9d")
