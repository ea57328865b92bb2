"""Cards that cannot be read and decks that cannot be trusted, up to the hole card itself."""

from collections.abc import Callable

import pytest

from controller.games import DEALER, FLOOR, SHOE, player
from controller.procedure.model.effects import DecksOut, Discarded, RoundVoid, Settled, Tell, Told
from controller.procedure.model.events import (
    Actor,
    CardConfirmed,
    CardEntered,
    CardRejected,
    CardUnreadable,
    DeckSuspect,
    ErrorCardExposed,
    FaceUpCardFound,
    HoleChecked,
    HoleRevealed,
    InsuranceClosed,
    UnknownCardDrawn,
    WagerPlaced,
    WagerRemoved,
)
from controller.procedure.model.state import Step
from controller.procedure.prompts import MoneyFormat, say
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from tests.support.procedure.scenes import IN_ROUND, dealt
from tests.support.procedure.table import HOUSES, Table, card, cards

pytestmark = pytest.mark.parametrize("house", HOUSES)

UNREADABLE = CardUnreadable(SHOE, "low confidence")
JOKER = UnknownCardDrawn(SHOE)


def decks_went_out(t: Table, held: int) -> Table:
    """Everybody is told, `held` wagers go back, and the table deals on with other decks."""
    told = [each for each in t.facts_of(Told) if each.what == "deck_suspect"]
    assert [each.who for each in told] == ["floor", "surveillance"]
    dealt_hands = bool(t.state.hands)
    t.ruled(Odd.DECK_SUSPECT, Way.DECKS_OUT).noted(DecksOut())
    if t.state.seats:
        # Wagers before the first card are no round yet.
        void = [t.state.round] if dealt_hands else []
        assert [each.round for each in t.facts_of(RoundVoid)] == void
        assert set(t.finish().values()) == {0} or not held
    back = [each for each in t.facts_of(Settled) if each.outcome == "void"]
    assert len(back) == held
    assert all(each.returned == each.stake for each in back)
    return t.at(Step.SHUFFLE_NEEDED).asks(Tell.CHANGE_DECKS).shuffle().one_more_round()


# Misread, unreadable or low-confidence card: dealer enters it from the felt, floor confirms


def test_unreadable_card(house: str) -> None:
    (
        dealt(house)
        .hit(1)
        .do(UNREADABLE)
        .ruled(Odd.CARD_UNREADABLE, Way.ENTER_CARD)
        .at(Step.CARD_ENTRY)
        .asks(Tell.ENTER_CARD, to="dealer", why="card_unreadable")
        .shoe_locked()
        .noted_last(Told("floor", "card_unreadable", 0, "low confidence"))
        .refuses(CardEntered(FLOOR, card("9D")), "not_theirs")
        .refuses(CardConfirmed(FLOOR), "no_card_to_confirm")
        .do(CardEntered(DEALER, card("9H")))
        .asks(Tell.CONFIRM_CARD, to="floor", cards=(card("9H"),))
        .refuses(CardConfirmed(DEALER), "not_theirs")
        .do(CardRejected(FLOOR))
        .at(Step.CARD_ENTRY)
        .enter("9D")
        .holds("9C 2H 9D")
        .ends({1: 1000, 2: 0})
    )


def test_an_entered_card_does_not_lie_beside_the_shoe(house: str) -> None:
    t = dealt(house).hit(1).do(UNREADABLE).do(CardEntered(DEALER, card("9D")), CardConfirmed(FLOOR))
    assert "beside the shoe" not in say(t.prompt, MoneyFormat())


def test_nobody_confirms_the_card_that_he_entered(house: str) -> None:
    t = dealt(house).hit(1).do(UNREADABLE, CardEntered(Actor("dealer", "ann"), card("9D")))
    t.refusal_of(CardConfirmed(Actor("floor", "ann")))
    t.do(CardConfirmed(Actor("floor", "bo")))


@pytest.mark.parametrize(
    ("names", "rest"), [("9C", "8S KC (TD)"), ("9C 2S", "KC (6D)"), ("9C 8S", "2H (TD)")]
)
def test_unreadable_card_in_the_deal(house: str, names: str, rest: str) -> None:
    *before, last = names.split()
    t = Table(house=house).bets(1000).deal(" ".join(before)).do(UNREADABLE).enter(last).deal(rest)
    assert card(last) in (*t.state.dealer, *t.state.hands[0].cards)
    t.at(Step.TURN)


def test_unreadable_card_of_the_dealer(house: str) -> None:
    (
        dealt(house, "9C 8C 8S KH KC (5D)")
        .until(Step.DEALER_CARD)
        .do(UNREADABLE)
        .enter("8D")
        .ends({1: -1000, 2: -1000})
    )


