"""Disputes, players who leave or cannot pay, late wagers, a new dealer, payments that were wrong or
wait for the floor, limits and caps: over the wire and in each house."""

from typing import Any

from controller.procedure.model import events
from controller.procedure.model.effects import (
    BankCounted,
    Burned,
    Corrected,
    Settled,
    Tell,
    WagersLocked,
)
from controller.procedure.model.effects import Told as Informed
from controller.procedure.model.events import Actor
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from controller.table.intake import DeviceSettings, TableInput
from firmware_protocol.device import Press
from tests.support.table.simulated.serving import DEALER, FLOOR, SECOND
from tests.support.table.simulated.telling import DEAL, TWO, VOID, WON, Told, irregular

EITHER = (Way.RESUME, Way.VOID)
ACE_UP = ("9c", "8c", "As", "2h", "Kc", "9d", "9h")

# --- play out of turn, the floor called: the floor decides ------------------------------------


@irregular(Odd.OUT_OF_TURN, "out_of_turn", ways=EITHER)
async def a_hand_that_was_played_out_of_turn(t: Told, way: Way) -> None:
    await t.to_step(Step.TURN)
    assert await t.refuses("Hit", seat=2, hand=0) == "not_in_turn"
    await t.does("PlayedOutOfTurn", seat=2)
    t.shows(f"Floor: rule on hand played out of turn, seat 2 - play on, or void the round{TWO}")
    await t.ruled(Odd.OUT_OF_TURN, way)


@irregular(Odd.FLOOR_CALLED, "floor_called", ways=EITHER, game="mega", stations=True)
async def a_player_who_calls_the_floor(t: Told, way: Way) -> None:
    """By the button of the seat."""
    await t.to_step(Step.TURN)
    await t.presses(2, "call")
    t.shows(f"Floor: rule on floor called, seat 2 - play on, or void the round{TWO}")
    called = t.made()[-1].event
    assert isinstance(called, events.FloorCalled)
    assert (called.actor.role, called.actor.seat, called.seat) == ("player", 2, 2)
    await t.ruled(Odd.FLOOR_CALLED, way)


@irregular(Odd.FLOOR_CALLED, "floor_called", ways=(Way.RESUME,))
async def the_floor_called_between_rounds(t: Told, way: Way) -> None:
    """No round is on that could be voided."""
    await t.to_step(Step.WAGERING)
    await t.does("FloorCalled")
    t.shows("Floor: rule on floor called - play on")
    await t.ruled(Odd.FLOOR_CALLED, way)
    await t.to_step(Step.DEALING)


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
    await t.to_step(Step.CHECK)
    await t.does("InsuranceDisputed", seat=1)
    t.shows(
        "Floor: rule on insurance disputed, seat 1 - play on, or ask for insurance again, or void "
        f"the round{TWO}"
    )
    await t.ruled(Odd.INSURANCE_DISPUTE, way)
    if way is Way.REOPEN_INSURANCE:
        t.shows("Seat 1 - insurance - asked again - give back $5")
        await t.to_step(Step.INSURANCE)
        t.shows("Ask seat 1: insurance up to $5, pays 2 to 1")
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
    await t.to_step(Step.TURN)
    await t.does("InsuranceDisputed", seat=1)
    t.shows(f"Floor: rule on insurance disputed, seat 1 - play on, or void the round{TWO}")
    await t.ruled(Odd.INSURANCE_DISPUTE, way)


# --- player leaves or does not answer: hand stands, wagers stay, floor called -----------------


@irregular(
    Odd.PLAYER_ABSENT, "player_absent", ways=(Way.STAND_HAND,), cards=DEAL, nets={1: -1000, 2: 0}
)
async def a_player_who_leaves_in_turn(t: Told, way: Way) -> None:
    await t.to_step(Step.TURN)
    await t.does("PlayerAbsent", seat=1)
    t.shows(
        default="Seat 2 - hard 18 - hit, stand or double",
        strict="Floor: rule on player gone, seat 1 - hand stands",
    )
    await t.ruled(Odd.PLAYER_ABSENT, way)
    t.shows("Seat 2 - hard 18 - hit, stand or double")
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
    await t.to_step(Step.INSURANCE)
    t.shows("Ask seat 1: insurance up to $5, pays 2 to 1")
    await t.does("PlayerAbsent", seat=1)
    await t.ruled(Odd.PLAYER_ABSENT, way)
    t.shows("Ask seat 2: insurance up to $5, pays 2 to 1")


# --- player cannot cover a split or double: withdrawn before the dealer confirms --------------

PAIR = ("8c", "9c", "8s", "8h", "Kc", "Td", "3h", "Th")


