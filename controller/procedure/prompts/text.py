"""Prompts and facts as text, and the terms that they contain.

A prompt is a headline and details. A table has one function for each kind of prompt; the texts are
those of the catalogue or of a house's translation. The record has headline and details in one line,
always in English.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from controller.procedure.model.effects import (
    BankCounted,
    Burned,
    Corrected,
    DecksOut,
    Discarded,
    Fact,
    Prompt,
    RoundOver,
    RoundVoid,
    Ruled,
    SeatDead,
    Settled,
    Tell,
    Told,
    Tucked,
    WagersLocked,
)
from controller.procedure.prompts.catalogue import BETS, DETAILS, ENGLISH, WHAT, Texts
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


Parts: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Headline and details. Empty parts are left out."""
Worded: TypeAlias = Callable[[Prompt, PromptTerms, bool], Parts]


def say(prompt: Prompt, money: AmountFormat, *, several: bool = False) -> str:
    """Returns the prompt in English. `several`: the seat has several hands, so each is named."""
    return sentence(prompt, PromptTerms(ENGLISH, money), several=several)


def parts_of(prompt: Prompt, terms: PromptTerms, *, several: bool) -> Parts:
    """Returns headline and details of a prompt."""
    headline, details = _PROMPTS[prompt.tell](prompt, terms, several)
    return tuple(filter(None, headline)), tuple(filter(None, details))


def sentence(prompt: Prompt, terms: PromptTerms, *, several: bool) -> str:
    """Returns the whole prompt in one line."""
    headline, details = parts_of(prompt, terms, several=several)
    words = " - ".join((*headline, *details))
    if prompt.to != "floor":
        return words
    return terms.texts("console.say.floor", words=f"{words[0].lower()}{words[1:]}")


def _seat(p: Prompt, t: PromptTerms, several: bool) -> str:
    return t.seat(p.seat, p.hand, several=several)


def _place(p: Prompt, t: PromptTerms, several: bool) -> str:
    """Where the next card goes."""
    match p.place:
        case "up" | "hole" | "burn":
            return t.texts(f"console.place.{p.place}")
        case "dealer":
            return t.texts("console.place.dealer", nth=t.ordinal(p.count))
    seat = _seat(p, t, several)
    return t.texts(
        "console.place.hand", seat=f"{seat[0].lower()}{seat[1:]}", nth=t.ordinal(p.count)
    )


def _fixed(name: str, *details: str) -> Worded:
    """Returns a function for texts that may have the fields {count}, {cards} and {decks}."""

    def worded(p: Prompt, t: PromptTerms, several: bool) -> Parts:
        cards, decks = t.counted(p.count, "card"), t.counted(p.count, "deck")
        headline, *rest = (
            t.texts(f"console.say.{each}", count=p.count, cards=cards, decks=decks)
            for each in (name, *details)
        )
        return (headline,), tuple(rest)

    return worded


