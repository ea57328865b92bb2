"""A table dealt by hand: each event in words, each one taken unless the test says otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from controller.games import DEALER, FLOOR, SECOND, SHOE, wagering
from controller.procedure.engine import Procedure
from controller.procedure.model import events as e
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import Event
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.cards import Card, parse_card
from controller.rules.hands import is_blackjack
from controller.rules.irregularities import Way
from tests.support.procedure.random_games import game_as_it_is, game_with


class ByHand:
    """The dealer's part of a table, one call an event."""

    def __init__(
        self,
        name: str,
        overrides: Mapping[str, object] | None = None,
        jurisdiction: str = "default",
        state: State | None = None,
    ) -> None:
        game = game_with(name, overrides, jurisdiction) if overrides else None
        self.procedure = Procedure(game or game_as_it_is(name, jurisdiction))
        self.state = wagering() if state is None else state
        self.effects: list[Effect] = []
        self.rows: list[str] = []
        self.hole: Card = -1

    def at(self, *steps: Step) -> bool:
        return self.state.step in steps

    def does(self, *events: Event) -> State:
        """Each event is taken."""
        for event in events:
            answer = self.procedure.step(self.state, event)
            if not isinstance(answer, Decision):
                raise AssertionError(f"{event} at {self.state.step.value}: {answer}")
            self.state = answer.state
            self.effects += answer.effects
            self.rows += answer.rows
        return self.state

    def refused(self, event: Event) -> Refused:
        """The event is refused."""
        answer = self.procedure.step(self.state, event)
        if not isinstance(answer, Refused):
            raise AssertionError(f"{event} at {self.state.step.value} was taken: {answer.rows}")
        return answer

    def opens(self) -> State:
        self.does(e.TableOpened(FLOOR, 1000, SECOND))
        self.loads()
        while self.at(Step.BURNING):
            self.does(e.CardBurned(SHOE))
        return self.state

    def loads(self) -> State:
        """The cards are shuffled, cut and in the shoe."""
        full = self.procedure.game.decks * 52
        return self.does(
            e.ShuffleStarted(DEALER), e.ShuffleDone(DEALER), e.ShoeLoaded(DEALER, full)
        )

    def wagers(self, *seats: int, **bets: int) -> State:
        """Each seat places the bets, or 100 on the main one."""
        for seat in seats:
            for bet, amount in (bets or {"main": 100}).items():
                self.does(e.WagerPlaced(DEALER, seat, bet, amount))  # type: ignore[arg-type]
        return self.state

    def cards(self, text: str, *, spare: bool = False) -> State:
        """Cards from the shoe. The one that comes to the hole card's place lies face down."""
        for name in text.split():
            card = parse_card(name, "a test")
            s = self.state
            if s.step is Step.DEALING and s.places[s.dealt].kind == "hole":
                self.hole = card
                self.does(e.HoleDealt(SHOE, "hole", spare))
            else:
                self.does(e.CardDrawn(SHOE, card, spare))
        return self.state

    def checks(self) -> State:
        return self.does(e.HoleChecked(SHOE, is_blackjack(self.state.dealer[0], self.hole)))

    def reveals(self) -> State:
        return self.does(e.HoleRevealed(SHOE, self.hole, "opening"))

    def stands(self, *seats: int) -> State:
        return self.does(*(e.Stand(DEALER, seat, 0) for seat in seats))

    def declines(self, *seats: int) -> State:
        return self.does(*(e.Decline(DEALER, seat) for seat in seats))

    def rules(self, way: str) -> State:
        return self.does(e.FloorRuled(FLOOR, Way(way), SECOND))

    def may_rule(self, way: str) -> bool:
        """The table is held, and the floor may rule so."""
        return self.at(Step.HELD) and Way(way) in self.state.holds[-1].options

    def finishes(self) -> State:
        """Pays what is due and clears the felt."""
        while self.at(Step.PAYING):
            self.does(e.Paid(DEALER))
        return self.does(e.Cleared(DEALER))

    def finishes_as_the_house_wants(self) -> State:
        """The same, each payment declared and the floor asked where it must be."""
        while self.at(Step.PAYING):
            due = self.state.due[0]
            if due.floor and not self.state.approved:
                self.does(e.PaymentApproved(FLOOR))
            self.does(e.Paid(DEALER, due.moves))
        return self.does(e.Cleared(DEALER))
