"""Helpers to record scripted and random rounds, and to replay records."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from controller.audit.format.records import BootIdentity, OpenedData, Record, RecordEntry, encode
from controller.audit.log import Log, RecordOpening
from controller.audit.read.reader import records
from controller.audit.replay import (
    RecordReplay,
    ReplayResult,
    decode_decision,
    identity_of,
    replay_opening,
)
from controller.audit.simulate import SCRIPTS, SCRIPTS_SIZE, Keyring, Recorder, play_recorded
from controller.procedure.engine import Procedure
from controller.procedure.model.effects import RoundOver
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import State, Step
from controller.sim.scripts import RoundResult, RoundWatcher, ScriptRound
from controller.sim.scripts.format import read_scripts
from controller.sim.scripts.runner import procedure_for
from tests.support.audit.record.dealing import TABLE, Dealing, keyring
from tests.support.audit.record.table import FastDisk
from tests.support.paths import SCRIPT_FILES
from tests.support.procedure.random_games import some_game

FILES: Final = sorted(SCRIPT_FILES.glob("*.json"))


def read_rounds(folder: Path, *rounds: dict[str, Any]) -> list[ScriptRound]:
    file = folder / "rounds.json"
    file.write_text(json.dumps({"schema": 1, "rounds": rounds}))
    return read_scripts(file)


def record_all(
    place: Path,
    rounds: list[ScriptRound],
    *,
    size: int = SCRIPTS_SIZE,
    watch: RoundWatcher | None = None,
    keys: Keyring = keyring,
) -> list[RoundResult]:
    with Recorder(place, SCRIPTS, keys, size=size, disk=FastDisk()) as recorder:
        known: dict[bytes, Procedure] = {}
        return [
            play_recorded(recorder, scripted, watch, procedure_for(scripted, known))
            for scripted in rounds
        ]


def replayed(place: Path, start: int = 1) -> RecordReplay:
    """Replay the record from segment `start` on; raises on any difference."""
    replay = RecordReplay(place)
    for at, record in records(place, start):
        replay.take(at, record)
    return replay


def states(place: Path) -> list[State | None]:
    """Every state of the record, in order."""
    replay = RecordReplay(place)
    found = []
    for at, record in records(place):
        replay.take(at, record)
        found.append(replay.state)
    return found


def decisions(place: Path) -> list[Record]:
    return [record for _, record in records(place) if record.kind == "decision"]


def events(place: Path) -> list[Event]:
    return [decode_decision(record).event for record in decisions(place)]


def boots_of(place: Path) -> list[OpenedData]:
    """What each boot of the record was opened with."""
    every = [one for _, one in records(place) if one.kind == "opened"]
    return [msgspec.json.decode(one.data, type=OpenedData) for one in every]


def ends(record: Record) -> bool:
    """Whether a round ends with this decision."""
    return any(isinstance(effect, RoundOver) for effect in decode_decision(record).effects)


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
    table.play_to(events)
    return table


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


# --- boots with other code on the same record -------------------------------------------------


OTHER_CODE: Final = "ab" * 32


def other(game: Game, *, code: str = OTHER_CODE) -> BootIdentity:
    """The identity of a boot with other code."""
    return msgspec.structs.replace(identity_of(TABLE, game), code=code, software="holecard 0.0.1")


IN_THE_MIDDLE: Final[dict[str, Callable[[State], bool]]] = {
    "a round": lambda s: bool(s.hole),
    "a wager on the felt": lambda s: s.step is Step.WAGERING and bool(s.seats),
    "a payment": lambda s: s.step is Step.PAYING,
}
AT_REST: Final[dict[str, Callable[[State], bool]]] = {
    "closed": lambda s: s.step is Step.CLOSED and s.round > 0,
    "no wager": lambda s: s.step is Step.WAGERING and s.round > 1 and not s.seats,
    "a shuffle after the round": lambda s: s.step is Step.SHUFFLE_NEEDED and s.round > 0,
}
