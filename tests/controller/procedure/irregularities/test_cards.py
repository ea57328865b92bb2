"""Cards that go wrong or are misread, row by row of what a house says, and the round after.

Every story is told in the default house, where most ways on are fixed, and in the strict one,
where the floor rules nearly all of them.
"""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from controller.games import DEALER, FLOOR, SHOE, player
from controller.procedure.model.effects import Burned, Discarded, Settled, Tell, Told
from controller.procedure.model.events import (
    CardConfirmed,
    CardDrawn,
    CardEntered,
    CardMisread,
    Confirmed,
    Double,
    ErrorCardExposed,
    FaceUpCardFound,
    FloorCalled,
    Hit,
    ShoeLoaded,
    ShoeRanOut,
    SpareRefused,
)
from controller.procedure.model.felt import expected
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from tests.support.procedure.scenes import DEAL, dealt, discards
from tests.support.procedure.table import HOUSES, Table, card, cards

pytestmark = pytest.mark.parametrize("house", HOUSES)


def refilled(t: Table) -> Table:
    t.do(ShoeRanOut(SHOE)).ruled(Odd.SHOE_RAN_OUT, Way.RESHUFFLE)
    return t.do(ShoeLoaded(SHOE, discards(t)))


# Face-up card in the shoe: not used; to the discard rack


def test_face_up_card_in_the_shoe(house: str) -> None:
    (
        dealt(house, decks=1)
        .hit(1)
        .do(FaceUpCardFound(SHOE, card("3D")))
        .ruled(Odd.FACE_UP_CARD, Way.DISCARD)
        .at(Step.HAND_CARD)
        .noted(Discarded(card("3D")))
        .asks(Tell.DEAL, seat=1, hand=0, count=3)
        .do(CardDrawn(SHOE, card("3D")))
        .held_for(Odd.DECK_SUSPECT)  # it is in the rack
    )
    dealt(house).hit(1).do(FaceUpCardFound(SHOE, card("3D"))).deal("9D").ends({1: 1000, 2: 0})


def test_face_up_card_before_the_first_card_and_for_the_dealer(house: str) -> None:
    (
        Table(house=house)
        .bets(1000)
        .do(FaceUpCardFound(SHOE, card("3D")))
        .at(Step.WAGERING)
        .deal("9C 8S KC (5D)")
        .until(Step.DEALER_CARD)
        .do(FaceUpCardFound(SHOE, card("8D")))
        .at(Step.DEALER_CARD)
        .ends({1: 1000}, "TD")
        .noted(Discarded(card("3D")), Discarded(card("8D")))
    )


# Card drawn in error, not exposed: it is the next card and must be used


def test_card_drawn_in_error_not_exposed_is_the_next_card(house: str) -> None:
    (
        dealt(house)
        .slip("9D")
        .ruled(Odd.ERROR_CARD, Way.USE_NEXT)
        .at(Step.TURN)
        .noted_last(Told("floor", "error_card"))
        .offers_not("refuse_card")
        .hit(1)
        .asks(Tell.LAY_SPARE, seat=1, place="hand", count=3)
        .shoe_locked()
        .deal("*9D")
        .remembers(spare=None)
        .ends({1: 1000, 2: 0})
    )


def test_card_drawn_in_error_is_used_by_the_dealer(house: str) -> None:
    (
        dealt(house, "9C 8C 8S KH KC (5D)")
        .slip("8D")
        .ruled(Odd.ERROR_CARD, Way.USE_NEXT)
        .until(Step.DEALER_CARD)
        .asks(Tell.LAY_SPARE, place="dealer", count=3)
        .ends({1: -1000, 2: -1000})  # 8, 5 and 8 are 21
    )


def test_card_drawn_in_error_opens_the_next_round(house: str) -> None:
    (
        dealt(house)
        .stand(1)
        .slip("9D")
        .ruled(Odd.ERROR_CARD, Way.USE_NEXT)
        .ends()
        .bets(1000)
        .shoe_locked()  # the first card of the round lies there already
        .deal("*9D 7S KC (TD)")
        .ends({1: 1000})
    )


def test_a_new_card_though_one_beside_the_shoe_waits(house: str) -> None:
    (
        dealt(house)
        .slip("9D")
        .ruled(Odd.ERROR_CARD, Way.USE_NEXT)
        .hit(1)
        .deal("4D")
        .held_for(Odd.ERROR_CARD_EXPOSED, Way.BURN, Way.VOID)
        .rule(Way.BURN)
        .noted(Burned(card("4D")))
        .at(Step.HAND_CARD)
        .deal("*9D")
        .ends({1: 1000, 2: 0})
    )


