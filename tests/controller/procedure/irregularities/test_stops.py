"""What stops a table that is not a card: disputes, devices, restarts, players, payments."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from controller.games import DEALER, FLOOR, SECOND, SHOE, player, wagering
from controller.procedure.model.effects import Corrected, Ruled, Settled, Tell, Told
from controller.procedure.model.events import (
    Actor,
    ControllerRestarted,
    CountersAccepted,
    DealerRelieved,
    DecksChanged,
    Device,
    DeviceBack,
    DeviceLost,
    Disputed,
    Double,
    EvenMoney,
    FeltConfirmed,
    FloorCalled,
    FloorRuled,
    Hit,
    HoleExposed,
    HoleUnchecked,
    InsuranceClosed,
    InsuranceDisputed,
    Insure,
    MisdealCalled,
    PaymentCorrected,
    PlayedOutOfTurn,
    SeatMissed,
    ShoeLoaded,
    ShoeRanOut,
    ShuffleCalled,
    ShuffleDone,
    ShuffleStarted,
    Split,
    TableOpened,
    WagerRemoved,
)
from controller.procedure.model.state import Shoe, State, Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from tests.support.procedure.scenes import ACE_UP, IN_ROUND, dealt
from tests.support.procedure.table import HOUSES, Table

pytestmark = pytest.mark.parametrize("house", HOUSES)

# Wrong payment found later, hand settled wrongly: the floor corrects with a second person


def correction(actor: Actor = FLOOR, second: Actor | None = SECOND, **more: Any) -> Any:
    fields: dict[str, Any] = {"round": 1, "seat": 1, "hand": 0, "bet": "main"}
    fields |= {"paid": 500, "due": 1000}
    return PaymentCorrected(actor, **(fields | more), second=second)


def test_wrong_payment_found_later(house: str) -> None:
    t = dealt(house).hit(1, "9D").ends()
    for step in (Step.WAGERING, Step.HELD, Step.CLOSED):
        before = t.at(step).state
        (
            t.do(correction())
            .unchanged(before)
            .noted_last(Corrected(1, 1, 0, "main", 500, 1000, "floor", "floor-2"))
        )
        if step is Step.WAGERING:
            t.do(FloorCalled(DEALER))
        if step is Step.HELD:
            t = Table(house=house, start=State(round=1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"actor": DEALER},
        {"second": None},
        {"second": Actor("surveillance", FLOOR.name)},
        {"second": player(1)},
        {"round": 0},
        {"round": 2},
        {"paid": 1000},
        {"paid": -1},
        {"due": -1},
    ],
    ids=str,
)
def test_a_correction_that_is_refused(house: str, wrong: dict[str, Any]) -> None:
    t = dealt(house).ends()
    assert t.refusal_of(correction(**wrong)) in ("correct_payment_at_wagering", "not_theirs")


# Hole card exposed early, not checked, play out of turn, insurance dispute: floor decides

DISPUTES: dict[str, tuple[Disputed, Odd]] = {
    "hole card exposed early": (HoleExposed(DEALER), Odd.HOLE_EXPOSED),
    "hole card not checked": (HoleUnchecked(DEALER), Odd.HOLE_UNCHECKED),
    "play out of turn": (PlayedOutOfTurn(DEALER, 2), Odd.OUT_OF_TURN),
    "insurance dispute": (InsuranceDisputed(FLOOR, 1), Odd.INSURANCE_DISPUTE),
    "misdeal": (MisdealCalled(DEALER), Odd.MISDEAL),
    "floor called": (FloorCalled(player(1)), Odd.FLOOR_CALLED),
}


@pytest.mark.parametrize("name", DISPUTES)
def test_a_dispute_that_the_floor_decides(house: str, name: str) -> None:
    event, what = DISPUTES[name]
    t = dealt(house)
    before, shown = t.state, t.effects
    t.do(event).held_for(what, Way.RESUME, Way.VOID)
    if what is not Odd.FLOOR_CALLED:
        t.refuses(event, "held_already")
    (
        t.noted_last(Told("floor", what.value, event.seat))
        .refuses(FloorRuled(FLOOR, Way.DECKS_OUT, SECOND), "floor_rules")
        .ruled(what, Way.RESUME)
        .unchanged(before)
    )
    assert t.effects[-len(shown) :] == shown
    t.do(event).ruled(what, Way.VOID).ends({1: 0, 2: 0}).at(Step.WAGERING)


@pytest.mark.parametrize("name", DISPUTES)
def test_a_dispute_that_is_not_stated_in_a_round(house: str, name: str) -> None:
    event, what = DISPUTES[name]
    if what is not Odd.FLOOR_CALLED:
        Table(house=house).refuses(event, "no_round")
    assert Table(house=house, start=State()).refusal_of(event) in ("no_round", "table_is_closed")


def test_a_ruling_needs_something_to_rule(house: str) -> None:
    dealt(house).refuses(FloorRuled(FLOOR, Way.RESUME, SECOND), "nothing_to_rule")


def reopened(t: Table, seat: int) -> Table:
    return (
        t.do(InsuranceDisputed(FLOOR, seat))
        .held_for(Odd.INSURANCE_DISPUTE)
        .ruled(Odd.INSURANCE_DISPUTE, Way.REOPEN_INSURANCE)
    )


@pytest.mark.parametrize("at", [Step.INSURANCE, Step.INSURANCE_CLOSE, Step.CHECK])
def test_insurance_dispute_opens_it_once_more(house: str, at: Step) -> None:
    (
        dealt(house, ACE_UP.replace("9D", "KD"))
        .decline(1)
        .until(at)
        .then(reopened, 1)
        .at(Step.INSURANCE)
        .asks(Tell.ASK_INSURANCE, seat=1)
        .insure(1, 500)
        .ends({1: 0, 2: -1000})
    )


def test_insurance_that_is_asked_again_is_handed_back_first(house: str) -> None:
    t = (
        reopened(dealt(house, ACE_UP).insure(1, 500).decline(2), 1)
        .asks(Tell.GIVE_BACK, seat=1, amount=500)
        .until(Step.INSURANCE)
        .decline(1)
        .ends({1: -1000, 2: -1000})
    )
    sides = [each for each in t.facts_of(Settled) if each.bet == "insurance"]
    assert [(each.outcome, each.returned) for each in sides] == [("void", 500)]


def test_what_insurance_cannot_be_reopened_for(house: str) -> None:
    ten_up = dealt(house, "9C 8C KS 2H KC (9D)").at(Step.CHECK)
    uninsured = Table(house=house, insurance__offered=False).bets(1000).deal("9C AS 2H (9D)")
    playing = dealt(house, ACE_UP).until(Step.TURN)
    dead = (
        Table(house=house)
        .bets(1000, 1000)
        .deal("9C")
        .do(SeatMissed(DEALER, 2))
        .ruled(Odd.SEAT_MISSED, Way.DEAD_HAND)
        .until(Step.DEALING)
        .deal("AS 2H (9D)")
        .decline(1)
    )
    for t, seat in ((ten_up, 1), (uninsured, 1), (playing, 1), (dead, 2)):
        t.do(InsuranceDisputed(FLOOR, seat)).held_for(Odd.INSURANCE_DISPUTE, Way.RESUME, Way.VOID)


def test_a_dispute_after_even_money_was_paid(house: str) -> None:
    t = (
        Table("mega", house)
        .bets(1000, 1000)
        .deal("AC 8C AS KH KC (9D)")
        .do(EvenMoney(player(1), 1))
        .decline(2)
        .do(InsuranceClosed(DEALER))
        .until(Step.CHECK)
        .do(InsuranceDisputed(FLOOR, 1))
        .held_for(Odd.INSURANCE_DISPUTE, Way.RESUME, Way.VOID)
        .ruled(Odd.INSURANCE_DISPUTE, Way.RESUME)
        .then(reopened, 2)
        .insure(2, 500)
        .ends({1: 1000, 2: -1500})
    )
    assert [each.outcome for each in t.facts_of(Settled) if each.seat == 1] == ["even_money"]


# Shuffler, shoe or station lost: dealing blocked where it touches the outcome


def lost(t: Table, device: str) -> Table:
    return t.do(DeviceLost(SHOE, device, "unplugged"))  # type: ignore[arg-type]


def back(t: Table, device: str, agrees: bool = True) -> Table:
    return t.do(DeviceBack(SHOE, device, agrees))  # type: ignore[arg-type]


@pytest.mark.parametrize("phase", IN_ROUND)
def test_shoe_lost_in_a_round(house: str, phase: str) -> None:
    t = IN_ROUND[phase](Table(house=house).bets(1000))
    before = t.state
    lost(t, "shoe").ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK).at(Step.DEVICE)
    assert t.facts_of(Told)[-1].what == "device_lost"
    (
        t.asks(Tell.AWAIT_DEVICE)
        .shoe_locked()
        .then(back, "station")
        .at(Step.DEVICE)
        .then(back, "shoe", agrees=False)
        .at(Step.DEVICE)
        .then(back, "shoe")
        .at(Step.FELT)
        .asks(Tell.CONFIRM_FELT)
        .refuses(FeltConfirmed(FLOOR), "not_theirs")
        .do(FeltConfirmed(DEALER))
        .unchanged(before)
    )
    assert t.effects == t.procedure.shows(before)


def test_a_device_that_does_not_agree_is_taken_back_by_two_people(house: str) -> None:
    (
        lost(dealt(house), "shoe")
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .then(back, "shoe", agrees=False)
        .refuses(CountersAccepted(FLOOR), "accept_counters")
        .refuses(CountersAccepted(FLOOR, Actor("dealer", FLOOR.name)), "accept_counters")
        .refuses(CountersAccepted(DEALER, SECOND), "not_theirs")
        .do(CountersAccepted(FLOOR, Actor("surveillance", "eye")))
        .at(Step.FELT)
        .do(FeltConfirmed(DEALER))
        .noted_last(Ruled("device_lost", "counters_accepted", "floor", "eye"))
        .hit(1, "9D")
        .ends({1: 1000, 2: 0})
    )


def test_a_device_that_has_no_part_in_what_happens_now(house: str) -> None:
    t = dealt(house)
    for device in ("shuffler", "station"):
        (
            lost(t, device)
            .at(Step.TURN)
            .noted_last(Told("floor", "device_lost", 0, f"{device}: unplugged"))
            .then(back, device)
            .at(Step.TURN)
        )
    (
        t.refuses(CountersAccepted(FLOOR, SECOND), "no_device_waited_for")
        .hit(1, "9D")
        .ends({1: 1000, 2: 0})
    )


@pytest.mark.parametrize("device", ["shoe", "shuffler", "station"])
def test_a_device_that_is_behind_although_its_class_was_lost_before(
    house: str, device: Device
) -> None:
    """Its hold ends as that of any lost device."""
    t = Table(house=house, start=replace(wagering(), lost=(device,)))
    before = replace(t.state, lost=())
    (
        t.do(DeviceLost(SHOE, device, "an older copy?", behind=True))
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .at(Step.DEVICE)
        .do(DeviceLost(SHOE, device, "another older copy?", behind=True))
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .at(Step.DEVICE)
        .then(back, device)
        .at(Step.FELT)
        .do(FeltConfirmed(DEALER))
        .at(Step.FELT)
        .do(FeltConfirmed(DEALER))
        .unchanged(before)
    )


def test_a_station_lost_where_players_decide_with_buttons(house: str) -> None:
    (
        lost(dealt(house, decisions__by="buttons"), "station")
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .at(Step.DEVICE)
    )


def test_shuffler_lost_while_it_shuffles(house: str) -> None:
    (
        Table(house=house, start=State(step=Step.SHUFFLE_NEEDED))
        .do(ShuffleStarted(SHOE))
        .then(lost, "shuffler")
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .at(Step.DEVICE)
        .then(back, "shuffler")
        .do(FeltConfirmed(DEALER))
        .at(Step.SHUFFLING)
    )


SHUFFLE_NEEDED = State(step=Step.SHUFFLE_NEEDED)


def gone_at_shuffle(house: str, start: State) -> Table:
    """The shuffler was lost while it had no part, and nobody has taken it back."""
    t = lost(Table(house=house, start=start), "shuffler")
    if start.step is Step.CLOSED:
        t.do(TableOpened(FLOOR, second=SECOND))
    else:
        t.do(ShuffleCalled(DEALER))
    t.at(Step.SHUFFLE_NEEDED).do(ShuffleStarted(DEALER))
    assert t.held.device == "shuffler"
    return t.ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK).at(Step.DEVICE)


@pytest.mark.parametrize("start", [wagering(), State()], ids=lambda start: start.step.value)
def test_a_shuffler_lost_before_the_shuffle(house: str, start: State) -> None:
    """It is waited for when it is wanted; the same one comes back, and the felt agrees."""
    (
        gone_at_shuffle(house, start)
        .noted_last(Told("floor", "device_lost"))
        .refuses(ShuffleDone(DEALER), "no_shuffle_to_end")
        .then(back, "shuffler", agrees=False)
        .at(Step.DEVICE)
        .then(back, "shuffler")
        .at(Step.FELT)
        .do(FeltConfirmed(DEALER))
        .at(Step.SHUFFLE_NEEDED)
        .shuffle()
    )


def test_two_people_shuffle_without_their_shuffler(house: str) -> None:
    (
        gone_at_shuffle(house, wagering())
        .refuses(CountersAccepted(FLOOR), "accept_counters")
        .do(CountersAccepted(FLOOR, SECOND), FeltConfirmed(DEALER))
        .at(Step.SHUFFLE_NEEDED)
        .do(ShuffleStarted(DEALER), ShuffleDone(DEALER))
        .at(Step.LOADING)
    )


def test_a_shuffler_lost_before_the_discards_are_shuffled(house: str) -> None:
    t = lost(dealt(house), "shuffler").at(Step.TURN)
    (
        t.do(Hit(t.by(1), 1, 0), ShoeRanOut(SHOE))
        .ruled(Odd.SHOE_RAN_OUT, Way.RESHUFFLE)
        .at(Step.REFILL)
        .do(ShuffleStarted(DEALER))
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .at(Step.DEVICE)
        .do(CountersAccepted(FLOOR, SECOND), FeltConfirmed(DEALER))
        .at(Step.REFILL)
        .do(ShuffleStarted(DEALER))
        .at(Step.REFILL)
    )


def test_decks_out_of_play_are_brought_before_their_shuffler(house: str) -> None:
    start = replace(SHUFFLE_NEEDED, shoe=Shoe(decks_out=True), lost=("shuffler",))
    (
        Table(house=house, start=start)
        .refuses(ShuffleStarted(DEALER), "start_shuffle")
        .do(DecksChanged(FLOOR, SECOND), ShuffleStarted(DEALER))
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .at(Step.DEVICE)
    )


def test_shoe_lost_before_it_is_loaded(house: str) -> None:
    (
        Table(house=house, start=State(step=Step.SHUFFLE_NEEDED))
        .do(ShuffleStarted(SHOE))
        .then(lost, "shoe")
        .at(Step.SHUFFLING)
        .do(ShuffleDone(SHOE))
        .do(ShoeLoaded(SHOE, 312))
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .at(Step.DEVICE)
        .then(back, "shoe", agrees=False)
        .at(Step.DEVICE)
        .do(CountersAccepted(FLOOR, SECOND))
        .do(FeltConfirmed(DEALER))
        .at(Step.LOADING)
        .do(ShoeLoaded(SHOE, 312))
        .until(Step.WAGERING)
    )


def test_device_lost_while_held(house: str) -> None:
    (
        lost(dealt(house).do(FloorCalled(DEALER)), "shoe")
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .at(Step.DEVICE)
        .then(back, "shoe")
        .do(FeltConfirmed(DEALER))
        .held_for(Odd.FLOOR_CALLED)
        .ruled(Odd.FLOOR_CALLED, Way.RESUME)
        .hit(1, "9D")
        .ends({1: 1000, 2: 0})
    )


def test_the_same_device_lost_twice_is_waited_for_once(house: str) -> None:
    t = lost(dealt(house), "shoe").ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK).then(lost, "shoe")
    if t.step is Step.HELD:
        t.ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
    back(t, "shoe").do(FeltConfirmed(DEALER)).at(Step.TURN)


def test_a_device_that_comes_back_while_the_floor_is_asked(house: str) -> None:
    """Nobody waits for a device that is there."""
    t = lost(dealt(house), "shoe")
    if house == "strict":
        back(t, "shoe").ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
    else:
        back(t, "shoe")
    t.at(Step.FELT).do(FeltConfirmed(DEALER)).at(Step.TURN)


@pytest.mark.parametrize("order", [("shoe", "station"), ("station", "shoe")])
def test_two_devices_come_back_in_any_order(house: str, order: tuple[str, str]) -> None:
    t = dealt(house, decisions__by="buttons")
    for device in ("station", "shoe"):
        lost(t, device)
        if t.step is Step.HELD:
            t.ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
    for device in order:
        back(t, device)
    while t.step is Step.FELT:
        t.do(FeltConfirmed(DEALER))
    t.at(Step.TURN)


def test_a_round_voided_without_its_shoe(house: str) -> None:
    """Wagers go back without a shoe; the next round begins when it is there again."""
    (
        lost(dealt(house), "shoe")
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .do(FloorCalled(DEALER))
        .ruled(Odd.FLOOR_CALLED, Way.VOID)
        .until(Step.DEVICE, Step.HELD)
        .has_ended({1: 0, 2: 0})
        .ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
        .then(back, "shoe")
        .do(FeltConfirmed(DEALER))
        .at(Step.WAGERING)
    )


# Power lost, controller restarted: same step, same round; the dealer confirms the felt

SOMEWHERE: dict[str, Callable[[Table], Table]] = IN_ROUND | {
    "wagering": lambda t: t,
    "held": lambda t: t.deal("9C 8S KC (9D)").do(FloorCalled(DEALER)),
    "double asked": lambda t: t.deal("9C 8S 2C (9D)").do(Double(DEALER, 1, 0)),
    "split asked": lambda t: t.deal("8C 9S 8D (9D)").do(Split(DEALER, 1, 0)),
    "insurance asked": lambda t: t.deal("9C AS 2C (9D)").do(Insure(DEALER, 1, 500)),
}


@pytest.mark.parametrize("phase", SOMEWHERE)
def test_controller_restarted(house: str, phase: str) -> None:
    t = SOMEWHERE[phase](Table(house=house).bets(1000))
    before = t.state
    (
        t.do(ControllerRestarted(SHOE))
        .ruled(Odd.RESTARTED, Way.FELT_CHECK)
        .at(Step.FELT)
        .asks(Tell.CONFIRM_FELT)
        .shoe_locked()
        .refuses(FeltConfirmed(SECOND), "not_theirs")
        .do(ControllerRestarted(SHOE), FeltConfirmed(DEALER), FeltConfirmed(DEALER))
        .unchanged(before)
    )
    assert t.effects == t.procedure.shows(before)
    t.refuses(FeltConfirmed(DEALER), "felt_not_asked")


def test_the_felt_is_not_what_the_screen_shows(house: str) -> None:
    """Nobody has to confirm what is not so: the floor is called, and can void the round."""
    (
        dealt(house)
        .do(ControllerRestarted(SHOE), FloorCalled(DEALER))
        .ruled(Odd.FLOOR_CALLED, Way.VOID)
        .ends({1: 0, 2: 0})
        .at(Step.WAGERING)
    )


def test_shoe_ran_out_before_the_round(house: str) -> None:
    """Cards that are to be burned, or the first of a round, may be lacking as well."""
    t = Table(house=house).do(DealerRelieved(DEALER)).at(Step.RELIEF_BURN).do(ShoeRanOut(SHOE))
    if t.step is Step.HELD:
        t.rule(Way(t.prompt.choices[0]))
    t.at(Step.SHUFFLE_NEEDED).shuffle().one_more_round()


def test_wagers_that_wait_for_a_shuffle_may_be_taken_back(house: str) -> None:
    """No card of the round has left the shoe."""
    (
        Table(house=house)
        .bets(1000, 500)
        .do(ShoeRanOut(SHOE))
        .do(WagerRemoved(player(1), 1, "main"))
        .shuffle()
        .deal("9C 7S KC (TD)")
        .ends({2: 500})
    )
