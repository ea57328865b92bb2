"""Cards that cannot be read, hole cards in doubt, decks that cannot be trusted: over the wire and
in each house."""

from collections import Counter

from controller.procedure.model import events
from controller.procedure.model.effects import Burned, DecksOut, Discarded, RoundVoid
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from controller.table.devices.links import LOST_AFTER
from controller.table.intake import DeviceSettings
from controller.table.loop import BadAct
from firmware_protocol.device import Load, Plug, Put, ShufflePace
from hil.table.robots.robot import card_of
from tests.support.asynchronous import in_turn, raised
from tests.support.drivers.simulated import Plugged, until
from tests.support.table.simulated.serving import DEALER, FLOOR, SECOND, whole
from tests.support.table.simulated.telling import (
    BURNED,
    DEAL,
    TWO,
    VOID,
    WON,
    Told,
    entered,
    irregular,
    told_of,
)

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
    await in_turn(
        t.to_card(1),
        t.draws(read="unreadable"),
        t.shows("Enter the card that lies on the felt - card not read, not read: unreadable"),
        until(lambda: t.locked),
        t.ruled(Odd.CARD_UNREADABLE, way),
    )
    await entered(t, t.out)
    await t.shows("Confirm the card that was read from the felt: seat 1, third card")
    await t.ends(WON)
    assert [data["why"] for data in t.data("device", "ReadFailed")] == ["unreadable"]


@irregular(Odd.CARD_UNREADABLE, "card_unreadable", ways=(Way.ENTER_CARD,), nets=None)
async def a_card_that_is_not_read_surely(t: Told, way: Way) -> None:
    """The shoe takes the nine for a ten, and says that it is not sure."""
    await in_turn(
        t.to_card(1),
        t.draws(read="wrong", confidence=55),
        t.shows("Enter the card that lies on the felt - card not read, read with 55 % confidence"),
        t.ruled(Odd.CARD_UNREADABLE, way),
        entered(t, "9d"),
        t.ends(WON),
    )
    doubted = [data for data in t.data("device", "CardSeen") if data["confidence"] == 55]
    assert [(data["card"], data["alternative"]) for data in doubted] == [
        (card_of("Td"), card_of("Jd"))
    ]


@irregular(Odd.CARD_UNREADABLE, "card_unreadable", ways=(Way.ENTER_CARD,))
async def the_first_card_of_a_round_is_not_read(t: Told, way: Way) -> None:
    await in_turn(
        t.to(lambda s: len(s.seats) == 2),
        t.draws(read="no_index"),
        t.shows("Enter the card that lies on the felt - card not read, not read: no index"),
        t.ruled(Odd.CARD_UNREADABLE, way),
        entered(t, "9c"),
        t.refused("first_card_is_out_already", "WagerRemoved", seat=1, bet="main"),
    )


@irregular(
    Odd.CARD_UNREADABLE,
    "card_unreadable",
    ways=(Way.BURN, Way.VOID),
    cards=("9c", "8c", "8s", "2h", "Kc", "5h", "Td", "9d"),
    nets=None,
)
async def a_hole_card_that_is_not_read(t: Told, way: Way) -> None:
    """It lies face down: nobody reads it from the felt."""
    await in_turn(
        t.to_deal(5),
        t.draws(read="unreadable"),
        t.shows(
            "Floor: rule on card not read, not read: unreadable - burn, or void the round" + TWO
        ),
        t.ruled(Odd.CARD_UNREADABLE, way),
        t.to_end(),
    )
    assert (t.nets(), t.facts(Burned)[-1:]) == (VOID if way is Way.VOID else WON, [Burned()])


@irregular(Odd.CARD_UNREADABLE, "card_unreadable", ways=(Way.ENTER_CARD,), nets=None)
async def a_hole_card_that_was_read_as_another_one(t: Told, way: Way) -> None:
    """What is odd about it waits until it is turned over; what lies on the felt counts."""
    await in_turn(
        t.to_deal(5),
        t.draws(read="wrong", confidence=55),
        t.to_step(Step.REVEAL),
    )
    assert "CardUnreadable" not in t.names()
    await in_turn(
        t.reveals(),
        t.shows("Enter the card that lies on the felt - card not read, read with 55 % confidence"),
        t.ruled(Odd.CARD_UNREADABLE, way),
        entered(t, "Td"),
        t.shows("Turn the hole card over"),
        t.ends(WON),  # against 8 and 10; the shoe has read a jack
    )
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
    await in_turn(
        t.does("CardMisread"),
        t.shows(MISREAD.format(2)),
        t.ruled(Odd.CARD_UNREADABLE, way),
        entered(t, "8c"),
        t.shows("Confirm the card that was read from the felt: seat 2, first card"),
        t.to_card(1),
        t.draws(read="wrong"),
        t.shows("Seat 2 - hard 18 - hit, stand or double"),  # 21 stands by itself
        t.does("CardMisread", FLOOR),
        t.shows(MISREAD.format(1)),
        entered(t, "9d"),
        t.does("LaySpare"),
        t.shows("Seat 1 - hard 20 - hit or stand"),
        t.ends(WON),
    )
    faces = [face.card for face in t.table.table.now.memory.faces]
    assert faces == [card_of(name) for name in ("9c", "8c", "8s", "2h", "Kc", "9d", "Td")]