def test_a_second_card_drawn_in_error(house: str) -> None:
    (
        dealt(house)
        .slip("9D")
        .ruled(Odd.ERROR_CARD, Way.USE_NEXT)
        .slip("4D")
        .held_for(Odd.ERROR_CARD, Way.BURN, Way.VOID)
        .rule(Way.BURN)
        .noted(Burned())
        .hit(1)
        .deal("*9D")
        .ends({1: 1000, 2: 0})
    )


def test_the_floor_burns_a_card_drawn_in_error(house: str) -> None:
    if house == "strict":
        (
            dealt(house)
            .slip("5D")
            .ruled(Odd.ERROR_CARD, Way.BURN)
            .at(Step.TURN)
            .noted(Burned())
            .remembers(spare=None)
            .hit(1, "9D")
            .ends({1: 1000, 2: 0})
        )


# Card drawn in error and exposed after the first deal


def exposed(house: str, names: str = DEAL, name: str = "9D") -> Table:
    return dealt(house, names).deal(name).ruled(Odd.ERROR_CARD_EXPOSED, Way.DEAL_ON).at(Step.TURN)


def test_card_exposed_in_error_is_dealt_on(house: str) -> None:
    (
        exposed(house)
        .offers_last("refuse_card")
        .hit(1)
        .asks(Tell.LAY_SPARE, seat=1, warn="exposed")
        .shoe_locked()
        .deal("*9D")
        .ends({1: 1000, 2: 0})
    )


def test_card_exposed_in_error_is_refused_by_all_and_burned(house: str) -> None:
    (
        exposed(house)
        .refuses(SpareRefused(DEALER, 2, 0), "refuse_spare")
        .do(SpareRefused(DEALER, 1, 0))
        .at(Step.TURN)
        .asks(Tell.DECIDE, seat=2)
        .offers_last("refuse_card")
        .do(SpareRefused(DEALER, 2, 0))
        .at(Step.REVEAL)
        .ends({1: -1000, 2: 0})
        .noted(Burned(card("9D")))
        .remembers(spare=None)
        .one_more_round()
    )


def test_card_exposed_in_error_is_refused_by_one_and_taken_by_the_next(house: str) -> None:
    (
        exposed(house, name="3D")
        .do(SpareRefused(DEALER, 1, 0))
        .hit(2)
        .deal("*3D")
        .ends({1: -1000, 2: 1000})
        .noted_no(Burned)
    )


def test_card_exposed_in_error_is_used_by_the_dealer(house: str) -> None:
    (
        exposed(house, "9C 8C 8S KH KC (5D)", "8D")
        .stand(1)
        .stand(2)
        .until(Step.DEALER_CARD)
        .asks(Tell.LAY_SPARE, place="dealer", warn="exposed")
        .ends({1: -1000, 2: -1000})
    )


def test_a_hidden_card_beside_the_shoe_is_seen_after_all(house: str) -> None:
    (
        dealt(house)
        .slip("9D")
        .ruled(Odd.ERROR_CARD, Way.USE_NEXT)
        .do(ErrorCardExposed(SHOE, card("9D")))
        .ruled(Odd.ERROR_CARD_EXPOSED, Way.DEAL_ON)
        .offers_last("refuse_card")
        .refuses(ErrorCardExposed(SHOE, card("9D")), "error_card_exposed")
        .hit(1)
        .deal("*9D")
        .ends({1: 1000, 2: 0})
    )


def test_card_exposed_before_any_wager(house: str) -> None:
    (
        Table(house=house)
        .deal("9D")
        .held_for(Odd.ERROR_CARD_EXPOSED)
        .rule(Way.BURN)
        .at(Step.WAGERING)
        .noted(Burned(card("9D")))
        .one_more_round()
    )


def test_a_card_before_the_double_is_confirmed(house: str) -> None:
    (
        dealt(house)
        .do(Double(DEALER, 1, 0))
        .deal("9D")
        .ruled(Odd.ERROR_CARD_EXPOSED, Way.DEAL_ON)
        .at(Step.DOUBLE_CONFIRM)
        .stakes(1000, 1000)
        .do(Confirmed(DEALER))
        .deal("*9D")
        .ends({1: 2000, 2: 0})
    )


