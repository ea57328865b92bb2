"""Disputes, players who leave or cannot pay, late wagers, a new dealer: over the wire and in each
house."""

from controller.procedure.model import events
from controller.procedure.model.effects import (
    BankCounted,
    Burned,
    Settled,
)
from controller.procedure.model.effects import Told as Informed
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from controller.table.intake import DeviceSettings
from firmware_protocol.device import Press
from tests.support.asynchronous import in_turn
from tests.support.table.simulated.serving import FLOOR, SECOND
from tests.support.table.simulated.telling import DEAL, TWO, VOID, WON, Told, irregular

EITHER = (Way.RESUME, Way.VOID)
ACE_UP = ("9c", "8c", "As", "2h", "Kc", "9d", "9h")

# --- play out of turn, the floor called: the floor decides ------------------------------------


@irregular(Odd.OUT_OF_TURN, "out_of_turn", ways=EITHER)
async def a_hand_that_was_played_out_of_turn(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.TURN),
        t.refused("not_in_turn", "Hit", seat=2, hand=0),
        t.does("PlayedOutOfTurn", seat=2),
        t.shows(
            f"Floor: rule on hand played out of turn, seat 2 - play on, or void the round{TWO}"
        ),
        t.ruled(Odd.OUT_OF_TURN, way),
    )


@irregular(Odd.FLOOR_CALLED, "floor_called", ways=EITHER, game="mega", stations=True)
async def a_player_who_calls_the_floor(t: Told, way: Way) -> None:
    """By the button of the seat."""
    await in_turn(
        t.to_step(Step.TURN),
        t.presses(2, "call"),
        t.shows(f"Floor: rule on floor called, seat 2 - play on, or void the round{TWO}"),
    )
    called = t.made()[-1].event
    assert isinstance(called, events.FloorCalled)
    assert (called.actor.role, called.actor.seat, called.seat) == ("player", 2, 2)
    await t.ruled(Odd.FLOOR_CALLED, way)


@irregular(Odd.FLOOR_CALLED, "floor_called", ways=(Way.RESUME,))
async def the_floor_called_between_rounds(t: Told, way: Way) -> None:
    """No round is on that could be voided."""
    await in_turn(
        t.to_step(Step.WAGERING),
        t.does("FloorCalled"),
        t.shows("Floor: rule on floor called - play on"),
        t.ruled(Odd.FLOOR_CALLED, way),
        t.to_step(Step.DEALING),
    )


# --- insurance dispute: the floor decides, and may ask again ----------------------------------


@irregular(
    Odd.INSURANCE_DISPUTE,
    "insurance_dispute",
    ways=(Way.RESUME, Way.REOPEN_INSURANCE, Way.VOID),
    cards=ACE_UP,
    plan={1: "insure hit"},
    nets=None,
)
async def an_insurance_that_is_disputed(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.CHECK),
        t.does("InsuranceDisputed", seat=1),
        t.shows(
            "Floor: rule on insurance disputed, seat 1 - play on, or ask for insurance again, or "
            f"void the round{TWO}"
        ),
        t.ruled(Odd.INSURANCE_DISPUTE, way),
    )
    if way is Way.REOPEN_INSURANCE:
        await in_turn(
            t.shows("Seat 1 - insurance - asked again - give back $5"),
            t.to_step(Step.INSURANCE),
            t.shows("Ask seat 1: insurance up to $5, pays 2 to 1"),
        )
    await t.to_end()
    lines = [one for one in t.facts(Settled) if one.bet == "insurance"]
    outcomes = {Way.RESUME: "lose", Way.REOPEN_INSURANCE: "void", Way.VOID: "void"}
    assert [one.outcome for one in lines] == [outcomes[way]]
    nets = {Way.RESUME: {1: -500, 2: -1000}, Way.REOPEN_INSURANCE: {1: 0, 2: -1000}}
    assert t.nets() == nets.get(way, VOID)


@irregular(
    Odd.INSURANCE_DISPUTE,
    "insurance_dispute",
    ways=EITHER,
    cards=ACE_UP,
    plan={1: "decline hit"},
    nets={1: 0, 2: -1000},
)
async def an_insurance_that_is_disputed_too_late(t: Told, way: Way) -> None:
    """After the check nobody is asked again."""
    await in_turn(
        t.to_step(Step.TURN),
        t.does("InsuranceDisputed", seat=1),
        t.shows(f"Floor: rule on insurance disputed, seat 1 - play on, or void the round{TWO}"),
        t.ruled(Odd.INSURANCE_DISPUTE, way),
    )


# --- player leaves or does not answer: hand stands, wagers stay, floor called -----------------


