"""Plays a scripted round through the procedure, and compares the result with the script's.

The dealer's part is automatic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, NoReturn, Protocol

import msgspec
from msgspec import Struct

from controller.games import DEALER, FLOOR, player, unburned_game, wagering
from controller.procedure.engine import Procedure
from controller.procedure.model.effects import Effect, Prompt, Settled
from controller.procedure.model.events import (
    Actor,
    Cleared,
    Confirmed,
    Decline,
    Double,
    EvenMoney,
    Event,
    Hit,
    InsuranceClosed,
    Insure,
    Paid,
    PayDeclined,
    PaymentApproved,
    PayTaken,
    Split,
    Stand,
    Surrender,
    WagerPlaced,
)
from controller.procedure.model.felt import top
from controller.procedure.model.game import BETS, Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.procedure.prompts import MoneyFormat, say
from controller.rules.cards import NAMES, Card, card_names
from controller.sim.play import HoleVault, ScriptVault, Stepper
from controller.sim.scripts.format import (
    HandResult,
    RejectedBet,
    ScriptAction,
    ScriptRound,
    SideBetResult,
    check_copies,
)

_SIDE_ORDER = ("insurance", "diamond", "buster", "toke_main", "toke_buster")


class RoundResult(Struct, frozen=True):
    id: str
    ok: bool
    failures: list[str]
    dealer_cards: list[str]
    hands: list[HandResult]
    side_bets: list[SideBetResult]
    seat_net: dict[str, int]
    rejected_bets: list[RejectedBet]
    rejected_actions: list[int]


def _hand(fact: Settled) -> HandResult:
    return HandResult(
        fact.seat,
        fact.hand,
        list(card_names(fact.cards)),
        fact.stake,
        fact.outcome,
        None if fact.odds is None else str(fact.odds),
        fact.returned,
        fact.returned - fact.stake,
        "instant" if fact.instant else "settle",
    )


def _side(fact: Settled) -> SideBetResult:
    return SideBetResult(
        fact.seat,
        fact.bet,
        fact.stake,
        fact.outcome,
        None if fact.odds is None else str(fact.odds),
        fact.returned,
        fact.returned - fact.stake,
    )


def result_of(
    name: str,
    seats: Iterable[int],
    state: State,
    settled: Iterable[Settled],
    rejected_bets: list[RejectedBet],
    rejected_actions: list[int],
    failures: list[str],
) -> RoundResult:
    facts = tuple(settled)
    hands = sorted((f for f in facts if f.hand >= 0), key=lambda f: (f.seat, f.hand))
    sides = sorted(
        (f for f in facts if f.hand < 0), key=lambda f: (f.seat, _SIDE_ORDER.index(f.bet))
    )
    net = {str(seat): 0 for seat in sorted(seats)}
    for fact in facts:
        net[str(fact.seat)] += fact.returned - fact.stake
    return RoundResult(
        name,
        not failures,
        failures,
        list(card_names(state.dealer)),
        [_hand(fact) for fact in hands],
        [_side(fact) for fact in sides],
        net,
        rejected_bets,
        rejected_actions,
    )


def differences(expected: object, got: object, at: str = "") -> list[str]:
    """Returns the differences; fields that `expected` does not have are not compared."""
    if isinstance(expected, dict) and isinstance(got, dict):
        found = []
        for key, value in expected.items():
            path = f"{at}.{key}" if at else str(key)
            if key not in got:
                found.append(f"{path}: expected {_quoted(value)}, got nothing")
            else:
                found += differences(value, got[key], path)
        return found
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return [f"{at}: expected {len(expected)} of them, got {len(got)}: {_quoted(got)}"]
        return [
            text
            for index, (one, other) in enumerate(zip(expected, got, strict=True))
            for text in differences(one, other, f"{at}[{index}]")
        ]
    if expected == got:
        return []
    return [f"{at}: expected {_quoted(expected)}, got {_quoted(got)}"]


def _quoted(value: object) -> str:
    """Returns the value as JSON."""
    return json.dumps(value)


RoundWatcher = Callable[[Event, Decision | Refused], None]

_OVER: Final = frozenset({Step.WAGERING, Step.SHUFFLE_NEEDED, Step.CLOSED})
_MAX_EVENTS: Final = 10_000


class ScriptTable(Stepper, Protocol):
    """The engine that decides on the events of a round, and shows what a state asks."""

    def shows(self, s: State, /) -> tuple[Effect, ...]: ...


class ScriptStart(NamedTuple):
    """A table at the start of a scripted round: the shoe loaded, the felt empty."""

    table: ScriptTable
    state: State
    vault: HoleVault


class _Stopped(Exception):
    """The round cannot continue; its failures have the reason."""


_OF_SEAT: Final[dict[str, type[Decline | EvenMoney]]] = {
    "decline": Decline,
    "even_money": EvenMoney,
}
_OF_HAND: Final[dict[str, type[Hit | Stand | Surrender]]] = {
    "hit": Hit,
    "stand": Stand,
    "surrender": Surrender,
}
_STAKED: Final[dict[str, type[Double | Split]]] = {"double": Double, "split": Split}


def decision_for(action: ScriptAction, actor: Actor) -> Event:
    """Returns the event of an action."""
    seat, hand, do = action.seat, action.hand or 0, action.do
    if do == "insure":
        return Insure(actor, seat, action.amount or 0)
    if do in _OF_SEAT:
        return _OF_SEAT[do](actor, seat)
    if do in _STAKED:
        return _STAKED[do](actor, seat, hand, action.amount)
    return _OF_HAND[do](actor, seat, hand)


class _Round:
    """Plays one round. The hole card is in the vault, not in the procedure."""

    def __init__(
        self, standing: ScriptStart, scripted: ScriptRound, watch: RoundWatcher | None
    ) -> None:
        self.table = standing.table
        self.game: Game = standing.table.game
        self.script = scripted.script
        self.cards = scripted.cards
        self.watch = watch
        self.state = standing.state
        self.vault = standing.vault
        self.over: State = self.state
        self.drawn = 0
        self.next = 0
        self.settled: list[Settled] = []
        self.failures: list[str] = []
        self.stopped = False
        self.stood: set[tuple[int, int]] = set()
        """Hands that stood automatically, by seat and index."""
        self.decided: set[tuple[int, int]] = set()
        """Hands that the script itself ended."""
        self.rejected_bets: list[RejectedBet] = []
        self.rejected_actions: list[int] = []

    # Events

    def submit(self, event: Event) -> Decision | Refused:
        answer = self.table.step(self.state, event)
        if self.watch is not None:
            self.watch(event, answer)
        if isinstance(answer, Decision):
            self.state = answer.state
            self._note(answer.effects)
        return answer

    def _note(self, effects: tuple[Effect, ...]) -> None:
        self.settled += [effect for effect in effects if type(effect) is Settled]
        for hand in self.state.hands:
            if hand.done and not hand.out:
                self.stood.add((hand.seat, hand.number))

    def submit_accepted(self, event: Event) -> None:
        """Submit an event of the dealer's part, which must be accepted. Raises _Stopped."""
        answer = self.submit(event)
        if isinstance(answer, Refused):
            self.stop(f"{type(event).__name__} refused at {self.state.step.value}: {answer.why}")

    def stop(self, why: str) -> NoReturn:
        self.failures.append(why)
        self.stopped = True
        raise _Stopped

    # Wagers

    def place_wagers(self) -> None:
        for seat in sorted(self.script.seats, key=lambda seat: seat.seat):
            for bet in BETS:
                if bet not in seat.bets:
                    continue
                amount = seat.bets[bet]
                answer = self.submit(WagerPlaced(player(seat.seat), seat.seat, bet, amount))
                if isinstance(answer, Refused):
                    self.rejected_bets.append(RejectedBet(seat.seat, bet, amount, answer.why))

    # Cards

    def draw(self) -> Card:
        if self.drawn >= len(self.cards):
            self.stop(f"shoe: one too few: {self._wanted()}")
        card = self.cards[self.drawn]
        self.drawn += 1
        return card

    def _wanted(self) -> str:
        """Returns what the missing card was for."""
        prompts = [e for e in self.table.shows(self.state) if type(e) is Prompt]
        return say(prompts[0], MoneyFormat()) if prompts else self.state.step.value

    def deal(self) -> None:
        s = self.state
        if s.step is Step.DEALING and s.places[s.dealt].kind == "hole":
            self.submit_accepted(self.vault.dealt(self.draw()))
        else:
            self.submit_accepted(self.vault.drawn(self.draw()))

    # Actions

    def decider(self, seat: int) -> Actor:
        """Returns who brings a seat's decision: its station, or the dealer for signals."""
        return player(seat) if self.game.buttons else DEALER

    def waiting(self) -> ScriptAction | None:
        """Returns the next action that is not skipped, or None."""
        while self.next < len(self.script.actions):
            action = self.script.actions[self.next]
            if action.rejected or not self._skips(action):
                return action
            self.next += 1
        return None

    def _skips(self, action: ScriptAction) -> bool:
        """Whether to skip the action: a stand for a hand that stood automatically, or an implicit
        action for a hand that ended automatically.
        """
        if action.phase != "play":
            return False
        hand = (action.seat, action.hand or 0)
        if hand in self.decided:
            return False
        if action.implicit:
            return any((h.seat, h.number) == hand and h.done for h in self.state.hands)
        return action.do == "stand" and hand in self.stood

    def take(self, action: ScriptAction) -> None:
        """Submit the action and compare the answer with its expectation."""
        index = self.next
        self.next += 1
        answer = self.submit(decision_for(action, self.decider(action.seat)))
        if isinstance(answer, Decision) and action.do in ("stand", "surrender"):
            self.decided.add((action.seat, action.hand or 0))
        if isinstance(answer, Refused):
            self.rejected_actions.append(index)
            if not action.rejected:
                self.failures.append(
                    f"actions[{index}]: {action.do} of seat {action.seat} refused: {answer.why}"
                )
        elif action.rejected:
            self.failures.append(
                f"actions[{index}]: {action.do} of seat {action.seat} was to be refused and "
                "was accepted"
            )

    def answer_insurance(self) -> None:
        asked = self.state.seats[self.state.asked].number
        action = self.waiting()
        if action is not None and self._is_for_insurance(action, asked):
            self.take(action)
        else:
            self.submit_accepted(Decline(self.decider(asked), asked))

    def _is_for_insurance(self, action: ScriptAction, asked: int) -> bool:
        """Whether to submit the action during insurance."""
        if action.phase == "insurance":
            return action.rejected or action.seat <= asked
        later = self.script.actions[self.next + 1 :]
        return action.rejected and any(each.phase == "insurance" for each in later)

    def answer_natural(self) -> None:
        """Keep the pay of a blackjack unless the script doubles the hand."""
        hand = self.state.hands[self.state.turn]
        doubles = any(
            action.do == "double" and action.seat == hand.seat and not action.rejected
            for action in self.script.actions[self.next :]
        )
        kind = PayDeclined if doubles else PayTaken
        self.submit_accepted(kind(self.decider(hand.seat), hand.seat))

    def decide(self) -> None:
        hand = self.state.hands[self.state.turn]
        action = self.waiting()
        theirs = action is not None and action.seat == hand.seat and action.hand == hand.number
        if action is not None and (action.rejected or theirs or action.phase != "play"):
            self.take(action)
        elif hand.total == 21:
            self.submit_accepted(Stand(self.decider(hand.seat), hand.seat, hand.number))
        else:
            rest = f"the next, actions[{self.next}], is for another hand" if action else "none left"
            self.stop(
                f"actions: seat {hand.seat} hand {hand.number} waits for a decision "
                f"with {hand.total}; {rest}"
            )

    def leftover_actions(self) -> None:
        while (action := self.waiting()) is not None:
            self.take(action)

    # Payments

    def pay(self) -> None:
        due = self.state.due[0]
        if due.floor and not self.state.approved:
            self.submit_accepted(PaymentApproved(FLOOR))
        self.submit_accepted(
            Paid(DEALER, due.moves if self.game.jurisdiction.declare_payments else None)
        )

    def clear(self) -> None:
        self.leftover_actions()
        self.over = self.state
        self.submit_accepted(Cleared(DEALER))

    # The round

    def step(self) -> None:
        match self.state.step:
            case Step.INSURANCE:
                self.answer_insurance()
            case Step.NATURALS:
                self.answer_natural()
            case Step.TURN:
                self.decide()
            case Step.PAYING:
                self.pay()
            case Step.CHECK:
                self.submit_accepted(self.vault.checked(self.state.dealer[0]))
            case Step.REVEAL:
                self.submit_accepted(self.vault.revealed())
            case Step.INSURANCE_CONFIRM | Step.DOUBLE_CONFIRM | Step.SPLIT_CONFIRM:
                self.submit_accepted(Confirmed(DEALER))
            case Step.INSURANCE_CLOSE:
                self.submit_accepted(InsuranceClosed(DEALER))
            case Step.CLEARING:
                self.clear()
            case Step.HELD:
                self.stop(f"the table is held: {top(self.state).what.value}")
            case _:
                self.deal()

    def play(self) -> RoundResult:
        self.over = self.state
        try:
            self.place_wagers()
            if self.state.seats:
                self.play_round()
            else:
                self.leftover_actions()
        except _Stopped:
            self.over = self.state
        left = len(self.cards) - self.drawn
        if left and not self.stopped:
            unused = ", ".join(NAMES[card] for card in self.cards[self.drawn :])
            self.failures.append(f"shoe: {left} left over: {unused}")
        return self._result()

    def play_round(self) -> None:
        self.deal()
        for _ in range(_MAX_EVENTS):
            if self.state.step in _OVER:
                return
            self.step()
        self.stop("the round does not end")

    def _result(self) -> RoundResult:
        made = result_of(
            self.script.id,
            [seat.seat for seat in self.script.seats],
            self.over,
            self.settled,
            self.rejected_bets,
            self.rejected_actions,
            self.failures,
        )
        wanted: Any = msgspec.to_builtins(self.script.expect)
        found = differences(wanted, msgspec.to_builtins(made))
        failures = [*self.failures, *found]
        return msgspec.structs.replace(made, ok=not failures, failures=failures)


