"""Whatever stops the table, wherever, one stop within another: each way that is offered leads on.

People answer every prompt as it asks. The round ends, every chip is settled once, no prompt is
without an answer, and the next round can be dealt.
"""

from collections.abc import Callable, Iterator
from itertools import product

import pytest

from controller.games import DEALER, FLOOR, SECOND, SHOE
from controller.procedure.model.effects import RoundVoid
from controller.procedure.model.events import (
    Actor,
    CardConfirmed,
    CardEntered,
    CardUnreadable,
    ControllerRestarted,
    DealerCardMissed,
    DeckSuspect,
    DeviceBack,
    DeviceLost,
    Event,
    FeltConfirmed,
    FloorCalled,
    MisdealCalled,
    SeatMissed,
    SeatShorted,
    ShoeLoaded,
    ShoeRanOut,
    ShuffleCalled,
    ShuffleDone,
    ShuffleStarted,
    TableClosed,
)
from controller.procedure.model.row import Decision
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from tests.support.procedure.scenes import IN_ROUND, STOPS, Willing
from tests.support.procedure.table import HOUSES, Table, card

PHASES: dict[str, Callable[[Table], Table]] = IN_ROUND | {
    "wagering": lambda t: t,
    "hole card": lambda t: t.deal("9C 8S KC"),
    "shuffle needed": lambda t: t.do(ShoeRanOut(SHOE)),
    "shuffling": lambda t: t.do(ShoeRanOut(SHOE), ShuffleStarted(SHOE)),
    "loading": lambda t: t.do(ShoeRanOut(SHOE), ShuffleStarted(SHOE), ShuffleDone(SHOE)),
    "burning": lambda t: t.do(ShoeRanOut(SHOE), *shuffled(t)),
    "dead hand": lambda t: dead_hand(t.bet(2, 1000).deal("9C 8C 8S")),
    "entered in the deal": lambda t: entered(t.bet(2, 1000).deal("9C 8C 8S")),
    "entered": lambda t: entered(t.deal("9C 8S 2C (9D)").hit(1)),
    "hidden": lambda t: t.deal("9C 8S 2C (9D)").slip("4D").ruled(Odd.ERROR_CARD, Way.USE_NEXT),
    "exposed": lambda t: (
        t.deal("9C 8S 2C (9D)").deal("4D").ruled(Odd.ERROR_CARD_EXPOSED, Way.DEAL_ON)
    ),
}
"""Among them a shuffle over wagers that stay on the felt."""


def dead_hand(t: Table) -> Table:
    return t.do(SeatMissed(DEALER, 2)).ruled(Odd.SEAT_MISSED, Way.DEAD_HAND)


def entered(t: Table) -> Table:
    return t.do(CardUnreadable(SHOE, "low"), CardEntered(DEALER, card("4D")), CardConfirmed(FLOOR))


def shuffled(t: Table) -> tuple[Event, ...]:
    return ShuffleStarted(SHOE), ShuffleDone(SHOE), ShoeLoaded(SHOE, t.game.decks * 52)


def table_stopped(house: str, phase: str, stops: tuple[str, ...]) -> Table | None:
    """A table at that phase on which these stops fell; None if it refuses one of them."""
    t = PHASES[phase](Willing(house=house, decks=1 if "duplicate" in stops else 6).bets(1000))
    for stop in stops:
        if not isinstance(t.bring(STOPS[stop](t)), Decision):
            return None
    return t


def ways(house: str, phase: str, stops: tuple[str, ...]) -> Iterator[Table]:
    """One table for each way that the last prompt offers."""
    t = table_stopped(house, phase, stops)
    if t is None:
        return
    if t.step is not Step.HELD:
        yield t
        return
    assert t.prompt.choices, f"{stops} at {phase}: nothing can be ruled"
    for way in t.prompt.choices:
        again = table_stopped(house, phase, stops)
        assert again is not None
        yield again.rule(Way(way))


