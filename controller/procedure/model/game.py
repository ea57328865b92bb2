"""A game as the procedure uses it: the sheet's options, the jurisdiction, values derived from both.

Derived values are computed once a sheet. The caches hold values that depend on the sheet alone, so
that equal prompts are built once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from controller.procedure.model.clauses import TELL_RULES, of_game, pay_rules
from controller.procedure.model.effects import Effect, Stations
from controller.procedure.model.permissions import who_may
from controller.procedure.model.state import Place
from controller.rules.irregularities import Irregularity, Jurisdiction, Way
from controller.rules.money import Amount, in_chips
from controller.rules.options import Limit, Options
from controller.rules.payouts import can_push

BETS: Final = ("main", "diamond", "buster", "toke_main", "toke_buster")
"""Every bet that is placed before the first card, in the order in which it is listed."""

_UP_VALUES: Final = {"A": 1, "T": 10}
_MOST_CACHED: Final = 20_000


class Game:
    """Options and jurisdiction with derived values; immutable except for its caches."""

    def __init__(
        self,
        name: str,
        options: Options,
        jurisdiction: Jurisdiction,
        title: str = "",
        seats: int = 7,
        clauses: tuple[str, ...] = (),
        say_amount: Callable[[Amount], str] = str,
    ) -> None:
        self.name = name
        self.title = title or name
        self.options = options
        self.jurisdiction = jurisdiction
        self.seats = seats
        self.clauses = clauses
        self.say_amount = say_amount
        """Formats an amount for refusals: in the table's currency, or as the bare integer."""
        self.decks = options.decks
        self.money = options.money
        self.peeks = frozenset(_UP_VALUES[card] for card in options.dealer.peek)
        self.offered = frozenset(self._offered())
        self.limits: dict[str, Limit] = {bet: getattr(options.limits, bet) for bet in BETS}
        self.can_push = can_push(options)
        self.tie_wins = options.blackjack.tie == "player_wins"
        self.waits_for_settlement = options.blackjack.paid == "at_settlement"
        self.insures = options.insurance.offered
        self.natural_may_double = options.double.natural
        self.buttons = options.decisions.by != "signals"
        self.who = who_may(options)
        self.tell_rules = {tell: of_game(rules, name) for tell, rules in TELL_RULES.items()}
        """The clauses of the sheet that a prompt cites."""
        self.chips_for = lru_cache(maxsize=_MOST_CACHED)(self._chips_for)
        self.deal_order = lru_cache(maxsize=256)(_deal_order)
        self.pay_rules = lru_cache(maxsize=256)(self._pay_rules)
        self.won_lamps = lru_cache(maxsize=64)(_won_lamps)
        self._shown: dict[object, tuple[Effect, ...]] = {}

    def _offered(self) -> list[str]:
        o = self.options
        offered = ["main"]
        if o.bonus.diamond.pays is not None:
            offered.append("diamond")
        if o.bonus.buster.pays is not None:
            offered.append("buster")
        if o.toke.allowed:
            offered.append("toke_main")
            if o.bonus.buster.pays is not None:
                offered.append("toke_buster")
        return offered

    def _chips_for(self, amount: Amount) -> tuple[tuple[int, str], ...]:
        return in_chips(amount, self.options.chips)

    def _pay_rules(self, bet: str, why: str, outcome: str) -> tuple[str, ...]:
        return of_game(pay_rules(bet, why, outcome), self.name)

    def shown(self, key: object) -> tuple[Effect, ...] | None:
        """Effects cached by this key."""
        return self._shown.get(key)

    def keep(self, key: object, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        if len(self._shown) >= _MOST_CACHED:
            self._shown.clear()
        self._shown[key] = effects
        return effects

    def needs_two(self, what: Irregularity, way: Way) -> bool:
        ruling = self.jurisdiction.ruling(what)
        return ruling.two_people or way.value in self.jurisdiction.two_people


def _won_lamps(seat: int) -> Stations:
    return Stations((), ((seat, "won"),))


def _deal_order(seats: tuple[int, ...]) -> tuple[Place, ...]:
    """One card to each seat, the dealer's up card, a second to each seat, the hole card."""
    hands = tuple(Place("hand", seat, 0, turn) for turn, seat in enumerate(seats))
    return (*hands, Place("up"), *hands, Place("hole"))
