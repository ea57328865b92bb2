"""What players, dealer and floor decide at random."""

from __future__ import annotations

from random import Random
from typing import Final

from controller.games import DEALER, FLOOR, player
from controller.procedure.model import events
from controller.procedure.model.events import Actor, Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import State, Step
from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND, SURRENDER

_AMOUNTS: Final = (1, 2, 3, 5, 7, 10, 15, 25, 33, 100)
_WEIGHTS: Final = {HIT: 6, STAND: 5, DOUBLE: 5, SPLIT: 18, SURRENDER: 1}


class Choices:
    """Decisions by chance, weighted so that what is rare comes up often."""

    def __init__(self, game: Game, rng: Random) -> None:
        self.game = game
        self._rng = rng
        self._random = rng.random

    def chance(self, of: float) -> bool:
        return self._random() < of

    def below(self, most: int) -> int:
        return int(self._random() * most)

    def _amount(self, bet: str) -> int:
        limit, unit = self.game.limits[bet], self.game.money.unit
        amount = _AMOUNTS[self.below(len(_AMOUNTS))] * (limit.step or unit)
        amount -= amount % unit
        if limit.min is not None:
            amount = max(amount, limit.min)
        return amount if limit.max is None else min(amount, limit.max)

    # Decisions

    def _decider(self, seat: int) -> Actor:
        by = self.game.options.decisions.by
        if by == "signals" or (by == "both" and self.chance(0.3)):
            return DEALER
        return player(seat)

    def _natural(self, s: State) -> Event:
        seat = s.hands[s.turn].seat
        return (events.PayTaken if self.chance(0.4) else events.PayDeclined)(
            self._decider(seat), seat
        )

    def _insurance(self, s: State) -> Event:
        seat = s.seats[s.asked]
        actor, unit = self._decider(seat.number), self.game.money.unit
        most = seat.main // 2 // unit
        if self.game.options.even_money.offered and self.chance(0.4):
            waits = (hand.seat == seat.number and hand.natural for hand in s.hands)
            if any(waits):
                return events.EvenMoney(actor, seat.number)
        if most and self.chance(0.5):
            amount = most if self.chance(0.5) else self.below(most) + 1
            return events.Insure(actor, seat.number, amount * unit)
        return events.Decline(actor, seat.number)

    def _confirm(self, s: State) -> Event:
        if self.chance(0.85):
            return events.Confirmed(DEALER)
        asked = s.step is Step.INSURANCE_CONFIRM
        seat = s.seats[s.asked].number if asked else s.hands[s.turn].seat
        return events.Withdrawn(player(seat) if self.chance(0.5) else DEALER)

    def _turn(self, s: State) -> Event:
        hand = s.hands[s.turn]
        actor = self._decider(hand.seat)
        if s.spare is not None and s.spare.exposed and self.chance(0.3):
            return events.SpareRefused(actor, hand.seat, hand.number)
        bits = [bit for bit in _WEIGHTS if s.legal & bit]
        weights = [_WEIGHTS[bit] for bit in bits]
        if HIT in bits:
            weights[bits.index(HIT if hand.total < 15 else STAND)] *= 4
        bit = self._rng.choices(bits, weights)[0]
        if bit == DOUBLE:
            return events.Double(actor, hand.seat, hand.number, self._stake(hand.wager))
        if bit == SPLIT:
            amount = None if self.chance(0.7) else hand.wager
            return events.Split(actor, hand.seat, hand.number, amount)
        kind = {HIT: events.Hit, STAND: events.Stand, SURRENDER: events.Surrender}[bit]
        return kind(actor, hand.seat, hand.number)

    def _stake(self, wager: int) -> int | None:
        if self.chance(0.7):
            return None
        unit = self.game.money.unit
        if self.game.options.double.for_less and wager > unit:
            return (self.below(wager // unit - 1) + 1) * unit
        return wager

    # Payments

    def _pay(self, s: State) -> Event:
        due = s.due[0]
        if due.floor and not s.approved:
            return events.PaymentApproved(FLOOR)
        declared = self.game.jurisdiction.declare_payments
        alone = any(each.floor for each in s.due)
        if not declared and not alone and self.chance(0.6):
            return events.AllPaid(DEALER)
        return events.Paid(DEALER, due.moves if declared or self.chance(0.3) else None)