def plays_on(t: Table) -> None:
    """The round ends, its chips are counted up, and there is another one."""
    t.until(Step.WAGERING)
    if not t.state.seats:
        t.has_ended().bets(1000)
    t.until(Step.DEALING).until(Step.WAGERING).has_ended()


def every_way_leads_on(house: str, phase: str, stops: tuple[str, ...]) -> None:
    try:
        for t in ways(house, phase, stops):
            plays_on(t)
    except Exception as failed:
        failed.add_note(f"{' within '.join(reversed(stops))} at {phase}, {house}")
        raise


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("house", HOUSES)
def test_a_stop(house: str, stop: str) -> None:
    for phase in PHASES:
        every_way_leads_on(house, phase, (stop,))


@pytest.mark.parametrize("first", STOPS)
def test_a_stop_within_a_stop(first: str) -> None:
    for second in STOPS:
        for phase in PHASES:
            every_way_leads_on("strict", phase, (first, second))


MISHAPS = (
    DealerCardMissed(DEALER, 1),
    DealerCardMissed(DEALER, 2),
    *(SeatMissed(DEALER, seat) for seat in (1, 2, 3)),
    *(SeatShorted(DEALER, seat) for seat in (1, 2, 3)),
)


@pytest.mark.parametrize("dealt", range(1, 8))
def test_two_mishaps_of_one_deal(dealt: int) -> None:
    """However many cards are out: the places fit, or the second mishap is refused."""
    names = ["9C", "8C", "7C", "8S", "2H", "KC", "4D"]
    for first, second in product(MISHAPS, MISHAPS):
        t = Willing().bets(1000, 1000, 1000).deal(" ".join(names[:dealt]))
        for mishap in (first, second):
            t.bring(mishap)
            if t.step is Step.PAYING:
                t.until(Step.DEALING, Step.INSURANCE, Step.CHECK, Step.TURN)
        t.until(Step.TURN)
        live = [hand for hand in t.state.hands if not hand.out]
        assert {len(hand.cards) for hand in live} == {2}, (first, second)
        t.until(Step.WAGERING).has_ended()


SHUFFLER = Actor("device", "shuffler")


def test_a_wrong_device_is_not_taken_for_the_lost_one() -> None:
    (
        Table()
        .do(DeviceLost(SHUFFLER, "shuffler", "no answer"))
        .do(DeviceBack(SHUFFLER, "shuffler", False))
        .remembers(lost=("shuffler",))
    )


def test_the_shuffler_that_is_lost_during_another_stop_is_waited_for() -> None:
    (
        Table()
        .do(ShuffleCalled(DEALER), ShuffleStarted(SHOE), ControllerRestarted(SHOE))
        .do(DeviceLost(SHUFFLER, "shuffler", "no answer"))
        .at(Step.DEVICE)
        .do(DeviceBack(SHUFFLER, "shuffler", True), FeltConfirmed(DEALER))
        .at(Step.FELT)
    )


def test_a_void_says_so_where_a_hand_was_dealt_and_only_there() -> None:
    t = (
        Table()
        .bets(1000)
        .deal("9C TD 9H (8D)")
        .do(MisdealCalled(DEALER))
        .rule(Way.VOID)
        .ends()
        .do(ShuffleCalled(DEALER), ShuffleStarted(SHOE), ShuffleDone(SHOE, 1))
        .rule(Way.DECKS_OUT)
    )
    assert [void.round for void in t.facts_of(RoundVoid)] == [1]


def test_a_table_that_is_to_close_closes_when_its_decks_go_out() -> None:
    (
        Table()
        .bets(1000)
        .do(FloorCalled(DEALER), TableClosed(FLOOR, 0, SECOND))
        .rule(Way.RESUME)
        .do(DeckSuspect(DEALER, "foreign_back"))
        .rule(Way.DECKS_OUT)
        .until(Step.CLOSED)
    )
