"""Recorded scripted rounds have the same results, and a record that replays."""

import errno
import json
import os
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.errors import DiskFull, LogFailed, OtherTable
from controller.audit.files import Disk
from controller.audit.format.hole_cards import CardOpening, check, opened_card
from controller.audit.format.records import Record
from controller.audit.log import RecordOpening
from controller.audit.read.reader import records, segments
from controller.audit.replay import (
    OtherProcedure,
    RecordReplay,
    ReplayMismatch,
    decode_decision,
    procedure_of,
    replay_opening,
)
from controller.audit.simulate import Recorder, check_recordable, plain_round
from controller.audit.simulate.recorder import SERIAL
from controller.audit.simulate.rounds import SCRIPTS, SCRIPTS_SIZE, play_recorded
from controller.audit.verify import verify
from controller.errors import UsageProblem
from controller.procedure.model import events as e
from controller.procedure.model.effects import RoundOver, RoundVoid, WagersLocked
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.sim.play import RoundStuck
from controller.sim.scripts import ScriptRound
from controller.sim.scripts.format import read_scripts
from controller.sim.scripts.runner import play_script, procedure_for
from tests.support.audit.record.dealing import KEYS, SURVEILLANCE_KEY, keyring
from tests.support.audit.record.scripted import (
    FILES,
    boots_of,
    decisions,
    ends,
    events,
    read_rounds,
    record_all,
    replayed,
    states,
)
from tests.support.audit.record.table import kinds_of
from tests.support.audit.verifying import read_independently
from tests.support.sim.a_round import ROUND, action, changed

# --- scripts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.name))
def test_all_scripts_have_the_same_results_and_replay(place: Path, file: Path) -> None:
    rounds = read_scripts(file)[::3]
    assert record_all(place, rounds) == [play_script(scripted) for scripted in rounds]
    replay = replayed(place)
    kinds = kinds_of(place)
    assert (replay.again, replay.taken) == (kinds.count("decision") + kinds.count("refusal"), 0)
    assert kinds.count("refusal") > 0 or not any(
        act.rejected for scripted in rounds for act in scripted.script.actions
    )
    assert replay.state is not None
    assert replay.state.step is Step.CLOSED
    assert kinds[-2:] == ["closed", "checkpoint"]


def test_snapshots_of_small_segments_contain_the_replayed_state(place: Path) -> None:
    record_all(place, read_scripts(FILES[0])[:30], size=64 * 1024)
    whole = replayed(place)  # compares each snapshot with the replayed state
    numbers = [segment.number for segment in segments(place)]
    assert len(numbers) > 5
    for number in numbers[1:]:
        replay = RecordReplay(place)
        for at, record in records(place, number):
            replay.take(at, record)
        assert replay.known == whole.known


def test_events_and_refusals_are_recorded_in_order(place: Path) -> None:
    heard: list[tuple[e.Event, Decision | Refused]] = []
    rounds = read_rounds(
        place.parent, changed(actions=[action("hit", hand=3, expect="rejected"), action("stand")])
    )

    def watch(event: e.Event, answer: Decision | Refused) -> None:
        heard.append((event, answer))

    assert record_all(place, rounds, watch=watch)[0].ok
    told = [r for _, r in records(place) if r.kind in ("decision", "refusal")]
    shuffle = ["TableOpened", "ShuffleStarted", "ShuffleDone", "ShoeLoaded"]
    names = [json.loads(bytes(record.data))["event"]["type"] for record in told]
    script = [type(event).__name__ for event, _ in heard]
    assert names == [*shuffle, *script, "TableClosed"]
    assert "HoleDealt" in script
    assert [type(event).__name__ for event, answer in heard if isinstance(answer, Refused)] == [
        "Hit"
    ]
    assert [record.kind for record in told if record.kind == "refusal"] == ["refusal"]


def test_an_event_is_durable_before_its_result_is_visible(place: Path) -> None:
    seen = 0

    def watch(event: e.Event, answer: Decision | Refused) -> None:
        nonlocal seen
        last = [r for _, r in records(place) if r.kind in ("decision", "refusal")][-1]
        assert json.loads(bytes(last.data))["event"]["type"] == type(event).__name__
        seen += 1

    record_all(place, read_rounds(place.parent, ROUND), watch=watch)
    assert seen > 8


def test_locked_wagers_and_finished_rounds_are_signed(place: Path) -> None:
    record_all(place, read_rounds(place.parent, ROUND, changed(id="R-2")))
    wanted = 0
    for (_, record), (_, after) in pairwise(records(place)):
        if record.kind == "decision":
            effects = decode_decision(record).effects
            if any(isinstance(effect, WagersLocked | RoundOver) for effect in effects):
                assert after.kind == "checkpoint"
                wanted += 1
    assert wanted == 4


