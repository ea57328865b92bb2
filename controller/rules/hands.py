"""A player's hand: its total, its legal choices, and the verdict after a card."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from controller.rules.cards import ACE, RANK, VALUE, Card
from controller.rules.money import Amount
from controller.rules.options import Options

HIT: Final = 1
STAND: Final = 2
DOUBLE: Final = 4
SPLIT: Final = 8
SURRENDER: Final = 16
CHOICES: Final = {
    HIT: "hit",
    STAND: "stand",
    DOUBLE: "double",
    SPLIT: "split",
    SURRENDER: "surrender",
}
"""The bit of each choice in a set of choices, by its name in scripts."""


class Hand(Struct, frozen=True, gc=False):
    """A hand on the felt. `number` counts the hands of a seat from 0, in the order of play."""

    seat: int
    wager: Amount
    """The hand's whole current wager, doubles included."""
    bet: Amount
    """The wager before any double."""
    number: int = 0
    cards: tuple[Card, ...] = ()
    total: int = 0
    """The best total; an ace counts 11 while that does not bust the hand."""
    soft: bool = False
    """An ace counts 11 in `total`."""
    doubles: int = 0
    split: bool = False
    """The hand was made by a split."""
    natural: bool = False
    """A dealt blackjack whose pay was not declined."""
    kept: bool = False
    """A dealt blackjack whose player was asked and takes the pay."""
    done: bool = False
    """Nothing is left to decide on it."""
    out: bool = False
    """Paid, collected or given back: off the felt."""

    @property
    def busted(self) -> bool:
        return self.total > 21


def plus(total: int, soft: bool, card: Card) -> tuple[int, bool]:
    """Returns total and softness after one more card."""
    value = VALUE[card]
    total += value
    if soft:
        return (total, True) if total <= 21 else (total - 10, False)
    if value == ACE and total <= 11:
        return total + 10, True
    return total, False


def with_card(hand: Hand, card: Card) -> Hand:
    total, soft = plus(hand.total, hand.soft, card)
    return replace(hand, cards=(*hand.cards, card), total=total, soft=soft)


def total_of(cards: tuple[Card, ...]) -> tuple[int, bool]:
    total, soft = 0, False
    for card in cards:
        total, soft = plus(total, soft, card)
    return total, soft


def is_blackjack(first: Card, second: Card) -> bool:
    """An ace and a ten-valued card."""
    return VALUE[first] + VALUE[second] == 11 and ACE in (VALUE[first], VALUE[second])


def ace_and_ten(hand: Hand) -> bool:
    return len(hand.cards) == 2 and is_blackjack(*hand.cards)


def may_double(o: Options, hand: Hand) -> bool:
    """Whether a first double is legal; `choices` checks redoubles."""
    double, count = o.double, len(hand.cards)
    if hand.split and not double.after_split:
        return False
    if double.on == "two_cards" and count != 2:
        return False
    return hand.total <= double.max_total or (double.ace_is_one_with_ten and ace_and_ten(hand))


def may_split(o: Options, hand: Hand, hands_of_seat: int) -> bool:
    if len(hand.cards) != 2 or hands_of_seat >= o.split.max_hands:
        return False
    first, second = hand.cards
    same = RANK if o.split.match == "rank" else VALUE
    if same[first] != same[second]:
        return False
    return not (hand.split and VALUE[first] == ACE and not o.split.aces_again)


def may_surrender(o: Options, hand: Hand) -> bool:
    when = o.surrender.when
    if when == "first_two":
        return len(hand.cards) == 2 and not hand.split and not hand.doubles
    return when == "any_time"


def choices(o: Options, hand: Hand, hands_of_seat: int) -> int:
    """Returns the legal choices of an unbusted hand in turn, as bits."""
    legal = STAND
    if may_surrender(o, hand):
        legal |= SURRENDER
    if hand.doubles:
        if hand.doubles < o.double.times and hand.total <= o.double.max_total:
            legal |= DOUBLE
        return legal
    if may_split(o, hand, hands_of_seat):
        legal |= SPLIT
    if hand.split and o.split.aces_one_card and VALUE[hand.cards[0]] == ACE:
        return legal
    if hand.total < 21:
        legal |= HIT
    if may_double(o, hand):
        legal |= DOUBLE
    return legal


class Verdict(IntEnum):
    """The result of a card for the hand that received it."""

    PLAYS = 0
    STANDS = 1
    BUST = 2
    INSTANT_21 = 3
    INSTANT_COUNT = 4


def instant(o: Options, hand: Hand) -> Verdict | None:
    """Returns the instant winner that an undoubled hand is, or None."""
    pays = o.instant
    if hand.doubles or (hand.split and not pays.on_split):
        return None
    count = len(hand.cards)
    if hand.total == 21:
        if pays.cards_21 is not None and count >= pays.cards_21:
            return Verdict.INSTANT_21
    elif pays.cards_count is not None and count >= pays.cards_count:
        return Verdict.INSTANT_COUNT
    return None


def judge(o: Options, hand: Hand, hands_of_seat: int) -> tuple[Verdict, int]:
    """Returns the verdict on a hand of two cards or more, and its legal choices if it plays on.

    A hand waits only if it has a choice: a hand whose only choice is to stand stands automatically,
    and so does 21, unless it may be doubled, or was doubled and may still surrender.
    """
    if hand.total > 21:
        return Verdict.BUST, 0
    winner = instant(o, hand)
    if winner is not None:
        return winner, 0
    legal = choices(o, hand, hands_of_seat)
    open_to_it = legal & (DOUBLE | SPLIT if hand.total == 21 and not hand.doubles else ~STAND)
    return (Verdict.PLAYS, legal) if open_to_it else (Verdict.STANDS, 0)


def doubled(hand: Hand, stake: Amount) -> Hand:
    """Returns the hand with the chips of its double. An ace and a ten then count 11 permanently."""
    if not hand.doubles:
        hand = _counting_11(hand)
    return replace(hand, wager=hand.wager + stake, doubles=hand.doubles + 1)


def _counting_11(hand: Hand) -> Hand:
    return replace(hand, total=11, soft=False) if ace_and_ten(hand) else hand


def before_last(hand: Hand) -> tuple[Hand, Card]:
    """Returns the hand without its last card, and that card."""
    *left, card = hand.cards
    total, soft = total_of(tuple(left))
    bare = replace(hand, cards=tuple(left), total=total, soft=soft, done=False)
    return (_counting_11(bare) if hand.doubles else bare), card
