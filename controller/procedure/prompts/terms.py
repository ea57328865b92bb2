"""The table's own terms: choices, bets, reasons, irregularities, ways on, cards, amounts.

`words` makes sentences of them; buttons, lists and reports use them as they are.
"""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

from controller.rules.cards import RANK, SUIT, Card
from controller.rules.irregularities import Irregularity, Way
from controller.rules.money import Amount, Odds


class AmountFormat(Protocol):
    """Whatever writes an amount as people read it."""

    def amount(self, amount: Amount) -> str: ...


class MoneyFormat(Struct, frozen=True):
    """$25, $12.50, $1,250; a symbol of letters stands apart: CHF 25."""

    symbol: str = "$"
    minor_digits: int = 2

    def amount(self, amount: Amount) -> str:
        whole, rest = divmod(abs(amount), 10**self.minor_digits)
        cents = f".{rest:0{self.minor_digits}d}" if rest else ""
        space = " " if self.symbol[-1:].isalpha() else ""
        return f"{'-' if amount < 0 else ''}{self.symbol}{space}{whole:,}{cents}"


CHOICES: Final = {
    "hit": "hit",
    "stand": "stand",
    "double": "double",
    "split": "split",
    "surrender": "surrender",
    "refuse_card": "refuse the exposed card",
    "take_pay": "take the pay",
    "decline_pay": "play it as 21",
    "insure": "insurance",
    "even_money": "even money",
    "decline": "decline",
    "confirm": "confirm",
    "withdraw": "withdraw",
    "bet": "bet",
}
BETS: Final = {
    "main": "main",
    "diamond": "diamond bet",
    "buster": "Buster",
    "toke_main": "toke",
    "toke_buster": "toke on Buster",
    "insurance": "insurance",
}
WARNS: Final = {
    "doubles_21": "it has 21 already",
    "ace_one": "the ace counts one from here on",
    "exposed": "exposed",
    "last_round": "last round of this shoe",
    "two_people": "bring a second person",
    "tuck": "tuck the cards under the Buster wager",
}
NEAR: Final = {
    "instant21": "one card from a {count}-card 21",
    "instant6": "one card from a {count}-card hand, paid at once",
}
WHY: Final = {
    "blackjack": "blackjack",
    "blackjack_in_diamonds": "blackjack in diamonds",
    "diamond_blackjack": "blackjack in diamonds",
    "no_diamond_blackjack": "no blackjack in diamonds",
    "even_money": "even money",
    "no_dealer_blackjack": "dealer has no blackjack",
    "dealer_blackjack": "dealer has blackjack",
    "bust": "bust{with_total}",
    "instant21": "{count}-card 21",
    "instant6": "{count} cards, {total}",
    "surrender": "surrender",
    "against_total": "{against}",
    "wins_21": "21 wins",
    "dealer_busts": "dealer busts",
    "dealer_22": "dealer has 22, push",
    "dealer_bust_push": "dealer's bust pushes",
    "dealer_stands": "dealer does not bust",
    "original_bets_only": "dealer has blackjack, original bet only",
    "void": "round void",
    "dead_hand": "dead hand",
    "asked_again": "asked again",
}
"""Why something is paid, taken or given back. A toke has no cards of its own to count."""
WHAT: Final = {
    Irregularity.FACE_UP_CARD: "card face up in the shoe",
    Irregularity.ERROR_CARD: "card drawn in error, not seen",
    Irregularity.ERROR_CARD_EXPOSED: "card drawn in error and seen",
    Irregularity.DEALER_OVERDREW: "dealer drew on a standing total",
    Irregularity.DEALER_CARD_MISSED: "dealer's own card missed",
    Irregularity.SHOE_RAN_OUT: "shoe out of cards",
    Irregularity.SEAT_MISSED: "seat got no cards",
    Irregularity.SEAT_SHORTED: "seat got one card only",
    Irregularity.CARD_UNREADABLE: "card not read",
    Irregularity.DECK_SUSPECT: "decks in doubt",
    Irregularity.WRONG_PAYMENT: "wrong payment",
    Irregularity.HOLE_EXPOSED: "hole card seen early",
    Irregularity.HOLE_UNCHECKED: "hole card not checked",
    Irregularity.OUT_OF_TURN: "hand played out of turn",
    Irregularity.INSURANCE_DISPUTE: "insurance disputed",
    Irregularity.MISDEAL: "misdeal",
    Irregularity.DEVICE_LOST: "device lost",
    Irregularity.RESTARTED: "controller restarted",
    Irregularity.PLAYER_ABSENT: "player gone",
    Irregularity.CANNOT_COVER: "insurance, double or split withdrawn",
    Irregularity.HOLE_MISMATCH: "hole card and its check disagree",
    Irregularity.UNKNOWN_CARD: "joker or unknown card",
    Irregularity.LATE_WAGER: "wager late or without main wager",
    Irregularity.DEALER_RELIEVED: "dealer relieved",
    Irregularity.FLOOR_CALLED: "floor called",
}
WAYS: Final = {
    Way.FLOOR_DECIDES: "floor decides",
    Way.DISCARD: "discard the card",
    Way.USE_NEXT: "use it as the next card",
    Way.DEAL_ON: "deal it on",
    Way.BURN: "burn",
    Way.DEALER_LAST: "dealer's cards last",
    Way.RESHUFFLE: "shuffle the discards, finish the round",
    Way.DEAD_HAND: "dead hand, wager back",
    Way.SECOND_CARD_LAST: "second card last",
    Way.ENTER_CARD: "enter the card from the felt",
    Way.DECKS_OUT: "decks out of play",
    Way.CORRECT: "correct the payment",
    Way.RESUME: "play on",
    Way.VOID: "void the round",
    Way.REOPEN_INSURANCE: "ask for insurance again",
    Way.DEVICE_CHECK: "wait for the device",
    Way.FELT_CHECK: "compare the felt",
    Way.STAND_HAND: "hand stands",
    Way.WITHDRAW: "take it back",
    Way.REFUSE: "refuse it",
}
DETAILS: Final = {
    "duplicate": "one card too often",
    "foreign_back": "foreign back",
    "short": "cards missing",
    "long": "cards too many",
    "factory_order": "factory order",
    "1": "first card",
    "2": "second card",
    "misread": "read as another card",
    "counters_accepted": "device taken back as it is",
}
"""What an event says more closely; whatever is not here is text already."""

