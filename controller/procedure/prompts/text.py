"""What the procedure says to people, worded here and nowhere else, in the terms of `terms`.

Prompts are read at three in the morning: what to do now, for which seat, and no more. Refusals are
worded where they are declared, rows where they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

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
from controller.procedure.prompts.terms import (
    BETS,
    CHOICES,
    NEAR,
    WARNS,
    WHY,
    AmountFormat,
    MoneyFormat,
    card_words,
    choice,
    counted,
    detail,
    irregularity,
    line,
    number,
    odds_words,
    ordinal,
    total_words,
    way,
)
from controller.rules.cards import Card
from controller.rules.hands import total_of
from controller.rules.money import Amount

__all__ = ["AmountFormat", "MoneyFormat", "fact", "say", "why"]

Says: TypeAlias = Callable[[Prompt, AmountFormat, bool], str]

# --- why something moves -----------------------------------------------------------------------

_PAID, _TAKEN, _BACK = Tell.PAY, Tell.COLLECT, Tell.GIVE_BACK
_AGAINST: Final = {
    _PAID: ("{total} beats the dealer", "beats the dealer"),
    _TAKEN: ("{total} loses to the dealer", "loses to the dealer"),
    _BACK: ("{total} pushes", "push"),
}
"""With the hand's cards, and for a toke, which has none of its own."""


def why(key: str, cards: tuple[Card, ...] = (), tell: Tell = _PAID) -> str:
    """The reason `key` of what is paid, taken or given back, with what the hand's cards add."""
    if key == "dealer_busts" and tell is _TAKEN:
        return "dealer busts with too few cards"  # only Buster bets lose to a bust
    if not cards and key in ("instant21", "instant6"):
        return "instant winner"
    total = total_of(cards)[0]
    against = _AGAINST[tell][0 if cards else 1].format(total=total)
    with_total = f" with {total}" if cards else ""
    count = number(len(cards))
    return WHY[key].format(count=count, total=total, with_total=with_total, against=against)


def _moved(returned: Amount, stake: Amount) -> Tell:
    if returned > stake:
        return _PAID
    return _BACK if returned else _TAKEN


# --- prompts -----------------------------------------------------------------------------------


def _seat(p: Prompt, *, several: bool) -> str:
    """Of a split, with its hand. What lies beside the hands is none of them."""
    hand = p.hand >= 0 and (p.hand > 0 or several)
    return f"Seat {p.seat}, hand {p.hand + 1}" if hand else f"Seat {p.seat}"


def _place(p: Prompt, *, several: bool) -> str:
    """Where the next card goes."""
    match p.place:
        case "up":
            return "the dealer's up card, face up"
        case "hole":
            return "the hole card, face down"
        case "dealer":
            return f"the dealer's {ordinal(p.count)} card, face up"
        case "burn":
            return "the discard rack, face down"
    seat = _seat(p, several=several)
    return f"{seat[0].lower()}{seat[1:]}, {ordinal(p.count)} card"


def _chips(p: Prompt) -> str:
    how = ", ".join(f"{count} {name}" for count, name in p.chips)
    return f": {how}" if how else ""


def _burn(p: Prompt, m: AmountFormat, several: bool) -> str:
    return f"Burn {counted(p.count, 'card')}"


def _wagers(p: Prompt, m: AmountFormat, several: bool) -> str:
    bets = ", ".join(BETS[bet] for bet in p.choices)
    ready = f"{counted(p.count, 'seat')} in, the first card locks them" if p.count else ""
    cap = f"a round pays {m.amount(p.amount)} at most without the floor" if p.amount else ""
    beside = "the first card lies beside the shoe" if p.place == "spare" else ""
    return line(f"Take wagers: {bets}", WARNS[p.warn] if p.warn else "", cap, beside, ready)


def _deal(p: Prompt, m: AmountFormat, several: bool) -> str:
    if p.place == "dealer" and p.count > 2:
        has = total_words(p.total, soft=p.soft)
        return f"Dealer has {has} - draw the {ordinal(p.count)} card"
    return f"Deal {_place(p, several=several)}"


def _spare(p: Prompt, m: AmountFormat, several: bool) -> str:
    if p.warn == "entered":
        return f"Confirm the card that was read from the felt: {_place(p, several=several)}"
    seen = f"{WARNS[p.warn]} " if p.warn else ""
    return f"Use the {seen}card beside the shoe: {_place(p, several=several)}"


