"""Cards and places that went wrong in the deal, cards drawn in error, hole cards seen early or not
checked: over the wire and in each house."""

import asyncio

from controller.procedure.model import events
from controller.procedure.model.effects import Burned, Discarded, RoundVoid, SeatDead, Tell
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from controller.table.intake import DeviceSettings
from controller.table.loop import BadAct
from hil.table.robots.robot import card_of, mechanism
from tests.support.asynchronous import in_turn, raised
from tests.support.drivers.simulated import until
from tests.support.table.simulated.serving import DEALER, FLOOR, SECOND
from tests.support.table.simulated.telling import (
    DEAL,
    TWO,
    VOID,
    WON,
    Told,
    entered,
    irregular,
    told_of,
)

# --- face-up card in the shoe: not used, to the discard rack ----------------------------------


@irregular(Odd.FACE_UP_CARD, "face_up_card", ways=(Way.DISCARD,), cards=(*DEAL, "3d", "9d"))
async def a_face_up_card_in_the_shoe(t: Told, way: Way) -> None:
    await in_turn(
        t.to_card(1),
        t.does("FaceUpCardFound", card=card_of("3d")),
        t.ruled(Odd.FACE_UP_CARD, way),
        t.shows("Deal seat 1, third card"),
    )
    assert t.facts(Discarded) == [Discarded(card_of("3d"))]
    await t.draws()
    assert t.data("device")[-1] == {
        "what": "ShoeCardRead",
        "shoe": 1,
        "pos": t.data("device")[-1]["pos"],
        "discarded": True,
    }
    assert t.at(Step.HAND_CARD)  # another one takes its place


@irregular(Odd.FACE_UP_CARD, "face_up_card", ways=(Way.DISCARD,), cards=("3d", *DEAL, "9d"))
async def a_face_up_card_before_the_first_card(t: Told, way: Way) -> None:
    """Found before wagers lie on the felt: it is pulled out when the shoe opens."""
    await in_turn(
        t.to_step(Step.WAGERING),
        t.does("FaceUpCardFound", card=card_of("3d")),
        t.ruled(Odd.FACE_UP_CARD, way),
        t.stands(Step.WAGERING),
        t.to(lambda s: len(s.seats) == 2),
        t.draws(),
    )
    assert t.state.round == 0
    assert len(t.state.seats) == 2  # the wagers are not locked by it


# --- dealer missed an own card: the players first, then the dealer's --------------------------


@irregular(
    Odd.DEALER_CARD_MISSED,
    "dealer_card_missed",
    default=(Way.DEALER_LAST,),
    strict=(Way.DEALER_LAST, Way.VOID),
    cards=("9c", "8c", "2h", "Kc", "9d", "8s", "Td"),
)
async def the_dealer_missed_the_first_card(t: Told, way: Way) -> None:
    """The deuce was seat 1's second card, and lies where the dealer's up card should."""
    await in_turn(
        t.to_deal(3),
        t.does("DealerCardMissed", which=1),
        t.shows(
            default="Deal seat 2, second card",
            strict="Floor: rule on dealer's own card missed, first card - dealer's cards last, or "
            "void the round - bring a second person",
        ),
        t.ruled(Odd.DEALER_CARD_MISSED, way),
    )
    if way is Way.DEALER_LAST:
        assert t.state.dealer == ()
        await t.to_step(Step.DEALER_LATE)
        await t.shows("Deal the dealer's first card, face up")


@irregular(
    Odd.DEALER_CARD_MISSED,
    "dealer_card_missed",
    default=(Way.DEALER_LAST,),
    strict=(Way.DEALER_LAST, Way.VOID),
    cards=("9c", "8c", "8s", "2h", "Kc", "9d", "Td"),
    nets=None,
)
async def the_dealer_missed_the_second_card(t: Told, way: Way) -> None:
    """Seen before the hole card is drawn: it comes last, and face up."""
    await in_turn(
        t.to_deal(5),
        t.shows("Deal the hole card, face down"),
        t.does("DealerCardMissed", which=2),
        t.shows(
            default="Seat 1 - hard 11 - hit, stand or double",
            strict="Floor: rule on dealer's own card missed, second card - dealer's cards last, or "
            "void the round - bring a second person",
        ),
        t.ruled(Odd.DEALER_CARD_MISSED, way),
        t.ends(VOID if way is Way.VOID else WON),
    )
    assert "HoleDealt" not in t.names()
    assert "HoleRevealed" not in t.names()


