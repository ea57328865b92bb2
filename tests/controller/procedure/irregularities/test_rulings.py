"""Whatever stops the table, wherever, one stop within another: each way that is offered leads on.

People answer every prompt as it asks. The round ends, every chip is settled once, no prompt is
without an answer, and the next round can be dealt. A void gives every unresolved wager back.
"""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from msgspec.structs import replace

from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.engine import Procedure
from controller.procedure.model.effects import (
    Burned,
    Discarded,
    RoundOver,
    RoundVoid,
    Settled,
    Tell,
)
from controller.procedure.model.events import (
    Actor,
    CardConfirmed,
    CardEntered,
    CardUnreadable,
    Confirmed,
    ControllerRestarted,
    DealerCardMissed,
    DeckSuspect,
    DeviceBack,
    DeviceLost,
    Double,
    EvenMoney,
    Event,
    FeltConfirmed,
    FloorCalled,
    InsuranceClosed,
    Insure,
    MisdealCalled,
    RoundVoided,
    SeatMissed,
    SeatShorted,
    ShoeLoaded,
    ShoeRanOut,
    ShuffleCalled,
    ShuffleDone,
    ShuffleStarted,
    Split,
    TableClosed,
)
from controller.procedure.model.events import CardUnreadable as Unreadable
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State, Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from tests.support.procedure.random_games import game_with
from tests.support.procedure.scenes import IN_ROUND, SHUFFLED, STOPS, Willing, dealt
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


EVERY_HOUSE = pytest.mark.parametrize("house", HOUSES)

VOID = RoundVoided(FLOOR, "misdeal", SECOND)

PLAIN = "9C 8C 6S 2H KC (TD)"
# The game, the deal, what happens then, and what each seat has won or lost when it is void.
MOMENTS: dict[str, tuple[str, str, Callable[[Table], Table], dict[int, int]]] = {
    "first card": ("mega", "9C", lambda t: t, {1: 0, 2: 0}),
    "deal": ("mega", "9C 8C 6S", lambda t: t, {1: 0, 2: 0}),
    "turn": ("mega", PLAIN, lambda t: t, {1: 0, 2: 0}),
    "insured": ("mega", "9C 8C AS 2H KC (TD)", lambda t: t.insure(1, 500), {1: 0, 2: 0}),
    "insurance asked": (
        "mega",
        "9C 8C AS 2H KC (TD)",
        lambda t: t.do(Insure(player(1), 1, 300)),
        {1: 0, 2: 0},
    ),
    "insurance lost": (
        "mega",
        "9C 8C AS 2H KC (5D)",
        lambda t: t.insure(1, 500).until(Step.TURN),
        {1: -500, 2: 0},
    ),
    "even money paid": (
        "mega",
        "AC 8C AS KH KC (TD)",
        lambda t: (
            t.do(EvenMoney(player(1), 1)).decline(2).do(InsuranceClosed(DEALER)).until(Step.CHECK)
        ),
        {1: 1050, 2: 0},
    ),
    "even money taken and unpaid": (
        "mega",
        "AC 8C AS KH KC (TD)",
        lambda t: t.do(EvenMoney(player(1), 1)),
        {1: 0, 2: 0},
    ),
    "blackjack paid": (
        "mega",
        "AC 8C 6S KH KC (TD)",
        lambda t: t.until(Step.TURN),
        {1: 3150, 2: 0},
    ),
    "blackjack due": ("mega", "AC 8C 6S KH KC (TD)", lambda t: t, {1: 0, 2: 0}),
    "double asked": ("mega", PLAIN, lambda t: t.do(Double(player(1), 1, 0)), {1: 0, 2: 0}),
    "doubled": (
        "mega",
        PLAIN,
        lambda t: t.do(Double(player(1), 1, 0), Confirmed(DEALER)),
        {1: 0, 2: 0},
    ),
    "split asked": (
        "mega",
        "8C 9C 6S 8H KC (TD)",
        lambda t: t.do(Split(player(1), 1, 0)),
        {1: 0, 2: 0},
    ),
    "split": ("mega", "8C 9C 6S 8H KC (TD)", lambda t: t.split(1, "3C"), {1: 0, 2: 0}),
    "split and doubled": (
        "mega",
        "8C 9C 6S 8H KC (TD)",
        lambda t: t.split(1, "3C").double(1, "9D").deal("2D"),
        {1: 0, 2: 0},
    ),
    "busted": (
        "mega",
        PLAIN,
        lambda t: t.hit(1, "4D").hit(1, "TD").until(Step.TURN),
        {1: -1050, 2: 0},
    ),
    "bust due": ("mega", PLAIN, lambda t: t.hit(1, "4D").hit(1, "TD"), {1: 0, 2: 0}),
    "dealer draws": ("mega", PLAIN, lambda t: t.until(Step.DEALER_CARD), {1: 0, 2: 0}),
    "settled in part": (
        "mega",
        "9C 8C 8S 2H KC (TD)",
        lambda t: t.stand(1).until(Step.PAYING).pay().pay(),
        {1: -1000, 2: 0},
    ),
    "all settled": (
        "mega",
        "9C 8C 8S 2H KC (TD)",
        lambda t: t.until(Step.CLEARING),
        {1: -1170, 2: 0},
    ),
    "surrendered": ("sf21x", PLAIN, lambda t: t.surrender(1).until(Step.TURN), {1: -500, 2: 0}),
    "instant winner paid": (
        "maxtime",
        "2C 8C 6S 3C QC (TH)",
        lambda t: t.hit(1, "4C").hit(1, "5C").hit(1, "7D").until(Step.TURN),
        {1: 2000, 2: 0},
    ),
    "redoubled": (
        "sf21x",
        PLAIN,
        lambda t: t.double(1, "2C").double(1, "3C").double(1),
        {1: 0, 2: 0},
    ),
}


