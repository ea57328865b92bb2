"""Two tables that differ in one face-down card."""

from controller.procedure.model.felt import hole_is_next
from controller.procedure.model.state import Step
from controller.rules.cards import Card
from controller.rules.hands import is_blackjack
from controller.sim.play import Stepper
from tests.support.audit.record.dealing import Dealing


class Twin(Dealing):
    """A table whose next hole card can be another one, as good as it; all else follows from the
    seed."""

    def __init__(self, engine: Stepper, seed: str, *, second: bool) -> None:
        super().__init__(engine, seed)
        self._second = second
        self._exchanges = False
        self.pair: tuple[Card, Card] | None = None

    def exchange(self) -> None:
        self._exchanges = True

    def hide(self, card: Card) -> str:
        if self._exchanges and self.pair is None and hole_is_next(self.state):
            card = self._exchanged(card)
        return super().hide(card)

    def _exchanged(self, card: Card) -> Card:
        up = self.state.dealer[0]
        for _ in range(20):
            other = self.draw()
            if other >= 0 and other != card and is_blackjack(up, card) == is_blackjack(up, other):
                self.pair = self.reserved = (card, other)
                return other if self._second else card
        return card

    def _out_of_sight(self) -> tuple[Card, ...]:
        return self.reserved if self.pair else super()._out_of_sight()

    def to_the_reveal(self) -> bool:
        before = self.rounds
        while self.rounds == before:
            s = self.state
            if s.hole and Step.REVEAL in (s.step, s.holds[-1].back if s.holds else s.step):
                return True
            self.once()
        return False