def test_every_hole_card_matches_commitment_and_seal(place: Path) -> None:
    record_all(place, read_scripts(FILES[1]))
    dealt: Record | None = None
    opened = 0
    for record in decisions(place):
        made = decode_decision(record)
        if isinstance(made.event, e.HoleDealt):
            dealt = record
        elif isinstance(made.event, e.HoleRevealed):
            assert dealt is not None
            assert dealt.cursor is not None
            was = decode_decision(dealt)
            assert isinstance(was.event, e.HoleDealt)
            assert isinstance(was.sealed, str)
            bound, cursor = was.event.commitment, dealt.cursor
            check(CardOpening.of_hex(made.event.opening), SCRIPTS, cursor, bound, made.event.card)
            assert made.event.card == opened_card(
                cursor, SCRIPTS, bound, was.sealed, SURVEILLANCE_KEY
            )
            dealt = None
            opened += 1
    assert opened > 10


def test_the_shoes_chain_continues_over_all_boots(
    place: Path,
) -> None:
    rounds = read_scripts(FILES[1])
    record_all(place, rounds[:10])
    record_all(place, rounds[10:])
    cursors = []
    for record in decisions(place):
        drawn = isinstance(decode_decision(record).event, e.CardDrawn | e.HoleDealt)
        assert drawn == (record.cursor is not None)
        if record.cursor is not None:
            cursors.append(record.cursor)
    assert [cursor.seq for cursor in cursors] == list(range(1, len(cursors) + 1))
    assert {(cursor.device, cursor.epoch) for cursor in cursors} == {(SERIAL, 1)}
    assert len({cursor.chain for cursor in cursors}) == len(cursors)
    boots = [cursor.boot for cursor in cursors]
    assert boots == sorted(boots)
    with closing(RecordOpening.at(place, table=SCRIPTS)) as opening:
        assert opening.cursors.get(SERIAL) == cursors[-1]


def test_a_later_round_of_a_shuffle_has_a_plain_round_before_it(
    place: Path,
) -> None:
    later = changed(id="later", first_round_of_shuffle=False)
    assert [made.ok for made in record_all(place, read_rounds(place.parent, ROUND, later))] == [
        True,
        True,
    ]
    told = events(place)
    over = [n for n, record in enumerate(decisions(place)) if ends(record)]
    shuffles = [n for n, event in enumerate(told) if isinstance(event, e.ShuffleStarted)]
    assert len(over) == 3
    assert over[0] < shuffles[1] < over[1] < over[2]
    assert len(shuffles) == 2