def _load(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    behind = t.texts("console.say.behind", cards=t.counted(p.total, "card")) if p.total else ""
    return (t.texts("console.say.load_shoe"),), (t.counted(p.count, "card"), behind)


def _wagers(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    texts = t.texts
    bets = ", ".join(t.bet(bet) for bet in p.choices)
    cap = texts("console.say.cap", amount=t.amount(p.amount)) if p.amount else ""
    beside = texts("console.say.beside") if p.place == "spare" else ""
    ready = texts("console.say.ready", seats=t.counted(p.count, "seat")) if p.count else ""
    return (texts("console.say.take_wagers", bets=bets),), (t.warn(p.warn), cap, beside, ready)


def _deal(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    if p.place == "dealer" and p.count > 2:
        has = t.texts("console.say.dealer_has", total=t.total(p.total, soft=p.soft))
        return (has, t.texts("console.say.draw", nth=t.ordinal(p.count))), ()
    return (t.texts("console.say.deal", place=_place(p, t, several)),), ()


def _spare(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    place = _place(p, t, several)
    if p.warn == "entered":
        return (t.texts("console.say.entered", place=place),), ()
    seen = f"{t.warn(p.warn)} " if p.warn else ""
    return (t.texts("console.say.lay_spare", seen=seen, place=place),), ()


def _natural(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    seat = _seat(p, t, several).lower()
    return (
        t.texts("console.say.ask_natural", seat=seat),
        t.texts("console.say.asking", choices=t.choices(p.choices)),
    ), ()


def _insurance(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    name = "ask_even" if "even_money" in p.choices else "ask_insurance"
    pays = t.texts("console.say.comma_pays", odds=t.odds(p.odds)) if p.odds else ""
    even = t.choice("even_money")
    said = t.texts(f"console.say.{name}", seat=p.seat, even=even, amount=t.amount(p.amount))
    return (f"{said}{pays}",), ()


def _chips_of(p: Prompt, t: PromptTerms) -> str:
    how = t.chips(p.chips)
    return f": {how}" if how else ""


def _when_chips(name: str) -> Worded:
    def worded(p: Prompt, t: PromptTerms, several: bool) -> Parts:
        seat = _seat(p, t, several)
        again = p.tell is Tell.CONFIRM_DOUBLE and p.count > 1
        what = t.texts(f"console.say.{name}", seat=seat)
        if again:
            what = t.texts("console.say.doubles_again", seat=seat, nth=t.ordinal(p.count))
        more = t.texts("console.say.more", amount=t.amount(p.amount), stake=t.amount(p.stake))
        lies = t.texts("console.say.when_it_lies")
        return (what,), (t.warn(p.warn), f"{more}{_chips_of(p, t)}", lies)

    return worded


def _decide(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    near = (t.near(each, p.count + 1) for each in p.near)
    return (_seat(p, t, several), t.total(p.total, soft=p.soft)), (t.choices(p.choices), *near)


def _payment(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    floor = p.tell is Tell.FLOOR_FIRST  # only winnings wait for the floor
    tell = Tell.PAY if floor else p.tell
    bet = t.bet(p.place) if p.place != "main" else ""
    who = (_seat(p, t, several), bet, t.why(p.why, p.cards, tell))
    return who, _money(p, t, tell, floor=floor)


def _money(p: Prompt, t: PromptTerms, tell: Tell, *, floor: bool) -> tuple[str, ...]:
    """Returns odds, amount and chips of a payment, a collection or a return."""
    texts, stake, amount = t.texts, t.amount(p.stake), t.amount(p.amount)
    chips = _chips_of(p, t)
    if tell is Tell.PAY:
        pays = texts("console.say.pays", odds=t.odds(p.odds)) if p.odds else ""
        first = texts("console.say.floor_first") if floor else ""
        return pays, f"{texts('console.say.amount_on', amount=amount, stake=stake)}{chips}", first
    if tell is Tell.COLLECT:
        return texts("console.say.take", amount=amount), t.warn(p.warn)
    if p.amount < p.stake:
        return (f"{texts('console.say.back_of', amount=amount, stake=stake)}{chips}",)
    return (texts("console.say.back", amount=amount),)


def _case(p: Prompt, t: PromptTerms) -> str:
    """Returns the case of a stopped table: the irregularity, its seat, its card, its detail."""
    card = t.card(p.cards[0]) if p.cards else ""
    seat = t.seat(p.seat).lower() if p.seat else ""
    return ", ".join(filter(None, (t.what(p.why), seat, card, t.detail(p.place))))


def _rule(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    ways = t.texts("console.term.or_else").join(t.way(each) for each in p.choices)
    return (t.texts("console.say.rule", case=_case(p, t)),), (ways, t.warn(p.warn))


def _about(name: str, *more: str) -> Worded:
    """Returns a function for a stopped table: its case, and more details."""

    def worded(p: Prompt, t: PromptTerms, several: bool) -> Parts:
        details = (t.texts(f"console.say.{each}") for each in more)
        return (t.texts(f"console.say.{name}"),), (_case(p, t), *details)

    return worded


_PROMPTS: Final[dict[Tell, Worded]] = {
    Tell.OPEN_TABLE: _fixed("open_table", "count_bank"),
    Tell.SHUFFLE: _fixed("shuffle"),
    Tell.AWAIT_SHUFFLE: _fixed("await_shuffle"),
    Tell.CHANGE_DECKS: _fixed("change_decks", "shuffle_others"),
    Tell.LOAD_SHOE: _load,
    Tell.BURN: _fixed("burn"),
    Tell.TAKE_WAGERS: _wagers,
    Tell.DEAL: _deal,
    Tell.LAY_SPARE: _spare,
    Tell.ASK_NATURAL: _natural,
    Tell.ASK_INSURANCE: _insurance,
    Tell.CONFIRM_INSURANCE: _when_chips("insures"),
    Tell.CLOSE_INSURANCE: _fixed("close_insurance"),
    Tell.CHECK_HOLE: _fixed("check_hole"),
    Tell.DECIDE: _decide,
    Tell.CONFIRM_DOUBLE: _when_chips("doubles"),
    Tell.CONFIRM_SPLIT: _when_chips("splits"),
    Tell.REVEAL: _fixed("reveal"),
    Tell.PAY: _payment,
    Tell.COLLECT: _payment,
    Tell.GIVE_BACK: _payment,
    Tell.FLOOR_FIRST: _payment,
    Tell.CLEAR: _fixed("clear"),
    Tell.RULE: _rule,
    Tell.ENTER_CARD: _about("enter_card"),
    Tell.CONFIRM_CARD: _about("confirm_card"),
    Tell.AWAIT_DEVICE: _about("await_device", "device_way"),
    Tell.CONFIRM_FELT: _about("confirm_felt"),
    Tell.REFILL: _about("refill"),
}


def fact(happened: Fact, money: AmountFormat) -> str:
    """Returns what has happened, as one line."""
    return _FACTS[type(happened)](happened, PromptTerms(ENGLISH, money))


def _line(*parts: str) -> str:
    return " - ".join(filter(None, parts))


def _settled(f: Settled, t: PromptTerms) -> str:
    won = f.returned > f.stake
    tell = Tell.PAY if won else Tell.GIVE_BACK if f.returned else Tell.COLLECT
    bet = t.bet(f.bet) if f.bet != "main" else ""
    who = _line(t.seat(f.seat, f.hand), bet, t.why(f.why, f.cards, tell))
    if tell is Tell.PAY:
        return _line(who, f"{t.amount(f.returned - f.stake)} paid on {t.amount(f.stake)}")
    if tell is Tell.COLLECT:
        return _line(who, f"{t.amount(f.stake)} taken")
    part = f" of {t.amount(f.stake)}" if f.returned < f.stake else ""
    return _line(who, f"{t.amount(f.returned)}{part} given back")


def _told(f: Told, t: PromptTerms) -> str:
    seat = t.seat(f.seat).lower() if f.seat else ""
    case = ", ".join(filter(None, (t.what(f.what), seat, t.detail(f.detail))))
    return f"{f.who.capitalize()} told: {case}"


def _people(by: str, second: str) -> str:
    return f"by {by} and {second}" if second else f"by {by}"


def _locked(f: WagersLocked, t: PromptTerms) -> str:
    cap = "" if f.cap is None else f"beyond {t.amount(f.cap)} won the floor sees each payment"
    return _line(f"Round {f.round}: wagers of {t.amount(f.total)} are locked", cap)


def _seen(verb: str) -> Callable[[Any, PromptTerms], str]:
    return lambda f, t: f"{t.card(f.card) if f.card >= 0 else 'a card'} {verb}".capitalize()


def _corrected(f: Corrected, t: PromptTerms) -> str:
    where = f"Round {f.round}, seat {f.seat}, {BETS.get(f.bet, f.bet)}"
    amounts = f"{t.amount(f.paid)} was paid, {t.amount(f.due)} was due"
    return _line(where, amounts, _people(f.by, f.second))


_FACTS: Final[dict[type[Fact], Callable[[Any, PromptTerms], str]]] = {
    BankCounted: lambda f, t: f"Bank counted twice: {t.amount(f.bank)}",
    WagersLocked: _locked,
    Settled: _settled,
    Tucked: lambda f, t: f"Seat {f.seat}: cards tucked under the Buster wager",
    Burned: _seen("burned"),
    Discarded: _seen("to the discard rack"),
    DecksOut: lambda f, t: "The decks are out of play",
    SeatDead: lambda f, t: f"Seat {f.seat}: dead hand, in again next round",
    Told: _told,
    Ruled: lambda f, t: f"Ruled on {t.what(f.what)}: {t.way(f.way)}, {_people(f.by, f.second)}",
    RoundVoid: lambda f, t: f"Round {f.round} is void, {_people(f.by, f.second)}",
    Corrected: _corrected,
    RoundOver: lambda f, t: f"Round {f.round} is over, {t.amount(f.won)} won",
}