# --- a player got no cards: dead hand, wager back ---------------------------------------------


@irregular(
    Odd.SEAT_MISSED,
    "seat_missed",
    default=(Way.DEAD_HAND,),
    strict=(Way.DEAD_HAND, Way.VOID),
    wagers=((1, "main", 1000), (2, "main", 500), (3, "main", 1000)),
    nets=None,
)
async def a_player_who_got_no_cards(t: Told, way: Way) -> None:
    """The second card went to seat 3."""
    await in_turn(
        t.to_deal(2),
        t.does("SeatMissed", seat=2),
        t.shows(
            default="Seat 2 - dead hand - give back $5",
            strict="Floor: rule on seat got no cards, seat 2 - dead hand, wager back, or void the "
            "round - bring a second person",
        ),
        t.ruled(Odd.SEAT_MISSED, way),
    )
    if way is Way.DEAD_HAND:
        await t.shows("Seat 2 - dead hand - give back $5")
        assert t.facts(SeatDead) == [SeatDead(2)]
        await t.to(lambda s: s.step is Step.DEALING)
        await t.shows("Deal the dealer's up card, face up")
    await t.to_end()
    wanted = {1: 1000, 2: 0, 3: 0} if way is Way.DEAD_HAND else {1: 0, 2: 0, 3: 0}
    assert t.nets() == wanted
    if way is Way.DEAD_HAND:  # in again next round
        await t.to(lambda s: s.step is Step.DEALING)
        assert [hand.seat for hand in t.state.hands] == [1, 2, 3]


# --- a player got one card: the second after everyone else's ----------------------------------


@irregular(
    Odd.SEAT_SHORTED,
    "seat_shorted",
    default=(Way.SECOND_CARD_LAST,),
    strict=(Way.SECOND_CARD_LAST, Way.VOID),
    cards=("9c", "8c", "8s", "Kc", "Td", "2h", "9d"),
)
async def a_player_who_got_one_card(t: Told, way: Way) -> None:
    """The king went to seat 2."""
    await in_turn(
        t.to_deal(4),
        t.does("SeatShorted", seat=1),
        t.shows(
            default="Deal the hole card, face down",
            strict="Floor: rule on seat got one card only, seat 1 - second card last, or void the "
            "round - bring a second person",
        ),
        t.ruled(Odd.SEAT_SHORTED, way),
    )
    if way is Way.SECOND_CARD_LAST:
        await t.to_deal(5)
        await t.shows("Deal seat 1, second card")


# --- misdeal: the floor decides ---------------------------------------------------------------


@irregular(Odd.MISDEAL, "misdeal", ways=(Way.RESUME, Way.VOID))
async def a_misdeal(t: Told, way: Way) -> None:
    await t.to_deal(3)
    before = t.state
    await in_turn(
        t.does("MisdealCalled"),
        t.shows("Floor: rule on misdeal - void the round, or play on - bring a second person"),
        t.refused("held_already", "MisdealCalled"),
        t.ruled(Odd.MISDEAL, way),
    )
    if way is Way.RESUME:
        assert t.state == before


@irregular(Odd.MISDEAL, "misdeal", "void_round", ways=(Way.RESUME,), nets=VOID)
async def a_round_that_the_floor_voids(t: Told, way: Way) -> None:
    """With a reason and a second person, whatever was ruled before."""
    await in_turn(
        t.to_step(Step.TURN),
        t.does("MisdealCalled"),
        t.refused("no_round_to_void", "RoundVoided", FLOOR, SECOND, reason="misdeal"),
        t.ruled(Odd.MISDEAL, way),
        t.refused("void_round", "RoundVoided", FLOOR, reason="misdeal"),
        t.refused("void_round", "RoundVoided", FLOOR, SECOND, reason=""),
        t.refused("not_theirs", "RoundVoided", DEALER, SECOND, reason="misdeal"),
        t.does("RoundVoided", FLOOR, SECOND, reason="misdeal"),
        t.shows("Seat 2 - round void - give back $10"),
    )
    assert t.facts(RoundVoid) == [RoundVoid(1, "misdeal", "Flo", "Bob")]