def procedure_for(scripted: ScriptRound, known: dict[bytes, Procedure] | None = None) -> Procedure:
    """Returns the procedure of the round, cached in `known`.

    Raises UsageProblem for an invalid config, or a shoe with more cards than its decks.
    """
    script = scripted.script
    key = msgspec.json.encode((script.game, script.config))
    procedure = None if known is None else known.get(key)
    if procedure is None:
        game = unburned_game(script.game, script.config, f"{scripted.where}: config")
        procedure = Procedure(game)
        if known is not None:
            known[key] = procedure
    check_copies(scripted.cards, procedure.game.decks, scripted.where)
    return procedure


def play_script(
    scripted: ScriptRound, watch: RoundWatcher | None = None, procedure: Procedure | None = None
) -> RoundResult:
    """Play one scripted round, by default with the procedure of `procedure_for`."""
    begun = wagering(0 if scripted.script.first_round_of_shuffle else 1)
    standing = ScriptStart(procedure or procedure_for(scripted), begun, ScriptVault())
    return play_at(standing, scripted, watch)


def play_at(
    standing: ScriptStart, scripted: ScriptRound, watch: RoundWatcher | None = None
) -> RoundResult:
    """Play one scripted round from `start`, with the script's cards."""
    return _Round(standing, scripted, watch).play()
