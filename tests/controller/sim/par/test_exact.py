"""The policy that always stands, enumerated through the rows."""

from fractions import Fraction

import pytest

from controller.procedure.engine import Procedure
from controller.procedure.model.events import Event, Hit, Stand
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State
from controller.sim.par.exact import blackjack_dealt, enumerate_stand
from controller.sim.par.simulation import game_for
from controller.sim.play import RoundStuck
from tests.long.certify import published


def test_standing_enumerated() -> None:
    """One deck, and diamonds pay apart: the game in which the cards tell most."""
    exact = enumerate_stand(Procedure(game_for("maxtime", {})))
    assert float(exact.ev) == pytest.approx(published.STAND["maxtime"], abs=1e-9)
    assert sum(exact.outcomes.values()) == 1
    assert exact.outcomes["blackjack"] == blackjack_dealt(1)
    net = exact.outcomes["win"] - exact.outcomes["lose"] + exact.outcomes["blackjack"]
    in_diamonds = Fraction(2, 663)  # pay 2:1, one more than the others
    assert exact.ev == net + in_diamonds


class _Refusing:
    """Rows that take no decision."""

    def __init__(self) -> None:
        self._procedure = Procedure(game_for("classic", {}))
        self.game = self._procedure.game

    def step(self, s: State, e: Event, /) -> Decision | Refused:
        if isinstance(e, Stand | Hit):
            return Refused("no", "not today")
        return self._procedure.step(s, e)


def test_rows_that_refuse_to_be_enumerated_are_told() -> None:
    with pytest.raises(RoundStuck, match="Stand at turn: not today"):
        enumerate_stand(_Refusing())