@irregular(Odd.MISDEAL, "misdeal", "void_round_nothing_due", ways=(Way.RESUME,))
async def a_round_that_is_voided_when_all_is_settled(t: Told, way: Way) -> None:
    """What was paid stays paid."""
    await in_turn(
        t.to_step(Step.CLEARING),
        t.does("MisdealCalled"),
        t.ruled(Odd.MISDEAL, way),
        t.does("RoundVoided", FLOOR, SECOND, reason="misdeal"),
        t.shows("Pick up the cards"),
    )


# --- the shoe ran out in a round: discards shuffled, round finished ---------------------------

SEVEN = tuple((seat, "main", 1000) for seat in range(1, 8))


@irregular(
    Odd.SHOE_RAN_OUT,
    "shoe_ran_out",
    default=(Way.RESHUFFLE,),
    strict=(Way.RESHUFFLE, Way.VOID),
    also={Way.RESHUFFLE: ("refill_shuffle", "refill_shuffled", "refill")},
    options={"decks": 1},
    cards=(),
    wagers=SEVEN,
    house=DeviceSettings(backs=(1, 2)),
    nets=None,
)
async def the_shoe_runs_out_in_a_round(t: Told, way: Way) -> None:
    """Nobody has put a cut card in: all fifty-two cards come out, and the same ones go back in."""
    await t.to(lambda s: s.round > 1 and not mechanism(t.room.shoe)["left"] and awaited(s.step))
    await t.does("ShoeRanOut")
    counted = t.data("device", "ShoeInventory")[-1]
    assert (counted["out"], counted["missing"], counted["extra"]) == (52, 0, [])
    assert t.words.startswith(
        "Shuffle, cut and load the discards - shoe out of cards"
        if t.house == "default"
        else "Floor: rule on shoe out of cards - shuffle the discards, finish the round, or void "
        "the round"
    )
    await t.ruled(Odd.SHOE_RAN_OUT, way)
    if way is Way.RESHUFFLE:
        assert t.prompt.tell is Tell.REFILL
        await in_turn(
            until(lambda: t.locked),
            t.refused("refill", "ShoeLoaded", count=52),
            t.does("ShuffleStarted"),
            t.does("ShuffleDone"),
        )
        await t.robot.refill(t.prompt)
        await until(lambda: not t.at(Step.REFILL))
    await t.to(lambda s: s.step is Step.SHUFFLE_NEEDED)
    assert t.table.table.now.memory.back == 1
    assert "DeckSuspect" not in t.names()
    await t.to_step(Step.DEALING)
    assert (t.table.table.now.memory.back, t.table.table.now.memory.former) == (2, 1)
    assert "DeckSuspect" not in t.names()
    await t.to(lambda s: s.step is Step.SHUFFLE_NEEDED)
    if way is Way.VOID:
        assert set(t.nets().values()) <= {0, -1000, 1000, 1500}
        assert len(t.facts(RoundVoid)) == 1


def awaited(step: Step) -> bool:
    return step in (Step.DEALING, Step.HAND_CARD, Step.DEALER_CARD)


# --- two things at once -----------------------------------------------------------------------


@irregular(
    Odd.FACE_UP_CARD,
    "face_up_card",
    ways=(Way.DISCARD,),
    cards=("9c", "3d", "8c", "8s", "2h", "Kc", "Td", "9d"),
)
async def a_face_up_card_and_a_card_that_slips_out(t: Told, way: Way) -> None:
    """What is pulled out first is the card that was found, whatever else comes."""
    await in_turn(
        t.to_deal(1),
        t.does("FaceUpCardFound", card=card_of("3d")),
        t.draws(),
        asyncio.sleep(0.2),
    )
    assert t.state.dealt == 1


# --- hole card and check disagree: held, floor and surveillance told --------------------------

MISMATCH_WAYS = (Way.RESUME, Way.VOID, Way.DECKS_OUT)
ACE_UP = ("9c", "8c", "As", "2h", "Kc", "Kd", "9d")


