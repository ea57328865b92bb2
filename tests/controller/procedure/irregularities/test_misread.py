"""Cards that the screen shows as others than they are: taken back, read from the felt, and laid
again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from controller.games import DEALER, FLOOR, SHOE, player
from controller.procedure.model.effects import Settled, Tell, Told
from controller.procedure.model.events import (
    CardConfirmed,
    CardDrawn,
    CardEntered,
    CardMisread,
    Confirmed,
    Double,
    FloorCalled,
    Hit,
)
from controller.procedure.model.felt import expected
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from tests.support.procedure.scenes import DEAL, dealt, one_more_round
from tests.support.procedure.table import HOUSES, Table, card, cards

pytestmark = pytest.mark.parametrize("house", HOUSES)

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
    assert t.heard(Told)[-1] == Told("floor", "card_unreadable", place.seat, "misread")
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
        right_way = Table(house=house).bets(1000, 1000)
        right_way = retold(right_way, moment, other)
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
    t = dealt(house, "9C 8C 8S 7H KC (TD)").hit(1, "TC").at(Step.PAYING)
    t.asks(Tell.COLLECT, seat=1)
    read_again(t, "4C", Step.HAND_CARD).at(Step.TURN)
    assert t.hand() == "9C 7H 4C"
    assert t.finish() == {1: 1000, 2: 0}
    assert len(t.heard(Settled)) == 2
    one_more_round(t)


def test_a_hand_that_did_not_stand_by_itself(house: str) -> None:
    """The next hand is asked, and not before this one has stood."""
    t = dealt(house).hit(1, "TD")
    t.asks(Tell.DECIDE, seat=2)
    read_again(t, "9D", Step.HAND_CARD).asks(Tell.DECIDE, seat=1, total=20)
    assert t.hit(1, "AC").finish() == {1: 1000, 2: 0}
    t = dealt(house).stand(1).hit(2, "3D").at(Step.REVEAL)
    read_again(t, "2D", Step.HAND_CARD).asks(Tell.DECIDE, seat=2, total=20)
    assert t.finish() == {1: -1000, 2: 1000}


def test_a_double_s_card(house: str) -> None:
    t = dealt(house).do(Double(DEALER, 1, 0), Confirmed(DEALER)).deal("8D")
    read_again(t, "9D", Step.HAND_CARD).asks(Tell.DECIDE, seat=2)
    assert t.hand() == "9C 2H 9D"
    assert t.finish() == {1: 2000, 2: 0}


def test_a_split_hand_that_did_not_stand_by_itself(house: str) -> None:
    """The second hand waits for its card."""
    t = dealt(house, "8C 9C 7S 8H KC (TD)").split(1, "3C").hit(1, "TC").at(Step.HAND_CARD)
    t.asks(Tell.DEAL, seat=1, hand=1)
    read_again(t, "9C", Step.HAND_CARD).asks(Tell.DECIDE, seat=1, hand=0, total=20)
    t.stand(1).deal("TC").stand(1, 1).stand(2)
    assert t.finish() == {1: 2000, 2: 1000}


def test_an_instant_winner_that_is_none(house: str) -> None:
    t = Table("maxtime", house).bets(1000).deal("2C 6S 3C (TH)")
    t.hit(1, "4C").hit(1, "5C").hit(1, "7D").at(Step.PAYING)
    read_again(t, "8D", Step.HAND_CARD)
    t.asks(Tell.COLLECT, seat=1, why="bust")
    assert t.finish() == {1: -1000}


def test_a_dealer_s_hand_that_is_not_complete(house: str) -> None:
    """The settlement is worked out anew; a payment that was made is the floor's to correct."""
    t = dealt(house, "9C 8C 8S KH KC (5D)").until(Step.DEALER_CARD).deal("8D").at(Step.PAYING)
    read_again(t, "2D", Step.DEALER_CARD).at(Step.DEALER_CARD)
    assert t.finish("TC") == {1: 1000, 2: 1000}
    t = dealt(house, "9C 8C 8S KH KC (5D)").until(Step.DEALER_CARD).deal("8D").pay()
    assert t.refuses(CardMisread(DEALER)) == "card_misread"


def test_a_busted_hand_does_not_hide_the_dealer_s_card(house: str) -> None:
    t = dealt(house, "9C 8C 8S 7H KC (5D)").hit(1, "TC").until(Step.DEALER_CARD).deal("8D")
    read_again(t, "2D", Step.DEALER_CARD)
    assert t.finish("TC") == {1: -1000, 2: 1000}
    # A Buster bet of a busted hand may have been settled: nobody can tell, and the floor decides.
    t = Table("mega", house).bets(1000, 1000).deal("9C 8C 6S 7H KC (5D)")
    t.hit(1, "TC").until(Step.TURN).stand(2).until(Step.DEALER_CARD).deal("TD").at(Step.PAYING)
    assert t.refuses(CardMisread(DEALER)) == "card_misread"


def test_what_is_the_floor_s_to_decide(house: str) -> None:
    """Somebody has decided on what was shown, or it is the hole card."""
    assert Table(house=house).bets(1000).refuses(CardMisread(DEALER)) == "no_card_misread"
    fresh = dealt(house)
    assert fresh.refuses(CardMisread(player(1))) == "not_theirs"
    assert fresh.refuses(CardMisread(DEALER)) == "card_misread"
    assert fresh.do(Hit(DEALER, 1, 0)).refuses(CardMisread(DEALER)) == "card_misread"
    stood = dealt(house).hit(1, "8D").stand(1)
    assert stood.refuses(CardMisread(DEALER)) == "card_misread"
    assert stood.stand(2).refuses(CardMisread(DEALER)) == "card_misread"
    decided = dealt(house).hit(1, "TD").stand(2)
    assert decided.refuses(CardMisread(DEALER)) == "card_misread"
    assert dealt(house).until(Step.PAYING).refuses(CardMisread(DEALER)) == "card_misread"
    assert dealt(house).do(FloorCalled(DEALER)).refuses(CardMisread(DEALER)) == "no_card_misread"
    waits = dealt(house).hit(1, "2C").slip("9D").ruled(Odd.ERROR_CARD, Way.USE_NEXT)
    assert waits.refuses(CardMisread(DEALER)) == "card_misread"


def test_the_card_that_it_was_taken_for_may_come(house: str) -> None:
    """It was not seen: the one deck holds it still, and the card that lies there no more."""
    t = dealt(house, "9C 8C", decks=1)
    read_again(t, "8H", Step.DEALING).deal("8C")
    t.do(CardDrawn(SHOE, card("8H"))).held_for(Odd.DECK_SUSPECT)
    t = dealt(house, "9C 8C", decks=1).do(CardMisread(FLOOR))
    assert t.refuses(CardEntered(DEALER, card("9C"))) == "enter_card"
    t.do(CardEntered(DEALER, card("8C")), CardConfirmed(FLOOR))


def test_a_split_hand_s_second_card(house: str) -> None:
    t = dealt(house, "8C 9C 7S 8H KC (TD)").split(1, "3C").at(Step.TURN)
    read_again(t, "2C", Step.HAND_CARD).at(Step.TURN)
    assert t.hand() == "8C 2C"
    assert t.state.hands[1].cards == cards("8H")
    t.stand(1).deal("TC").stand(1, 1).stand(2)
    assert t.finish() == {1: 0, 2: 1000}
