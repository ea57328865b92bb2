"""Recorded simulated rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.audit.read.reader import segments
from controller.audit.simulate import record_par
from controller.config import load_table
from controller.games import game_of_table, unburned_game
from controller.procedure.engine import Procedure
from controller.procedure.model import events as e
from controller.procedure.model.state import Shoe, State, Step
from controller.sim.play import POLICIES, Play, PlaySetup, basic, stakes_for
from tests.support.audit.record.dealing import keyring
from tests.support.audit.record.scripted import decisions, ends, events, kinds_of, replayed


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


# --- simulated rounds -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["maxtime", "sf21x", "classic", "mega"])
def test_simulated_rounds_replay(place: Path, name: str) -> None:
    game = unburned_game(name, {}, "a test")
    strategy = basic(name)
    last = record_par(place, game, 120, keyring, seed=5, strategy=strategy, size=256 * 1024)
    replay = replayed(place)
    kinds = kinds_of(place)
    assert last == len(kinds)
    assert replay.counted == (kinds.count("decision") + kinds.count("refusal"), 0)
    assert sum(ends(record) for record in decisions(place)) == 120
    assert sum(isinstance(event, e.ShuffleStarted) for event in events(place)) > 1
    assert len(list(segments(place))) > 4


def test_the_same_seed_deals_the_same_rounds(tmp_path: Path) -> None:
    game = unburned_game("mega", {}, "a test")
    told = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        record_par(tmp_path / name, game, 20, keyring, seed=seed, seats=3)
        told.append([type(event).__name__ for event in events(tmp_path / name)])
        cards = [event.card for event in events(tmp_path / name) if isinstance(event, e.CardDrawn)]
        told[-1] += [str(card) for card in cards]
    assert told[0] == told[1] != told[2]


def test_a_table_that_burns_cards_is_simulated_too(place: Path) -> None:
    table = load_table("blackjack-1", {"burn.on_shuffle": 2})
    record_par(place, game_of_table(table), 60, keyring, seats=7, table="blackjack-1")
    told = events(place)
    loads = sum(isinstance(event, e.ShoeLoaded) for event in told)
    assert loads > 1
    assert sum(isinstance(event, e.CardBurned) for event in told) == 2 * loads
    replayed(place)


def test_a_simulation_that_is_recorded_begins_with_an_empty_shoe() -> None:
    game = unburned_game("classic", {}, "a test")
    stakes = stakes_for(game, side=False)
    loaded = State(step=Step.WAGERING, shoe=Shoe(loaded=True))
    for setup, start in (
        (PlaySetup(1, stakes, True), loaded),
        (PlaySetup(1, stakes, False), State()),
    ):
        with pytest.raises(ValueError, match="from an empty shoe"):
            Play(Procedure(game), POLICIES["stand"], setup, lambda: 0.5, start=start)