@irregular(Odd.CANNOT_COVER, "withdrawn", ways=(Way.WITHDRAW,), plan={1: "double hit"})
async def a_double_that_is_not_covered(t: Told, way: Way) -> None:
    await t.to_step(Step.DOUBLE_CONFIRM)
    t.shows("Seat 1 doubles - $10 beside $10 - confirm when it lies there")
    assert t.locked
    await t.does("Withdrawn")
    t.shows("Seat 1 - hard 11 - hit, stand or double")
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
    t.shows("Seat 1 splits - $10 beside $10 - confirm when it lies there")
    assert not await t.lit(2, "no")
    await t.presses(1, "no")
    assert t.at(Step.TURN)
    assert len(t.state.hands) == 2
    t.players.wants(1, "split stand stand")
    await t.to_step(Step.SPLIT_CONFIRM)
    await t.does("Confirmed")
    assert await t.refuses("Withdrawn") == "nothing_to_confirm"
    await t.to_end()
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
    await t.to_step(Step.WAGERING)
    assert await t.refuses("WagerPlaced", seat=3, bet="buster", amount=500) == "without_main"
    await t.to_deal(1)
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
    t.station.request(Press(seat=3, button="bet"))
    assert await t.refuses("WagerPlaced", seat=3, bet="main", amount=2500) == "late_wager"


@irregular(Odd.LATE_WAGER, "first_card_is_out", ways=(Way.REFUSE,), cards=(*DEAL, "9d", "3d"))
async def a_wager_when_the_first_card_is_known(t: Told, way: Way) -> None:
    """It was entered from the felt: nobody bets on a card that everybody has seen."""
    await t.to(lambda s: len(s.seats) == 2)
    await t.draws(read="unreadable")
    await t.does("CardEntered", card=8)
    await t.does("CardConfirmed", FLOOR)
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
    await t.does("DealerRelieved", SECOND)
    t.shows(default="Burn 1 card", strict="Burn 2 cards")
    await t.ruled(Odd.DEALER_RELIEVED, way)
    assert await t.refuses("WagerPlaced", seat=1, bet="main", amount=1000) == "late_wager"
    await t.to_step(Step.WAGERING)
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
    t.shows(words)
    assert t.facts(Informed)[-1] == Informed("floor", "dealer_relieved", 0, SECOND.name)
    assert await t.refuses("DealerRelieved", FLOOR) == "not_theirs"
    await t.to_end()
    assert t.nets() == WON
    await t.does("DealerRelieved")
    await t.to_step(Step.WAGERING)


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
    await t.to_step(Step.WAGERING)
    await t.does("DealerRelieved", SECOND)
    await t.to_step(Step.WAGERING)
    burned = len(t.facts(Burned))
    for counted_again, second in ((90_000, SECOND), (None, None)):
        fields = {"bank": 100_000, "counted_again": counted_again}
        assert await t.refuses("TableClosed", FLOOR, second, **fields) == "close_table"
    await t.does("TableClosed", FLOOR, SECOND, bank=100_000, counted_again=100_000)
    t.shows("Floor: open the table - count the bank with a second person")
    assert [data["out"] for data in t.data("device", "ShoeInventory")] == [burned]
    fields = {"bank": 100_000, "counted_again": 100_001}
    assert await t.refuses("TableOpened", FLOOR, SECOND, **fields) == "open_table"
    await t.does("TableOpened", FLOOR, SECOND, bank=100_000, counted_again=100_000)
    t.shows("Shuffle 6 decks")
    assert t.facts(BankCounted)[-2:] == [BankCounted(100_000, "Flo", "Bob")] * 2
    await t.to_step(Step.WAGERING)
    assert len(t.facts(Burned)) - burned == t.room.game.options.burn.on_shuffle
    await t.to_step(Step.DEALING)


@irregular(Odd.FLOOR_CALLED, "floor_called", "close_when_lifted", ways=(Way.RESUME,), nets=None)
async def a_table_that_closes_when_the_floor_has_ruled(t: Told, way: Way) -> None:
    """Asked for while it is held between rounds."""
    await t.to_step(Step.WAGERING)
    await t.does("FloorCalled")
    await t.does("TableClosed", FLOOR, SECOND, bank=100_000, counted_again=100_000)
    assert t.at(Step.HELD)
    await t.ruled(Odd.FLOOR_CALLED, way)
    assert t.at(Step.CLOSED)
    assert t.data("device")[-1]["what"] == "ShoeInventory"


# --- wrong payment found later, hand settled wrongly ------------------------------------------


def correction(**more: Any) -> dict[str, Any]:
    return {"round": 1, "seat": 1, "hand": 0, "bet": "main", "paid": 500, "due": 1000, **more}