@irregular(
    Odd.HOLE_MISMATCH, "hole_mismatch", ways=MISMATCH_WAYS, cards=ACE_UP, nets={1: -1000, 2: -1000}
)
async def a_blackjack_that_the_check_has_missed(t: Told, way: Way) -> None:
    """The shoe takes the king for an ace, and is not sure."""
    await in_turn(
        t.to_deal(5),
        t.draws(read="wrong", confidence=60),
        t.to_step(Step.REVEAL),
    )
    assert t.state.checked is False
    await in_turn(
        t.reveals(),
        entered(t, "Kd"),
        t.reveals(),
        told_of(t, Odd.HOLE_MISMATCH, ""),
        t.shows(
            "Floor: rule on hole card and its check disagree, king of diamonds - play on, or void "
            f"the round, or decks out of play{TWO}"
        ),
        t.ruled(Odd.HOLE_MISMATCH, way),
    )


@irregular(
    Odd.HOLE_MISMATCH,
    "hole_mismatch",
    ways=MISMATCH_WAYS,
    cards=("9c", "8c", "As", "2h", "Kc", "9h", "9d"),
    nets={1: 0, 2: -1000},
)
async def a_blackjack_that_is_none(t: Told, way: Way) -> None:
    """The shoe takes the nine for a ten: nobody has played yet, and play begins."""
    await in_turn(
        t.to_deal(5),
        t.draws(read="wrong", confidence=60),
        t.to_step(Step.REVEAL),
    )
    assert t.state.checked is True
    await in_turn(
        t.reveals(),
        entered(t, "9h"),
        t.reveals(),
        told_of(t, Odd.HOLE_MISMATCH, ""),
        t.ruled(Odd.HOLE_MISMATCH, way),
    )
    if way is Way.RESUME:
        await t.shows("Seat 1 - hard 11 - hit, stand or double")


# --- hole card exposed early, hole card not checked: the floor decides ------------------------


@irregular(Odd.HOLE_EXPOSED, "hole_exposed", ways=(Way.RESUME, Way.VOID))
async def a_hole_card_that_was_seen_early(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.TURN),
        t.does("HoleExposed"),
        t.shows(f"Floor: rule on hole card seen early - play on, or void the round{TWO}"),
        t.ruled(Odd.HOLE_EXPOSED, way),
    )


@irregular(
    Odd.HOLE_UNCHECKED,
    "hole_unchecked",
    ways=(Way.RESUME, Way.VOID),
    cards=(*ACE_UP[:5], "5d", "9d", "4c", "9h"),
    nets=None,
)
async def a_hole_card_that_was_not_checked(t: Told, way: Way) -> None:
    """The dealer has given seat 1 a card; the check itself cannot be passed over."""
    await in_turn(
        t.to_step(Step.CHECK),
        t.shows("Check hole card"),
        t.refused("no_decision_now", "Hit", seat=1, hand=0),
        t.forces(),
        t.ruled(Odd.ERROR_CARD, Way.USE_NEXT),
        t.does("HoleUnchecked"),
        t.shows(f"Floor: rule on hole card not checked - play on, or void the round{TWO}"),
        t.ruled(Odd.HOLE_UNCHECKED, way),
    )
    if way is Way.RESUME:
        await t.shows("Check hole card")
    await t.to_end()
    if way is Way.VOID:
        assert t.nets() == VOID
        return
    assert t.names().index("HoleUnchecked") < t.names().index("HoleChecked")


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
    await in_turn(
        t.to_step(Step.TURN),
        t.forces(),
        t.shows(**ERROR),
    )
    sealed = t.made()[-1]
    assert isinstance(sealed.event, events.ErrorCardDrawn)
    assert sealed.sealed  # nobody has seen it; surveillance can open it
    await t.ruled(Odd.ERROR_CARD, way)
    if way is Way.USE_NEXT:
        await in_turn(
            t.to_card(1),
            t.shows("Use the card beside the shoe: seat 1, third card"),
            until(lambda: t.locked),
            t.does("LaySpare"),
        )
        assert t.state.hands[0].cards[-1] == card_of("9d")
    if way is Way.BURN:
        assert (t.facts(Burned)[-1], t.state.spare) == (Burned(), None)
    await t.ends(VOID if way is Way.VOID else WON)
    assert len(t.facts(RoundVoid)) == (way is Way.VOID)


