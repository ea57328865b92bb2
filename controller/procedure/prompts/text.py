"""Prompts as text: a headline and details.

A table has one function for each kind of prompt; the texts are those of the catalogue or of a
house's translation. The record has headline and details in one line, always in English.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from controller.procedure.model.effects import Prompt, Tell
from controller.procedure.prompts.catalogue import ENGLISH
from controller.procedure.prompts.terms import AmountFormat, PromptTerms

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


def _fixed(name: str) -> Worded:
    """Returns a function for a text that may have the fields {count} and {decks}."""

    def worded(p: Prompt, t: PromptTerms, several: bool) -> Parts:
        values = {"count": p.count, "decks": t.counted(p.count, "deck")}
        return (t.texts(f"console.say.{name}", **values),), ()

    return worded


def _open(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    return (t.texts("console.say.open_table"),), (t.texts("console.say.count_bank"),)


def _change_decks(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    decks = t.counted(p.count, "deck")
    return (
        (t.texts("console.say.change_decks"),),
        (t.texts("console.say.shuffle_others", decks=decks),),
    )


def _load(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    cards = t.counted(p.total, "card")
    behind = t.texts("console.say.behind", cards=cards) if p.total else ""
    return (t.texts("console.say.load_shoe"),), (t.counted(p.count, "card"), behind)


def _burn(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    return (t.texts("console.say.burn", cards=t.counted(p.count, "card")),), ()


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
    amount = t.amount(p.amount)
    said = t.texts(f"console.say.{name}", seat=p.seat, even=even, amount=amount)
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
    total = t.total(p.total, soft=p.soft)
    return (_seat(p, t, several), total), (t.choices(p.choices), *near)


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
    joined = t.texts("console.term.or_else")
    ways = joined.join(t.way(each) for each in p.choices)
    return (t.texts("console.say.rule", case=_case(p, t)),), (ways, t.warn(p.warn))


def _about(name: str) -> Worded:
    def worded(p: Prompt, t: PromptTerms, several: bool) -> Parts:
        return (t.texts(f"console.say.{name}"),), (_case(p, t),)

    return worded


def _await_device(p: Prompt, t: PromptTerms, several: bool) -> Parts:
    on = t.texts("console.say.device_way")
    return (t.texts("console.say.await_device"),), (_case(p, t), on)


_PROMPTS: Final[dict[Tell, Worded]] = {
    Tell.OPEN_TABLE: _open,
    Tell.SHUFFLE: _fixed("shuffle"),
    Tell.AWAIT_SHUFFLE: _fixed("await_shuffle"),
    Tell.CHANGE_DECKS: _change_decks,
    Tell.LOAD_SHOE: _load,
    Tell.BURN: _burn,
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
    Tell.AWAIT_DEVICE: _await_device,
    Tell.CONFIRM_FELT: _about("confirm_felt"),
    Tell.REFILL: _about("refill"),
}
