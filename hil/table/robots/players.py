"""Robot players with random wagers, who decide from the visible felt and the prompt."""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random
from typing import Final

from controller.procedure.model.effects import Prompt, Tell
from controller.procedure.model.events import Bet
from controller.procedure.model.game import Game
from controller.procedure.model.state import State
from controller.rules.cards import VALUE
from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND, SURRENDER
from controller.sim.play import Strategy
from hil.table.robots.surroundings import STANDING, PlayerChoice

_MAINS: Final = (1000, 1500, 2000, 2500, 2500, 5000)
_SIDES: Final[dict[Bet, tuple[float, tuple[int, ...]]]] = {
    "diamond": (0.35, (100, 500)),
    "buster": (0.6, (500, 500, 1000)),
    "toke_main": (0.25, (500,)),
    "toke_buster": (0.2, (100, 500)),
}
"""Each side bet's probability and amounts."""
_AS_USUAL: Final = 0.3
"""Probability that a player bets with the button for the standing wager."""
_INSURES: Final = 0.35
_EVENS: Final = 0.5
_DOES: Final = {
    HIT: "hit",
    STAND: "stand",
    DOUBLE: "double",
    SPLIT: "split",
    SURRENDER: "surrender",
}


class RandomPlayers:
    """Players at the first seats, who play by a strategy."""

    def __init__(
        self,
        game: Game,
        strategy: Strategy,
        seats: int,
        random: Random,
        felt: Callable[[], State],
        *,
        standing: Collection[int] = (),
    ) -> None:
        """`felt` returns the state as it is shown; `standing`: the seats whose bet button places a
        wager."""
        self._game = game
        self._choose = strategy.choose
        self._seats = seats
        self._random = random
        self._felt = felt
        self._standing = frozenset(standing)
        self._usual = Random(random.randrange(2**32)) if standing else None

    def wagers(self) -> list[tuple[int, str, int]]:
        found: list[tuple[int, str, int]] = []
        for seat in range(1, self._seats + 1):
            if self._bets_as_usual(seat):
                found.append((seat, STANDING, 0))
            else:
                found.append((seat, "main", self._amount("main", self._random.choice(_MAINS))))
            for bet, (often, amounts) in _SIDES.items():
                if self._random.random() < often and bet in self._game.offered:
                    found.append((seat, bet, self._amount(bet, self._random.choice(amounts))))
        return found

    def _bets_as_usual(self, seat: int) -> bool:
        if self._usual is None or seat not in self._standing:
            return False
        return self._usual.random() < _AS_USUAL

    def _amount(self, bet: Bet, wanted: int) -> int:
        limit = self._game.limits[bet]
        return max(limit.min or 0, wanted if limit.max is None else min(wanted, limit.max))

    def choose(self, prompt: Prompt) -> PlayerChoice:
        match prompt.tell:
            case Tell.ASK_INSURANCE:
                return self._insurance(prompt)
            case Tell.ASK_NATURAL:
                return PlayerChoice("take_pay")
            case _:
                return self._plays()

    def _insurance(self, prompt: Prompt) -> PlayerChoice:
        if "even_money" in prompt.choices and self._random.random() < _EVENS:
            return PlayerChoice("even_money")
        amount = prompt.amount - prompt.amount % self._game.money.unit
        if amount and "insure" in prompt.choices and self._random.random() < _INSURES:
            return PlayerChoice("insure", amount)
        return PlayerChoice("decline")

    def _plays(self) -> PlayerChoice:
        s = self._felt()
        hand, spare = s.hands[s.turn], s.spare
        if spare is not None and spare.exposed and hand.total + VALUE[spare.card] > 21:
            return PlayerChoice("refuse_card")
        values = [VALUE[card] for card in hand.cards]
        pair = values[0] if len(values) == 2 and values[0] == values[1] else 0
        chosen = self._choose(
            hand.total, hand.soft, len(values), pair, hand.doubles, hand.split, s.up, s.legal
        )
        return PlayerChoice(_DOES[chosen])