def at(moment: str, house: str) -> Table:
    game, names, story, _ = MOMENTS[moment]
    side = {"buster": 100, "toke_main": 50, "toke_buster": 20} if game == "mega" else {}
    return story(Table(game, house).bet(1, 1000, **side).bet(2, 1000).deal(names))


@EVERY_HOUSE
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_void_gives_every_unresolved_wager_back(house: str, moment: str) -> None:
    t = at(moment, house).refuses(RoundVoided(DEALER, "misdeal", SECOND), "not_theirs")
    for void in (
        RoundVoided(FLOOR, "", SECOND),
        RoundVoided(FLOOR, "misdeal"),
        RoundVoided(FLOOR, "misdeal", Actor("dealer", FLOOR.name)),
        RoundVoided(FLOOR, "misdeal", player(1)),
    ):
        t.refuses(void, "void_round")
    before = len(t.facts_of(Settled))
    t.do(VOID).noted(RoundVoid(1, "misdeal", "floor", "floor-2"))
    if t.step is Step.PAYING:
        t.asks(Tell.GIVE_BACK, why="void")
    t.ends(MOMENTS[moment][3])
    for each in t.facts_of(Settled)[before:]:
        assert (each.outcome, each.odds, each.returned) == ("void", None, each.stake)
    assert t.facts_of(RoundOver)[-1].round == 1
    t.at(Step.WAGERING).one_more_round()


@EVERY_HOUSE
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_floor_called_to_the_table_voids_as_well(house: str, moment: str) -> None:
    (
        at(moment, house)
        .do(FloorCalled(DEALER))
        .ruled(Odd.FLOOR_CALLED, Way.VOID)
        .noted(RoundVoid(1, "floor_called", "floor", "floor-2"))
        .ends(MOMENTS[moment][3])
        .one_more_round()
    )


@EVERY_HOUSE
def test_what_cannot_be_voided(house: str) -> None:
    Table(house=house).bets(1000).refuses(VOID, "no_round_to_void")
    Table(house=house, start=State()).refuses(VOID, "no_round_to_void")
    dealt(house).do(FloorCalled(DEALER)).refuses(VOID, "no_round_to_void")


@EVERY_HOUSE
def test_a_void_round_is_the_round_that_was_dealt(house: str) -> None:
    """Between rounds the floor may resume; it cannot void the round before, which was paid."""
    t = dealt(house).ends().bets(1000).do(FloorCalled(DEALER)).held_for(Odd.FLOOR_CALLED)
    if Way.VOID.value in t.prompt.choices:
        t.rule(Way.VOID).until(Step.WAGERING)
    else:
        t.rule(Way.RESUME)
    assert [void for void in t.facts_of(RoundVoid) if void.round == 1] == []
    assert [over.round for over in t.facts_of(RoundOver)] == [1]