def test_unreadable_first_card_locks_the_wagers(house: str) -> None:
    t = (
        Table(house=house)
        .bets(1000, 1000)
        .do(UNREADABLE)
        .do(CardEntered(DEALER, card("9C")), CardConfirmed(FLOOR))
    )
    t.refusal_of(WagerRemoved(player(1), 1, "main"))
    t.refusal_of(WagerPlaced(player(1), 1, "main", 500))
    if t.state.spare is not None:
        t.deal("*9C")
    t.deal("8C 8S 2H KC (TD)").hit(1, "9D").ends({1: 1000, 2: 0})


def test_unreadable_card_before_any_wager(house: str) -> None:
    """No wager, no round: whatever becomes of the card, the next round can be dealt."""
    t = Table(house=house)
    t.bring(UNREADABLE)
    if t.step is Step.CARD_ENTRY:
        t.do(CardEntered(DEALER, card("9D")), CardConfirmed(FLOOR))
    if t.step is Step.HELD:
        t.rule(Way(t.prompt.choices[0]))
    t.one_more_round()


def test_an_entered_card_ends_with_its_round(house: str) -> None:
    (
        dealt(house)
        .hit(1)
        .do(UNREADABLE)
        .do(CardEntered(DEALER, card("9D")), CardConfirmed(FLOOR))
        .void()
        .ends({1: 0, 2: 0})
        .one_more_round()
    )


def test_a_card_that_the_decks_do_not_hold_any_more(house: str) -> None:
    (
        dealt(house, decks=1)
        .hit(1)
        .do(UNREADABLE)
        .refuses(CardEntered(DEALER, card("9C")), "enter_card")
        .do(DeckSuspect(FLOOR, "duplicate"))
        .then(decks_went_out, 2)
    )


# The hole card that cannot be read


def test_hole_card_unreadable_when_it_is_dealt(house: str) -> None:
    """Nobody can read it from the felt: it lies face down."""
    (
        dealt(house, "9C 8C 8S 2H KC")
        .do(UNREADABLE)
        .held_for(Odd.CARD_UNREADABLE)
        .offers_not("enter_card")
        .rule(Way.VOID)
        .ends({1: 0, 2: 0})
        .one_more_round()
    )


def test_hole_card_unreadable_when_it_is_revealed(house: str) -> None:
    (
        dealt(house)
        .hit(1, "9D")
        .until(Step.REVEAL)
        .do(UNREADABLE)
        .enter("TD")
        .at(Step.REVEAL)
        .ends({1: 1000, 2: 0})
        .one_more_round()
    )


def test_what_the_floor_confirms_counts_whatever_the_shoe_has_read(house: str) -> None:
    (
        dealt(house)
        .hit(1, "9D")
        .until(Step.REVEAL)
        .do(UNREADABLE)
        .enter("TD")
        .do(HoleRevealed(SHOE, card("JD"), "opening"))
        .remembers(dealer=cards("8S TD"))
        .ends({1: 1000, 2: 0})
        .one_more_round()
    )


def test_a_hole_card_from_the_felt_is_held_against_the_check(house: str) -> None:
    (
        checked_wrong(house, "9C 8C AS 2H KC (AD)", said=False)
        .until(Step.REVEAL)
        .do(UNREADABLE)
        .enter("KD")
        .do(HoleRevealed(SHOE, card("AD"), "opening"))
        .held_for(Odd.HOLE_MISMATCH)
        .prompts(cards=(card("KD"),))
        .ruled(Odd.HOLE_MISMATCH, Way.RESUME)
        .do(HoleRevealed(SHOE, card("AD"), "opening"))
        .remembers(dealer=cards("AS KD"))
        .ends({1: -1500, 2: -1000})
    )


def test_a_hidden_card_outlives_an_unreadable_hole_card(house: str) -> None:
    (
        dealt(house, "9C 8C 8S KH KC (5D)")
        .slip("8D")
        .ruled(Odd.ERROR_CARD, Way.USE_NEXT)
        .stand(1)
        .stand(2)
        .do(UNREADABLE)
        .enter("5D")
        .until(Step.DEALER_CARD)
        .asks(Tell.LAY_SPARE)
        .ends({1: -1000, 2: -1000})
    )


# Duplicate beyond the decks, foreign back, 51 or 53 cards, suits or ranks in factory order


