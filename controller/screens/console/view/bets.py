"""The wagers of each seat: placed, allowed, how to enter them; and pending payments, in order."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from controller.procedure.model.effects import Tell
from controller.procedure.model.game import BETS
from controller.procedure.model.payments import tucks
from controller.procedure.model.state import Due, Seat, State, Step
from controller.procedure.prompts import bets_open, payment_prompt
from controller.rules.options import Limit
from controller.screens.console.text import HouseTerms
from controller.screens.console.view.allowed_acts import (
    ActButton,
    ActField,
    AllowedActs,
    FieldOption,
)
from controller.screens.console.view.buttons import money

_BEFORE = (Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING, Step.BURNING)
"""Steps at which a placed wager waits for a shuffle."""


class WagerSeat(Struct, frozen=True):
    number: int
    name: str
    bets: tuple[tuple[str, str], ...]
    """The placed bets and their amounts."""
    enter: tuple[ActButton, ...]
    back: tuple[ActButton, ...]


class WagerPanel(Struct, frozen=True):
    seats: tuple[WagerSeat, ...]
    limits: tuple[tuple[str, str], ...]
    """Of each allowed bet."""


def wagers_of(offers: AllowedActs, terms: HouseTerms) -> WagerPanel | None:
    """Returns None if no wager can be placed or removed."""
    s = offers.state
    if s.step is not Step.WAGERING and not (s.step in _BEFORE and s.seats):
        return None
    by_number = {seat.number: seat for seat in s.seats}
    every = range(1, offers.game.seats + 1)
    # Until the shuffle is done wagers can be removed only.
    seats = every if s.step is Step.WAGERING else tuple(by_number)
    return WagerPanel(
        tuple(_seat(offers, terms, number, by_number.get(number)) for number in seats),
        tuple((terms.bet(bet), _limits(offers, terms, bet)) for bet in _open(offers)),
    )


def _open(o: AllowedActs) -> tuple[str, ...]:
    return bets_open(o.game, o.state) if o.state.step is Step.WAGERING else ()


def _seat(o: AllowedActs, t: HouseTerms, number: int, seat: Seat | None) -> WagerSeat:
    found = {} if seat is None else {bet: seat.amount(bet) for bet in BETS if seat.amount(bet)}
    lies = tuple(found)
    bets = tuple((t.bet(bet), t.amount(amount)) for bet, amount in found.items())
    return WagerSeat(
        number, t.seat(number), bets, _enter(o, t, number, seat), _back(o, t, number, lies)
    )


def _enter(o: AllowedActs, t: HouseTerms, number: int, seat: Seat | None) -> tuple[ActButton, ...]:
    options = tuple(
        FieldOption(bet, t.bet(bet), _limits(o, t, bet))
        for bet in _open(o)
        if o.takes("WagerPlaced", {"seat": number, "bet": bet, "amount": _least(o, bet)}, "dealer")
    )
    if not options:
        return ()
    ask = ActField("bet", "one", t.texts("console.ask.bet"), options)
    action = o.button("WagerPlaced", {"seat": number}, label=t.seat(number), tail=str(number))
    inputs = (ask, money(t, "amount", "amount"))
    return (replace(action, inputs=inputs, look="choice", preferred_key=str(number)),)


def _least(o: AllowedActs, bet: str) -> int:
    """Returns an amount within the limits."""
    limit: Limit = o.game.limits[bet]
    unit, least = o.game.money.unit, limit.min or 1
    least = -(-least // unit) * unit
    step = limit.step or unit
    return -(-least // step) * step


def _back(
    o: AllowedActs, t: HouseTerms, number: int, lies: tuple[str, ...]
) -> tuple[ActButton, ...]:
    options = tuple(
        FieldOption(bet, t.bet(bet))
        for bet in lies
        if o.takes("WagerRemoved", {"seat": number, "bet": bet}, "dealer")
    )
    if not options:
        return ()
    ask = ActField("bet", "one", t.texts("console.ask.bet"), options)
    action = o.button("WagerRemoved", {"seat": number}, tail=str(number), look="quiet")
    return (replace(action, inputs=(ask,)),)


def _limits(o: AllowedActs, t: HouseTerms, bet: str) -> str:
    limit: Limit = o.game.limits[bet]
    least, most = limit.min, limit.max
    parts = []
    if least is not None and most is not None:
        parts.append(t.texts("console.limit.both", least=t.amount(least), most=t.amount(most)))
    elif least is not None:
        parts.append(t.texts("console.limit.from", least=t.amount(least)))
    elif most is not None:
        parts.append(t.texts("console.limit.to", most=t.amount(most)))
    if limit.step is not None:
        parts.append(t.texts("console.limit.step", step=t.amount(limit.step)))
    return ", ".join(parts)


_SIGN: Final = {Tell.PAY: "pay", Tell.COLLECT: "take", Tell.GIVE_BACK: "back"}


class Payment(Struct, frozen=True):
    who: str
    """Seat, hand and bet."""
    why: str
    verb: str
    """pay, take or give back."""
    sign: str
    """pay, take or back: a mark beside the colour."""
    amount: str
    """Empty if the dealer has to declare it."""
    odds: str
    stake: str
    chips: tuple[tuple[int, str], ...]
    notes: tuple[str, ...]


class Payments(Struct, frozen=True):
    first: Payment
    more: tuple[Payment, ...]
    interrupt: str
    """Why it interrupts the round; empty if it does not."""
    again: bool
    """It was shown before a restart: it may have been made."""
    declare: bool
    total: int


def payments_of(offers: AllowedActs, terms: HouseTerms) -> Payments | None:
    s = offers.state
    if s.step is not Step.PAYING or not s.due:
        return None
    every = tuple(_payment(offers, terms, s, at) for at in range(len(s.due)))
    winner = s.due[0].returned > s.due[0].stake
    name = "instant" if s.due[0].outcome in ("instant21", "instant6") else "now"
    return Payments(
        every[0],
        every[1:],
        terms.texts(f"console.pay.{name}") if winner and s.after is not Step.CLEARING else "",
        offers.view.again,
        offers.game.jurisdiction.declare_payments,
        len(every),
    )


def _payment(o: AllowedActs, t: HouseTerms, s: State, at: int) -> Payment:
    due: Due = s.due[at]
    floor = due.floor and not (at == 0 and s.approved)
    prompt = payment_prompt(o.game, due, floor=floor, tuck=tucks(s, due))
    tell = Tell.PAY if prompt.tell is Tell.FLOOR_FIRST else prompt.tell
    several = sum(hand.seat == due.seat for hand in s.hands) > 1
    bet = t.bet(due.bet) if due.bet != "main" else ""
    seat = t.seat(prompt.seat, prompt.hand, several=several)
    # Hidden from a dealer who has to declare; the floor sees what it signs for.
    declare = o.game.jurisdiction.declare_payments and not (floor and at == 0)
    notes = [t.warn(prompt.warn)]
    notes += [t.texts("console.say.floor_first")] if floor else []
    return Payment(
        " - ".join(filter(None, (seat, bet))),
        t.why(due.why, due.cards, tell),
        t.texts(f"console.do.{tell.value}"),
        _SIGN[tell],
        "" if declare else t.amount(prompt.amount),
        t.odds(prompt.odds) if prompt.odds and tell is Tell.PAY else "",
        t.amount(prompt.stake),
        () if declare else prompt.chips,
        tuple(filter(None, notes)),
    )
