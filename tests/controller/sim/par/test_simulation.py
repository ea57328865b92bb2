"""A sharp smoke of `make certify`: fewer rounds, the same figures; `stand` enumerated."""

from fractions import Fraction
from random import Random

import pytest

from controller.procedure.engine import Procedure
from controller.procedure.model.events import Event, Hit, Stand
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State
from controller.sim.par import ParPlan, exact, report
from controller.sim.par.exact import blackjack_dealt, enumerate_stand
from controller.sim.par.report import ParReport
from controller.sim.par.simulation import RoundCounter, game_for, run
from controller.sim.play import POLICIES, Play, PlaySetup, RoundStuck, stakes_for
from tests.long.certify import published

ROUNDS = 15_000


def played(name: str, policy: str = "stand", rounds: int = ROUNDS) -> ParReport:
    game = game_for(name, {})
    plan = ParPlan(name, {}, game.options, POLICIES[policy], 1, rounds, 1, cut=False, side=True)
    return report.of_rounds(game, PlaySetup(1, stakes_for(game, side=True)), run(plan, 1))


@pytest.mark.parametrize("name", published.STAND)
def test_a_player_who_stands(name: str) -> None:
    found = played(name)
    assert published.agrees(found.main, published.STAND[name])
    assert found.main.error is not None
    assert found.main.error < 0.012
    for key in ("blackjack_dealt", "diamonds_dealt", "diamond", "insurance", "buster"):
        figure = found.side.get(key)
        if isinstance(figure, report.Figure):
            assert figure.exact is not None
            assert published.agrees(figure, float(figure.exact)), key


def test_the_dealer_under_a_live_buster_bet() -> None:
    busts = played("mega", "mimic", 10_000).side["dealer_bust"]
    assert isinstance(busts, dict)
    for cards in ("3", "4", "5", "total_22"):
        assert published.agrees(busts[cards], published.BUSTS[6][cards]), cards
        assert float(busts[cards].exact or 0) == pytest.approx(published.BUSTS[6][cards], abs=1e-9)


def test_no_dealer_is_told_of_who_does_not_always_complete() -> None:
    busts = played("classic", rounds=100).side["dealer_bust"]
    assert isinstance(busts, dict)
    assert all(figure.value is None for figure in busts.values())


def test_outcomes_of_a_player_who_stands_are_all_there_is() -> None:
    found = played("sf21x", rounds=2_000)
    assert sum(figure.value or 0 for figure in found.outcomes.values()) == pytest.approx(1)


def test_every_seat_has_the_same_figures() -> None:
    """Seven seats share a dealer: the mean is theirs all, the error is that of rounds."""
    game = game_for("classic", {})
    setup = PlaySetup(7, stakes_for(game, side=False))
    play = Play(Procedure(game), POLICIES["stand"], setup, Random(5).random)
    watch = RoundCounter(game, completes=False)
    for _ in range(2_000):
        watch.note(play.round(), play.record, play.hole)
    found = report.of_rounds(game, setup, watch.tally)
    assert published.agrees(found.main, published.STAND["classic"])
    assert (found.main.of, found.outcomes["blackjack"].of) == (2_000, 14_000)


@pytest.mark.parametrize("decks", [1, 2, 6, 8])
def test_closed_forms(decks: int) -> None:
    assert exact.blackjack_dealt(decks) == published.BLACKJACK_DEALT[decks]
    assert exact.diamonds_dealt(decks) == published.DIAMONDS_DEALT[decks]
    pays = game_for("classic", {}).options.insurance.pays
    assert pays is not None
    assert exact.insurance_return(decks, pays) == published.INSURANCE_RETURN[decks]


@pytest.mark.parametrize(("name", "decks"), [("mega", 6), ("maxtime", 1)])
def test_dealer_enumerated(name: str, decks: int) -> None:
    ends = exact.dealer_ends(decks, game_for(name, {}).options)
    assert sum(ends.values()) == 1
    busts = exact.dealer_busts(ends)
    for cards in range(3, 8):
        assert float(busts[cards]) == pytest.approx(published.BUSTS[decks][str(cards)], abs=1e-9)
    assert float(exact.dealer_total(ends, 22)) == pytest.approx(
        published.BUSTS[decks]["total_22"], abs=1e-9
    )


def test_diamond_bets() -> None:
    for (decks, pays), returns in published.DIAMOND_RETURN.items():
        assert exact.diamond_return(decks, pays) == returns


def test_standing_enumerated() -> None:
    """One deck, and diamonds pay apart: the game in which the cards tell most."""
    exact = enumerate_stand(Procedure(game_for("maxtime", {})))
    assert float(exact.ev) == pytest.approx(published.STAND["maxtime"], abs=1e-9)
    assert sum(exact.outcomes.values()) == 1
    assert exact.outcomes["blackjack"] == blackjack_dealt(1)
    net = exact.outcomes["win"] - exact.outcomes["lose"] + exact.outcomes["blackjack"]
    # A blackjack in diamonds pays 2:1, one more than the others.
    assert exact.ev == net + Fraction(2, 663)


class _Refusing(Procedure):
    """Rows that take no decision."""

    def step(self, s: State, e: Event, /) -> Decision | Refused:
        decides = isinstance(e, Stand | Hit)
        return Refused("no", "not today") if decides else super().step(s, e)


def test_rows_that_refuse_to_be_enumerated_are_told() -> None:
    with pytest.raises(RoundStuck, match="Stand at turn: not today"):
        enumerate_stand(_Refusing(game_for("classic", {})))