DUPLICATES: dict[str, Callable[[Table], Table]] = {
    "first card": lambda t: t.deal("9C 8C 8S 2H KC (TD)").until(Step.WAGERING).bets(1000, 1000),
    "in the deal": lambda t: t.deal("9C 8C"),
    "for a hand": lambda t: t.deal("9C 8C 8S 2H KC (TD)").hit(1),
    "when none is expected": lambda t: t.deal("9C 8C 8S 2H KC (TD)"),
    "for the dealer": lambda t: t.deal("9C 8C 8S KH KC (5D)").until(Step.DEALER_CARD),
}


@pytest.mark.parametrize("when", DUPLICATES)
def test_duplicate_beyond_the_decks(house: str, when: str) -> None:
    t = DUPLICATES[when](Table(house=house, decks=1).bets(1000, 1000)).deal("9C")
    assert t.facts_of(Told)[-1].detail == "duplicate"
    decks_went_out(t, 2)


def test_a_card_may_come_as_often_as_the_decks_hold_it(house: str) -> None:
    (
        dealt(house, "9C 9C 8S 2H 2H (TD)", decks=2)
        .hit(1, "8S")
        .stand(1)
        .hit(2)
        .deal("9C")
        .held_for(Odd.DECK_SUSPECT)
    )


def test_duplicate_before_any_wager(house: str) -> None:
    (
        Table(house=house, decks=1)
        .bets(1000)
        .deal("9C 8S KC (TD)")
        .ends()
        .deal("9C")
        .held_for(Odd.DECK_SUSPECT)
        .then(decks_went_out, 0)
    )


def test_duplicate_that_lay_face_up_or_hidden(house: str) -> None:
    (
        dealt(house, decks=1)
        .hit(1)
        .do(FaceUpCardFound(SHOE, card("9C")))
        .held_for(Odd.DECK_SUSPECT)
        .then(decks_went_out, 2)
    )
    (
        dealt(house, decks=1)
        .slip("9C")
        .ruled(Odd.ERROR_CARD, Way.USE_NEXT)
        .do(ErrorCardExposed(SHOE, card("9C")))
        .held_for(Odd.DECK_SUSPECT)
        .then(decks_went_out, 2)
    )


def test_duplicate_hole_card(house: str) -> None:
    t = dealt(house, "9C 8C 8S 2H KC (9C)", decks=1).hit(1, "9D").until(Step.REVEAL)
    t.do(HoleRevealed(SHOE, t.hole, "opening")).then(decks_went_out, 2)


@pytest.mark.parametrize("phase", IN_ROUND)
@pytest.mark.parametrize("why", ["foreign_back", "short", "long", "factory_order"])
def test_decks_that_are_not_what_they_should_be(house: str, why: str, phase: str) -> None:
    t = (
        IN_ROUND[phase](Table(house=house).bets(1000))
        .refuses(DeckSuspect(player(1), why), "not_theirs")  # type: ignore[arg-type]
        .do(DeckSuspect(FLOOR, why))  # type: ignore[arg-type]
    )
    assert t.facts_of(Told)[-1].detail == why
    decks_went_out(t, 0 if phase == "clearing" else 1)


# Hole card and check disagree, joker or unknown card: held; floor and surveillance told


def checked_wrong(house: str, names: str, said: bool) -> Table:
    t = dealt(house, names)
    if t.step is Step.INSURANCE:
        t.insure(1, 500).decline(2).do(InsuranceClosed(DEALER))
    return t.do(HoleChecked(SHOE, said))


def told_of_mismatch(t: Table) -> Table:
    (
        t.until(Step.REVEAL)
        .do(HoleRevealed(SHOE, t.hole, "opening"))
        .held_for(Odd.HOLE_MISMATCH)
        .told("floor", "surveillance")
    )
    return t.prompts(cards=(t.hole,))


@pytest.mark.parametrize("way", [Way.RESUME, Way.VOID, Way.DECKS_OUT])
def test_hole_card_is_a_blackjack_after_all(house: str, way: Way) -> None:
    t = (
        checked_wrong(house, "9C 8C AS 2H KC (TD)", said=False)
        .until(Step.TURN)
        .hit(1, "9D")
        .then(told_of_mismatch)
        .ruled(Odd.HOLE_MISMATCH, way)
        # Insurance was collected after the check; the floor corrects that, if anybody does.
        .ends({1: -1500, 2: -1000} if way is Way.RESUME else {1: -500, 2: 0})
    )
    if way is Way.DECKS_OUT:
        t.at(Step.SHUFFLE_NEEDED).asks(Tell.CHANGE_DECKS)


