"""Robots at a table: players with their whims, and a dealer who does what the prompt says.

The dealer knows nothing but the prompt; the players see the felt; the shoe alone knows the cards
that lie in it or face down.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from msgspec import Struct

from controller.procedure.effects import Prompt, Tell
from controller.procedure.events import (
    Bet,
    CardBurned,
    CardDrawn,
    Cleared,
    Confirmed,
    CutCardSeen,
    DecksChanged,
    Decline,
    Double,
    EvenMoney,
    Event,
    FloorRuled,
    Hit,
    HoleChecked,
    HoleDealt,
    HoleRevealed,
    InsuranceClosed,
    Insure,
    Paid,
    PaymentApproved,
    PayTaken,
    ShoeLoaded,
    ShoeRanOut,
    ShuffleDone,
    ShuffleStarted,
    SpareRefused,
    Split,
    Stand,
    Surrender,
    TableOpened,
    WagerPlaced,
)
from controller.procedure.game import Game
from controller.procedure.states import State
from controller.procedure.terms import BETS, Speaks
from controller.rules.cards import VALUE, Card
from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND, SURRENDER, is_blackjack
from controller.rules.rulings import Way
from controller.sim.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.sim.play import voice
from controller.sim.shoes import Shoe, refill
from controller.sim.strategy import Strategy

_MAINS: Final = (1000, 1500, 2000, 2500, 2500, 5000)
_SIDES: Final[dict[Bet, tuple[float, tuple[int, ...]]]] = {
    "diamond": (0.35, (100, 500)),
    "buster": (0.6, (500, 500, 1000)),
    "toke_main": (0.25, (500,)),
    "toke_buster": (0.2, (100, 500)),
}
"""How often a player takes to each side bet, and for how much."""
_INSURES: Final = 0.35
_EVENS: Final = 0.5
_DOES: Final = {
    HIT: ("hits", Hit),
    STAND: ("stands", Stand),
    DOUBLE: ("doubles", Double),
    SPLIT: ("splits", Split),
    SURRENDER: ("surrenders", Surrender),
}


class Answer(Struct, frozen=True):
    """What is done about a prompt, and how it is told to those who watch."""

    events: tuple[Event, ...]
    words: str
    card: Card = -1
    """A card that came face up."""


class Cards:
    """The shoe with what lies in it, and the hole card's value: nobody else knows either."""

    def __init__(self, game: Game, random: Random) -> None:
        self._shoe = Shoe(game.decks, random.random)
        self._cut_behind = game.options.cut_behind
        self._cut_seen = False
        self._hole: Card = -1
        self._dealt = 0

    def load(self) -> None:
        self._shoe.shuffle()
        self._cut_seen = False

    def refill(self, state: State) -> int:
        """The discards are in the shoe again: all but what lies on the felt."""
        refill(self._shoe, state, self._hole)
        return self._shoe.left

    def draw(self, words: str = "") -> Answer:
        """The next card, face up; before it the cut card where that lies next."""
        if not self._shoe.left:
            return Answer((ShoeRanOut(SHOE),), "the shoe is empty")
        cut = self._cut()
        card = self._shoe.draw()
        return Answer(
            (*cut, CardDrawn(SHOE, card)), words or ("cut card, then" if cut else ""), card
        )

    def burn(self) -> Answer:
        self._shoe.draw()
        return Answer((CardBurned(SHOE),), "face down to the discard rack")

    def draw_hole(self) -> Answer:
        if not self._shoe.left:
            return Answer((ShoeRanOut(SHOE),), "the shoe is empty")
        cut = self._cut()
        self._hole = self._shoe.draw()
        self._dealt += 1
        dealt = HoleDealt(SHOE, f"demo-{self._dealt}")  # tells nothing of the card
        return Answer((*cut, dealt), "face down")

    def check(self, up: Card) -> Answer:
        found = is_blackjack(up, self._hole)
        words = "the reader says: blackjack" if found else "the reader says: no blackjack"
        return Answer((HoleChecked(SHOE, found),), words)

    def reveal(self) -> Answer:
        return Answer((HoleRevealed(SHOE, self._hole, "demo"),), "", self._hole)

    def _cut(self) -> tuple[Event, ...]:
        if self._cut_seen or self._shoe.left > self._cut_behind:
            return ()
        self._cut_seen = True
        return (CutCardSeen(SHOE),)


