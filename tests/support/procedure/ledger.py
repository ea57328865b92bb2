"""A second book of each round: kept from the events alone, held against what the procedure says."""

from __future__ import annotations

from collections import Counter
from typing import Final

from controller.procedure.model import events
from controller.procedure.model.effects import RoundOver, RoundVoid, SeatDead, Settled, WagersLocked
from controller.procedure.model.events import Event
from controller.procedure.model.game import BETS, Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.hands import Hand
from tests.support.procedure.plain_rules import (
    Felt,
    dealer_has_to_draw,
    dealer_stops,
    instant_winner,
    owed,
)

_SIDE: Final = (*BETS[1:], "insurance")


class Broken(AssertionError):
    """What the procedure did with wagers, cards or hands is not what the rules say."""


class Ledger:
    """Watches a table. `finished` counts rounds, `clean` those in which nothing went wrong."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.finished = self.clean = self.voided = 0
        self.outcomes: Counter[str] = Counter()
        self._forget()

    def _forget(self) -> None:
        self._placed: Counter[tuple[int, str]] = Counter()
        self._settled: list[Settled] = []
        self._surrendered: set[tuple[int, int]] = set()
        self._bets: dict[tuple[int, str], int] = {}
        self._even: set[int] = set()
        self._began = False
        self._void = False
        self._smooth = True

    def __call__(self, before: State, event: Event, answer: Decision | Refused) -> None:
        if isinstance(answer, Refused):
            return
        s = answer.state
        if s.holds or s.spare or s.quiet or s.late or s.step is Step.CLOSED:
            self._smooth = False
        self._note_event(before, event, s)
        for effect in answer.effects:
            if type(effect) is WagersLocked:
                self._lock(before)
            elif type(effect) is Settled:
                self._settle(before, effect)
            elif type(effect) is SeatDead:
                self._smooth = False
            elif type(effect) is RoundVoid:
                self._void = True
            elif type(effect) is RoundOver:
                self._close(before, effect)

    def _must(self, held: bool, what: str, *shown: object) -> None:
        if not held:
            raise Broken(f"{what}: {shown}")

    # What is placed

    def _lock(self, s: State) -> None:
        self._began = True
        self._settled.clear()  # wagers that a void gave back before the deal
        self._placed.clear()
        for seat in s.seats:
            for bet in BETS:
                amount: int = getattr(seat, bet)
                if amount:
                    self._placed[seat.number, bet] += amount
                    self._bets[seat.number, bet] = amount

    def _note_event(self, s: State, event: Event, after: State) -> None:
        if isinstance(event, events.Confirmed):
            if s.step is Step.INSURANCE_CONFIRM:
                seat = s.seats[s.asked].number
                # What the player asked for, whatever happened since.
                self._must(s.asking > 0, "insurance of nothing is confirmed", seat, s)
                self._placed[seat, "insurance"] += s.asking
                self._bets[seat, "insurance"] = s.asking
            else:
                hand = s.hands[s.turn]
                stake = s.asking if s.step is Step.DOUBLE_CONFIRM else hand.wager
                self._must(stake > 0, "nothing is staked", hand, s)
                self._placed[hand.seat, "main"] += stake
        elif isinstance(event, events.Surrender):
            self._surrendered.add((event.seat, event.hand))
        elif isinstance(event, events.EvenMoney):
            self._even.add(event.seat)
        elif isinstance(event, events.FloorRuled):
            # What a seat said of insurance, it may be asked once more.
            self._even -= {seat.number for seat in after.seats if not seat.answer}

    # What is settled

    def _settle(self, s: State, due: Settled) -> None:
        self._settled.append(due)
        self.outcomes[due.outcome] += 1
        self._must(due.stake > 0 and due.returned >= 0, "a wager of nothing is settled", due)
        if due.outcome == "void":
            self._must(due.returned == due.stake, "a void gives back another amount", due)
            self._must(due.odds is None, "a void has odds", due)
        if not self._began:
            placed = getattr(next(x for x in s.seats if x.number == due.seat), due.bet)
            self._must(placed == due.stake, "another amount comes back before the deal", due)

    def _close(self, s: State, over: RoundOver) -> None:
        self._must(not s.due and not s.holds, "the felt is cleared over a payment or a hold", s)
        for hand in s.hands:
            self._must(hand.out and hand.done, "a hand is left on the felt", hand, s)
        for seat in s.seats:
            left = {bet: getattr(seat, bet) for bet in _SIDE if getattr(seat, bet)}
            self._must(not left, "a side bet is left on the felt", seat.number, left)
        won = sum(max(0, due.returned - due.stake) for due in self._settled)
        self._must(won == over.won, "the round's winnings", won, over)
        if self._began:
            self._balance(s)
            self.finished += 1
            self.voided += self._void
            if self._smooth and not self._void:
                self.clean += 1
                self._by_the_rules(s)
        self._forget()

    def _balance(self, s: State) -> None:
        stakes: Counter[tuple[int, str]] = Counter()
        hands: Counter[tuple[int, int]] = Counter()
        for due in self._settled:
            stakes[due.seat, due.bet] += due.stake
            if due.bet == "main":
                hands[due.seat, due.hand] += 1
        self._must(stakes == self._placed, "stakes settled, wagers placed", stakes, self._placed)
        self._must(all(n == 1 for n in hands.values()), "a hand is settled twice", hands)
        if not self._void:
            back = [due for due in self._settled if due.why == "void"]
            self._must(not back, "wagers go back, and nothing is void", back)

    # What the rules say

    def _by_the_rules(self, s: State) -> None:
        o, dealer = self.game.options, s.dealer
        seats = {seat.number: self._felt(s, seat.number) for seat in s.seats}
        found = {
            (due.seat, due.bet, due.hand): (
                due.outcome,
                None if due.odds is None else str(due.odds),
                due.stake,
                due.returned,
            )
            for due in self._settled
        }
        wanted = {
            (number, bet, hand): tuple(due)
            for number, felt in seats.items()
            for bet, hand, due in owed(o, felt, dealer)
        }
        if found != wanted:
            wrong = {key: (found.get(key), wanted.get(key)) for key in found.keys() | wanted.keys()}
            differ = {key: pair for key, pair in wrong.items() if pair[0] != pair[1]}
            raise Broken(f"(found, wanted): {differ}; {s}; {o}")
        self._dealer_by_the_rules(s, list(seats.values()))

    def _dealer_by_the_rules(self, s: State, seats: list[Felt]) -> None:
        o, dealer = self.game.options, s.dealer
        self._must(len(dealer) >= 2, "the hole card was never shown", s)
        for count in range(2, len(dealer)):
            drew = not dealer_stops(o, dealer[:count])
            self._must(drew, "the dealer drew on a standing total", dealer)
        depends = dealer_has_to_draw(o, seats, dealer)
        if depends:
            self._must(dealer_stops(o, dealer), "the dealer stopped too early", dealer, s)
        else:
            self._must(len(dealer) == 2, "the dealer drew for nobody", dealer, s)

    def _felt(self, s: State, seat: int) -> Felt:
        hands: tuple[Hand, ...] = tuple(hand for hand in s.hands if hand.seat == seat)
        lost = frozenset(hand for number, hand in self._surrendered if number == seat)
        given_up = frozenset(
            hand.number
            for hand in hands
            if hand.number in lost and instant_winner(self.game.options, hand) is None
        )
        bets = {bet: amount for (number, bet), amount in self._bets.items() if number == seat}
        return Felt(hands, given_up, seat in self._even, bets)