# Dealer draws on a standing total: burned


@pytest.mark.parametrize("step", [Step.PAYING, Step.CLEARING])
@pytest.mark.parametrize("hidden", [False, True])
def test_dealer_draws_on_a_standing_total(house: str, step: Step, hidden: bool) -> None:
    t = dealt(house).hit(1, "9D").until(step)
    dealer, due = t.state.dealer, t.state.due
    drawn = t.slip("3D") if hidden else t.deal("3D")
    drawn.ruled(Odd.DEALER_OVERDREW, Way.BURN).at(step)
    t.noted(Burned() if hidden else Burned(card("3D")))
    assert (t.state.dealer, t.state.due) == (dealer, due)
    t.ends({1: 1000, 2: 0}).one_more_round()


# Shoe ran out in a round: shuffle and cut the discards, finish the round


def test_shoe_ran_out_in_a_round(house: str) -> None:
    t = (
        dealt(house, decks=1)
        .hit(1)
        .do(ShoeRanOut(SHOE))
        .ruled(Odd.SHOE_RAN_OUT, Way.RESHUFFLE)
        .asks(Tell.REFILL)
        .shoe_locked()
    )
    assert discards(t) == 46  # five cards lie face up, one face down
    for count in (0, 45, 47, 52):
        t.refuses(ShoeLoaded(SHOE, count), "refill")
    (
        t.do(ShoeLoaded(SHOE, 46))
        .at(Step.HAND_CARD)
        .asks(Tell.DEAL, seat=1)
        .deal("9D")
        .ends({1: 1000, 2: 0})
        .at(Step.SHUFFLE_NEEDED)
    )


def test_after_a_refill_discards_come_again_and_cards_on_the_felt_do_not(house: str) -> None:
    def again() -> Table:
        t = (
            Table(house=house, decks=1)
            .bets(1000, 1000)
            .deal("9C 8C 8S 2H KC (TD)")
            .hit(1, "8D")
            .hit(1, "KD")
            .pay()  # 29: those cards go to the discards
        )
        return refilled(t.hit(2))

    again().deal("2H").holds("8C KC 2H", 1).ends({1: -1000, 2: 1000})
    again().deal("KC").held_for(Odd.DECK_SUSPECT)


def test_a_card_beside_the_shoe_is_no_discard(house: str) -> None:
    t = dealt(house, decks=1).deal("4D").ruled(Odd.ERROR_CARD_EXPOSED, Way.DEAL_ON)
    refilled(t.hit(1)).deal("*4D").hit(1).deal("4D").held_for(Odd.DECK_SUSPECT)


def test_tucked_cards_are_no_discards(house: str) -> None:
    t = Table("mega", house).bet(1, 1000, buster=100).bet(2, 1000)
    t = refilled(t.deal("TC 9C 8S 6C 2D (7H)").hit(1, "KD").pay().hit(2))
    seen = [(t.state.seen >> 4 * each) & 15 for each in cards("TC 6C KD 9C 2D 8S 5H")]
    assert seen == [1, 1, 1, 1, 1, 1, 0]
    t.shuffler_works_on(0)


@pytest.mark.parametrize(
    ("names", "rest"), [("9C 8C 8S", "2H KC (TD)"), ("9C 8C 8S 2H KC", "(TD)")]
)
def test_shoe_ran_out_in_the_deal(house: str, names: str, rest: str) -> None:
    refilled(dealt(house, names)).deal(rest).hit(1, "9D").ends({1: 1000, 2: 0})


def test_shoe_ran_out_for_the_dealer(house: str) -> None:
    refilled(dealt(house, "9C 8C 8S KH KC (5D)").until(Step.DEALER_CARD)).ends(
        {1: 1000, 2: 1000}, "KD"
    )


# What came, the card that it was taken for, what it is, and how the round goes on.
MOMENTS: dict[str, tuple[Callable[[Table], Table], str, Step, str]] = {
    "first card": (lambda t: t.deal("9C"), "9C", Step.DEALING, "8C 8S 2H KC (TD)"),
    "in the deal": (lambda t: t.deal("9C 8C"), "8C", Step.DEALING, "8S 2H KC (TD)"),
    "up card": (lambda t: t.deal("9C 8C 8S"), "8S", Step.DEALING, "2H KC (TD)"),
    "last face up": (lambda t: t.deal("9C 8C 8S 2H KC"), "KC", Step.DEALING, "(TD)"),
    "hand": (lambda t: t.deal(DEAL).hit(1, "9D"), "9D", Step.HAND_CARD, ""),
    "dealer": (
        lambda t: t.deal("9C 8C 8S KH KC (5D)").until(Step.DEALER_CARD).deal("2D"),
        "2D",
        Step.DEALER_CARD,
        "",
    ),
}


