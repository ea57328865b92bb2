"""The table's terms as the house's texts have them: what the procedure names, in its language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from controller.api.contract.view import DeviceShown
from controller.procedure.model.effects import Tell
from controller.procedure.prompts import DETAILS, AmountFormat
from controller.rules.cards import RANK, RANKS, SUIT, SUITS, Card
from controller.rules.hands import total_of
from controller.rules.money import Amount, Odds
from controller.screens.common.texts import Texts

READY: Final = "ready"
"""How a device is linked that is there."""
_AGAINST: Final = {Tell.PAY: "beats", Tell.COLLECT: "loses", Tell.GIVE_BACK: "pushes"}
_MOST_NAMED: Final = 7
"""Numbers up to this one have a word."""
_MOST_ORDINAL: Final = 6


def either(texts: Texts, named: Sequence[str]) -> str:
    """hit, stand or double"""
    first = ", ".join(named[:-1])
    if not first:
        return "".join(named)
    return texts("console.term.either", first=first, last=named[-1])


class HouseTerms:
    """Words for cards, amounts, bets, reasons, irregularities and ways on."""

    def __init__(self, texts: Texts, money: AmountFormat) -> None:
        self.texts = texts
        self._money = money

    def amount(self, amount: Amount) -> str:
        return self._money.amount(amount)

    def card(self, card: Card) -> str:
        texts = self.texts
        return texts(
            "console.term.card",
            rank=texts(f"console.rank.{RANKS[RANK[card]]}"),
            suit=texts(f"console.suit.{SUITS[SUIT[card]]}"),
        )

    def seat(self, seat: int, hand: int = 0, *, several: bool = False) -> str:
        if hand >= 0 and (hand > 0 or several):  # of a split; a bet beside hands has none
            return self.texts("console.term.hand", seat=seat, hand=hand + 1)
        return self.texts("console.term.seat", seat=seat)

    def device(self, device: DeviceShown) -> str:
        """One of them: of a kind that a table has several of, by its serial number too."""
        return self.texts(f"console.device.one_{device.device}", serial=device.serial)

    def linked(self, state: str, other: str) -> str:
        """How a device is linked; `other`: where there are no words for it."""
        known = self.texts.has(f"console.link.{state}")
        return self.texts(f"console.link.{state}") if known else other

    def ordinal(self, count: int) -> str:
        if 1 <= count <= _MOST_ORDINAL:
            return self.texts(f"console.ordinal.{count}")
        return self.texts("console.ordinal.other", count=count)

    def number(self, count: int) -> str:
        return self.texts(f"console.number.{count}") if 1 <= count <= _MOST_NAMED else str(count)

    def counted(self, count: int, thing: str) -> str:
        """`thing`: card, deck or seat."""
        many = "one" if count == 1 else "many"
        return self.texts(f"console.count.{thing}_{many}", count=count)

    def odds(self, odds: Odds) -> str:
        return self.texts("console.term.odds", pays=odds.pays, on=odds.on)

    def total(self, total: int, *, soft: bool) -> str:
        if total >= 21:
            return str(total)
        kind = "soft" if soft else "hard"
        return self.texts(f"console.term.{kind}", total=total)

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
        """A detail that has a name; whatever has none is text already."""
        return self.texts(f"console.detail.{text}") if text in DETAILS else text

    def why(self, key: str, cards: tuple[Card, ...], tell: Tell) -> str:
        """Why something is paid, taken or given back."""
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
        """The colours of chips are the house's own names."""
        return ", ".join(f"{count} {name}" for count, name in chips)