_ORDINALS: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth"}
_NUMBERS: Final = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
_RANKS: Final = ("ace", *map(str, range(2, 11)), "jack", "queen", "king")
_SUITS: Final = ("clubs", "diamonds", "hearts", "spades")


def number(count: int) -> str:
    return _NUMBERS.get(count, str(count))


def ordinal(count: int) -> str:
    return _ORDINALS.get(count, f"{count}th")


def card_words(card: Card) -> str:
    return f"{_RANKS[RANK[card]]} of {_SUITS[SUIT[card]]}"


def odds_words(odds: Odds) -> str:
    return f"{odds.pays} to {odds.on}"


def total_words(total: int, *, soft: bool) -> str:
    if total >= 21:
        return str(total)
    return f"{'soft' if soft else 'hard'} {total}"


def choice(words: tuple[str, ...]) -> str:
    """hit, stand or double"""
    named = [CHOICES[word] for word in words]
    return " or ".join(filter(None, (", ".join(named[:-1]), *named[-1:])))


def irregularity(name: str) -> str:
    return WHAT[Irregularity(name)]


def way(name: str) -> str:
    return DETAILS[name] if name in DETAILS else WAYS[Way(name)]


def detail(text: str) -> str:
    return DETAILS.get(text, text)


def counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def line(*parts: str) -> str:
    """The parts that say something, as one line."""
    return " - ".join(filter(None, parts))
