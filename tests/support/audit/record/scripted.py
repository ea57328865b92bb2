"""Helpers to record scripted rounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from controller.audit.format.records import Record, encode
from controller.audit.read.reader import records
from controller.audit.replay import RecordReplay, read_decision
from controller.audit.simulate import SCRIPTS, SCRIPTS_SIZE, Keyring, Recorder, play_recorded
from controller.procedure.engine import Procedure
from controller.procedure.model.effects import RoundOver
from controller.procedure.model.events import Event
from controller.procedure.model.state import State
from controller.sim.scripts import RoundResult, RoundWatcher, ScriptRound
from controller.sim.scripts.format import read_scripts
from controller.sim.scripts.runner import procedure_for
from tests.support.audit.record.dealing import keyring
from tests.support.paths import SCRIPT_FILES

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
    with Recorder(place, SCRIPTS, keys, size=size) as recorder:
        known: dict[bytes, Procedure] = {}
        return [
            play_recorded(recorder, scripted, watch, procedure_for(scripted, known))
            for scripted in rounds
        ]


def replayed(place: Path) -> RecordReplay:
    """Replay the whole record; raises on any difference."""
    replay = RecordReplay(place)
    for at, record in records(place):
        if record.kind == "snapshot" and at.segment > 1:
            state = msgspec.json.decode(record.data, type=dict[str, Any])["state"]
            assert encode(state) == replay.known
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


def kinds_of(place: Path) -> list[str]:
    return [record.kind for _, record in records(place)]


def decisions(place: Path) -> list[Record]:
    return [record for _, record in records(place) if record.kind == "decision"]


def events(place: Path) -> list[Event]:
    return [read_decision(record).event for record in decisions(place)]


def ends(record: Record) -> bool:
    """Whether a round ends with this decision."""
    return any(isinstance(effect, RoundOver) for effect in read_decision(record).effects)
