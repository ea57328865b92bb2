"""Recorded scripted rounds have the same results, and a record that replays."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from controller.audit.format.hole_cards import CardOpening, check, opened_card
from controller.audit.format.records import OpenedData, Record
from controller.audit.log import RecordOpening
from controller.audit.read.reader import records, segments
from controller.audit.replay import RecordReplay, procedure_of, read_decision
from controller.audit.simulate import check_recordable, plain_round
from controller.audit.simulate.recorder import SERIAL
from controller.audit.simulate.rounds import SCRIPTS
from controller.errors import UsageProblem
from controller.procedure.model import events as e
from controller.procedure.model.effects import RoundOver, RoundVoid, WagersLocked
from controller.procedure.model.events import Event
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import Step
from controller.sim.scripts.format import read_scripts
from controller.sim.scripts.runner import play_script, procedure_for
from tests.support.audit.record.dealing import SURVEILLANCE_KEY
from tests.support.audit.record.scripted import (
    FILES,
    decisions,
    ends,
    events,
    kinds_of,
    read_rounds,
    record_all,
    replayed,
)
from tests.support.sim.a_round import ROUND, action, changed

SMALL: Final = 64 * 1024


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


# --- scripts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.name))
def test_all_scripts_have_the_same_results_and_replay(place: Path, file: Path) -> None:
    rounds = read_scripts(file)
    assert record_all(place, rounds) == [play_script(scripted) for scripted in rounds]
    replay = replayed(place)
    again, taken = replay.counted
    kinds = kinds_of(place)
    assert (again, taken) == (kinds.count("decision") + kinds.count("refusal"), 0)
    assert kinds.count("refusal") > 0 or not any(
        act.rejected for scripted in rounds for act in scripted.script.actions
    )
    assert replay.state is not None
    assert replay.state.step is Step.CLOSED
    assert kinds[-2:] == ["closed", "checkpoint"]


def test_snapshots_of_small_segments_contain_the_replayed_state(place: Path) -> None:
    rounds = read_scripts(FILES[0])[:30]
    record_all(place, rounds, size=SMALL)
    whole = replayed(place)  # compares each snapshot with the replayed state
    numbers = [segment.number for segment in segments(place)]
    assert len(numbers) > 5
    for number in numbers[1:]:
        replay = RecordReplay(place)
        for at, record in records(place, number):
            replay.take(at, record)
        assert replay.known == whole.known


def test_events_and_refusals_are_recorded_in_order(place: Path) -> None:
    heard: list[tuple[Event, Decision | Refused]] = []
    acts = [action("hit", hand=3, expect="rejected"), action("stand")]
    rounds = read_rounds(place.parent, changed(actions=acts))

    def watch(event: Event, answer: Decision | Refused) -> None:
        heard.append((event, answer))

    assert record_all(place, rounds, watch=watch)[0].ok
    told = [r for _, r in records(place) if r.kind in ("decision", "refusal")]
    shuffle = ["TableOpened", "ShuffleStarted", "ShuffleDone", "ShoeLoaded"]
    names = [json.loads(bytes(record.data))["event"]["type"] for record in told]
    script = [type(event).__name__ for event, _ in heard]
    assert names == [*shuffle, *script, "TableClosed"]
    assert "HoleDealt" in script
    refused = [type(event).__name__ for event, answer in heard if isinstance(answer, Refused)]
    assert refused == ["Hit"]
    assert [record.kind for record in told if record.kind == "refusal"] == ["refusal"]


def test_an_event_is_durable_before_its_result_is_visible(place: Path) -> None:
    seen = 0

    def watch(event: Event, answer: Decision | Refused) -> None:
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
            effects = read_decision(record).effects
            if any(isinstance(effect, WagersLocked | RoundOver) for effect in effects):
                assert after.kind == "checkpoint"
                wanted += 1
    assert wanted == 4


def test_every_hole_card_matches_commitment_and_seal(place: Path) -> None:
    record_all(place, read_scripts(FILES[1]))
    dealt: Record | None = None
    opened = 0
    for record in decisions(place):
        made = read_decision(record)
        if isinstance(made.event, e.HoleDealt):
            dealt = record
        elif isinstance(made.event, e.HoleRevealed):
            assert dealt is not None
            assert dealt.cursor is not None
            was = read_decision(dealt)
            assert isinstance(was.event, e.HoleDealt)
            assert isinstance(was.sealed, str)
            bound, cursor = was.event.commitment, dealt.cursor
            opening = CardOpening.of_hex(made.event.opening)
            check(opening, SCRIPTS, cursor, bound, made.event.card)
            sealed = opened_card(cursor, SCRIPTS, bound, was.sealed, SURVEILLANCE_KEY)
            assert sealed == made.event.card
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
        drawn = isinstance(read_decision(record).event, e.CardDrawn | e.HoleDealt)
        assert drawn == (record.cursor is not None)
        if record.cursor is not None:
            cursors.append(record.cursor)
    assert [cursor.seq for cursor in cursors] == list(range(1, len(cursors) + 1))
    assert {(cursor.device, cursor.epoch) for cursor in cursors} == {(SERIAL, 1)}
    assert len({cursor.chain for cursor in cursors}) == len(cursors)
    boots = [cursor.boot for cursor in cursors]
    assert boots == sorted(boots)
    opening = RecordOpening.at(place, table=SCRIPTS)
    assert opening.cursor(SERIAL) == cursors[-1]
    opening.close()


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
        for effect in read_decision(record).effects
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
    opened = [
        msgspec.json.decode(record.data, type=OpenedData)
        for _, record in records(place)
        if record.kind == "opened"
    ]
    games = [procedure_of(each) for each in opened]
    assert [(game.game.name, game.game.decks) for game in games if game] == [
        ("classic", 6),
        ("classic", 8),
        ("classic", 6),
        ("mega", 6),
    ]
    assert len({each.origin for each in opened}) == 1
    assert len({each.table_key for each in opened}) == 1
    tables = [type(event) for event in events(place) if isinstance(event, _LIFE)]
    assert tables == [e.TableOpened, e.TableClosed] * 4
    rounds_told = [record.round for record in decisions(place) if ends(record)]
    assert rounds_told == [1, 2, 3, 4, 5]


_LIFE: Final = (e.TableOpened, e.TableClosed)
