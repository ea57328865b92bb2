"""Cards and places that go wrong, told at the page."""

from __future__ import annotations

from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from hil.table.robots import ROBOT_TIMEOUT
from hil.table.robots.robot import card_of
from hil.table.setup import until
from tests.support.screens.browser.stories import ACE_UP, THREE, ruled, tells
from tests.support.screens.browser.table import AtTable
from tests.support.table.simulated.telling import DEAL

# --- cards ------------------------------------------------------------------------------------


@tells(Odd.FACE_UP_CARD, "face_up_card", cards=(*DEAL, "3d", "9d"))
async def a_face_up_card_in_the_shoe(t: AtTable) -> None:
    await t.to_card(1)
    await t.says("FaceUpCardFound", card=card_of("3d"))
    await t.shows("deal seat 1, third card")
    await t.draws()
    await t.shows("deal seat 1, third card")  # another one takes its place


@tells(Odd.ERROR_CARD, "error_card", cards=(*DEAL, "9d", "9h"))
async def a_card_drawn_in_error(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.forces()
    await t.to_card(1)
    await t.shows("use the card beside the shoe: seat 1, third card")


@tells(Odd.ERROR_CARD_EXPOSED, "error_card_exposed", "refuse_spare")
async def a_card_drawn_in_error_and_seen(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.forces()
    await t.says("ErrorCardExposed", card=card_of(t.out))
    await t.shows("refuse the exposed card")
    for seat in (1, 2):
        await t.says("SpareRefused", seat=seat, hand=0)


@tells(Odd.DEALER_OVERDREW, "error_card")
async def a_dealer_who_draws_on_a_standing_total(t: AtTable) -> None:
    await t.to(lambda s: s.step is Step.PAYING and s.after is Step.CLEARING)
    words = await t.dealer.words()
    await t.forces()
    assert await t.dealer.words() == words


@tells(Odd.CARD_UNREADABLE, "card_unreadable", "enter_card", "reject_card", "confirm_card")
async def a_card_that_is_not_read(t: AtTable) -> None:
    await t.to_card(1)
    await t.draws(read="unreadable")
    await t.shows("enter the card that lies on the felt", "card not read")
    await t.entered(t.out)


@tells(Odd.CARD_UNREADABLE, "card_misread")
async def a_card_that_was_misread(t: AtTable) -> None:
    await t.to_deal(1)
    await t.draws(read="wrong")
    await t.says("CardMisread")
    await t.shows("enter the card that lies on the felt", "seat 2")
    await t.entered("8c")


@tells(Odd.UNKNOWN_CARD, "entered_card_unknown", cards=(*DEAL, "3d", "9d"))
async def a_joker(t: AtTable) -> None:
    await t.to_card(1)
    await t.draws(read="no_index")
    await t.says("UnknownCardDrawn")
    await ruled(t, Odd.UNKNOWN_CARD, "discard")
    await t.shows("deal seat 1, third card")


@tells(Odd.DECK_SUSPECT, "deck_suspect", "change_decks")
async def decks_that_somebody_doubts(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.says("DeckSuspect", why="short")
    await t.shows("decks in doubt")
    await ruled(t, Odd.DECK_SUSPECT, "decks_out")
    await t.to_step(Step.SHUFFLE_NEEDED)
    await t.shows("take these decks out of play")


@tells(Odd.DECK_SUSPECT, "deck_suspect")
async def a_foreign_back(t: AtTable) -> None:
    await t.to_card(1)
    await t.draws(read="foreign")
    await until(lambda: t.stands.step is Step.HELD, ROBOT_TIMEOUT)
    await t.shows("foreign back")
    await ruled(t, Odd.DECK_SUSPECT, "resume")
    await t.entered(t.out)


# --- the deal ---------------------------------------------------------------------------------


@tells(
    Odd.DEALER_CARD_MISSED, "dealer_card_missed", cards=("9c", "8c", "2h", "Kc", "9d", "8s", "Td")
)
async def a_dealer_who_missed_the_first_card(t: AtTable) -> None:
    await t.to_deal(3)
    await t.says("DealerCardMissed", which=1)
    await t.shows("deal seat 2, second card")
    await t.to_step(Step.DEALER_LATE)
    await t.shows("deal the dealer's first card")


@tells(Odd.SEAT_MISSED, "seat_missed", wagers=THREE)
async def a_seat_that_got_no_cards(t: AtTable) -> None:
    await t.to_deal(2)
    await t.says("SeatMissed", seat=2)
    await t.shows("seat 2 - dead hand", "give back $10")


@tells(Odd.SEAT_SHORTED, "seat_shorted", cards=("9c", "8c", "8s", "Kc", "Td", "2h", "9d"))
async def a_seat_that_got_one_card(t: AtTable) -> None:
    await t.to_deal(4)
    await t.says("SeatShorted", seat=1)
    await t.shows("deal the hole card")
    await t.to_deal(5)
    await t.shows("deal seat 1, second card")


@tells(Odd.MISDEAL, "misdeal", "void_round")
async def a_misdeal_and_a_round_that_is_void(t: AtTable) -> None:
    await t.to_deal(3)
    await t.says("MisdealCalled", seat=0)
    await ruled(t, Odd.MISDEAL, "resume")
    await t.to_step(Step.TURN)
    await t.says("RoundVoided", "two", reason="misdeal")
    await t.shows("round void", "give back $10")


@tells(Odd.HOLE_EXPOSED, "hole_exposed")
async def a_hole_card_that_was_seen_early(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.says("HoleExposed", seat=0)
    await ruled(t, Odd.HOLE_EXPOSED, "resume")


@tells(Odd.HOLE_UNCHECKED, "hole_unchecked", cards=(*ACE_UP[:5], "5d", "9d", "4c", "9h"))
async def a_hole_card_that_was_not_checked(t: AtTable) -> None:
    await t.to_step(Step.CHECK)
    await t.shows("check hole card")
    await t.forces()
    await t.says("HoleUnchecked", seat=0)
    await ruled(t, Odd.HOLE_UNCHECKED, "resume")
    await t.shows("check hole card")


@tells(Odd.HOLE_MISMATCH, "hole_mismatch", cards=("9c", "8c", "As", "2h", "Kc", "Kd", "9d"))
async def a_blackjack_that_the_check_has_missed(t: AtTable) -> None:
    await t.to_deal(5)
    await t.draws(read="wrong", confidence=60)
    await t.to_step(Step.REVEAL)
    await t.says("RevealHole")
    await t.entered("Kd")
    await t.says("RevealHole")
    await t.shows("hole card and its check disagree")
    await ruled(t, Odd.HOLE_MISMATCH, "resume")
