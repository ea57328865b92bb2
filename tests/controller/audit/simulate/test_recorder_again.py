"""Continuing a record: after a clean end, after a crash, and when it must be rejected."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.errors import DiskFull, LogFailed, OtherTable
from controller.audit.files import RealDisk
from controller.audit.format.records import OpenedData, Record
from controller.audit.log import RecordOpening
from controller.audit.read.reader import records
from controller.audit.replay import OtherProcedure, ReplayMismatch, replay_opening
from controller.audit.simulate import Recorder
from controller.audit.simulate.rounds import SCRIPTS, SCRIPTS_SIZE, play_recorded
from controller.audit.verify import verify
from controller.procedure.model import events as e
from controller.procedure.model.events import Event
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.sim.play import RoundStuck
from controller.sim.scripts import ScriptRound
from controller.sim.scripts.runner import procedure_for
from tests.support.audit.record.dealing import KEYS, keyring
from tests.support.audit.record.scripted import (
    decisions,
    ends,
    events,
    kinds_of,
    read_rounds,
    record_all,
    replayed,
    states,
)
from tests.support.audit.verifying import read
from tests.support.sim.a_round import ROUND, changed


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


# --- a record that is there already -----------------------------------------------------------


def test_a_record_is_continued(place: Path) -> None:
    record_all(place, read_rounds(place.parent, ROUND))
    before = len(kinds_of(place))
    record_all(place, read_rounds(place.parent, ROUND, changed(id="R-2")))
    assert len(kinds_of(place)) > before
    assert [record.round for record in decisions(place) if ends(record)] == [1, 2, 3]
    replayed(place)


class _Pulled(Exception):
    """A simulated crash."""


def pull_the_plug(place: Path, rounds: list[ScriptRound], at: type[Event]) -> State:
    """Crash at this event; returns the last recorded state."""
    recorder = Recorder(place, SCRIPTS, keyring, size=SCRIPTS_SIZE)

    def watch(event: Event, answer: Decision | Refused) -> None:
        if type(event) is at:
            raise _Pulled

    with pytest.raises(_Pulled), recorder:
        play_recorded(recorder, rounds[0], watch, procedure_for(rounds[0]))
    return recorder.state


@pytest.mark.parametrize("at", [e.WagerPlaced, e.HoleDealt, e.HoleRevealed, e.Paid])
def test_the_next_run_ends_an_open_round(place: Path, at: type[Event]) -> None:
    rounds = read_rounds(place.parent, ROUND)
    left = pull_the_plug(place, rounds, at)
    opening = RecordOpening.at(place, table=SCRIPTS)
    assert replay_opening(opening, procedure_for(rounds[0])).now == left
    opening.close()
    assert left.seats
    assert [
        made.ok for made in record_all(place, read_rounds(place.parent, changed(id="R-2")))
    ] == [True]
    assert replayed(place).state is not None


def test_a_run_of_another_game_ends_an_open_round(place: Path) -> None:
    pull_the_plug(place, read_rounds(place.parent, ROUND), e.HoleDealt)
    (other,) = read_rounds(place.parent, changed(id="R-2", config={"decks": 8}))
    opening = RecordOpening.at(place, table=SCRIPTS)
    with pytest.raises(OtherProcedure):
        replay_opening(opening, procedure_for(other))
    opening.close()
    assert record_all(place, [other])[0].ok
    replayed(place)
    opened = [
        msgspec.json.decode(r.data, type=OpenedData) for _, r in records(place) if _is_opened(r)
    ]
    assert [one.proc for one in opened] == [opened[0].proc, opened[0].proc, opened[2].proc]
    assert opened[1].conf == opened[0].conf


def _is_opened(record: Record) -> bool:
    return record.kind == "opened"


def test_another_table_key_does_not_continue_a_record(place: Path) -> None:
    record_all(place, read_rounds(place.parent, ROUND))
    before = kinds_of(place)
    others = KEYS._replace(table=Ed25519PrivateKey.generate())
    with pytest.raises(OtherTable, match="another table's key"):
        record_all(place, read_rounds(place.parent, ROUND), keys=lambda opening: others)
    assert kinds_of(place) == before
    record_all(place, read_rounds(place.parent, ROUND))  # and the lock was released


def test_a_record_that_was_tampered_with_is_not_continued(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forged with the table's key and a different payout table."""
    (scripted,) = read_rounds(place.parent, ROUND)
    procedure = procedure_for(scripted)
    real = procedure.step

    def generous(s: State, event: Event) -> Decision | Refused:
        answer = real(s, event)
        if isinstance(event, e.Paid) and isinstance(answer, Decision):
            return Decision(answer.rows, answer.state, answer.effects[1:])
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(procedure, "step", generous)
        with Recorder(place, SCRIPTS, keyring, size=SCRIPTS_SIZE) as recorder:
            play_recorded(recorder, scripted, None, procedure)
    before = kinds_of(place)
    with pytest.raises(ReplayMismatch, match="Paid"):
        record_all(place, [scripted])
    assert kinds_of(place) == before


