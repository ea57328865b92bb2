"""Replay gives the recorded state, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller.audit.format.records import RecordEntry, encode
from controller.audit.read.reader import records, segments
from controller.audit.replay import RecordReplay
from controller.audit.replay.replay import ReplayResult
from controller.procedure.model.state import State
from tests.support.audit.record.dealing import boot
from tests.support.audit.record.folded import dealt, folded, replayed, write
from tests.support.audit.record.table import ANN
from tests.support.procedure.random_games import GAMES, game_as_it_is


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


# --- the same state, bit for bit --------------------------------------------------------------


def test_a_new_record_replays_to_a_closed_table(place: Path) -> None:
    found = folded(place, game_as_it_is("mega"))
    assert found == ReplayResult(None)
    assert found.now == State()


@pytest.mark.parametrize("name", GAMES)
def test_replay_gives_the_tables_state(place: Path, name: str) -> None:
    """At each boot's end, at any point of a round, and with small segments."""
    table = dealt(name, "ends", events=0)
    state: State | None = None
    written = 0
    for ends in (1, 40, 41, 150, 333, 600):
        while len(table.entries) < ends:
            table.once()
        log = boot(place, table.game, state)
        write(log, table.entries[written:])
        log.close()
        written = len(table.entries)
        found = folded(place, table.game)
        assert encode(found.state) == encode(table.state)
        state = found.state
    assert len(list(segments(place))) > 3


def test_replay_from_each_snapshot_gives_the_same_state(place: Path) -> None:
    table = dealt("classic", "snapshots")
    log = boot(place, table.game)
    write(log, table.entries)
    log.close()
    numbers = [segment.number for segment in segments(place)]
    assert len(numbers) > 4
    for number in numbers:
        assert replayed(place, number).known == encode(table.state)


def test_each_snapshot_contains_the_replayed_state(place: Path) -> None:
    table = dealt("mega", "snapshots")
    log = boot(place, table.game)
    write(log, table.entries)
    log.close()
    replay = RecordReplay(place)
    compared = 0
    for at, record in records(place):
        if record.kind == "snapshot" and at.segment > 1:
            snapshot: dict[str, Any] = msgspec.json.decode(record.data)
            assert encode(snapshot["state"]) == replay.known
            assert msgspec.json.decode(encode(snapshot["state"]), type=State) == replay.state
            compared += 1
        replay.take(at, record)
    assert compared > 3
    kept = [made for made in table.entries if made.kind in ("decision", "refusal")]
    assert replay.counted == (len(kept), 0)


def test_replayed_decisions_are_counted(place: Path) -> None:
    table = dealt("sf21x", "counted", events=60)
    log = boot(place, table.game, size=1024 * 1024)
    write(log, [RecordEntry("note", ANN, {"text": "before it all"}), *table.entries])
    log.close()
    found = folded(place, table.game)
    decisions = [made for made in table.entries if made.kind == "decision"]
    assert 0 < len(decisions) < len(table.entries)
    assert (found.again, found.taken) == (len(table.entries), 0)
    last = max(record.seq for _, record in records(place) if record.kind == "decision")
    assert found.seq == last
