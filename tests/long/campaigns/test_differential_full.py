"""The engine's dictionary and the live table's state machine, over the whole of the rows."""

from __future__ import annotations

import pytest

from tests.support.procedure.differential import compare
from tests.support.procedure.random_games import GAMES

_ROUNDS = 20_000
"""Of each game."""


@pytest.mark.parametrize("name", GAMES)
def test_both_engines_answer_alike_and_every_row_fires(name: str) -> None:
    compared = compare(name, _ROUNDS, seed=f"campaign {name}")
    print(compared)
    assert compared.rounds >= _ROUNDS
    assert compared.refused > compared.rounds // 4
    assert not compared.never_fired(), compared.missing()