@irregular(Odd.MISDEAL, "misdeal", "card_misread", ways=(Way.VOID,), nets=VOID)
async def a_misread_card_that_something_has_followed_from(t: Told, way: Way) -> None:
    """Seat 1 has asked for another one: the dealer calls a misdeal."""
    await in_turn(
        t.to_deal(4),
        t.draws(read="wrong"),
        t.to_card(1),
        t.refused("card_misread", "CardMisread"),
        t.does("MisdealCalled"),
        t.ruled(Odd.MISDEAL, way),
    )


# --- joker or unknown card: held, floor and surveillance told ---------------------------------

UNKNOWN = "decks out of play, or enter the card from the felt, or discard the card"
THREE_WAYS = (Way.DECKS_OUT, Way.ENTER_CARD, Way.DISCARD)


async def ruled_on_unknown(t: Told, way: Way, seat: str = "") -> None:
    await in_turn(
        told_of(t, Odd.UNKNOWN_CARD, ""),
        t.shows(f"Floor: rule on joker or unknown card{seat} - {UNKNOWN}{TWO}"),
        t.ruled(Odd.UNKNOWN_CARD, way),
    )
    if way is Way.DISCARD:
        assert t.facts(Discarded)[-1] == Discarded()


@irregular(Odd.UNKNOWN_CARD, "unknown_card", ways=THREE_WAYS, cards=(*DEAL, "3d", "9d"), nets=None)
async def an_unknown_card_that_slips_out(t: Told, way: Way) -> None:
    """Nothing binds a card that was not read, so it cannot be the next one."""
    await in_turn(
        t.to_step(Step.TURN),
        t.forces(read="unreadable"),
        ruled_on_unknown(t, way),
    )
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
    await in_turn(
        t.to_card(1),
        t.draws(read="no_index"),
        t.shows("Enter the card that lies on the felt - card not read, not read: no index"),
        t.does("UnknownCardDrawn"),
    )
    assert [held.what for held in t.state.holds] == [Odd.UNKNOWN_CARD]
    await ruled_on_unknown(t, way, ", seat 1")
    if way is Way.ENTER_CARD:  # it was a card after all, badly printed
        await entered(t, "9h")
    if way is Way.DISCARD:
        await t.shows("Deal seat 1, third card")


@irregular(Odd.UNKNOWN_CARD, "another_card_unknown", ways=(Way.DISCARD, Way.DECKS_OUT))
async def a_card_under_another_one(t: Told, way: Way) -> None:
    """Two come out together: the upper one is entered from the felt, the other one ruled on."""
    await in_turn(
        t.to_card(1),
        t.draws(double=True),
        until(lambda: len(t.state.holds) == 2),
        ruled_on_unknown(t, way),
    )
    if way is Way.DISCARD:
        await t.shows(
            "Enter the card that lies on the felt - card not read, two cards came out together: "
            "this one first"
        )
        await entered(t, "9d")


# --- duplicate, foreign back, cards missing or too many, factory order: decks out of play -----


async def ruled_on_decks(t: Told, way: Way, detail: str, words: str) -> None:
    """`words`: what is said of the case on the screen."""
    await in_turn(
        told_of(t, Odd.DECK_SUSPECT, detail),
        t.shows(f"Floor: rule on decks in doubt, {words} - decks out of play, or play on{TWO}"),
        t.ruled(Odd.DECK_SUSPECT, way),
    )
    if way is Way.DECKS_OUT:
        assert t.facts(DecksOut) == [DecksOut()]


async def changed(t: Told) -> None:
    """Wagers go back, other decks come, and the table deals on."""
    await t.to(lambda s: s.step is Step.SHUFFLE_NEEDED)
    decks = "1 deck" if t.room.game.decks == 1 else "6 decks"
    await t.shows(f"Take these decks out of play - shuffle {decks} of others")
    await t.refused("start_shuffle", "ShuffleStarted")


BOTH_WAYS = (Way.DECKS_OUT, Way.RESUME)
ONE = {"decks": 1}


def with_twin(t: Told, *top: str) -> None:
    """The shoe holds a card too often, and another one not at all."""
    cards = whole(t.room, (*BURNED[: t.room.game.options.burn.on_shuffle], *top))[:52]
    assert max(Counter(cards).values()) == 2
    t.robot.cards = lambda: cards if not t.robot.loads else ()