@irregular(
    Odd.PLAYER_ABSENT, "player_absent", ways=(Way.STAND_HAND,), cards=DEAL, nets={1: -1000, 2: 0}
)
async def a_player_who_leaves_in_turn(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.TURN),
        t.does("PlayerAbsent", seat=1),
        t.shows(
            default="Seat 2 - hard 18 - hit, stand or double",
            strict="Floor: rule on player gone, seat 1 - hand stands",
        ),
        t.ruled(Odd.PLAYER_ABSENT, way),
        t.shows("Seat 2 - hard 18 - hit, stand or double"),
    )
    assert Informed("floor", "player_absent", 1) in t.facts(Informed)
    assert await t.refuses("PlayerAbsent", seat=1) == "player_absent"


@irregular(
    Odd.PLAYER_ABSENT,
    "player_absent",
    ways=(Way.STAND_HAND,),
    cards=ACE_UP,
    nets={1: -1000, 2: -1000},
)
async def a_player_who_does_not_answer(t: Told, way: Way) -> None:
    """Asked for insurance."""
    await in_turn(
        t.to_step(Step.INSURANCE),
        t.shows("Ask seat 1: insurance up to $5, pays 2 to 1"),
        t.does("PlayerAbsent", seat=1),
        t.ruled(Odd.PLAYER_ABSENT, way),
        t.shows("Ask seat 2: insurance up to $5, pays 2 to 1"),
    )


# --- player cannot cover a split or double: withdrawn before the dealer confirms --------------

PAIR = ("8c", "9c", "8s", "8h", "Kc", "Td", "3h", "Th")


@irregular(Odd.CANNOT_COVER, "withdrawn", ways=(Way.WITHDRAW,), plan={1: "double hit"})
async def a_double_that_is_not_covered(t: Told, way: Way) -> None:
    await t.to_step(Step.DOUBLE_CONFIRM)
    await t.shows("Seat 1 doubles - $10 beside $10 - confirm when it lies there")
    assert t.locked
    await t.does("Withdrawn")
    await t.shows("Seat 1 - hard 11 - hit, stand or double")
    assert t.state.hands[0].wager == 1000


@irregular(
    Odd.CANNOT_COVER,
    "withdrawn",
    ways=(Way.WITHDRAW,),
    game="mega",
    stations=True,
    cards=PAIR,
    plan={1: "split stand"},
    nets=None,
)
async def a_split_that_is_taken_back_with_the_button(t: Told, way: Way) -> None:
    """By the player of the seat, until the dealer confirms it; then by nobody."""
    await t.to_step(Step.SPLIT_CONFIRM)
    await t.shows("Seat 1 splits - $10 beside $10 - confirm when it lies there")
    assert not await t.lit(2, "no")
    await t.presses(1, "no")
    await t.stands(Step.TURN)
    assert len(t.state.hands) == 2
    t.players.wants(1, "split stand stand")
    await in_turn(
        t.to_step(Step.SPLIT_CONFIRM),
        t.does("Confirmed"),
        t.refused("nothing_to_confirm", "Withdrawn"),
        t.to_end(),
    )
    assert [
        one.event.actor.role for one in t.made() if isinstance(one.event, events.Withdrawn)
    ] == ["player"]


# --- late wager, or wager without a main wager: refused, chips handed back --------------------


@irregular(
    Odd.LATE_WAGER,
    "late_wager",
    "without_main",
    "wagers_locked",
    ways=(Way.REFUSE,),
    game="mega",
)
async def late_wagers_and_wagers_alone(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.WAGERING),
        t.refused("without_main", "WagerPlaced", seat=3, bet="buster", amount=500),
        t.to_deal(1),
    )
    for seat, bet in ((1, "main"), (1, "buster"), (3, "main")):
        assert await t.refuses("WagerPlaced", seat=seat, bet=bet, amount=500) == "late_wager"
        said = t.data("refusal")[-1]
        assert said["why"] == "wagers are closed: hand the chips back"
        assert (said["event"]["seat"], said["event"]["amount"]) == (seat, 500)
    assert await t.refuses("WagerRemoved", seat=1, bet="main") == "wagers_locked"


@irregular(
    Odd.LATE_WAGER,
    "late_wager",
    ways=(Way.REFUSE,),
    game="mega",
    stations=True,
    house=DeviceSettings(standing={3: (("main", 2500),)}),
)
async def a_bet_button_that_is_pressed_too_late(t: Told, way: Way) -> None:
    """It lights up no more, and a press that was on its way is recorded and counts for nothing."""
    await t.to(lambda s: len(s.seats) == 2)
    assert await t.lit(3, "bet")
    await t.to_deal(1)
    assert not await t.lit(3, "bet")
    await t.asked(t.station, Press(seat=3, button="bet"))
    await t.refused("late_wager", "WagerPlaced", seat=3, bet="main", amount=2500)


@irregular(Odd.LATE_WAGER, "first_card_is_out", ways=(Way.REFUSE,), cards=(*DEAL, "9d", "3d"))
async def a_wager_when_the_first_card_is_known(t: Told, way: Way) -> None:
    """It was entered from the felt: nobody bets on a card that everybody has seen."""
    await in_turn(
        t.to(lambda s: len(s.seats) == 2),
        t.draws(read="unreadable"),
        t.does("CardEntered", card=8),
        t.does("CardConfirmed", FLOOR),
    )
    for bet, amount in (("main", 500), ("main", 2000)):
        assert await t.refuses("WagerPlaced", seat=1, bet=bet, amount=amount) == "first_card_is_out"


