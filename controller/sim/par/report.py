"""Reports of simulated rounds, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final, TypeAlias

from msgspec import Struct

from controller.procedure.model.events import Bet
from controller.procedure.model.game import Game
from controller.sim.par.exact import (
    Exact,
    blackjack_dealt,
    buster_return,
    dealer_busts,
    dealer_ends,
    dealer_total,
    diamond_return,
    diamonds_dealt,
    insurance_return,
)
from controller.sim.par.simulation import ParTally, Share
from controller.sim.play import PlaySetup

OUTCOMES: Final = (
    "blackjack",
    "even_money",
    "instant21",
    "instant6",
    "win",
    "push",
    "lose",
    "surrender",
)
_MANY: Final = 8
"""Dealer's busts with so many cards or more are one figure."""


class Figure(Struct, frozen=True):
    """A simulated figure, an exact figure, or both."""

    text: str
    value: float | None = None
    error: float | None = None
    of: int = 0
    """The number of rounds or hands that were counted."""
    exact: Fraction | None = None
    earns: bool = False
    """A result of a bet per unit, not a frequency."""


Side: TypeAlias = dict[str, Figure | dict[str, Figure]]


class ParReport(Struct, frozen=True):
    main: Figure
    outcomes: dict[str, Figure]
    side: Side


def of_rounds(game: Game, setup: PlaySetup, tally: ParTally) -> ParReport:
    unit = setup.stakes.main * setup.seats
    wagers = tally.main.count * setup.seats
    main = Figure(
        "earns", tally.main.mean(unit), tally.main.error(unit), tally.main.count, earns=True
    )
    outcomes = {
        outcome: Figure(outcome, tally.outcomes[outcome] / wagers, of=wagers)
        for outcome in _ends(tally)
    }
    return ParReport(main, outcomes, _side(game, setup, tally))


def of_enumeration(game: Game, exact: Exact, setup: PlaySetup) -> ParReport:
    main = Figure("earns", float(exact.ev), 0.0, exact=exact.ev, earns=True)
    outcomes = {
        outcome: Figure(outcome, float(likely), exact=likely)
        for outcome in OUTCOMES
        for likely in [exact.outcomes.get(outcome, Fraction())]
    }
    return ParReport(main, outcomes, _side(game, setup, None))


def _ends(tally: ParTally) -> tuple[str, ...]:
    """Returns the outcomes that are always reported, and any other that occurred."""
    return (*OUTCOMES, *sorted(set(tally.outcomes) - set(OUTCOMES)))


# Side figures


def _side(game: Game, setup: PlaySetup, tally: ParTally | None) -> Side:
    side: Side = {}
    exact = not setup.cut
    for name, figure in _side_figures(game, setup, tally):
        shown = figure if exact else _without_exact(figure)
        if shown.value is not None or shown.exact is not None:
            side[name] = shown
    busts = {
        name: figure if exact else _without_exact(figure)
        for name, figure in _bust_figures(game, setup, tally)
    }
    if exact or any(figure.value is not None for figure in busts.values()):
        side["dealer_bust"] = busts
    return side


def _side_figures(
    game: Game, setup: PlaySetup, tally: ParTally | None
) -> Iterator[tuple[str, Figure]]:
    decks, options = game.decks, game.options
    dealt = tally.blackjacks if tally else None
    yield "blackjack_dealt", _share("blackjack dealt", dealt, blackjack_dealt(decks))
    dealt = tally.diamonds if tally else None
    yield "diamonds_dealt", _share("... in diamonds", dealt, diamonds_dealt(decks))
    if options.bonus.diamond.pays is not None:
        returns = diamond_return(decks, options.bonus.diamond.pays)
        yield "diamond", _bet("diamond bet", "diamond", setup, tally, returns)
    if options.insurance.pays is not None:
        returns = insurance_return(decks, options.insurance.pays)
        figure = Figure("insurance, the ace known", exact=returns, earns=True)
        yield "insurance", _insured(figure, game, tally)
    if options.bonus.buster.pays is not None:
        returns = buster_return(dealer_ends(decks, options), options.bonus.buster.pays)
        yield "buster", _bet("buster bet", "buster", setup, tally, returns)


def _without_exact(figure: Figure) -> Figure:
    """Returns figures without exact values, which are those of a fresh shuffle only."""
    return Figure(figure.text, figure.value, figure.error, figure.of, earns=figure.earns)