def read_again(t: Table, name: str, back: Step) -> Table:
    """The dealer enters what lies there, the floor confirms it, and there it is laid."""
    t.do(CardMisread(DEALER)).ruled(Odd.CARD_UNREADABLE, Way.ENTER_CARD).at(Step.CARD_ENTRY)
    place = expected(replace(t.state, step=back))
    assert place is not None
    t.noted_last(Told("floor", "card_unreadable", place.seat, "misread"))
    assert t.held.back is back
    return t.enter(name)


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_same_card_read_again_changes_nothing(house: str, moment: str) -> None:
    """And another one in its place is dealt as if it had been read at once."""
    story, name, back, rest = MOMENTS[moment]
    t = story(Table(house=house).bets(1000, 1000))
    before, words = t.state, t.prompt
    read_again(t, name, back)
    assert (t.state, t.prompt) == (before, words)
    t.deal(rest).until(Step.CLEARING, cards="TC" if moment == "dealer" else "")
    for other in ("3D", "AD", "QD"):
        wrong = story(Table(house=house).bets(1000, 1000))
        right_way = Table(house=house).bets(1000, 1000).then(retold, moment, other)
        assert read_again(wrong, other, back).state == right_way.state


def retold(t: Table, moment: str, other: str) -> Table:
    """The same story with the other card from the beginning."""
    before = {"first card": 0, "in the deal": 1, "up card": 2, "last face up": 4}
    if moment in before:
        return t.deal(" ".join(DEAL.split()[: before[moment]])).deal(other)
    if moment == "hand":
        return t.deal(DEAL).hit(1, other)
    return t.deal("9C 8C 8S KH KC (5D)").until(Step.DEALER_CARD).deal(other)


def test_a_bust_that_is_none(house: str) -> None:
    """Nothing has been taken yet."""
    (
        dealt(house, "9C 8C 8S 7H KC (TD)")
        .hit(1, "TC")
        .at(Step.PAYING)
        .asks(Tell.COLLECT, seat=1)
        .then(read_again, "4C", Step.HAND_CARD)
        .at(Step.TURN)
        .holds("9C 7H 4C")
        .ends({1: 1000, 2: 0})
        .noted_times(Settled, 2)
        .one_more_round()
    )


def test_a_hand_that_did_not_stand_by_itself(house: str) -> None:
    """The next hand is asked, and not before this one has stood."""
    (
        dealt(house)
        .hit(1, "TD")
        .asks(Tell.DECIDE, seat=2)
        .then(read_again, "9D", Step.HAND_CARD)
        .asks(Tell.DECIDE, seat=1, total=20)
        .hit(1, "AC")
        .ends({1: 1000, 2: 0})
    )
    (
        dealt(house)
        .stand(1)
        .hit(2, "3D")
        .at(Step.REVEAL)
        .then(read_again, "2D", Step.HAND_CARD)
        .asks(Tell.DECIDE, seat=2, total=20)
        .ends({1: -1000, 2: 1000})
    )


def test_a_double_s_card(house: str) -> None:
    (
        dealt(house)
        .do(Double(DEALER, 1, 0), Confirmed(DEALER))
        .deal("8D")
        .then(read_again, "9D", Step.HAND_CARD)
        .asks(Tell.DECIDE, seat=2)
        .holds("9C 2H 9D")
        .ends({1: 2000, 2: 0})
    )


def test_a_split_hand_that_did_not_stand_by_itself(house: str) -> None:
    """The second hand waits for its card."""
    (
        dealt(house, "8C 9C 7S 8H KC (TD)")
        .split(1, "3C")
        .hit(1, "TC")
        .at(Step.HAND_CARD)
        .asks(Tell.DEAL, seat=1, hand=1)
        .then(read_again, "9C", Step.HAND_CARD)
        .asks(Tell.DECIDE, seat=1, hand=0, total=20)
        .stand(1)
        .deal("TC")
        .stand(1, 1)
        .stand(2)
        .ends({1: 2000, 2: 1000})
    )