# --- disks ------------------------------------------------------------------------------------


class Failing(RealDisk):
    """Fails after a number of calls, not counting preallocation."""

    def __init__(self, writes: int, code: int) -> None:
        self.left = writes
        self.code = code

    def write(self, fd: int, data: bytes, offset: int) -> int:
        self.left -= any(data)
        if self.left < 0 or self.code == errno.ENOSPC:
            raise OSError(self.code, "it has failed")
        return super().write(fd, data, offset)


@pytest.mark.parametrize("writes", range(9, 21))
def test_acknowledged_events_survive_a_disk_error(place: Path, writes: int) -> None:
    (scripted,) = read_rounds(place.parent, ROUND)
    acknowledged: list[str] = []

    def watch(event: Event, answer: Decision | Refused) -> None:
        acknowledged.append(type(event).__name__)

    recorder = Recorder(place, SCRIPTS, keyring, size=SCRIPTS_SIZE, disk=Failing(writes, errno.EIO))
    with pytest.raises(LogFailed, match="it has failed"), recorder:
        play_recorded(recorder, scripted, watch, procedure_for(scripted))
    told = [type(event).__name__ for event in events(place)]
    told = told[told.index("ShoeLoaded") + 1 :]
    assert told[: len(acknowledged)] == acknowledged
    assert len(told) <= len(acknowledged) + 1  # the one whose checkpoint failed
    assert recorder.state in states(place)
    assert record_all(place, [scripted])[0].ok  # and it can be continued


class Room(RealDisk):
    """A disk with space for a number of files."""

    left = 1

    def create(self, file: Path) -> int:
        if not self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left -= 1
        return super().create(file)


class Patient(Recorder):
    """Frees space for one more segment when the disk is full, and repeats the step."""

    def __init__(self, place: Path, disk: Room, together: int) -> None:
        super().__init__(place, SCRIPTS, keyring, size=24 * 1024, disk=disk, together=together)
        self.room = disk
        self.waited = 0

    def step(self, s: State, e: Event, /) -> Decision | Refused:
        while True:
            before = (self.state, self.seq)
            try:
                return super().step(s, e)
            except DiskFull:
                assert (self.state, self.seq) == before
                self.waited += 1
                self.room.left = 1


@pytest.mark.parametrize("together", [0, 3_000, 9_000])
def test_a_step_is_retried_after_a_full_disk(place: Path, together: int) -> None:
    """Nothing is duplicated or missing, and every hole card is sealed."""
    scripted = read_rounds(place.parent, *(changed(id=f"R-{number}") for number in range(25)))
    with Patient(place, Room(), together) as recorder:
        for one in scripted:
            assert play_recorded(recorder, one, None, procedure_for(one)).ok
        recorder.room.left = 9
    assert recorder.waited > 1
    assert verify(place).findings == ()
    assert read(place)["exit"] == 0
    told = [type(event).__name__ for event in events(place)]
    plain = place.parent / "plain"
    record_all(plain, scripted)
    assert told == [type(event).__name__ for event in events(plain)]


# --- what the recorder is asked for -----------------------------------------------------------


def test_a_step_must_continue_the_current_state(place: Path) -> None:
    (scripted,) = read_rounds(place.parent, ROUND)
    with Recorder(place, SCRIPTS, keyring) as recorder:
        recorder.begin(procedure_for(scripted))
        with pytest.raises(ValueError, match="from nowhere else"):
            recorder.step(State(step=Step.PAYING), e.Cleared(e.Actor("dealer", "d")))
        with pytest.raises(RoundStuck, match="Cleared at closed"):
            recorder.must(e.Cleared(e.Actor("dealer", "d")))
    assert kinds_of(place).count("refusal") == 1
