"""Queries of the felt, and cards laid on it: shared by the rows."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.events import Actor, CardDrawn, Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import Hold, Place, Seat, Spare, State, Step
from controller.rules.cards import VALUE, Card
from controller.rules.hands import SURRENDER, Hand, Verdict, is_blackjack, judge, plus, with_card
from controller.rules.payouts import could_be_blackjack

# Seats and hands


def seat_index(s: State, number: int) -> int:
    """Returns the index of a seat that plays, or -1."""
    for index, seat in enumerate(s.seats):
        if seat.number == number:
            return index
    return -1


def seat_of(s: State, number: int) -> Seat | None:
    index = seat_index(s, number)
    return None if index < 0 else s.seats[index]


def with_seat(s: State, seat: Seat) -> tuple[Seat, ...]:
    return tuple(seat if old.number == seat.number else old for old in s.seats)


def put(s: State, turn: int, hand: Hand) -> tuple[Hand, ...]:
    """Returns the hands with the one at `turn` replaced."""
    hands = s.hands
    if len(hands) == 1:
        return (hand,)
    return (*hands[:turn], hand, *hands[turn + 1 :])


def next_open(s: State) -> int:
    """Returns the first hand with a decision left, or -1."""
    for turn, hand in enumerate(s.hands):
        if not hand.done:
            return turn
    return -1


def hands_of(s: State, seat: int) -> int:
    if len(s.hands) == 1:
        return 1
    return sum(hand.seat == seat for hand in s.hands)


# Cards


def times_seen(s: State, card: Card) -> int:
    return (s.seen >> 4 * card) & 15


def tally(s: State, card: Card) -> int:
    return s.seen + (1 << 4 * card)


def fresh(g: Game, s: State, e: CardDrawn) -> bool:
    """Whether the card may be used: the decks contain it, and it is the spare one if one waits."""
    spare = s.spare
    if spare is None:
        return not e.spare and (s.seen >> 4 * e.card) & 15 < g.decks
    if not e.spare:
        return False
    return e.card == spare.card if spare.card >= 0 else times_seen(s, e.card) < g.decks


def tally_drawn(s: State, e: CardDrawn) -> int:
    """Returns the tally with the card; a spare card whose face was seen is counted already."""
    if s.spare is not None and s.spare.card >= 0:
        return s.seen
    return s.seen + (1 << 4 * e.card)


def in_hand(g: Game, s: State, e: CardDrawn) -> State:
    """Returns the state with the card on the hand in turn, and its verdict."""
    hand = with_card(s.hands[s.turn], e.card)
    verdict, legal = judge(g.options, hand, hands_of(s, hand.seat))
    if verdict == Verdict.PLAYS and hand.seat in s.quiet:
        verdict = Verdict.STANDS
    if s.late:
        legal = checked_first(s, legal)
    return replace(
        s,
        hands=put(s, s.turn, hand),
        verdict=verdict,
        legal=legal,
        seen=tally_drawn(s, e),
        spare=None,
    )


def checked_first(s: State, legal: int) -> int:
    """Removes surrender while the dealer may have a blackjack: it is open after the check only."""
    return legal & ~SURRENDER if dealer_may_have_blackjack(s) else legal


def to_dealer(g: Game, s: State, e: CardDrawn) -> State:
    total, soft = plus(s.dealer_total, s.dealer_soft, e.card)
    return replace(
        s,
        dealer=(*s.dealer, e.card),
        dealer_total=total,
        dealer_soft=soft,
        seen=tally_drawn(s, e),
        spare=None,
    )


def lay(s: State, place: Place, card: Card, seen: int, spare: Spare | None) -> State:
    """Returns the state with a card of the deal on its place; verdicts follow after the deal."""
    dealt = s.dealt + 1
    if place.turn >= 0:
        hands = put(s, place.turn, with_card(s.hands[place.turn], card))
        return replace(s, hands=hands, dealt=dealt, seen=seen, spare=spare)
    total, soft = plus(s.dealer_total, s.dealer_soft, card)
    return replace(
        s,
        dealer=(*s.dealer, card),
        dealer_total=total,
        dealer_soft=soft,
        up=VALUE[card] if place.kind == "up" else s.up,
        dealt=dealt,
        seen=seen,
        spare=spare,
    )


def expected(s: State) -> Place | None:
    """Returns where the next card goes, or None if no card may come."""
    step = s.step
    if step is Step.DEALING:
        return s.places[s.dealt]
    if step is Step.HAND_CARD:
        hand = s.hands[s.turn]
        return Place("hand", hand.seat, hand.number, s.turn)
    if step in (Step.DEALER_CARD, Step.DEALER_LATE):
        return Place("dealer")
    if step in (Step.BURNING, Step.RELIEF_BURN):
        return Place("burn")
    return None


def next_seat(s: State) -> int:
    """Returns the seat of the next card (at wagering the first seat), or 0."""
    if s.step is Step.WAGERING:
        return s.seats[0].number if s.seats else 0
    place = expected(s)
    return 0 if place is None else place.seat


def hole_is_next(s: State) -> bool:
    """Whether the next card of the deal is the hole card."""
    return s.step is Step.DEALING and s.places[s.dealt].kind == "hole"


def next_spare(s: State) -> Spare | None:
    """Returns the card beside the shoe if it is the next one: never a known card for the hole."""
    spare = s.spare
    if spare is not None and spare.card >= 0 and hole_is_next(s):
        return None
    return spare


# The dealer


def dealer_has_blackjack(s: State) -> bool:
    return len(s.dealer) == 2 and is_blackjack(*s.dealer)


def dealer_may_have_blackjack(s: State) -> bool:
    """Whether a blackjack is possible and has not been checked."""
    return s.checked is None and could_be_blackjack(s.up)


# Cards on and off the felt


def on_felt(s: State) -> tuple[int, ...]:
    """Returns the face-up cards on the felt, tucked ones included."""
    cards = list(s.dealer)
    for hand in s.hands:
        seat = seat_of(s, hand.seat)
        tucked = hand.busted and seat is not None and seat.amount("buster") > 0
        if tucked or not hand.out:
            cards += hand.cards
    return tuple(cards)


def discards(g: Game, s: State) -> int:
    """Returns how many cards can be shuffled if the shoe is empty: all but those in play."""
    return g.decks * 52 - len(on_felt(s)) - bool(s.hole) - (s.spare is not None)


# Holds and people


def returned(s: State, device: str) -> State:
    """Returns the state without the device in `lost`."""
    return replace(s, lost=tuple(gone for gone in s.lost if gone != device))


def top(s: State) -> Hold:
    return s.holds[-1]


def name_of(second: Actor | None) -> str:
    return second.name if second else ""


def second_person(e: Event, second: Actor | None) -> bool:
    """Whether a second, different member of staff approves the act."""
    staff = ("dealer", "floor", "surveillance")
    return second is not None and second.name != e.actor.name and second.role in staff