def _natural(p: Prompt, m: AmountFormat, several: bool) -> str:
    return f"Ask {_seat(p, several=several).lower()}: blackjack - {choice(p.choices)}?"


def _insurance(p: Prompt, m: AmountFormat, several: bool) -> str:
    even = f"{CHOICES['even_money']}, or " if "even_money" in p.choices else ""
    pays = f", pays {odds_words(p.odds)}" if p.odds else ""
    return f"Ask seat {p.seat}: {even}insurance up to {m.amount(p.amount)}{pays}"


def _when_chips(what: str) -> Says:
    def words(p: Prompt, m: AmountFormat, several: bool) -> str:
        more = f"{m.amount(p.amount)} beside {m.amount(p.stake)}{_chips(p)}"
        redoubles = p.tell is Tell.CONFIRM_DOUBLE and p.count > 1
        again = f" a {ordinal(p.count)} time" if redoubles else ""
        warn = WARNS[p.warn] if p.warn else ""
        seat = _seat(p, several=several)
        return line(f"{seat} {what}{again}", warn, more, "confirm when it lies there")

    return words


def _decide(p: Prompt, m: AmountFormat, several: bool) -> str:
    near = [NEAR[each].format(count=number(p.count + 1)) for each in p.near]
    total = total_words(p.total, soft=p.soft)
    return line(_seat(p, several=several), total, choice(p.choices), *near)


def _payment(p: Prompt, m: AmountFormat, several: bool) -> str:
    floor = p.tell is Tell.FLOOR_FIRST  # only winnings wait for the floor
    tell = _PAID if floor else p.tell
    bet = BETS[p.place] if p.place != "main" else ""
    who = line(_seat(p, several=several), bet, why(p.why, p.cards, tell))
    stake, amount = m.amount(p.stake), m.amount(p.amount)
    if tell is _PAID:
        pays = f"pays {odds_words(p.odds)}" if p.odds else ""
        first = "see it before it is paid" if floor else ""
        return line(who, pays, f"{amount} on {stake}{_chips(p)}", first)
    if tell is _TAKEN:
        return line(who, f"take {amount}", WARNS[p.warn] if p.warn else "")
    part = f" of {stake}{_chips(p)}" if p.amount < p.stake else ""
    return line(who, f"give back {amount}{part}")


def _case(p: Prompt) -> str:
    """What a stopped table is about: the irregularity, its seat, its card, what is known more."""
    card = card_words(p.cards[0]) if p.cards else ""
    seat = f"seat {p.seat}" if p.seat else ""
    return ", ".join(filter(None, (irregularity(p.why), seat, card, detail(p.place))))


def _rule(p: Prompt, m: AmountFormat, several: bool) -> str:
    ways = ", or ".join(way(each) for each in p.choices)
    return line(f"Rule on {_case(p)}", ways, WARNS[p.warn] if p.warn else "")


def _about(text: str) -> Says:
    def words(p: Prompt, m: AmountFormat, several: bool) -> str:
        return line(text, _case(p))

    return words


def _await_device(p: Prompt, m: AmountFormat, several: bool) -> str:
    on = "goes on once nothing is wrong with it"
    accept = "the floor and a second person accept its counters"
    return line("Stop dealing", _case(p), f"{on}, or {accept}")


def _fixed(text: str) -> Says:
    """`text` may name the {count} or the {decks}."""
    return lambda p, m, several: text.format(count=p.count, decks=counted(p.count, "deck"))


def _load_shoe(p: Prompt, m: AmountFormat, several: bool) -> str:
    behind = f" - {counted(p.total, 'card')} behind the cut card" if p.total else ""
    return f"Cut, and load the shoe - {counted(p.count, 'card')}{behind}"