class Crew:
    """Everybody at the table: `answer` is what they do about a prompt."""

    def __init__(
        self, game: Game, strategy: Strategy, seats: int, random: Random, money: Speaks
    ) -> None:
        self.cards = Cards(game, random)
        self._game = game
        self._choose = strategy.choose
        self._seats = seats
        self._random = random
        self._money = money
        self._acts: dict[Tell, Callable[[Prompt, State], Answer]] = {
            Tell.LOAD_SHOE: self._load,
            Tell.REFILL: self._refill,
            Tell.BURN: lambda p, s: self.cards.burn(),
            Tell.TAKE_WAGERS: self._wager,
            Tell.DEAL: self._deal,
            Tell.LAY_SPARE: self._lay_spare,
            Tell.CHECK_HOLE: lambda p, s: self.cards.check(s.dealer[0]),
            Tell.REVEAL: lambda p, s: self.cards.reveal(),
            Tell.ASK_INSURANCE: self._insurance,
            Tell.ASK_NATURAL: self._natural,
            Tell.DECIDE: self._decide,
        }

    def answer(self, prompt: Prompt, state: State) -> Answer:
        act = self._acts.get(prompt.tell)
        if act is not None:
            return act(prompt, state)
        event, words = _BY_THE_PROMPT[prompt.tell]
        return Answer((event(prompt),), words)

    # Cards

    def _load(self, p: Prompt, s: State) -> Answer:
        self.cards.load()
        return Answer((ShoeLoaded(SHOE, p.count),), "cut and loaded")

    def _refill(self, p: Prompt, s: State) -> Answer:
        count = self.cards.refill(s)
        return Answer((ShoeLoaded(SHOE, count),), f"{count} cards loaded")

    def _deal(self, p: Prompt, s: State) -> Answer:
        return self.cards.draw_hole() if p.place == "hole" else self.cards.draw()

    def _lay_spare(self, p: Prompt, s: State) -> Answer:
        card = -1 if s.spare is None else s.spare.card
        return Answer((CardDrawn(SHOE, card, spare=True),), "", card)

    # Players

    def _wager(self, p: Prompt, s: State) -> Answer:
        """The next seat's wagers; when every seat has its own, the first card."""
        if p.count >= self._seats:
            return self.cards.draw("first card, to the first seat:")
        seat = p.count + 1
        bets: dict[Bet, int] = {"main": self._amount("main", self._random.choice(_MAINS))}
        for bet, (often, amounts) in _SIDES.items():
            if self._random.random() < often and bet in p.choices:
                bets[bet] = self._amount(bet, self._random.choice(amounts))
        said = ", ".join(
            f"{self._money.amount(amount)}{'' if bet == 'main' else f' {BETS[bet]}'}"
            for bet, amount in bets.items()
        )
        events = tuple(WagerPlaced(player(seat), seat, bet, amount) for bet, amount in bets.items())
        return Answer(events, f"seat {seat}: {said}")

    def _amount(self, bet: Bet, wanted: int) -> int:
        limit = self._game.limits[bet]
        return max(limit.min or 0, wanted if limit.max is None else min(wanted, limit.max))

    def _insurance(self, p: Prompt, s: State) -> Answer:
        actor = voice(self._game, p.seat)
        even = "even_money" in p.choices and self._random.random() < _EVENS
        if even:
            return Answer((EvenMoney(actor, p.seat),), "takes even money")
        amount = p.amount - p.amount % self._game.money.unit
        if amount and self._random.random() < _INSURES:
            return Answer(
                (Insure(actor, p.seat, amount),), f"insures for {self._money.amount(amount)}"
            )
        return Answer((Decline(actor, p.seat),), "declines")

    def _natural(self, p: Prompt, s: State) -> Answer:
        return Answer((PayTaken(voice(self._game, p.seat), p.seat),), "takes the pay")

    def _decide(self, p: Prompt, s: State) -> Answer:
        hand = s.hands[s.turn]
        actor = voice(self._game, p.seat)
        spare = s.spare
        if spare is not None and spare.exposed and hand.total + VALUE[spare.card] > 21:
            return Answer((SpareRefused(actor, p.seat, p.hand),), "refuses the exposed card")
        values = [VALUE[card] for card in hand.cards]
        pair = values[0] if len(values) == 2 and values[0] == values[1] else 0
        chosen = self._choose(
            hand.total, hand.soft, len(values), pair, hand.doubles, hand.split, s.up, s.legal
        )
        words, event = _DOES[chosen]
        return Answer((event(actor, p.seat, p.hand),), words)


_BY_THE_PROMPT: Final[dict[Tell, tuple[Callable[[Prompt], Event], str]]] = {
    Tell.OPEN_TABLE: (lambda p: TableOpened(FLOOR, 0, SECOND), "open, the bank counted twice"),
    Tell.SHUFFLE: (lambda p: ShuffleStarted(DEALER), "in the shuffler"),
    Tell.CHANGE_DECKS: (lambda p: DecksChanged(FLOOR, SECOND), "other decks, with a second"),
    Tell.AWAIT_SHUFFLE: (lambda p: ShuffleDone(DEALER), "done, no card missing"),
    Tell.CONFIRM_INSURANCE: (lambda p: Confirmed(DEALER), "confirmed"),
    Tell.CONFIRM_DOUBLE: (lambda p: Confirmed(DEALER), "confirmed"),
    Tell.CONFIRM_SPLIT: (lambda p: Confirmed(DEALER), "confirmed"),
    Tell.CLOSE_INSURANCE: (lambda p: InsuranceClosed(DEALER), "closed"),
    Tell.PAY: (lambda p: Paid(DEALER, p.amount), "paid"),
    Tell.COLLECT: (lambda p: Paid(DEALER, p.amount), "taken"),
    Tell.GIVE_BACK: (lambda p: Paid(DEALER, p.amount), "given back"),
    Tell.FLOOR_FIRST: (lambda p: PaymentApproved(FLOOR), "seen"),
    Tell.RULE: (lambda p: FloorRuled(FLOOR, Way(p.choices[0]), SECOND), "ruled, with a second"),
    Tell.CLEAR: (lambda p: Cleared(DEALER), "in the discard rack"),
}
"""What dealer and floor do about the prompts that leave them nothing to choose."""