@EVERY_HOUSE
def test_no_burn_is_lost_when_the_floor_is_called_for_it(house: str) -> None:
    t = Table(house=house, start=State(step=Step.SHUFFLE_NEEDED)).do(*SHUFFLED)
    t.do(FloorCalled(DEALER)).rule(Way(t.prompt.choices[-1])).until(Step.WAGERING)
    t.noted_times(Burned, t.game.options.burn.on_shuffle)


def voided(t: Table, ruled: bool) -> Table:
    """The round is void by the floor alone, or by its ruling on a misdeal."""
    return t.do(MisdealCalled(DEALER)).ruled(Odd.MISDEAL, Way.VOID) if ruled else t.do(VOID)


@EVERY_HOUSE
@pytest.mark.parametrize("ruled", [False, True])
def test_a_hidden_card_beside_the_shoe_is_not_forgotten(house: str, ruled: bool) -> None:
    """It is the next card still, or it was burned or discarded, and the record says so."""
    t = voided(dealt(house).slip("9D").ruled(Odd.ERROR_CARD, Way.USE_NEXT), ruled).ends()
    gone = len(t.facts_of(Burned)) + len(t.facts_of(Discarded))
    assert (t.state.spare is None) == (gone == 1)


@EVERY_HOUSE
@pytest.mark.parametrize("ruled", [False, True])
def test_an_exposed_card_is_burned_when_the_round_is_void(house: str, ruled: bool) -> None:
    (
        voided(dealt(house).deal("9D").ruled(Odd.ERROR_CARD_EXPOSED, Way.DEAL_ON), ruled)
        .ends()
        .noted(Burned(card("9D")))
        .one_more_round()
    )


# Nested


@EVERY_HOUSE
def test_a_void_within_another_stop_ends_both(house: str) -> None:
    """When the wagers are on their way back, nobody asks for a card or a ruling any more."""
    unreadable = dealt(house).hit(1).do(Unreadable(SHOE, "low"))
    ran_out = dealt(house).hit(1).do(ShoeRanOut(SHOE)).ruled(Odd.SHOE_RAN_OUT, Way.RESHUFFLE)
    restarted = dealt(house).do(ControllerRestarted(SHOE))
    shorted = dealt(house, "9C 8C 8S 2H").do(SeatShorted(DEALER, 1))
    for t in (unreadable, ran_out, restarted, shorted):
        (
            t.do(FloorCalled(DEALER))
            .ruled(Odd.FLOOR_CALLED, Way.VOID)
            .at(Step.PAYING)
            .ends({1: 0, 2: 0})
        )


@EVERY_HOUSE
def test_no_list_of_a_house_lets_one_person_void(house: str) -> None:
    t = at("turn", house)
    game = game_with("mega", {}, house)
    game.jurisdiction = replace(game.jurisdiction, two_people=())
    assert not isinstance(Procedure(game).step(t.state, RoundVoided(FLOOR, "misdeal")), Decision)
    assert isinstance(Procedure(game).step(t.state, VOID), Decision)


@EVERY_HOUSE
def test_a_shoe_that_was_not_empty_is_a_round_that_the_floor_voids(house: str) -> None:
    """Said in error: the decks are in doubt, for cards are left; the floor plays on, and stands
    before discards that nobody can load."""
    t = (
        dealt(house)
        .hit(1)
        .do(ShoeRanOut(SHOE))
        .ruled(Odd.SHOE_RAN_OUT, Way.RESHUFFLE)
        .do(DeckSuspect(SHOE, "short"))
        .ruled(Odd.DECK_SUSPECT, Way.RESUME)
        .at(Step.REFILL)
        .refuses(RoundVoided(DEALER, "misdeal", SECOND), "not_theirs")
    )
    for void in (RoundVoided(FLOOR, "", SECOND), RoundVoided(FLOOR, "misdeal")):
        t.refuses(void, "void_round_at_refill")
    (
        t.do(VOID)
        .at(Step.PAYING)
        .asks(Tell.GIVE_BACK, why="void")
        .noted(RoundVoid(1, "misdeal", "floor", "floor-2"))
    )
    assert not t.state.holds
    t.ends({1: 0, 2: 0}).at(Step.SHUFFLE_NEEDED)
