"""Every figure from outside, met as it says: enumerated to 1e-9, simulated within 4 standard
errors, published edges within a quarter of a point. At least two million rounds for each edge.
"""

import os
from functools import cache
from math import sqrt

import pytest

from controller.procedure.engine import Procedure
from controller.procedure.model.game import Game
from controller.sim.par import ParPlan, exact, report
from controller.sim.par.exact import Exact, enumerate_stand
from controller.sim.par.report import Figure, ParReport
from controller.sim.par.simulation import game_for, run
from controller.sim.play import POLICIES, PlaySetup, Strategy, basic, stakes_for
from tests.long.certify import published

ROUNDS = 2_000_000
JOBS = len(os.sched_getaffinity(0))
SEED = 1

pytestmark = pytest.mark.certify


def simulated(
    name: str,
    strategy: Strategy,
    *,
    settings: dict[str, object] | None = None,
    cut: bool = False,
    side: bool = False,
) -> ParReport:
    game = game_for(name, settings or {})
    plan = ParPlan(
        game=name,
        settings=settings or {},
        options=game.options,
        strategy=strategy,
        seats=1,
        rounds=ROUNDS,
        seed=SEED,
        cut=cut,
        side=side,
    )
    setup = PlaySetup(1, stakes_for(game, side=side), cut)
    return report.of_rounds(game, setup, run(plan, JOBS))


@cache
def game(name: str) -> Game:
    return game_for(name, {})


@cache
def enumerated(name: str) -> Exact:
    return enumerate_stand(Procedure(game(name)))


@pytest.mark.parametrize("name", published.STAND)
def test_standing_enumerated(name: str) -> None:
    ev = enumerated(name).ev
    print(f"\n{name}: {float(ev):.12f}")
    assert float(ev) == pytest.approx(published.STAND[name], abs=published.EXACT_WITHIN)


@pytest.mark.parametrize("name", published.STAND)
def test_standing_simulated(name: str) -> None:
    found = simulated(name, POLICIES["stand"], side=True)
    print("\n" + "\n".join(report.lines(found, simulated=True)))
    assert published.agrees(found.main, published.STAND[name])
    for outcome, likely in enumerated(name).outcomes.items():
        figure = found.outcomes[outcome]
        assert figure.value is not None
        error = sqrt(likely * (1 - likely) / figure.of)
        assert abs(figure.value - float(likely)) <= published.ERRORS_WITHIN * error, outcome
    for key, each in found.side.items():
        for figure in [each] if isinstance(each, Figure) else each.values():
            if figure.value is not None and figure.exact is not None:
                error = expected_error(figure)
                off = abs(figure.value - float(figure.exact))
                assert off <= published.ERRORS_WITHIN * error, (key, figure)


def expected_error(figure: Figure) -> float:
    """Of a frequency by its exact value: the simulated one is rough where it is rare."""
    if figure.earns or figure.exact is None:
        return figure.error or 0.0
    return sqrt(figure.exact * (1 - figure.exact) / figure.of)


def test_best_play_maxtime() -> None:
    found = simulated("maxtime", basic("maxtime")).main
    assert found.value is not None
    print(f"\nmaxtime: house edge {-100 * found.value:.4f} %, published 0.94 %")
    assert -found.value == pytest.approx(published.EDGE_MAXTIME, abs=published.EDGE_WITHIN)


def test_best_play_classic() -> None:
    settings: dict[str, object] = {"split.aces_again": False}
    found = simulated("classic", basic("classic"), settings=settings, cut=True).main
    assert found.value is not None
    print(f"\nclassic: house edge {-100 * found.value:.4f} %, published 0.64 %")
    assert -found.value == pytest.approx(published.EDGE_CLASSIC, abs=published.EDGE_WITHIN)


@pytest.mark.parametrize(("name", "decks"), [("mega", 6), ("maxtime", 1)])
def test_dealer_busts_enumerated(name: str, decks: int) -> None:
    ends = exact.dealer_ends(decks, game(name).options)
    busts = exact.dealer_busts(ends)
    found = {str(n): float(busts[n]) for n in range(3, 8)}
    found["8+"] = float(sum(likely for n, likely in busts.items() if n >= 8))
    found["total_22"] = float(exact.dealer_total(ends, 22))
    assert found == pytest.approx(published.BUSTS[decks], abs=published.EXACT_WITHIN)


def test_dealt_enumerated() -> None:
    for decks, likely in published.BLACKJACK_DEALT.items():
        assert exact.blackjack_dealt(decks) == likely
    for decks, likely in published.DIAMONDS_DEALT.items():
        assert exact.diamonds_dealt(decks) == likely
    for (decks, pays), returns in published.DIAMOND_RETURN.items():
        assert exact.diamond_return(decks, pays) == returns
    pays_2_to_1 = game("classic").options.insurance.pays
    assert pays_2_to_1 is not None
    for decks, returns in published.INSURANCE_RETURN.items():
        assert exact.insurance_return(decks, pays_2_to_1) == returns
