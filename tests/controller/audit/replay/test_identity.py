"""A boot's identity, and building the game from a record."""

import json
from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from controller.audit.errors import RecordDamaged
from controller.audit.replay import identity_of, proc_of, procedure_of
from controller.audit.replay.identity import GameTerms, game_bytes
from controller.config import installed, load_table
from controller.games import game_of_table, player, wagering
from controller.procedure.engine import Procedure
from controller.procedure.model.events import WagerPlaced
from controller.procedure.model.game import Game
from controller.procedure.model.row import Refused
from controller.rules.irregularities import Ruling
from tests.support.audit.record.table import opened
from tests.support.paths import ROOT
from tests.support.procedure.random_games import GAMES, game_as_it_is, varied_game
from tests.support.procedure.random_table import Both, RandomTable

_VARIED = 25
"""Games with other options, of each sheet."""


def again(game: Game) -> Procedure:
    """The procedure built from the record."""
    found = procedure_of(opened(identity_of("a-table", game)))
    assert found is not None
    return found


def games(name: str) -> list[tuple[Game, str]]:
    sheets = [
        (game_as_it_is(name, house), f"{name} under {house}") for house in ("default", "strict")
    ]
    rng = Random(f"identity {name}")
    return sheets + [varied_game(rng, name) for _ in range(_VARIED)]


# The game


@pytest.mark.parametrize("name", GAMES)
def test_a_decoded_game_has_the_same_rows_and_decisions(name: str) -> None:
    for game, what in games(name):
        same = again(game)
        assert game_bytes(same.game) == game_bytes(game), what
        assert game_bytes(same.game) == game_bytes(game), what
        ours = Procedure(game)
        assert [row.id for row in same.rows] == [row.id for row in ours.rows], what
        table = RandomTable(Both(ours, same), f"identity {what}")
        table.play(12)  # fails if the two answers differ
        assert table.events > 100


@pytest.mark.parametrize("name", installed("table"))
def test_a_decoded_game_has_the_same_refusal_texts(name: str) -> None:
    game = game_of_table(load_table(name))
    same = again(game)
    wager = WagerPlaced(player(1), 1, "main", 1)
    answer = Procedure(game).step(wagering(), wager)
    assert isinstance(answer, Refused)
    assert "$" in answer.why
    assert same.step(wagering(), wager) == answer
    RandomTable(Both(Procedure(game), same), name).play(10)


def test_equal_games_have_equal_bytes_in_any_order() -> None:
    game = game_as_it_is("mega")
    house = game.jurisdiction
    turned = replace(house, ways=dict(reversed(house.ways.items())))
    other = Game(game.name, game.options, turned, game.title, game.seats, game.clauses)
    assert list(turned.ways) != list(house.ways)
    assert game_bytes(other) == game_bytes(game)


def test_the_bytes_are_json_of_integers_without_spaces() -> None:
    raw = game_bytes(game_of_table(load_table("mega-1")))
    assert json.dumps(json.loads(raw), separators=(",", ":"), ensure_ascii=False).encode() == raw
    assert not any(isinstance(number, float) for number in _leaves(msgspec.json.decode(raw)))
    assert msgspec.json.decode(raw, type=GameTerms).options.bonus.buster.pays


def _leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in _leaves(each)]
    if isinstance(value, list):
        return [leaf for each in value for leaf in _leaves(each)]
    return [value]


def test_a_custom_amount_format_is_rejected() -> None:
    game = game_as_it_is("classic")
    odd = Game("classic", game.options, game.jurisdiction, say_amount=lambda amount: f"{amount}!")
    with pytest.raises(TypeError, match="writes amounts"):
        identity_of("odd", odd)


# Which procedure it was


def test_other_code_has_no_procedure() -> None:
    me = replace(identity_of("bj", game_as_it_is("classic")), code="ab" * 32)
    assert procedure_of(opened(me)) is None


def test_another_option_or_another_ruling_is_another_procedure() -> None:
    game = game_as_it_is("classic")
    options = replace(game.options, decks=8)
    ways = game.jurisdiction.ways | {
        "misdeal": Ruling(next(iter(game.jurisdiction.ways.values())).way, text="in other words")
    }
    others = (
        Game(game.name, options, game.jurisdiction, game.title, 7, game.clauses),
        Game(game.name, game.options, replace(game.jurisdiction, ways=ways), game.title, 7),
        Game(game.name, game.options, game.jurisdiction, game.title, 6, game.clauses),
        game_as_it_is("classic", "strict"),
        game_as_it_is("mega"),
    )
    assert len({proc_of(game), *map(proc_of, others)}) == 6


def test_the_hashes_of_opened_must_match_its_game() -> None:
    right = opened(identity_of("bj", game_as_it_is("classic")))
    bad_game = identity_of("bj", game_as_it_is("classic"))
    bad_game = replace(bad_game, game=bad_game.game.replace(b'"seats":7', b'"seats":"x"'))
    for wrong, words in (
        (msgspec.structs.replace(right, proc="00" * 32), "is not that of its game"),
        (msgspec.structs.replace(right, code="zz"), "is no hash"),
        (opened(bad_game), "its game cannot be read"),
    ):
        with pytest.raises(RecordDamaged, match=words):
            procedure_of(wrong)


# The configuration


def test_the_configuration_hash_is_independent_of_the_path(
    tmp_path: Path,
) -> None:
    text = (ROOT / "configs/tables/mega-1.toml").read_text()
    here, there = tmp_path / "here.toml", tmp_path / "other" / "there.toml"
    there.parent.mkdir()
    for file in (here, there):
        file.write_text(f"# a comment of {file.name}\n{text}")
    one, other = (identity_of("mega-1", load_table(file)) for file in (here, there))
    assert one == other == identity_of("mega-1", load_table("mega-1"))
    there.write_text(text.replace('title = "', 'title = "The other '))
    retitled = identity_of("mega-1", load_table(there))
    assert retitled.conf != one.conf
    assert retitled.proc == one.proc  # the title does not affect decisions