# --- dealer relieved, table closed and opened: burn, count and count again --------------------


@irregular(
    Odd.DEALER_RELIEVED,
    "dealer_relieved_and_burn",
    "relief_burn_last",
    ways=(Way.BURN,),
    cards=("5c", "5d", *DEAL, "9d"),
    nets=None,
)
async def a_dealer_who_is_relieved(t: Told, way: Way) -> None:
    await t.to_step(Step.WAGERING)
    before = len(t.facts(Burned))
    await in_turn(
        t.does("DealerRelieved", SECOND),
        t.shows(default="Burn 1 card", strict="Burn 2 cards"),
        t.ruled(Odd.DEALER_RELIEVED, way),
        t.refused("late_wager", "WagerPlaced", seat=1, bet="main", amount=1000),
        t.to_step(Step.WAGERING),
    )
    assert len(t.facts(Burned)) - before == t.room.game.options.burn.on_dealer
    relieved = [one.event for one in t.made() if isinstance(one.event, events.DealerRelieved)]
    assert [event.actor for event in relieved] == [SECOND]
    await t.to_step(Step.DEALING)


@irregular(
    Odd.DEALER_RELIEVED,
    "dealer_relieved_and_burn",
    "relief_burn_more",
    strict=(Way.BURN,),
    cards=("5c", "5d", *DEAL, "9d"),
)
async def a_dealer_who_is_relieved_over_wagers(t: Told, way: Way) -> None:
    """Wagers that lie on the felt stay there while cards are burned."""
    await t.to(lambda s: len(s.seats) == 2)
    await t.does("DealerRelieved", SECOND)


@irregular(
    Odd.DEALER_RELIEVED,
    "dealer_relieved",
    "dealer_relieved_and_burn",
    ways=(Way.BURN,),
    cards=(*DEAL, "9d", "5c", "5d"),
    nets=None,
)
async def a_dealer_who_is_relieved_in_a_round(t: Told, way: Way) -> None:
    """No card is burned in the middle of a round."""
    await t.to_step(Step.TURN)
    before, words = t.state, t.words
    await t.does("DealerRelieved", SECOND)
    assert t.state == before
    await in_turn(
        t.shows(words),
        t.noted(Informed("floor", "dealer_relieved", 0, SECOND.name)),
        t.refused("not_theirs", "DealerRelieved", FLOOR),
        t.ends(WON),
        t.does("DealerRelieved"),
        t.to_step(Step.WAGERING),
    )


@irregular(
    Odd.DEALER_RELIEVED,
    "dealer_relieved_and_burn",
    "close_table",
    "open_table",
    ways=(Way.BURN,),
    nets=None,
)
async def a_table_that_is_closed_and_opened(t: Told, way: Way) -> None:
    """Counted, and counted again; every card is shuffled, and burned anew."""
    await in_turn(
        t.to_step(Step.WAGERING),
        t.does("DealerRelieved", SECOND),
        t.to_step(Step.WAGERING),
    )
    burned = len(t.facts(Burned))
    for counted_again, second in ((90_000, SECOND), (None, None)):
        fields = {"bank": 100_000, "counted_again": counted_again}
        assert await t.refuses("TableClosed", FLOOR, second, **fields) == "close_table"
    await t.does("TableClosed", FLOOR, SECOND, bank=100_000, counted_again=100_000)
    await t.shows("Floor: open the table - count the bank with a second person")
    assert [data["out"] for data in t.data("device", "ShoeInventory")] == [burned]
    fields = {"bank": 100_000, "counted_again": 100_001}
    await in_turn(
        t.refused("open_table", "TableOpened", FLOOR, SECOND, **fields),
        t.does("TableOpened", FLOOR, SECOND, bank=100_000, counted_again=100_000),
        t.shows("Shuffle 6 decks"),
    )
    assert t.facts(BankCounted)[-2:] == [BankCounted(100_000, "Flo", "Bob")] * 2
    await t.to_step(Step.WAGERING)
    assert len(t.facts(Burned)) - burned == t.room.game.options.burn.on_shuffle
    await t.to_step(Step.DEALING)


@irregular(Odd.FLOOR_CALLED, "floor_called", "close_when_lifted", ways=(Way.RESUME,), nets=None)
async def a_table_that_closes_when_the_floor_has_ruled(t: Told, way: Way) -> None:
    """Asked for while it is held between rounds."""
    await in_turn(
        t.to_step(Step.WAGERING),
        t.does("FloorCalled"),
        t.does("TableClosed", FLOOR, SECOND, bank=100_000, counted_again=100_000),
        t.stands(Step.HELD),
        t.ruled(Odd.FLOOR_CALLED, way),
        t.stands(Step.CLOSED),
    )
    assert t.data("device")[-1]["what"] == "ShoeInventory"
