"""Facts as text, in English."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from controller.procedure.model.effects import (
    BankCounted,
    Burned,
    Corrected,
    DecksOut,
    Discarded,
    Fact,
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
from controller.procedure.prompts.catalogue import BETS, ENGLISH
from controller.procedure.prompts.terms import AmountFormat, PromptTerms


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