def test_hole_card_is_no_blackjack_after_all(house: str) -> None:
    """The players have not played: whichever way is ruled, no wager is lost unplayed."""

    def told() -> Table:
        return told_of_mismatch(checked_wrong(house, "9C 8C AS 2H KC (5D)", said=True))

    for choice in told().prompt.choices:
        t = told().rule(Way(choice))
        if choice == Way.RESUME.value:
            (
                t.asks(Tell.COLLECT, seat=1, amount=500)  # the insurance, as after any other check
                .until(Step.TURN)
                .hit(1, "9D")
                .ends({1: 500, 2: 0}, "KS 2S")  # against ace, 5, king and 2: 18
            )
        else:
            t.ends({1: 0, 2: 0})


JOKER_AT: dict[str, tuple[Callable[[Table], Table], str]] = {
    "wagering": (lambda t: t, "9C 8C 8S 2H KC (TD)"),
    "deal": (lambda t: t.deal("9C 8C"), "8S 2H KC (TD)"),
    "hand card": (lambda t: t.deal("9C 8C 8S 2H KC (TD)").hit(1), "9D"),
    "turn": (lambda t: t.deal("9C 8C 8S 2H KC (TD)"), ""),
    "reveal": (lambda t: t.deal("9C 8C 8S 2H KC (TD)").until(Step.REVEAL), ""),
    "paying": (lambda t: t.deal("9C 8C 8S 2H KC (TD)").until(Step.PAYING), ""),
}


@pytest.mark.parametrize("when", JOKER_AT)
def test_joker_or_unknown_card_is_discarded(house: str, when: str) -> None:
    before, rest = JOKER_AT[when]
    (
        before(Table(house=house).bets(1000, 1000))
        .do(JOKER)
        .told("floor", "surveillance")
        .ruled(Odd.UNKNOWN_CARD, Way.DISCARD)
        .noted(Discarded())
        .deal(rest)
        .ends({1: 1000 if when == "hand card" else -1000, 2: 0})
        .one_more_round()
    )


@pytest.mark.parametrize("when", JOKER_AT)
def test_joker_or_unknown_card_takes_the_decks_out(house: str, when: str) -> None:
    (
        JOKER_AT[when][0](Table(house=house).bets(1000, 1000))
        .do(JOKER)
        .ruled(Odd.UNKNOWN_CARD, Way.DECKS_OUT)
        .ends({1: 0, 2: 0})
        .at(Step.SHUFFLE_NEEDED)
        .asks(Tell.CHANGE_DECKS)
        .shuffle()
        .one_more_round()
    )


def test_an_unknown_card_of_a_hand_is_read_from_the_felt(house: str) -> None:
    (
        dealt(house)
        .hit(1)
        .do(JOKER)
        .ruled(Odd.UNKNOWN_CARD, Way.ENTER_CARD)
        .enter("9D")
        .ends({1: 1000, 2: 0})
    )


@pytest.mark.parametrize("read", [1, 2])
def test_a_joker_that_was_to_be_entered(house: str, read: int) -> None:
    """The dealer is asked to read the card, and sees that there is none to read."""
    t = dealt(house).hit(1).do(UNREADABLE)
    for _ in range(read):
        t.do(UnknownCardDrawn(DEALER)).ruled(Odd.UNKNOWN_CARD, Way.ENTER_CARD).at(Step.CARD_ENTRY)
    (
        t.do(UnknownCardDrawn(DEALER))
        .ruled(Odd.UNKNOWN_CARD, Way.DISCARD)
        .at(Step.HAND_CARD)
        .deal("9D")
        .ends({1: 1000, 2: 0})
        .one_more_round()
    )


def test_another_card_that_comes_while_one_is_to_be_entered(house: str) -> None:
    (
        dealt(house)
        .hit(1)
        .do(UNREADABLE)
        .do(JOKER)
        .ruled(Odd.UNKNOWN_CARD, Way.DISCARD)
        .at(Step.CARD_ENTRY)
        .enter("9D")
        .ends({1: 1000, 2: 0})
    )


@pytest.mark.parametrize("when", ["turn", "reveal", "paying"])
def test_an_unknown_card_that_nobody_asked_for_lies_on_no_place(house: str, when: str) -> None:
    """Wherever it is read from the felt, the round ends and the next one begins."""
    t = JOKER_AT[when][0](Table(house=house).bets(1000, 1000)).do(JOKER).held_for(Odd.UNKNOWN_CARD)
    if "enter_card" in t.prompt.choices:
        t.rule(Way.ENTER_CARD).do(CardEntered(DEALER, card("5H")), CardConfirmed(FLOOR))
    else:
        t.rule(Way.DISCARD)
    assert t.finish()[2] == 0
    t.one_more_round()
