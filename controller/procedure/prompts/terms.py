"""Terms of prompts and facts as texts: cards, amounts, bets, reasons, irregularities, rulings.

`PromptTerms` takes them from a catalogue: English, or a house's translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from controller.procedure.model.effects import Tell
from controller.procedure.prompts.catalogue import DETAILS, ENGLISH, WHAT, Texts
from controller.rules.cards import RANK, RANKS, SUIT, SUITS, Card
from controller.rules.hands import total_of
from controller.rules.money import Amount, Odds

_AGAINST: Final = {Tell.PAY: "beats", Tell.COLLECT: "loses", Tell.GIVE_BACK: "pushes"}
_MAX_NUMBER: Final = 7
"""Numbers up to this one are spelt out."""
_MAX_ORDINAL: Final = 6


class AmountFormat(Protocol):
    """Formats amounts."""

    def amount(self, amount: Amount) -> str: ...


class MoneyFormat(Struct, frozen=True):
    """$25, $12.50, $1,250; a symbol of letters is followed by a space: CHF 25."""

    symbol: str = "$"
    minor_digits: int = 2

    def amount(self, amount: Amount) -> str:
        whole, rest = divmod(abs(amount), 10**self.minor_digits)
        cents = f".{rest:0{self.minor_digits}d}" if rest else ""
        space = " " if self.symbol[-1:].isalpha() else ""
        return f"{'-' if amount < 0 else ''}{self.symbol}{space}{whole:,}{cents}"


def either(texts: Texts, named: Sequence[str]) -> str:
    """hit, stand or double"""
    first = ", ".join(named[:-1])
    if not first:
        return "".join(named)
    return texts("console.term.either", first=first, last=named[-1])


class PromptTerms:
    """Terms as text, with the texts of a catalogue and amounts as `money` formats them."""

    def __init__(self, texts: Texts, money: AmountFormat) -> None:
        self.texts = texts
        self.amount = money.amount

    def card(self, card: Card) -> str:
        texts = self.texts
        return texts(
            "console.term.card",
            rank=texts(f"console.rank.{RANKS[RANK[card]]}"),
            suit=texts(f"console.suit.{SUITS[SUIT[card]]}"),
        )

    def seat(self, seat: int, hand: int = 0, *, several: bool = False) -> str:
        if hand >= 0 and (hand > 0 or several):  # a hand of a split; side bets have none
            return self.texts("console.term.hand", seat=seat, hand=hand + 1)
        return self.texts("console.term.seat", seat=seat)

    def ordinal(self, count: int) -> str:
        if 1 <= count <= _MAX_ORDINAL:
            return self.texts(f"console.ordinal.{count}")
        return self.texts("console.ordinal.other", count=count)

    def number(self, count: int) -> str:
        return self.texts(f"console.number.{count}") if 1 <= count <= _MAX_NUMBER else str(count)

    def counted(self, count: int, thing: str) -> str:
        """`thing`: card, deck, seat or payment."""
        many = "one" if count == 1 else "many"
        return self.texts(f"console.count.{thing}_{many}", count=count)

    def odds(self, odds: Odds) -> str:
        return self.texts("console.term.odds", pays=odds.pays, on=odds.on)

    def total(self, total: int, *, soft: bool) -> str:
        if total >= 21:
            return str(total)
        return self.texts(f"console.term.{'soft' if soft else 'hard'}", total=total)

    def choice(self, word: str) -> str:
        return self.texts(f"console.choice.{word}")

    def choices(self, words: tuple[str, ...]) -> str:
        return either(self.texts, [self.choice(word) for word in words])

    def bet(self, bet: str) -> str:
        return self.texts(f"console.bet.{bet}")

    def warn(self, warn: str) -> str:
        return self.texts(f"console.warn.{warn}") if warn else ""

    def near(self, near: str, count: int) -> str:
        return self.texts(f"console.near.{near}", count=self.number(count))

    def what(self, irregularity: str) -> str:
        return self.texts(f"console.what.{irregularity}")

    def way(self, way: str) -> str:
        return self.detail(way) if way in DETAILS else self.texts(f"console.way.{way}")

    def detail(self, text: str) -> str:
        """Returns the text of a detail that has a name; any other detail is text already."""
        return self.texts(f"console.detail.{text}") if text in DETAILS else text

    def why(self, key: str, cards: tuple[Card, ...], tell: Tell) -> str:
        """Returns the reason for a payment, a collection or a return."""
        texts = self.texts
        if key == "dealer_busts" and tell is Tell.COLLECT:
            return texts("console.term.busts_short")  # only Buster bets lose to a bust
        if not cards and key in ("instant21", "instant6"):
            return texts("console.term.instant")
        total, count = total_of(cards)[0], self.number(len(cards))
        if key == "against_total":
            against = _AGAINST[tell]
            if not cards:
                return texts(f"console.against.{against}_alone")
            return texts(f"console.against.{against}", total=total)
        if key == "bust" and cards:
            return texts("console.term.bust_with", total=total)
        return texts(f"console.why.{key}", count=count, total=total)

    def chips(self, chips: tuple[tuple[int, str], ...]) -> str:
        """Chips by the house's names for them."""
        return ", ".join(f"{count} {name}" for count, name in chips)


_ENGLISH: Final = PromptTerms(ENGLISH, MoneyFormat())
card_words: Final = _ENGLISH.card
total_words: Final = _ENGLISH.total
way: Final = _ENGLISH.way
detail: Final = _ENGLISH.detail


def irregularity(name: str) -> str:
    return WHAT[name]


def counted(count: int, thing: str) -> str:
    """2 cards, for a word whose plural has an s."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