@irregular(
    Odd.DECK_SUSPECT,
    "duplicate_card",
    "change_decks",
    ways=(Way.DECKS_OUT,),
    options=ONE,
    nets=VOID,
)
async def a_card_that_the_decks_do_not_hold_again(t: Told, way: Way) -> None:
    with_twin(t, "9c", "8c", "8s", "9c")
    await in_turn(
        t.to_deal(3),
        t.draws(),
        ruled_on_decks(t, way, "duplicate", "9 of clubs, one card too often"),
        changed(t),
        t.to_end(),
    )


@irregular(Odd.DECK_SUSPECT, "duplicate_card", ways=(Way.RESUME,), options=ONE, nets={1: 0, 2: 0})
async def a_card_too_many_that_the_floor_lets_lie(t: Told, way: Way) -> None:
    with_twin(t, "9c", "8c", "8s", "9c", "Kc", "Td")
    await in_turn(
        t.to_deal(3),
        t.draws(),
        ruled_on_decks(t, way, "duplicate", "9 of clubs, one card too often"),
        t.to_step(Step.TURN),
    )
    assert t.state.hands[0].cards == (card_of("9c"), card_of("9c"))
    t.players.wants(1, "stand")


@irregular(Odd.DECK_SUSPECT, "hole_duplicate", ways=BOTH_WAYS, options=ONE, nets={1: 1000, 2: 1000})
async def a_hole_card_that_the_decks_do_not_hold_again(t: Told, way: Way) -> None:
    """Nobody is told before it is turned over."""
    with_twin(t, "9c", "8c", "8s", "2h", "Kc", "9c", "9d")
    await t.to_step(Step.REVEAL)
    assert "DeckSuspect" not in t.names()
    await t.reveals()
    await ruled_on_decks(
        t, way, "the hole card is a duplicate", "9 of clubs, the hole card is a duplicate"
    )


@irregular(Odd.DECK_SUSPECT, "face_up_card", ways=BOTH_WAYS, options=ONE, nets=VOID)
async def a_face_up_card_that_the_decks_do_not_hold_again(t: Told, way: Way) -> None:
    with_twin(t, *DEAL, "9c", "9d")
    await in_turn(
        t.to_card(1),
        t.does("FaceUpCardFound", card=card_of("9c")),
        ruled_on_decks(t, way, "duplicate", "one card too often"),
    )
    if way is Way.RESUME:
        await in_turn(
            t.shows("Deal seat 1, third card"),
            t.draws(),
            t.ruled(Odd.DECK_SUSPECT, Way.DECKS_OUT),  # and there it comes
        )


IN_ORDER = ("2c", "3c", "4c", "5c", "6c", "7c", "8c", "Td", "9h", "Ts", "5h", "6h")
THREE = tuple((seat, "main", 1000) for seat in (1, 2, 3))


@irregular(
    Odd.DECK_SUSPECT,
    "deck_suspect",
    ways=BOTH_WAYS,
    cards=IN_ORDER,
    wagers=THREE,
    plan={},
    nets=None,
)
async def cards_in_factory_order(t: Told, way: Way) -> None:
    """Seven clubs, one after the other: the alarm goes with the card that makes it too many."""
    await t.to_deal(6)
    assert "DeckSuspect" not in t.names()
    await t.draws()
    assert t.state.holds[-1].back is Step.DEALING  # the card lies on its place
    assert t.state.dealt == 7
    await ruled_on_decks(t, way, "factory_order", "factory order")
    await t.to_end()
    assert bool(t.facts(RoundVoid)) == (way is Way.DECKS_OUT)
    assert t.names().count("DeckSuspect") == 1  # of these decks nobody is told again


@irregular(
    Odd.DECK_SUSPECT,
    "deck_suspect",
    ways=BOTH_WAYS,
    house=DeviceSettings(backs=(7, 8)),
)
async def a_foreign_back(t: Told, way: Way) -> None:
    """The batches of this table have other backs than the card that comes."""
    await in_turn(
        t.to(lambda s: len(s.seats) == 2),
        t.draws(),
        ruled_on_decks(t, way, "foreign_back", "foreign back"),
    )
    assert t.data("device")[-1]["back"] == 1
    t.room.house = DeviceSettings()
    if way is Way.DECKS_OUT:
        await changed(t)
        return


