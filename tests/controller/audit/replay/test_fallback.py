"""Taking over a record of another procedure: between rounds only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from controller.audit.format.records import RecordActor, RecordEntry, encode
from controller.audit.format.segments import segment_file
from controller.audit.read.reader import records
from controller.audit.replay import (
    DecisionData,
    OtherProcedure,
    at_rest,
    identity_of,
    procedure_of,
    software_name,
)
from controller.audit.replay.replay import ReplayResult
from controller.games import FLOOR, SECOND
from controller.procedure.engine import Procedure
from controller.procedure.model import effects, events
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision
from controller.procedure.model.state import Shoe, State, Step
from tests.support.audit.fallbacks import AT_REST, IN_THE_MIDDLE, OTHER_CODE, boot_of, other
from tests.support.audit.record.dealing import TABLE, Dealing, boot
from tests.support.audit.record.folded import folded, opened_at, plain, write
from tests.support.audit.record.table import ANN
from tests.support.procedure.random_games import game_as_it_is, game_with


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


# --- another procedure ------------------------------------------------------------------------


def played_to(game: Game, there: Callable[[State], bool], seed: str = "other") -> Dealing:
    table = Dealing(Procedure(game), seed)
    while not (table.entries and there(table.state)):
        table.once()
    return table


@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_other_code_does_not_take_over_an_open_round(place: Path, what: str) -> None:
    game = game_as_it_is("classic")
    table = played_to(game, IN_THE_MIDDLE[what])
    log = boot_of(place, other(game))
    write(log, table.entries)
    log.close()
    with pytest.raises(OtherProcedure) as found:
        folded(place, game)
    told = str(found.value)
    assert "holecard 0.0.1" in told
    assert OTHER_CODE[:16] in told
    assert software_name() in told
    assert "close the table" in told
    assert "\n" not in told


@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_another_game_does_not_take_over_an_open_round(place: Path, what: str) -> None:
    game = game_as_it_is("classic")
    table = played_to(game, IN_THE_MIDDLE[what])
    log = boot(place, game)
    write(log, table.entries)
    log.close()
    with pytest.raises(OtherProcedure, match="dealt by another game or jurisdiction"):
        folded(place, game_as_it_is("classic", "strict"))
    assert folded(place, game).now == table.state


@pytest.mark.parametrize("what", AT_REST)
def test_other_code_between_rounds_leaves_a_closed_table(place: Path, what: str) -> None:
    game = game_as_it_is("mega")
    table = played_to(game, AT_REST[what], f"rests {what}")
    if table.state.step is Step.SHUFFLE_NEEDED:
        assert isinstance(table.heard[-1][1], events.Cleared)
    log = boot_of(place, other(game))
    write(log, table.entries)
    log.close()
    found = folded(place, game)
    assert found.now == State(
        round=table.state.round, shoe=Shoe(decks_out=table.state.shoe.decks_out)
    )
    assert found.again == 0
    assert found.taken > 0
    # The same after a boot of this code has taken over.
    log = boot(place, game, found.state)
    log.close()
    assert folded(place, game).now == found.now


@pytest.mark.parametrize("what", AT_REST)
def test_another_game_between_rounds_starts_closed(place: Path, what: str) -> None:
    game = game_as_it_is("mega")
    table = played_to(game, AT_REST[what], f"rests {what}")
    log = boot(place, game)
    write(log, table.entries)
    log.close()
    next_game = game_with("mega", {"dealer.soft_17": "stand"})
    found = folded(place, next_game)
    assert found.now.step is Step.CLOSED
    assert found.now.round == table.state.round
    assert found.again > 0
    # The new game replays its own decisions, the old game those before.
    log = boot(place, next_game, found.state)
    after = Procedure(next_game).step(found.now, events.TableOpened(FLOOR, 0, SECOND))
    assert isinstance(after, Decision)
    event = events.TableOpened(FLOOR, 0, SECOND)
    log.write(
        [
            RecordEntry(
                "decision", ANN, DecisionData(event, after.rows, after.effects), state=after.state
            )
        ]
    )
    log.close()
    assert folded(place, next_game).now == after.state
    # Back to the first game: the table is closed again.
    assert folded(place, game).now.step is Step.CLOSED


def test_removed_decks_stay_removed_under_other_code(place: Path) -> None:
    game = game_as_it_is("classic")
    table = played_to(game, lambda s: s.shoe.decks_out and s.step is Step.SHUFFLE_NEEDED, "decks")
    table.hand_in(events.TableClosed(FLOOR, 0, SECOND))
    assert table.state.step is Step.CLOSED
    log = boot_of(place, other(game))
    write(log, table.entries)
    log.close()
    assert folded(place, game).now.shoe.decks_out


def test_unknown_values_of_other_code_count_as_an_open_round(place: Path) -> None:
    """Whether a round is open is unknown then."""
    game = game_as_it_is("classic")
    log = boot_of(place, other(game))
    data = {"event": {"type": "Moonlit"}, "rows": ["moon"], "effects": [{"type": "Howl", "at": 3}]}
    log.write([RecordEntry("decision", RecordActor("dealer", "Ann"), data, 7)])
    log.close()
    with pytest.raises(OtherProcedure):
        folded(place, game)
    closed = {
        "event": {"type": "Set"},
        "rows": [],
        "effects": [plain(effects.Prompt(effects.Tell.OPEN_TABLE))],
    }
    log = boot_of(place, other(game))
    log.write([RecordEntry("decision", ANN, closed, 8), RecordEntry("refusal", ANN, {"odd": 1}, 8)])
    log.close()
    assert folded(place, game) == ReplayResult(State(round=8), _last(place), 0, 3)


def _last(place: Path) -> int:
    return max(record.seq for _, record in records(place) if record.kind == "decision")


@pytest.mark.parametrize(
    ("state", "rests"),
    [
        (b"null", True),
        (encode(State(round=4)), True),
        (encode(State(step=Step.WAGERING, round=4)), True),
        (encode(State(step=Step.TURN, round=4)), False),
        (b'{"step":"wagering","round":4,"seats":[{"who":1}],"shoe":{}}', False),
        (b'{"step":"howling","round":4,"seats":[],"shoe":{}}', False),
        (b'{"moon":4}', False),
        (b"[4]", False),
    ],
)
def test_a_snapshot_of_other_code_shows_whether_a_round_is_open(
    place: Path, state: bytes, rests: bool
) -> None:
    """The state comes from the snapshot of a later segment only."""
    game = game_as_it_is("classic")
    log = boot_of(place, other(game))
    told = RecordEntry("note", ANN, {"text": "x" * 1000}, 4, state=Raw(state))  # type: ignore[arg-type]
    while not segment_file(place, 2).exists():
        log.write([told])
    log.close()
    if not rests:
        with pytest.raises(OtherProcedure):
            folded(place, game)
    else:
        expected = None if state == b"null" else State(round=4)
        assert folded(place, game).now == (expected or State())


def test_a_procedure_is_identified_by_code_and_game(place: Path) -> None:
    """Software and configuration may change without ending a round."""
    game = game_as_it_is("classic")
    table = played_to(game, IN_THE_MIDDLE["a round"])
    mine = identity_of(TABLE, game)
    log = boot_of(place, replace(mine, software="holecard 9", sw="77" * 32, conf="88" * 32))
    write(log, table.entries)
    log.close()
    opening = opened_at(place)
    opened = opening.opened()
    opening.close()
    assert opened is not None
    assert procedure_of(opened) is not None
    assert folded(place, game).now == table.state


def test_a_table_is_at_rest_between_rounds_only() -> None:
    assert {step for step in Step if at_rest(State(step=step))} == {
        Step.CLOSED,
        Step.SHUFFLE_NEEDED,
        Step.SHUFFLING,
        Step.LOADING,
        Step.BURNING,
        Step.WAGERING,
    }
