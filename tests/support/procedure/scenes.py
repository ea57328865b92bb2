"""Situations of a table that several tests start from."""

from collections.abc import Callable
from typing import Any

from controller.games import DEALER, FLOOR, SHOE
from controller.procedure.model.events import (
    CardConfirmed,
    CardDrawn,
    CardEntered,
    CardUnreadable,
    ControllerRestarted,
    DealerCardMissed,
    DealerRelieved,
    DeckSuspect,
    DeviceBack,
    DeviceLost,
    ErrorCardDrawn,
    Event,
    FeltConfirmed,
    FloorCalled,
    HoleExposed,
    InsuranceDisputed,
    MisdealCalled,
    PlayerAbsent,
    SeatMissed,
    SeatShorted,
    ShoeLoaded,
    ShoeRanOut,
    ShuffleDone,
    ShuffleStarted,
    UnknownCardDrawn,
)
from controller.procedure.model.felt import times_seen
from controller.procedure.model.state import Step
from controller.rules.cards import DECK, NAMES
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from tests.support.procedure.table import Table, card

DEAL = "9C 8C 8S 2H KC (TD)"
"""Seat 1 has 11, seat 2 has 18, the dealer 18 with an 8 up: nothing is checked."""


def dealt(house: str, names: str = DEAL, **options: Any) -> Table:
    """Two seats of the classic game with 10 dollars each, after the deal."""
    return Table(house=house, **options).bets(1000, 1000).deal(names)


def discards(t: Table) -> int:
    """What can be shuffled when the shoe is empty: all but what lies on the felt or beside it."""
    s = t.state
    live = {seat.number for seat in s.seats if seat.amount("buster")}
    hands = [hand for hand in s.hands if not hand.out or (hand.busted and hand.seat in live)]
    felt = sum(len(hand.cards) for hand in hands) + len(s.dealer) + bool(s.hole)
    return t.game.decks * 52 - felt - (s.spare is not None)


SHUFFLED = (ShuffleStarted(SHOE), ShuffleDone(SHOE), ShoeLoaded(SHOE, 312))


ROUND = "9C 8S KC (9D)"
"""A round without a draw: the seat has 19, the dealer 17."""


IN_ROUND: dict[str, Callable[[Table], Table]] = {
    "dealing": lambda t: t.deal("9C 8S"),
    "insurance": lambda t: t.deal("9C AS KC (9D)"),
    "check": lambda t: t.deal("9C KS KC (9D)"),
    "turn": lambda t: t.deal(ROUND),
    "hand card": lambda t: t.deal("9C 8S 2C (9D)").hit(1),
    "reveal": lambda t: t.deal(ROUND).stand(1),
    "dealer card": lambda t: t.deal("9C 8S KC (5D)").until(Step.DEALER_CARD),
    "paying": lambda t: t.deal(ROUND).until(Step.PAYING),
    "clearing": lambda t: t.deal(ROUND).until(Step.CLEARING),
}


ACE_UP = "9C 8C AS 2H KC (9D)"


STOPS: dict[str, Callable[[Table], Event]] = {
    "exposed card": lambda t: CardDrawn(SHOE, card("5H")),
    "hidden card": lambda t: ErrorCardDrawn(SHOE, t.sealed("5H")),
    "unreadable": lambda t: CardUnreadable(SHOE, "low"),
    "joker": lambda t: UnknownCardDrawn(SHOE),
    "decks": lambda t: DeckSuspect(FLOOR, "foreign_back"),
    "duplicate": lambda t: CardDrawn(SHOE, card("9C")),
    "dealer's card": lambda t: DealerCardMissed(DEALER, 1),
    "dealer's second": lambda t: DealerCardMissed(DEALER, 2),
    "seat missed": lambda t: SeatMissed(DEALER, 2),
    "seat short": lambda t: SeatShorted(DEALER, 1),
    "misdeal": lambda t: MisdealCalled(DEALER),
    "hole exposed": lambda t: HoleExposed(DEALER),
    "insurance": lambda t: InsuranceDisputed(FLOOR, 1),
    "player gone": lambda t: PlayerAbsent(DEALER, 1),
    "shoe gone": lambda t: DeviceLost(SHOE, "shoe", "unplugged"),
    "restart": lambda t: ControllerRestarted(SHOE),
    "no card left": lambda t: ShoeRanOut(SHOE),
    "floor": lambda t: FloorCalled(DEALER),
    "relief": lambda t: DealerRelieved(DEALER),
}


class Willing(Table):
    """A table whose people answer every prompt, and whose shoe never lacks a card."""

    def _continue(self, left: list[str]) -> None:
        s = self.state
        match s.step:
            case Step.HELD:
                self.rule(Way(self.prompt.choices[0]))
            case Step.CARD_ENTRY:
                hole = s.hole and self.held.back is Step.REVEAL
                of_hole = hole and self.held.what is Odd.CARD_UNREADABLE
                self.do(CardEntered(DEALER, self.hole if of_hole else self._fresh()))
            case Step.CARD_CONFIRM:
                self.do(CardConfirmed(FLOOR))
            case Step.DEVICE:
                assert "shoe" in s.lost, "the table waits for a device that is there"
                self.do(DeviceBack(SHOE, "shoe", True))
            case Step.FELT:
                self.do(FeltConfirmed(DEALER))
            case Step.REFILL:
                self.do(ShoeLoaded(SHOE, discards(self)))
            case Step.SHUFFLE_NEEDED:
                if "shoe" in s.lost:
                    self.do(DeviceBack(SHOE, "shoe", True))
                self.shuffle()
            case Step.SHUFFLING:
                self.do(ShuffleDone(SHOE))
            case Step.LOADING:
                if "shoe" in s.lost:
                    self.do(DeviceBack(SHOE, "shoe", True))
                self.do(ShoeLoaded(SHOE, self.game.decks * 52))
            case _:
                super()._continue(left)

    def _next_card(self, left: list[str]) -> None:
        if self.from_shoe:
            name = NAMES[self._fresh()]
            left = [f"({name})" if self.prompt.place == "hole" else name]
        super()._next_card(left)

    def _fresh(self) -> int:
        """A small card first, so that few hands bust."""
        order = sorted(DECK, key=lambda each: (each % 13 == 0, each % 13))
        hidden = set(self._faces.values())
        most = self.game.decks
        return next(
            each for each in order if times_seen(self.state, each) + (each in hidden) < most
        )
