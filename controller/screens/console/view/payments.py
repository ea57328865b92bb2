"""Pending payments, in order."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from controller.procedure.model.effects import Tell
from controller.procedure.model.payments import tucks
from controller.procedure.model.state import Due, State, Step
from controller.procedure.prompts import payment_prompt
from controller.screens.console.text import HouseTerms
from controller.screens.console.view.allowed_acts import AllowedActs

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


def payments_of(offers: AllowedActs, tongue: HouseTerms) -> Payments | None:
    s = offers.state
    if s.step is not Step.PAYING or not s.due:
        return None
    every = tuple(_payment(offers, tongue, s, at) for at in range(len(s.due)))
    winner = s.due[0].returned > s.due[0].stake
    name = "instant" if s.due[0].outcome in ("instant21", "instant6") else "now"
    return Payments(
        every[0],
        every[1:],
        tongue.texts(f"console.pay.{name}") if winner and s.after is not Step.CLEARING else "",
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