@irregular(Odd.DECK_SUSPECT, "deck_suspect", ways=(Way.RESUME,))
async def a_card_whose_foreign_back_the_shoe_sees(t: Told, way: Way) -> None:
    """It is not read; it is entered from the felt when the floor has let the decks go on."""
    await t.to_card(1)
    await t.draws(read="foreign")
    assert [held.what for held in t.state.holds] == [Odd.CARD_UNREADABLE, Odd.DECK_SUSPECT]
    await in_turn(
        ruled_on_decks(t, way, "foreign_back", "foreign back"),
        t.shows("Enter the card that lies on the felt - card not read, not read: foreign"),
        entered(t, "9d"),
    )


@irregular(Odd.DECK_SUSPECT, "shuffle_short_or_long", ways=BOTH_WAYS, nets=None)
async def a_batch_that_is_short(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.SHUFFLE_NEEDED),
        t.asked(t.shuffler, Put(decks=6, remove=("Ac", "Kd"))),
        t.does("ShuffleStarted"),
        t.comes_to(Step.HELD, 10),
        ruled_on_decks(t, way, "2 missing, 0 extra", "2 missing, 0 extra"),
    )
    if way is Way.DECKS_OUT:
        await changed(t)
    else:  # they lay on the floor
        await t.asked(t.shuffler, Put(decks=6))
        await t.shows("Wait for the shuffle of 6 decks")
    await t.to_step(Step.LOADING)
    assert t.data("device")[-1]["what"] == "ShuffleDone"


async def a_short_shuffle(t: Told) -> Plugged:
    """It has begun with a card too few, which the shuffler finds when it has ended."""
    await in_turn(
        t.to_step(Step.SHUFFLE_NEEDED),
        t.asked(t.shuffler, ShufflePace(shuffle_ms=2000), Put(decks=6, remove=("Ac",))),
        t.does("ShuffleStarted"),
        until(lambda: t.table.table.now.memory.shuffling),
    )
    return t.shuffler


@irregular(Odd.DECK_SUSPECT, "shuffle_short_or_long", ways=BOTH_WAYS, nets=None)
async def a_shuffle_that_people_call_done_before_it_is(t: Told, way: Way) -> None:
    """Nobody goes on without the shuffler's count."""
    shuffler = await a_short_shuffle(t)
    for actor in (DEALER, FLOOR):
        await raised(
            BadAct, t.does("ShuffleDone", actor), "the shuffler counts the cards and says when"
        )
    assert [data["what"] for data in t.data("fault")] == ["shuffled", "shuffled"]
    assert (t.at(Step.SHUFFLING), t.table.by_hand) == (True, False)
    await t.comes_to(Step.HELD, 10)
    await ruled_on_decks(t, way, "1 missing, 0 extra", "1 missing, 0 extra")
    if way is Way.DECKS_OUT:
        await changed(t)
    shuffler.request(ShufflePace(shuffle_ms=20))
    shuffler.request(Put(decks=6))
    await t.to_step(Step.LOADING)


@irregular(Odd.DECK_SUSPECT, "deck_suspect", ways=BOTH_WAYS)
async def a_count_that_comes_when_the_cards_are_in_play(t: Told, way: Way) -> None:
    """The shuffler was gone, and people have shuffled by hand what it had counted."""
    shuffler = await a_short_shuffle(t)
    shuffler.request(Plug(connected=False))
    await in_turn(
        until(lambda: bool(t.state.lost), LOST_AFTER + 1),
        t.ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK),
        t.refused("no_shuffle_to_end", "ShuffleDone"),
        t.does("CountersAccepted", FLOOR, SECOND),
        t.does("FeltConfirmed"),
    )
    assert t.table.by_hand
    await t.does("ShuffleDone")
    await t.to_step(Step.TURN)
    assert "DeckSuspect" not in t.names()
    shuffler.request(Plug(connected=True))
    await t.comes_to(Step.HELD, 10)
    await ruled_on_decks(t, way, "short", "cards missing")
    assert t.data("device")[-1]["what"] == "CountWrong"
    shuffler.request(ShufflePace(shuffle_ms=20))


@irregular(Odd.DECK_SUSPECT, "shoe_short_or_long", ways=BOTH_WAYS, options=ONE, nets=None)
async def a_shoe_with_fifty_three_cards(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.LOADING),
        t.asked(t.room.shoe, Load(decks=1, seed=4, add=("Ac",))),
        t.comes_to(Step.HELD),
        ruled_on_decks(t, way, "53 cards of 52", "53 cards of 52"),
    )
    if way is Way.DECKS_OUT:
        await changed(t)
    else:
        await t.shows("Cut, and load the shoe - 52 cards - 13 cards behind the cut card")
    await t.to_step(Step.WAGERING)


@irregular(Odd.DECK_SUSPECT, "deck_suspect", ways=BOTH_WAYS)
async def decks_that_somebody_doubts(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.TURN),
        t.does("DeckSuspect", FLOOR, why="short"),
        ruled_on_decks(t, way, "short", "cards missing"),
    )
