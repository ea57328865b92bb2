"""Payouts of hands and side bets."""

from __future__ import annotations

from typing import Literal, TypeAlias

from controller.rules.cards import ACE, DIAMONDS, SUIT, VALUE, Card
from controller.rules.hands import Hand
from controller.rules.money import EVEN, Amount, Odds
from controller.rules.options import Options

Against: TypeAlias = Literal["blackjack", "win", "lose", "push"]


def in_diamonds(cards: tuple[Card, ...]) -> bool:
    return all(SUIT[card] == DIAMONDS for card in cards)


def blackjack_odds(o: Options, cards: tuple[Card, ...]) -> Odds:
    if o.blackjack.pays_diamonds is not None and in_diamonds(cards):
        return o.blackjack.pays_diamonds
    return o.blackjack.pays


def win_odds(o: Options, hand: Hand) -> Odds:
    return o.wins.pays_21 if hand.total == 21 else EVEN


def dealer_pushes(o: Options, total: int, count: int) -> bool:
    """Whether the dealer's busted hand pushes unresolved wagers instead of losing to them."""
    if total == 22 and o.dealer.push_22:
        return True
    return total > 21 and 0 < o.dealer.push_bust_cards <= count


def can_push(o: Options) -> bool:
    return o.dealer.push_22 or o.dealer.push_bust_cards > 0


def against_dealer(
    o: Options, hand: Hand, total: int, count: int, *, blackjack: bool
) -> tuple[Against, Odds | None]:
    """Returns outcome and odds of an unbusted hand against the dealer's completed hand."""
    if blackjack:
        if not hand.natural:
            return "lose", None
        if o.blackjack.tie == "push":
            return "push", None
    elif dealer_pushes(o, total, count):
        return "push", None
    if hand.natural:
        return "blackjack", blackjack_odds(o, hand.cards)
    if total > 21 or hand.total > total:
        return "win", win_odds(o, hand)
    return ("push", None) if hand.total == total else ("lose", None)


def surrendered(o: Options, hand: Hand) -> Amount:
    """Returns the amount that a surrender gives back."""
    if hand.doubles and o.surrender.of_doubled == "original_bet":
        return hand.wager - hand.bet
    return o.money.half(hand.wager)


def buster_odds(o: Options, total: int, count: int) -> Odds | None:
    """Returns a Buster wager's odds against the dealer's completed hand, or None if it loses."""
    pays = o.bonus.buster.pays
    if pays is None or total <= 21:
        return None
    to_one = pays.get(min(count, max(pays)))
    return None if to_one is None else Odds(to_one, 1)


def dealer_draws(o: Options, total: int, *, soft: bool) -> bool:
    """Whether the dealer must draw on this total."""
    return total < 17 or (total == 17 and soft and o.dealer.soft_17 == "hit")


def could_be_blackjack(up: int) -> bool:
    """Whether an up card of this value can be half of a blackjack; 0: no up card is known."""
    return up in (0, ACE, 10)


def wins_insurance(up: Card, hole: Card) -> bool:
    return VALUE[up] == ACE and VALUE[hole] == 10
