"""Voids: at every moment of a round, and within other stops, every unresolved wager goes back."""

from collections.abc import Callable

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
    Confirmed,
    ControllerRestarted,
    DeckSuspect,
    Double,
    EvenMoney,
    FloorCalled,
    InsuranceClosed,
    Insure,
    MisdealCalled,
    RoundVoided,
    SeatShorted,
    ShoeRanOut,
    Split,
)
from controller.procedure.model.events import CardUnreadable as Unreadable
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State, Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from tests.support.procedure.random_games import game_with
from tests.support.procedure.scenes import SHUFFLED, dealt
from tests.support.procedure.table import HOUSES, Table, card

pytestmark = pytest.mark.parametrize("house", HOUSES)

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


def test_what_cannot_be_voided(house: str) -> None:
    Table(house=house).bets(1000).refuses(VOID, "no_round_to_void")
    Table(house=house, start=State()).refuses(VOID, "no_round_to_void")
    dealt(house).do(FloorCalled(DEALER)).refuses(VOID, "no_round_to_void")


def test_a_void_round_is_the_round_that_was_dealt(house: str) -> None:
    """Between rounds the floor may resume; it cannot void the round before, which was paid."""
    t = dealt(house).ends().bets(1000).do(FloorCalled(DEALER)).held_for(Odd.FLOOR_CALLED)
    if Way.VOID.value in t.prompt.choices:
        t.rule(Way.VOID).until(Step.WAGERING)
    else:
        t.rule(Way.RESUME)
    assert [void for void in t.facts_of(RoundVoid) if void.round == 1] == []
    assert [over.round for over in t.facts_of(RoundOver)] == [1]


def test_no_burn_is_lost_when_the_floor_is_called_for_it(house: str) -> None:
    t = Table(house=house, start=State(step=Step.SHUFFLE_NEEDED)).do(*SHUFFLED)
    t.do(FloorCalled(DEALER)).rule(Way(t.prompt.choices[-1])).until(Step.WAGERING)
    t.noted_times(Burned, t.game.options.burn.on_shuffle)


def voided(t: Table, ruled: bool) -> Table:
    """The round is void by the floor alone, or by its ruling on a misdeal."""
    return t.do(MisdealCalled(DEALER)).ruled(Odd.MISDEAL, Way.VOID) if ruled else t.do(VOID)


@pytest.mark.parametrize("ruled", [False, True])
def test_a_hidden_card_beside_the_shoe_is_not_forgotten(house: str, ruled: bool) -> None:
    """It is the next card still, or it was burned or discarded, and the record says so."""
    t = voided(dealt(house).slip("9D").ruled(Odd.ERROR_CARD, Way.USE_NEXT), ruled).ends()
    gone = len(t.facts_of(Burned)) + len(t.facts_of(Discarded))
    assert (t.state.spare is None) == (gone == 1)


@pytest.mark.parametrize("ruled", [False, True])
def test_an_exposed_card_is_burned_when_the_round_is_void(house: str, ruled: bool) -> None:
    (
        voided(dealt(house).deal("9D").ruled(Odd.ERROR_CARD_EXPOSED, Way.DEAL_ON), ruled)
        .ends()
        .noted(Burned(card("9D")))
        .one_more_round()
    )


# Nested


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


def test_no_list_of_a_house_lets_one_person_void(house: str) -> None:
    t = at("turn", house)
    game = game_with("mega", {}, house)
    game.jurisdiction = replace(game.jurisdiction, two_people=())
    assert not isinstance(Procedure(game).step(t.state, RoundVoided(FLOOR, "misdeal")), Decision)
    assert isinstance(Procedure(game).step(t.state, VOID), Decision)


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
