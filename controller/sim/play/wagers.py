"""Stakes of simulated rounds: amounts that every payout divides without rounding."""

from __future__ import annotations

from math import lcm
from typing import Final

from msgspec import Struct

from controller.errors import UsageProblem
from controller.procedure.model.events import Bet
from controller.procedure.model.game import Game
from controller.rules.options import Limit, Options

SIDE_BETS: Final[tuple[Bet, ...]] = ("diamond", "buster")
"""The side bets that are simulated; toke bets ride on the others."""


class Stakes(Struct, frozen=True):
    """The wagers of every seat."""

    main: int
    first_round: tuple[tuple[Bet, int], ...]
    """On the first round after a shuffle."""
    later: tuple[tuple[Bet, int], ...]

    def of(self, bet: Bet) -> int:
        return dict(self.first_round).get(bet, 0)


def stakes_for(game: Game, *, side: bool) -> Stakes:
    """Returns the smallest such stakes within the limits, with side bets if `side`."""
    options = game.options
    bets: tuple[Bet, ...] = tuple(bet for bet in SIDE_BETS if side and bet in game.offered)
    even = _even(options)
    main = _within(even, options.limits.main, "main")
    amounts: list[tuple[Bet, int]] = [("main", main)]
    amounts += [(bet, _within(game.money.unit, game.limits[bet], bet, main)) for bet in bets]
    once = options.bonus.diamond.first_round_only is True
    later = tuple((bet, stake) for bet, stake in amounts if not (once and bet == "diamond"))
    return Stakes(main, tuple(amounts), later)


def _even(o: Options) -> int:
    """Returns a wager that all odds divide, also if it is halved for surrender or insurance."""
    odds = (
        o.blackjack.pays,
        o.blackjack.pays_diamonds,
        o.wins.pays_21,
        o.instant.pays_21,
        o.instant.pays_count,
        o.insurance.pays,
    )
    return 2 * o.money.unit * lcm(*(each.on for each in odds if each is not None))


def _within(even: int, limit: Limit, bet: Bet, wanted: int = 1) -> int:
    """Returns the smallest multiple of `even` within the limits, at least `wanted` if possible."""
    step = lcm(even, limit.step or 1)
    least = limit.min or 1
    most = limit.max
    low = -(-least // step) * step
    high = low if most is None else most // step * step
    if most is not None and low > high:
        raise UsageProblem(
            f"limits.{bet}",
            f"no wager from {least} to {most} can be paid without rounding",
            f"limits with a multiple of {step} between them",
        )
    stake = max(low, -(-wanted // step) * step)
    return stake if most is None else min(stake, high)
