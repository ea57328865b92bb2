"""The stand-alone verifier settles random rounds again and agrees with the table on all of them."""

from random import Random

import pytest

from tests.support.audit.settling import Independent, dealt, game_of_record
from tests.support.procedure.random_games import some_game

GAMES = ("classic", "maxtime", "mega", "sf21x")


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("seed", range(3))
def test_random_rounds_settle_as_they_were_recorded(name: str, seed: int) -> None:
    """Of the sheet as it is and with other options; with irregularities, voids and corrections."""
    game, what = some_game(Random(f"{name} {seed}"), name)
    ours = Independent(game_of_record(game))
    for entry in dealt(game, f"{name} {seed}", rounds=8, wrong=0.08):
        assert ours.wrong(entry) == "", (what, entry)
    counts = ours.settlement.counts
    assert counts["rounds"] >= 8
    assert counts["hands"] >= 8
    assert counts["amounts"] > counts["hands"] + counts["side bets"]
