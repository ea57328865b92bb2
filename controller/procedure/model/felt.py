"""Looking at the felt and laying cards on it: what the rows share."""

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
    """The index of a seat that plays, or -1."""
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
    """The hands with the one at `turn` changed."""
    hands = s.hands
    if len(hands) == 1:
        return (hand,)
    return (*hands[:turn], hand, *hands[turn + 1 :])


def next_open(s: State) -> int:
    """The first hand with something to decide, or -1."""
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
    """The card may be used: the decks hold it, and it is the spare one where one waits."""
    spare = s.spare
    if spare is None:
        return not e.spare and (s.seen >> 4 * e.card) & 15 < g.decks
    if not e.spare:
        return False
    return e.card == spare.card if spare.card >= 0 else times_seen(s, e.card) < g.decks


def tally_drawn(s: State, e: CardDrawn) -> int:
    """The tally with the card in it; a spare card whose face was seen is in it already."""
    if s.spare is not None and s.spare.card >= 0:
        return s.seen
    return s.seen + (1 << 4 * e.card)


def in_hand(g: Game, s: State, e: CardDrawn) -> State:
    """The card laid on the hand in turn, and judged."""
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
    """Surrender is open after the check only: not to a dealer who may yet have a blackjack."""
    return legal & ~SURRENDER if dealer_may_have_blackjack(s) else legal


def to_dealer(s: State, e: CardDrawn) -> State:
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
    """A card of the deal laid on its place; nothing is judged before the deal is over."""
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
    """Where the next card goes; None when none may come."""
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
    """The seat that the next card goes to, the first one where that begins a round; 0: none."""
    if s.step is Step.WAGERING:
        return s.seats[0].number if s.seats else 0
    place = expected(s)
    return 0 if place is None else place.seat


def hole_is_next(s: State) -> bool:
    """The deal has come to the hole card's place."""
    return s.step is Step.DEALING and s.places[s.dealt].kind == "hole"


def next_spare(s: State) -> Spare | None:
    """The card beside the shoe, where it is the next one: never a known card for the hole."""
    spare = s.spare
    if spare is not None and spare.card >= 0 and hole_is_next(s):
        return None
    return spare


# The dealer


def dealer_has_blackjack(s: State) -> bool:
    return len(s.dealer) == 2 and is_blackjack(*s.dealer)


def dealer_may_have_blackjack(s: State) -> bool:
    """Nobody can tell yet, the check included."""
    return s.checked is None and could_be_blackjack(s.up)


# What is not on the felt


def on_felt(s: State) -> tuple[int, ...]:
    """The cards that lie face up on the felt, tucked ones too."""
    cards = list(s.dealer)
    for hand in s.hands:
        seat = seat_of(s, hand.seat)
        tucked = hand.busted and seat is not None and seat.buster > 0
        if tucked or not hand.out:
            cards += hand.cards
    return tuple(cards)


def discards(g: Game, s: State) -> int:
    """How many cards can be shuffled in a round whose shoe is empty: all but those in play."""
    return g.decks * 52 - len(on_felt(s)) - bool(s.hole) - (s.spare is not None)


# Holds and people


def returned(s: State, device: str) -> State:
    """The device is no longer among those that are gone."""
    return replace(s, lost=tuple(gone for gone in s.lost if gone != device))


def top(s: State) -> Hold:
    return s.holds[-1]


def second_person(e: Event, second: Actor | None) -> bool:
    """Somebody else than the actor stands in for the act too."""
    staff = ("dealer", "floor", "surveillance")
    return second is not None and second.name != e.actor.name and second.role in staff