@irregular(Odd.WRONG_PAYMENT, "correct_payment", ways=(Way.CORRECT,), nets=None)
async def a_wrong_payment_that_is_found_later(t: Told, way: Way) -> None:
    """A new record that points at the old one; nothing else moves."""
    await t.to_step(Step.TURN)
    await t.to_end()
    assert t.nets() == WON
    settled = t.facts(Settled)
    for second, fields in (
        (None, correction()),
        (Actor("surveillance", FLOOR.name), correction()),
        (SECOND, correction(paid=1000)),
        (SECOND, correction(round=2)),
    ):
        refused = await t.refuses("PaymentCorrected", FLOOR, second, **fields)
        assert refused.startswith("correct_payment")
    assert await t.refuses("PaymentCorrected", DEALER, SECOND, **correction()) == "not_theirs"
    before = t.state
    await t.does("PaymentCorrected", FLOOR, SECOND, **correction())
    assert t.state == before
    corrected = Corrected(1, 1, 0, "main", 500, 1000, "Flo", "Bob")
    assert t.facts(Corrected) == [corrected]
    assert t.facts(Settled) == settled  # both amounts stand in the record
    assert t.room.records("decision")[-1].round == 1


@irregular(Odd.WRONG_PAYMENT, "correct_payment", ways=(Way.CORRECT,), nets=None)
async def a_hand_that_was_settled_wrongly(t: Told, way: Way) -> None:
    """Found in the next round, and while the table is held."""
    await t.to_step(Step.TURN)
    await t.to_end()
    await t.to_step(Step.TURN)
    await t.does("FloorCalled")
    await t.does("PaymentCorrected", FLOOR, SECOND, **correction(seat=2, paid=1000, due=0))
    assert t.at(Step.HELD)
    await t.does("FloorRuled", FLOOR, way="resume")
    await t.to_end()
    assert t.facts(Corrected) == [Corrected(1, 2, 0, "main", 1000, 0, "Flo", "Bob")]


@irregular(Odd.WRONG_PAYMENT, "declared_wrong", "correct_payment", strict=(Way.CORRECT,), nets=None)
async def a_payment_that_is_declared_wrongly(t: Told, way: Way) -> None:
    """The dealer declares it, then the controller compares."""
    await t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 1)
    t.shows("Seat 1 - 20 beats the dealer - pays 1 to 1 - $10 on $10")
    assert await t.refuses("Paid") == "declared_wrong"
    assert t.data("refusal")[-1]["why"] == "seat 1: nothing was declared; count again"
    assert await t.refuses("Paid", amount=1500) == "declared_wrong"
    assert t.data("refusal")[-1]["event"]["amount"] == 1500  # what was declared stands there too
    assert await t.refuses("AllPaid") == "pay_all"
    await t.does("Paid", amount=1000)
    await t.to_end()
    await t.does("PaymentCorrected", FLOOR, SECOND, **correction(paid=1000, due=1500))


# --- from a certain amount on a payment waits for the floor -----------------------------------


@irregular(
    Odd.WRONG_PAYMENT,
    "floor_first",
    "approve_payment",
    "correct_payment",
    ways=(Way.CORRECT,),
    options={"payout.floor_from": 100_000},
    wagers=((1, "main", 100_000), (2, "main", 99_900)),
    cards=("Kc", "Qc", "8s", "Kh", "Qh", "Td"),
    plan={},
    nets=None,
)
async def a_payment_that_waits_for_the_floor(t: Told, way: Way) -> None:
    await t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 2)
    assert t.prompt.tell is Tell.PAY
    await t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 1)
    t.shows(
        "Floor: seat 1 - 20 beats the dealer - pays 1 to 1 - $1,000 on $1,000 - see it before it "
        "is paid"
    )
    assert await t.refuses("Paid", amount=100_000) == "floor_first"
    assert await t.refuses("PaymentApproved", DEALER) == "not_theirs"
    await t.does("PaymentApproved", FLOOR)
    t.shows("Seat 1 - 20 beats the dealer - pays 1 to 1 - $1,000 on $1,000")
    await t.to_end()
    assert t.nets() == {1: 100_000, 2: 99_900}
    await t.does("PaymentCorrected", FLOOR, SECOND, **correction(paid=100_000, due=99_000))