def test_an_instant_winner_that_is_none(house: str) -> None:
    (
        Table("maxtime", house)
        .bets(1000)
        .deal("2C 6S 3C (TH)")
        .hit(1, "4C")
        .hit(1, "5C")
        .hit(1, "7D")
        .at(Step.PAYING)
        .then(read_again, "8D", Step.HAND_CARD)
        .asks(Tell.COLLECT, seat=1, why="bust")
        .ends({1: -1000})
    )


def test_a_dealer_s_hand_that_is_not_complete(house: str) -> None:
    """The settlement is worked out anew; a payment that was made is the floor's to correct."""
    (
        dealt(house, "9C 8C 8S KH KC (5D)")
        .until(Step.DEALER_CARD)
        .deal("8D")
        .at(Step.PAYING)
        .then(read_again, "2D", Step.DEALER_CARD)
        .at(Step.DEALER_CARD)
        .ends({1: 1000, 2: 1000}, "TC")
    )
    (
        dealt(house, "9C 8C 8S KH KC (5D)")
        .until(Step.DEALER_CARD)
        .deal("8D")
        .pay()
        .refuses(CardMisread(DEALER), "card_misread")
    )


def test_a_busted_hand_does_not_hide_the_dealer_s_card(house: str) -> None:
    (
        dealt(house, "9C 8C 8S 7H KC (5D)")
        .hit(1, "TC")
        .until(Step.DEALER_CARD)
        .deal("8D")
        .then(read_again, "2D", Step.DEALER_CARD)
        .ends({1: -1000, 2: 1000}, "TC")
    )
    # A Buster bet of a busted hand may have been settled: nobody can tell, and the floor decides.
    (
        Table("mega", house)
        .bets(1000, 1000)
        .deal("9C 8C 6S 7H KC (5D)")
        .hit(1, "TC")
        .until(Step.TURN)
        .stand(2)
        .until(Step.DEALER_CARD)
        .deal("TD")
        .at(Step.PAYING)
        .refuses(CardMisread(DEALER), "card_misread")
    )


def test_what_is_the_floor_s_to_decide(house: str) -> None:
    """Somebody has decided on what was shown, or it is the hole card."""
    Table(house=house).bets(1000).refuses(CardMisread(DEALER), "no_card_misread")
    (
        dealt(house)
        .refuses(CardMisread(player(1)), "not_theirs")
        .refuses(CardMisread(DEALER), "card_misread")
        .do(Hit(DEALER, 1, 0))
        .refuses(CardMisread(DEALER), "card_misread")
    )
    (
        dealt(house)
        .hit(1, "8D")
        .stand(1)
        .refuses(CardMisread(DEALER), "card_misread")
        .stand(2)
        .refuses(CardMisread(DEALER), "card_misread")
    )
    dealt(house).hit(1, "TD").stand(2).refuses(CardMisread(DEALER), "card_misread")
    dealt(house).until(Step.PAYING).refuses(CardMisread(DEALER), "card_misread")
    dealt(house).do(FloorCalled(DEALER)).refuses(CardMisread(DEALER), "no_card_misread")
    (
        dealt(house)
        .hit(1, "2C")
        .slip("9D")
        .ruled(Odd.ERROR_CARD, Way.USE_NEXT)
        .refuses(CardMisread(DEALER), "card_misread")
    )


def test_the_card_that_it_was_taken_for_may_come(house: str) -> None:
    """It was not seen: the one deck holds it still, and the card that lies there no more."""
    (
        dealt(house, "9C 8C", decks=1)
        .then(read_again, "8H", Step.DEALING)
        .deal("8C")
        .do(CardDrawn(SHOE, card("8H")))
        .held_for(Odd.DECK_SUSPECT)
    )
    (
        dealt(house, "9C 8C", decks=1)
        .do(CardMisread(FLOOR))
        .refuses(CardEntered(DEALER, card("9C")), "enter_card")
        .do(CardEntered(DEALER, card("8C")), CardConfirmed(FLOOR))
    )


def test_a_split_hand_s_second_card(house: str) -> None:
    t = (
        dealt(house, "8C 9C 7S 8H KC (TD)")
        .split(1, "3C")
        .at(Step.TURN)
        .then(read_again, "2C", Step.HAND_CARD)
        .at(Step.TURN)
        .holds("8C 2C")
    )
    assert t.state.hands[1].cards == cards("8H")
    t.stand(1).deal("TC").stand(1, 1).stand(2).ends({1: 0, 2: 1000})