@irregular(
    Odd.ERROR_CARD, "error_card", ways=(Way.BURN, Way.VOID), cards=(*DEAL, "9d", "4d"), nets=None
)
async def a_second_card_drawn_in_error(t: Told, way: Way) -> None:
    """One is the next card already: the other one cannot be it too."""
    await in_turn(
        t.to_step(Step.TURN),
        t.forces(),
        t.ruled(Odd.ERROR_CARD, Way.USE_NEXT),
        t.forces(),
        t.shows(
            "Floor: rule on card drawn in error, not seen - burn, or void the round - bring a "
            "second person"
        ),
        t.ruled(Odd.ERROR_CARD, way),
        t.to_end(),
    )
    if way is Way.BURN:
        assert (t.facts(Burned)[-1], t.nets()) == (Burned(), WON)
    else:
        assert t.nets() == VOID
        assert t.state.spare is not None  # the first card of the next round


# --- card drawn in error and exposed ----------------------------------------------------------


async def exposed(t: Told) -> None:
    """A card came out when none was due, and somebody saw it."""
    await in_turn(
        t.to_step(Step.TURN),
        t.forces(),
        t.ruled(Odd.ERROR_CARD, Way.USE_NEXT),
    )
    await raised(BadAct, t.does("ErrorCardExposed", card=card_of("Ks")), "another card")
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
    await in_turn(
        exposed(t),
        t.shows(
            default="Seat 1 - hard 11 - hit, stand, double or refuse the exposed card",
            strict="Floor: rule on card drawn in error and seen, 9 of diamonds - deal it on, or "
            "burn, or void the round - bring a second person",
        ),
        t.ruled(Odd.ERROR_CARD_EXPOSED, way),
    )
    if way is Way.DEAL_ON:
        await t.to_card(1)
        await t.shows("Use the exposed card beside the shoe: seat 1, third card")
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
    await in_turn(
        exposed(t),
        t.ruled(Odd.ERROR_CARD_EXPOSED, way),
        t.refused("refuse_spare", "SpareRefused", seat=2, hand=0),
        t.does("SpareRefused", seat=1, hand=0),
        t.shows("Seat 2 - hard 18 - hit, stand, double or refuse the exposed card"),
        t.does("SpareRefused", seat=2, hand=0),
        t.to_end(),
        t.noted(Burned(card_of("9d"))),  # the dealer has no use for it either
    )
    assert (t.nets(), t.state.spare) == ({1: -1000, 2: 0}, None)


@irregular(
    Odd.ERROR_CARD_EXPOSED,
    "card_while_spare_waits",
    ways=(Way.BURN, Way.VOID),
    cards=(*DEAL, "9d", "4d"),
)
async def a_new_card_though_one_beside_the_shoe_waits(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.TURN),
        t.forces(),
        t.ruled(Odd.ERROR_CARD, Way.USE_NEXT),
        t.to_card(1),
        t.forces(),
        t.shows(
            "Floor: rule on card drawn in error and seen, 4 of diamonds - burn, or void the round "
            "- bring a second person"
        ),
        t.ruled(Odd.ERROR_CARD_EXPOSED, way),
    )
    if way is Way.BURN:
        await t.noted(Burned(card_of("4d")))
        await t.shows("Use the card beside the shoe: seat 1, third card")


# --- dealer draws on a standing total: burned -------------------------------------------------


@irregular(Odd.DEALER_OVERDREW, "error_card", ways=(Way.BURN,))
async def the_dealer_draws_on_a_standing_total(t: Told, way: Way) -> None:
    await t.to(lambda s: s.step is Step.PAYING and s.after is Step.CLEARING)
    dealer, due, words = t.state.dealer, t.state.due, t.words
    await in_turn(
        t.forces(),
        t.ruled(Odd.DEALER_OVERDREW, way),
        t.shows(words),
    )
    assert (t.state.dealer, t.state.due) == (dealer, due)
    await in_turn(
        t.to_step(Step.CLEARING),
        t.forces(),
        t.shows("Pick up the cards"),
    )
    assert t.facts(Burned)[-2:] == [Burned(), Burned()]
