"""Helpers for tests of replay."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec

from controller.audit.format.records import RecordEntry, encode
from controller.audit.log import Log, RecordOpening
from controller.audit.read.reader import records
from controller.audit.replay import RecordReplay, ReplayResult, replay_opening
from controller.procedure.engine import Procedure
from controller.procedure.model.game import Game
from tests.support.audit.record.dealing import TABLE, Dealing
from tests.support.procedure.random_games import some_game


def opened_at(place: Path) -> RecordOpening:
    return RecordOpening.at(place, table=TABLE)


def folded(place: Path, game: Game) -> ReplayResult:
    opening = opened_at(place)
    try:
        return replay_opening(opening, Procedure(game))
    finally:
        opening.close()


def dealt(name: str, seed: str, events: int = 400) -> Dealing:
    """A table after this many events, at any point of a round."""
    game, what = some_game(Random(f"folding {name} {seed}"), name)
    table = Dealing(Procedure(game), f"folding {what} {seed}")
    while len(table.entries) < events:
        table.once()
    return table


def replayed(place: Path, start: int | None = None) -> RecordReplay:
    """Replay the record from segment `start` on."""
    replay = RecordReplay(place)
    for at, record in records(place, start):
        replay.take(at, record)
    return replay


def write(log: Log, entries: list[RecordEntry]) -> None:
    for made in entries:
        log.write([made])


def fill(log: Log, entries: list[RecordEntry]) -> None:
    """Write the entries, and close the log."""
    write(log, entries)
    log.close()


def plain(data: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(encode(data))
    return found
