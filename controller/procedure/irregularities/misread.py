"""A misread card: the card on the felt is a different one than the screen shows.

It is rolled back from its place, read from the felt, confirmed, and laid again, as long as nothing
has followed from it. After that the floor decides.
"""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.events import CardMisread
from controller.procedure.model.felt import next_seat, put, times_seen
from controller.procedure.model.game import Game
from controller.procedure.model.holds import elsewhere, found, hold
from controller.procedure.model.payments import settlement
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import Hold, State, Step
from controller.rules.cards import Card
from controller.rules.hands import Hand, Verdict, before_last, total_of
from controller.rules.irregularities import Irregularity

_AT_ONCE = ("bust", "instant21", "instant6")
"""Reasons for which a hand is paid or collected as soon as its card is laid."""


def taken_back(g: Game, s: State) -> State | None:
    """Returns the state before the last card, or None if something has followed from it."""
    if s.spare is not None:
        return None
    match s.step:
        case Step.DEALING:
            return _from_the_deal(s)
        case Step.TURN | Step.HAND_CARD | Step.REVEAL:
            return _from_the_hand(s, _drew_last(s))
        case Step.PAYING if s.due[0].why in _AT_ONCE and s.due[0].turn == s.turn:
            return _from_the_hand(replace(s, due=(), approved=False), s.turn)
        case Step.PAYING if s.due == settlement(g, s) and not _some_settled(g, s):
            return _from_the_dealer(replace(s, due=(), approved=False))
        case Step.DEALER_CARD:
            return _from_the_dealer(s)
        case _:
            return None


def _from_the_deal(s: State) -> State | None:
    place = s.places[s.dealt - 1] if s.dealt else None
    if place is None or place.kind == "hole":
        return None
    before = replace(s, dealt=s.dealt - 1)
    return _off_the_hand(before, place.turn) if place.turn >= 0 else _off_the_dealer(before)


def _drew_last(s: State) -> int:
    """Returns the hand that got the last card if no decision followed: the one in turn, or the one
    before it that stood automatically. Else -1."""
    stood = s.verdict == Verdict.STANDS
    match s.step:
        case Step.TURN if _drawn(s.hands[s.turn]):
            return s.turn
        case Step.REVEAL if stood and s.read < 0:
            return s.turn
        case Step.TURN if stood:
            return s.turn - 1
        case Step.HAND_CARD if stood and len(s.hands[s.turn].cards) < 2:
            return s.turn - 1
        case _:
            return -1


def _drawn(hand: Hand) -> bool:
    """Whether the hand has a card drawn after the deal or after its split."""
    return len(hand.cards) >= (2 if hand.split else 3)


def _from_the_hand(s: State, turn: int) -> State | None:
    if turn < 0 or s.hands[turn].out or not _drawn(s.hands[turn]):
        return None
    return _off_the_hand(replace(s, step=Step.HAND_CARD, turn=turn), turn)


def _some_settled(g: Game, s: State) -> bool:
    """Whether the settlement may have started. A busted hand was collected in turn; the state does
    not show whether its seat's Buster bet was settled."""
    tells = "buster" not in g.offered
    return any(hand.out and not (hand.busted and tells) for hand in s.hands)


def _from_the_dealer(s: State) -> State | None:
    if len(s.dealer) < 3:
        return None
    return _off_the_dealer(replace(s, step=Step.DEALER_CARD))


def _off_the_hand(s: State, turn: int) -> State | None:
    bare, card = before_last(s.hands[turn])
    return _unseen(replace(s, hands=put(s, turn, bare)), card)


def _off_the_dealer(s: State) -> State | None:
    *left, card = s.dealer
    total, soft = total_of(tuple(left))
    up = s.up if left else 0
    bare = replace(s, dealer=tuple(left), dealer_total=total, dealer_soft=soft, up=up)
    return _unseen(bare, card)


def _unseen(s: State, card: Card) -> State | None:
    """Returns the state with the card removed from the cards seen, or None if it was not seen."""
    return replace(s, seen=s.seen - (1 << 4 * card)) if times_seen(s, card) else None


def _may_be_taken_back(g: Game, s: State, e: CardMisread) -> bool:
    return taken_back(g, s) is not None


def _hold_misread(g: Game, s: State, e: CardMisread) -> State:
    before = taken_back(g, s)
    if before is None:
        return s
    what, seat = Irregularity.CARD_UNREADABLE, next_seat(before)
    return hold(g, before, Hold(what, before.step, seat=seat, detail="misread"))


_AT = (
    Step.DEALING,
    Step.TURN,
    Step.HAND_CARD,
    Step.REVEAL,
    Step.PAYING,
    Step.DEALER_CARD,
)

ROWS: tuple[Row, ...] = (
    found(
        "card_misread",
        _AT,
        CardMisread,
        "The card that came last is another one than the screen shows: it is read from the felt.",
        _hold_misread,
        _may_be_taken_back,
        "something has followed from that card: call a misdeal",
    ),
)

REFUSALS = (
    Refusal(
        "no_card_misread",
        elsewhere(*_AT),
        CardMisread,
        "no card that came last lies face up: call a misdeal",
    ),
)