@irregular(
    Odd.WRONG_PAYMENT,
    "correct_payment",
    ways=(Way.CORRECT,),
    options={"limits.table_payout": 1500},
    cards=("Kc", "Qc", "8s", "Kh", "Qh", "Td"),
    plan={},
    nets=None,
)
async def the_cap_of_a_round(t: Told, way: Way) -> None:
    """Shown before wagers lock; it cuts no payment, the floor sees what goes beyond it."""
    await t.to_step(Step.WAGERING)
    t.shows("Take wagers: main - a round pays $15 at most without the floor")
    await t.to_deal(1)
    assert t.facts(WagersLocked) == [WagersLocked(1, 2000, 1500)]
    await t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 2)
    assert t.prompt.to == "dealer"
    await t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 1)
    assert (t.prompt.to, t.prompt.amount) == ("floor", 1000)
    await t.to_end()
    assert t.nets() == {1: 1000, 2: 1000}
    await t.does("PaymentCorrected", FLOOR, SECOND, **correction())


# --- limits, one main wager a seat, several seats of one player -------------------------------

LIMITS = {
    "limits.main.min": 1000,
    "limits.main.max": 50_000,
    "limits.main.step": 500,
    "limits.buster.max": 1000,
}


@irregular(
    Odd.LATE_WAGER,
    "below_minimum",
    "above_maximum",
    "off_step",
    "no_such_seat",
    "bet_not_offered",
    "not_an_amount",
    "late_wager",
    ways=(Way.REFUSE,),
    game="mega",
    options=LIMITS,
    nets=None,
)
async def limits_of_each_seat_and_bet(t: Told, way: Way) -> None:
    await t.to_step(Step.WAGERING)
    for seat, bet, amount, refused, why in (
        (1, "main", 500, "below_minimum", "seat 1: main bets start at 1000"),
        (1, "main", 50_500, "above_maximum", "seat 1: main bets go up to 50000"),
        (1, "main", 1250, "off_step", "seat 1: main bets go in steps of 500"),
        (8, "main", 1000, "no_such_seat", "seat 8: the table has seats 1 to 7"),
        (1, "diamond", 1000, "bet_not_offered", ""),
        (1, "main", 0, "not_an_amount", ""),
    ):
        assert await t.refuses("WagerPlaced", seat=seat, bet=bet, amount=amount) == refused
        assert t.data("refusal")[-1]["why"].startswith(why)
    await t.does("WagerPlaced", seat=1, bet="main", amount=50_000)
    assert await t.refuses("WagerPlaced", seat=1, bet="buster", amount=1100) == "above_maximum"
    await t.does("WagerPlaced", seat=1, bet="buster", amount=1000)
    await t.does("WagerPlaced", seat=1, bet="main", amount=1000)  # the limits hold for the first
    await t.to_deal(1)
    assert await t.refuses("WagerPlaced", seat=2, bet="main", amount=1000) == "late_wager"


@irregular(Odd.LATE_WAGER, "other_seat", "late_wager", ways=(Way.REFUSE,), game="mega")
async def back_bets_are_refused(t: Told, way: Way) -> None:
    """One main wager a seat: another amount takes the place of the one that lies there, and from
    the station of another seat nothing is placed."""
    await t.to(lambda s: len(s.seats) == 2)
    t.robot.pending_wagers = []
    await t.does("WagerPlaced", seat=1, bet="main", amount=2500)
    assert [seat.main for seat in t.state.seats] == [2500, 1000]
    await said(t, events.WagerPlaced(Actor("player", "seat-3", 3), 1, "main", 500))
    assert t.data("refusal")[-1]["id"] == "other_seat"
    assert [seat.main for seat in t.state.seats] == [2500, 1000]
    await t.does("WagerPlaced", seat=1, bet="main", amount=1000)
    await t.to_deal(1)
    assert await t.refuses("WagerPlaced", seat=1, bet="main", amount=500) == "late_wager"


async def said(t: Told, event: events.Event) -> None:
    """Something that a seat's own buttons never say comes to the table all the same."""
    await t.table.table.act(lambda now: TableInput((event,)))


@irregular(
    Odd.OUT_OF_TURN,
    "not_in_turn",
    "out_of_turn",
    ways=(Way.RESUME,),
    game="mega",
    stations=True,
    wagers=((1, "main", 1000), (3, "main", 1000)),
    cards=(*DEAL, "9d", "3d"),
    plan={1: "hit stand", 3: "stand"},
    nets={1: 1000, 3: 0},
)
async def a_player_with_several_seats(t: Told, way: Way) -> None:
    """Each is decided in turn, with its own buttons, whoever sits there."""
    await t.to_step(Step.TURN)
    assert await t.lit(1, "hit")
    assert "hit" not in t.armed(3)
    assert await t.refuses("Stand", seat=3, hand=0) == "not_in_turn"
    await t.does("PlayedOutOfTurn", seat=3)
    await t.ruled(Odd.OUT_OF_TURN, way)
    await t.to(lambda s: s.step is Step.TURN and s.hands[s.turn].seat == 3)
    assert await t.lit(3, "hit")
    assert "hit" not in t.armed(1)
