"""The engine's dictionary and the live table's state machine are one procedure.

A short run; `make campaign` plays at least 20,000 rounds of each game, until every row has fired.
"""

from __future__ import annotations

import pytest

from tests.support.procedure.differential import compare
from tests.support.procedure.random_games import GAMES

_ROUNDS = 1_500
"""Of each game."""


@pytest.mark.parametrize("name", GAMES)
def test_both_engines_answer_alike(name: str) -> None:
    compared = compare(name, _ROUNDS, seed=f"differential {name}")
    print(compared)
    assert compared.rounds >= _ROUNDS
    assert compared.refused > compared.rounds // 4