def test_a_plain_round_uses_none_of_the_scripts_cards(tmp_path: Path) -> None:
    """With one deck, most of which the script deals itself."""
    deck = [f"{rank}{suit}" for rank in "23456A" for suit in "CDHS"]
    script = changed(game="maxtime", shoe=deck, config={}, first_round_of_shuffle=False, expect={})
    (scripted,) = read_rounds(tmp_path, script)
    procedure = procedure_for(scripted)
    check_recordable(scripted, procedure)
    plain = plain_round(scripted, procedure)
    assert not set(plain.cards) & set(scripted.cards)
    assert play_script(plain, None, procedure).failures == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"config": {"shuffle.max_rounds": 1}}, "this game shuffles after every round"),
        (
            {
                "game": "maxtime",
                "shoe": [f"{rank}{suit}" for rank in "789TJQK" for suit in "CDHS"],
            },
            "the script leaves no cards for a round before it",
        ),
    ],
)
def test_an_impossible_plain_round_is_rejected_beforehand(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    (scripted,) = read_rounds(tmp_path, changed(first_round_of_shuffle=False, expect={}, **change))
    with pytest.raises(UsageProblem, match=words) as found:
        check_recordable(scripted, procedure_for(scripted))
    assert found.value.where.endswith("round R-1: first_round_of_shuffle")


STOPS: Final[dict[str, dict[str, Any]]] = {
    "before the first card": {"shoe": [], "actions": []},
    "in the deal": {"shoe": ["TC", "6C"], "actions": []},
    "in the turn": {"shoe": ["TC", "6C", "6D", "TS"], "actions": []},
    "at the dealer": {"shoe": ["TC", "6C", "TD", "TS"]},
    "asked for insurance": {"shoe": ["TC", "AC", "8D"], "actions": []},
    "with split hands": {
        "shoe": ["8C", "6C", "8D", "TS", "3C"],
        "actions": [action("split")],
    },
    "with a double": {"shoe": ["5C", "6C", "6D", "TS"], "actions": [action("double")]},
}


@pytest.mark.parametrize("what", STOPS)
def test_an_open_round_is_ended_before_the_next(place: Path, what: str) -> None:
    rounds = read_rounds(
        place.parent, changed(id="open", expect={}, **STOPS[what]), changed(id="next")
    )
    first, second = record_all(place, rounds)
    assert not first.ok
    assert first == play_script(rounds[0])
    assert second.ok
    replayed(place)
    voided = [
        effect
        for record in decisions(place)
        for effect in decode_decision(record).effects
        if isinstance(effect, RoundVoid)
    ]
    assert len(voided) == (0 if what == "before the first card" else 1)


def test_another_game_is_another_boot_of_the_same_record(place: Path) -> None:
    six = {"config": {"decks": 6}}
    rounds = read_rounds(
        place.parent,
        changed(id="1"),
        changed(id="2"),
        changed(id="3", config={"decks": 8}),
        changed(id="4", **six),
        changed(id="5", game="mega", expect={}),
    )
    record_all(place, rounds)
    opened = boots_of(place)
    games = [procedure_of(each) for each in opened]
    assert [(game.game.name, game.game.decks) for game in games if game] == [
        ("classic", 6),
        ("classic", 8),
        ("classic", 6),
        ("mega", 6),
    ]
    assert len({(each.origin, each.table_key) for each in opened}) == 1
    life = [e.TableOpened, e.TableClosed]
    assert [type(event) for event in events(place) if type(event) in life] == life * 4
    assert [record.round for record in decisions(place) if ends(record)] == [1, 2, 3, 4, 5]


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


def pull_the_plug(place: Path, rounds: list[ScriptRound], at: type[e.Event]) -> State:
    """Crash at this event; returns the last recorded state."""
    recorder = Recorder(place, SCRIPTS, keyring, size=SCRIPTS_SIZE)

    def watch(event: e.Event, answer: Decision | Refused) -> None:
        if type(event) is at:
            raise _Pulled

    with pytest.raises(_Pulled), recorder:
        play_recorded(recorder, rounds[0], watch, procedure_for(rounds[0]))
    return recorder.state


@pytest.mark.parametrize("at", [e.WagerPlaced, e.HoleDealt, e.HoleRevealed, e.Paid])
def test_the_next_run_ends_an_open_round(place: Path, at: type[e.Event]) -> None:
    rounds = read_rounds(place.parent, ROUND)
    left = pull_the_plug(place, rounds, at)
    with closing(RecordOpening.at(place, table=SCRIPTS)) as opening:
        assert replay_opening(opening, procedure_for(rounds[0])).now == left
    assert left.seats
    assert [
        made.ok for made in record_all(place, read_rounds(place.parent, changed(id="R-2")))
    ] == [True]
    assert replayed(place).state is not None


def test_a_run_of_another_game_ends_an_open_round(place: Path) -> None:
    pull_the_plug(place, read_rounds(place.parent, ROUND), e.HoleDealt)
    (other,) = read_rounds(place.parent, changed(id="R-2", config={"decks": 8}))
    with (
        closing(RecordOpening.at(place, table=SCRIPTS)) as opening,
        pytest.raises(OtherProcedure),
    ):
        replay_opening(opening, procedure_for(other))
    assert record_all(place, [other])[0].ok
    replayed(place)
    opened = boots_of(place)
    assert [one.proc for one in opened] == [opened[0].proc, opened[0].proc, opened[2].proc]
    assert opened[1].conf == opened[0].conf


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

    def generous(s: State, event: e.Event) -> Decision | Refused:
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


class Failing(Disk):
    """Fails after a number of calls, not counting preallocation."""

    def __init__(self, writes: int, code: int) -> None:
        self.left = writes
        self.code = code

    def write(self, fd: int, data: bytes, offset: int) -> int:
        if any(data):  # the thread that preallocates writes zeros at the same time
            self.left -= 1
        if self.left < 0 or self.code == errno.ENOSPC:
            raise OSError(self.code, "it has failed")
        return super().write(fd, data, offset)


@pytest.mark.parametrize("writes", range(9, 21))
def test_acknowledged_events_survive_a_disk_error(place: Path, writes: int) -> None:
    (scripted,) = read_rounds(place.parent, ROUND)
    acknowledged: list[str] = []

    def watch(event: e.Event, answer: Decision | Refused) -> None:
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


class Room(Disk):
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

    def step(self, s: State, e: e.Event, /) -> Decision | Refused:
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
    assert (verify(place).findings, read_independently(place)["exit"]) == ((), 0)
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