_SAYS: Final[dict[Tell, Says]] = {
    Tell.OPEN_TABLE: _fixed("Open the table - count the bank with a second person"),
    Tell.SHUFFLE: _fixed("Shuffle {decks}"),
    Tell.AWAIT_SHUFFLE: _fixed("Wait for the shuffle of {decks}"),
    Tell.CHANGE_DECKS: _fixed("Take these decks out of play - shuffle {decks} of others"),
    Tell.LOAD_SHOE: _load_shoe,
    Tell.BURN: _burn,
    Tell.TAKE_WAGERS: _wagers,
    Tell.DEAL: _deal,
    Tell.LAY_SPARE: _spare,
    Tell.ASK_NATURAL: _natural,
    Tell.ASK_INSURANCE: _insurance,
    Tell.CONFIRM_INSURANCE: _when_chips("insures"),
    Tell.CLOSE_INSURANCE: _fixed("Say aloud: insurance is closed"),
    Tell.CHECK_HOLE: _fixed("Check hole card"),
    Tell.DECIDE: _decide,
    Tell.CONFIRM_DOUBLE: _when_chips("doubles"),
    Tell.CONFIRM_SPLIT: _when_chips("splits"),
    Tell.REVEAL: _fixed("Turn the hole card over"),
    Tell.PAY: _payment,
    Tell.COLLECT: _payment,
    Tell.GIVE_BACK: _payment,
    Tell.FLOOR_FIRST: _payment,
    Tell.CLEAR: _fixed("Pick up the cards"),
    Tell.RULE: _rule,
    Tell.ENTER_CARD: _about("Enter the card that lies on the felt"),
    Tell.CONFIRM_CARD: _about("Confirm the card that was entered"),
    Tell.AWAIT_DEVICE: _await_device,
    Tell.CONFIRM_FELT: _about("Compare the felt with the screen, confirm when they agree"),
    Tell.REFILL: _about("Shuffle, cut and load the discards"),
}


def say(prompt: Prompt, money: AmountFormat, *, several: bool = False) -> str:
    """The instruction in words. `several`: the seat has more than one hand, so each is named."""
    words = _SAYS[prompt.tell](prompt, money, several)
    return f"Floor: {words[0].lower()}{words[1:]}" if prompt.to == "floor" else words


# --- facts -------------------------------------------------------------------------------------


def _settled(f: Settled, m: AmountFormat) -> str:
    tell = _moved(f.returned, f.stake)
    place = f"Seat {f.seat}, hand {f.hand + 1}" if f.hand > 0 else f"Seat {f.seat}"
    bet = BETS[f.bet] if f.bet != "main" else ""
    who = line(place, bet, why(f.why, f.cards, tell))
    if tell is _PAID:
        return line(who, f"{m.amount(f.returned - f.stake)} paid on {m.amount(f.stake)}")
    if tell is _TAKEN:
        return line(who, f"{m.amount(f.stake)} taken")
    part = f" of {m.amount(f.stake)}" if f.returned < f.stake else ""
    return line(who, f"{m.amount(f.returned)}{part} given back")


def _told(f: Told, m: AmountFormat) -> str:
    seat = f"seat {f.seat}" if f.seat else ""
    case = ", ".join(filter(None, (irregularity(f.what), seat, detail(f.detail))))
    return f"{f.who.capitalize()} told: {case}"


def _people(by: str, second: str) -> str:
    return f"by {by} and {second}" if second else f"by {by}"


def _locked(f: WagersLocked, m: AmountFormat) -> str:
    cap = "" if f.cap is None else f"beyond {m.amount(f.cap)} won the floor sees each payment"
    return line(f"Round {f.round}: wagers of {m.amount(f.total)} are locked", cap)


def _seen(verb: str) -> Callable[[Any, AmountFormat], str]:
    return lambda f, m: f"{card_words(f.card) if f.card >= 0 else 'a card'} {verb}".capitalize()


def _corrected(f: Corrected, m: AmountFormat) -> str:
    where = f"Round {f.round}, seat {f.seat}, {BETS.get(f.bet, f.bet)}"
    amounts = f"{m.amount(f.paid)} was paid, {m.amount(f.due)} was due"
    return line(where, amounts, _people(f.by, f.second))


_FACTS: Final[dict[type[Fact], Callable[[Any, AmountFormat], str]]] = {
    BankCounted: lambda f, m: f"Bank counted twice: {m.amount(f.bank)}",
    WagersLocked: _locked,
    Settled: _settled,
    Tucked: lambda f, m: f"Seat {f.seat}: cards tucked under the Buster wager",
    Burned: _seen("burned"),
    Discarded: _seen("to the discard rack"),
    DecksOut: lambda f, m: "The decks are out of play",
    SeatDead: lambda f, m: f"Seat {f.seat}: dead hand, in again next round",
    Told: _told,
    Ruled: lambda f, m: f"Ruled on {irregularity(f.what)}: {way(f.way)}, {_people(f.by, f.second)}",
    RoundVoid: lambda f, m: f"Round {f.round} is void, {_people(f.by, f.second)}",
    Corrected: _corrected,
    RoundOver: lambda f, m: f"Round {f.round} is over, {m.amount(f.won)} won",
}


def fact(told: Fact, money: AmountFormat) -> str:
    """What has happened, in words."""
    return _FACTS[type(told)](told, money)