def _share(text: str, share: Share | None, exact: Fraction) -> Figure:
    if share is None:
        return Figure(text, exact=exact)
    return Figure(text, share.mean(), share.error(), share.of, exact)


def _bet(text: str, bet: Bet, setup: PlaySetup, tally: ParTally | None, exact: Fraction) -> Figure:
    sums = tally.sides.get(bet) if tally else None
    if sums is None:
        return Figure(text, exact=exact, earns=True)
    unit = setup.stakes.of(bet) * setup.seats
    return Figure(text, sums.mean(unit), sums.error(unit), sums.count, exact, earns=True)


def _insured(figure: Figure, game: Game, tally: ParTally | None) -> Figure:
    """Returns the result of every possible insurance, taken or not."""
    pays = game.options.insurance.pays
    if tally is None or not tally.insurance.of or pays is None:
        return figure
    tens = tally.insurance
    won = (pays.pays + pays.on) / pays.on
    return Figure(
        figure.text, won * tens.mean() - 1, won * tens.error(), tens.of, figure.exact, earns=True
    )


def _bust_figures(
    game: Game, setup: PlaySetup, tally: ParTally | None
) -> Iterator[tuple[str, Figure]]:
    """Yields figures of a dealer who completes every hand; simulated with Buster bets only."""
    seen = tally if tally is not None and setup.stakes.of("buster") else None
    ends = dealer_ends(game.decks, game.options)
    busts = dealer_busts(ends)
    for least in range(3, _MANY + 1):
        most = 99 if least == _MANY else least
        likely = sum((busts[n] for n in busts if least <= n <= most), Fraction())
        found = sum(seen.busts[n] for n in seen.busts if least <= n <= most) if seen else 0
        name = f"{least}+" if least == _MANY else str(least)
        text = f"{least} cards or more" if least == _MANY else f"{least} cards"
        yield name, _share(text, Share(seen.main.count, found) if seen else None, likely)
    share = Share(seen.main.count, seen.total_22) if seen else None
    yield "total_22", _share("a total of 22", share, dealer_total(ends, 22))


# JSON


def as_json(report: ParReport) -> tuple[dict[str, object], dict[str, object]]:
    """Returns the values of "main" and "side"."""
    ev = report.main.value or 0.0
    main: dict[str, object] = {
        "ev": ev,
        "se": report.main.error,
        "house_edge": 0.0 - ev,
        "outcomes": {name: figure.value for name, figure in report.outcomes.items()},
    }
    side: dict[str, object] = {
        name: _figure_json(figure)
        if isinstance(figure, Figure)
        else {key: _figure_json(each) for key, each in figure.items()}
        for name, figure in report.side.items()
    }
    return main, side


def _figure_json(figure: Figure) -> dict[str, object]:
    exact = None if figure.exact is None else float(figure.exact)
    name = "ev" if figure.earns else "frequency"
    return {name: figure.value, "se": figure.error, "of": figure.of, "exact": exact}


# Text

_HEAD: Final = f"{'':<28}{'simulated':>12}{'std. error':>12}{'exact':>12}"


def lines(report: ParReport, *, simulated: bool) -> Iterator[str]:
    main = report.main
    edge = Figure(
        "house edge",
        0.0 - (main.value or 0.0) if simulated else None,
        main.error if simulated else None,
        exact=None if main.exact is None else -main.exact,
        earns=True,
    )
    yield f"{'main wager':<28}{_HEAD[28:]}"
    yield _line(edge)
    for name, figure in report.outcomes.items():
        if figure.value:
            value = figure.value if simulated else None
            yield _line(Figure(name.replace("_", " "), value, exact=figure.exact))
    yield ""
    yield "cards and side bets"
    for each in report.side.values():
        if isinstance(each, Figure):
            yield _line(each)
    for each in report.side.values():
        if isinstance(each, dict):
            yield ""
            yield "dealer who always completes the hand busts with"
            yield from (_line(figure) for figure in each.values())


def _line(figure: Figure) -> str:
    cells = "".join(f"{_percent(each):>12}" for each in (figure.value, figure.error, figure.exact))
    fraction = "" if figure.exact is None else _fraction(figure.exact)
    return f"  {figure.text:<26}{cells}{fraction}".rstrip()


def _percent(value: float | Fraction | None) -> str:
    return "" if value is None else f"{100 * float(value):.4f} %"


def _fraction(value: Fraction) -> str:
    text = str(value)
    return f"  = {text}" if len(text) <= 12 else ""
