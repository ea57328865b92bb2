"""Prints what happens at a demo table: each prompt, the act that answered it, and the result.

Acts are read from the record, where they are durable before any screen shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from controller.api.contract.view import View
from controller.audit.read.follow import Follower
from controller.audit.replay import DecisionData, decode_decision
from controller.procedure.model import events
from controller.procedure.model.effects import (
    Effect,
    Fact,
    RoundOver,
    RoundVoid,
    Settled,
    Tell,
    Told,
    WagersLocked,
)
from controller.procedure.model.events import Event
from controller.procedure.model.state import State
from controller.procedure.prompts import BETS, MoneyFormat, fact
from controller.publish import event_words
from hil.table.demo.terminal import FeltPicture, TerminalScreen
from hil.table.robots import state_of

_DOES: Final[Mapping[type[Event], str]] = MappingProxyType(
    {
        events.TableOpened: "open, the bank counted twice",
        events.ShuffleStarted: "in the shuffler",
        events.ShuffleDone: "done, no card missing",
        events.ShoeLoaded: "cut and loaded",
        events.CardBurned: "face down to the discard rack",
        events.CardDrawn: "",
        events.HoleDealt: "face down",
        events.HoleRevealed: "",
        events.Hit: "hits",
        events.Stand: "stands",
        events.Double: "doubles",
        events.Split: "splits",
        events.Surrender: "surrenders",
        events.SpareRefused: "refuses the exposed card",
        events.EvenMoney: "takes even money",
        events.Decline: "declines",
        events.InsuranceClosed: "closed",
        events.PayTaken: "takes the pay",
        events.Confirmed: "confirmed",
        events.PaymentApproved: "seen",
        events.Cleared: "in the discard rack",
        events.FloorRuled: "ruled, with a second",
    }
)
_PAID: Final = {Tell.PAY: "paid", Tell.COLLECT: "taken", Tell.GIVE_BACK: "given back"}
_DEALING: Final = frozenset({Tell.DEAL, Tell.LAY_SPARE})
_UNTOLD: Final = (Settled, RoundOver)
"""Facts that repeat the prompt."""


class Tally(Struct):
    """The money of a table: wagers and payments; tokes are the dealers' and counted apart."""

    table: str
    money: MoneyFormat
    rounds: int = 0
    decisions: int = 0
    wagers: int = 0
    paid: int = 0
    tokes: int = 0
    for_dealers: int = 0
    seconds: float = 0.0

    @property
    def an_hour(self) -> int:
        """Rounds."""
        return round(self.rounds * 3600 / self.seconds) if self.seconds else 0

    def add(self, settled: Settled) -> None:
        if settled.outcome == "void":
            return
        if settled.bet.startswith("toke"):
            self.tokes += settled.stake
            self.for_dealers += settled.returned
        else:
            self.wagers += settled.stake
            self.paid += settled.returned


class Spectator:
    """Follows one table from the current end of its record."""

    def __init__(
        self,
        screen: TerminalScreen,
        record: Follower,
        view: View,
        *,
        tally: Tally | None = None,
        people: Callable[[View], str] = lambda view: "",
    ) -> None:
        """`tally` continues that of an earlier game at this table. `people` returns who is at the
        table, as text; empty for no such line."""
        self._people = people
        self._screen = screen
        self._record = record
        money = MoneyFormat(view.currency.symbol, view.currency.minor_digits)
        self.tally = Tally(view.title, money) if tally is None else tally
        self._money = money
        self._view = view
        self._void = False
        self._drawn: set[str] = set()
        self._results: dict[tuple[int, int], str] = {}
        screen.heading(view.title)
        self._prompt()

    def see(self, view: View) -> None:
        """Show a view, after the decisions that were recorded up to it."""
        for told in self._record.more():
            if told.record.kind == "decision":
                self._did(decode_decision(told.record.data))
        self._view = view
        self._prompt()

    def again(self) -> None:
        """Redraws the current view after a seat was taken or left."""
        self._prompt()

    # --- what is shown --------------------------------------------------------------------

    def _prompt(self) -> None:
        prompt, state = self._view.prompt, self._state
        if prompt is None:
            return
        if state.hands and state.dealt >= len(state.places) and prompt.tell not in _DEALING:
            moment = "settled" if prompt.tell is Tell.CLEAR else f"{len(state.hands)} hands"
            if moment not in self._drawn:
                self._drawn.add(moment)
                self._screen.draw(state, self._felt)
        self._screen.show(prompt.words, state, self._felt)

    @property
    def _state(self) -> State:
        return state_of(self._view)

    @property
    def _felt(self) -> FeltPicture:
        view = self._view
        number = view.state.round
        title = f"{view.title} - round {number}" if number else view.title
        return FeltPicture(title, self._money, self._results, self._people(view))

    # --- what was done --------------------------------------------------------------------

    def _did(self, made: DecisionData) -> None:
        prompt, event = self._view.prompt, made.event
        self.tally.decisions += 1
        words = self._words(event)
        if isinstance(event, events.WagerPlaced):
            self._screen.note(words)
        else:
            self._screen.did("" if prompt is None else prompt.words, words, _card(event))
        self._note(made.effects)

    def _words(self, event: Event) -> str:
        money = self._money
        prompt = self._view.prompt
        match event:
            case events.WagerPlaced():
                bet = "" if event.bet == "main" else f" {BETS[event.bet]}"
                return f"seat {event.seat}: {money.amount(event.amount)}{bet}"
            case events.Insure():
                return f"insures for {money.amount(event.amount)}"
            case events.HoleChecked():
                found = "blackjack" if event.blackjack else "no blackjack"
                return f"the reader says: {found}"
            case events.Paid() if prompt is not None:
                return _PAID.get(prompt.tell, "paid")
            case _:
                words = _DOES.get(type(event))
                return event_words(type(event)) if words is None else words

    def _note(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case WagersLocked():
                    self._results.clear()
                    self._drawn.clear()
                    self._void = False
                case Settled():
                    self._settle(effect)
                case RoundVoid():
                    self._void = True
                case RoundOver() if not self._void:
                    self.tally.rounds += 1
            if isinstance(effect, Told):
                self._screen.alarm(fact(effect, self._money))
            elif isinstance(effect, Fact) and not isinstance(effect, _UNTOLD):
                self._screen.note(fact(effect, self._money))

    def _settle(self, settled: Settled) -> None:
        self.tally.add(settled)
        if settled.hand < 0:
            return
        won = settled.returned - settled.stake
        back = self._money.amount(settled.returned)
        words = f"paid {self._money.amount(won)}" if won > 0 else f"{back} back"
        self._results[settled.seat, settled.hand] = words if settled.returned else "taken"


def _card(event: Event) -> int:
    """The card of the event that lies face up, or -1."""
    return event.card if isinstance(event, events.CardDrawn | events.HoleRevealed) else -1
