"""Encoding and decoding of events as record entries."""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec
import pytest
from msgspec.structs import replace

from controller.audit.format.records import RecordActor, RecordEntry, encode
from controller.audit.replay import DecisionData, event_entry
from controller.audit.replay.entries import (
    EFFECTS,
    RefusalData,
    decision_entry,
    decode_refusal,
    read_decision,
    refusal_entry,
    signs,
)
from controller.games import DEALER, SHOE, player
from controller.procedure.engine import EVENTS, Procedure
from controller.procedure.model import effects, events
from controller.procedure.model.events import Actor, Event, HoleRevealed
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from tests.support.audit.hole_entries import COMMITMENT, CURSOR, DEALT, SEALED, TAKEN
from tests.support.audit.record.dealing import Dealing, as_read
from tests.support.procedure.random_games import GAMES, some_game

_ROUNDS: Final = 40


# --- what an entry has ------------------------------------------------------------------------


def test_a_decision_has_event_rows_effects_and_state() -> None:
    made = decision_entry(DEALT, TAKEN, cursor=CURSOR, sealed=SEALED, cause=12)
    assert made == RecordEntry(
        "decision",
        RecordActor("device", "shoe"),
        DecisionData(DEALT, TAKEN.rows, TAKEN.effects, SEALED),
        4,
        12,
        CURSOR,
        TAKEN.state,
        False,
    )
    assert msgspec.json.decode(encode(made.data)) == {
        "event": {
            "type": "HoleDealt",
            "actor": {"role": "device", "name": "shoe", "seat": 0},
            "commitment": COMMITMENT,
            "spare": False,
        },
        "rows": ["hole_card"],
        "effects": [{"type": "ShoeLock", "locked": True}],
        "sealed": SEALED,
    }


def test_a_refusal_has_a_reason_and_no_state() -> None:
    event = events.Hit(player(3), 3, 0)
    answer = Refused("not_in_turn", "seat 3 is not in turn")
    made = event_entry(event, answer, State(round=9), cursor=CURSOR)
    assert made == RecordEntry(
        "refusal",
        RecordActor("player", "seat-3", 3),
        RefusalData(event, *answer_of(answer)),
        9,
        0,
        CURSOR,
    )
    assert made.state is None
    assert not made.sign
    assert decode_refusal(as_read(made).data) == RefusalData(event, answer.id, answer.why)


def answer_of(answer: Refused) -> tuple[str, str]:
    return answer.id, answer.why


@pytest.mark.parametrize(
    ("actor", "who"),
    [
        (DEALER, RecordActor("dealer", "dealer")),
        (Actor("floor", "Eve"), RecordActor("floor", "Eve")),
        (player(5), RecordActor("player", "seat-5", 5)),
        (Actor("surveillance", "Sam"), RecordActor("surveillance", "Sam")),
        (Actor("technician", "Tom"), RecordActor("technician", "Tom")),
        (SHOE, RecordActor("device", "shoe")),
    ],
)
def test_the_entry_names_the_events_actor(actor: Actor, who: RecordActor) -> None:
    event = events.FloorCalled(actor)
    assert decision_entry(event, TAKEN).by == who
    assert refusal_entry(event, Refused("no", "no"), State()).by == who


@pytest.mark.parametrize(
    ("effect", "wanted"),
    [
        (effects.WagersLocked(3, 500), True),
        (effects.RoundOver(3, 0), True),
        (effects.RoundVoid(3, "the lights went out", "floor", ""), True),
        (effects.Corrected(3, 1, 0, "main", 5, 6, "floor", "floor-2"), True),
        (effects.Ruled("misdeal", "void", "floor", "floor-2"), True),
        (effects.Ruled("misdeal", "resume", "floor"), False),
        (effects.Told("floor", "misdeal"), False),
        (effects.Settled(3, 1, 0, "main", "win", None, 5, 10, "against_total", False), False),
        (effects.Prompt(effects.Tell.DEAL), False),
    ],
)
def test_a_checkpoint_is_requested_as_the_format_says(effect: effects.Effect, wanted: bool) -> None:
    assert signs((effects.ShoeLock(True), effect)) is wanted
    answer = replace(TAKEN, effects=(effects.ShoeLock(True), effect))
    assert decision_entry(events.Cleared(DEALER), answer).sign is wanted
    assert not signs(())


# --- how it is read back ----------------------------------------------------------------------


def _as_refused(event: Event, before: State) -> Event:
    """A hole card that is reported too early is not recorded."""
    if isinstance(event, HoleRevealed) and before.step is not Step.REVEAL:
        return replace(event, card=-1, opening="")
    if isinstance(event, events.HoleChecked) and before.step is not Step.CHECK:
        return replace(event, blackjack=False)
    return event


def test_all_entries_are_read_back_unchanged() -> None:
    said: set[str] = set()
    for number, name in enumerate(GAMES * 12):
        game, what = some_game(Random(f"entries {name} {number}"), name)
        table = Dealing(Procedure(game), f"entries {what}")
        table.play(_ROUNDS)
        for (before, event, answer), made in zip(table.heard, table.entries, strict=True):
            record = as_read(made)
            said.add(type(event).__name__)
            if isinstance(answer, Decision):
                read = read_decision(record)
                assert (read.event, read.rows, read.effects) == (
                    event,
                    answer.rows,
                    answer.effects,
                )
                said.update(type(effect).__name__ for effect in read.effects)
            else:
                down = decode_refusal(record.data)
                assert (down.id, down.why) == (answer.id, answer.why)
                assert down.event == _as_refused(event, before)
    assert said == {kind.__name__ for kind in (*EVENTS, *EFFECTS)}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"event":{"type":"Dance"},"rows":[],"effects":[]}', "Dance"),
        (b'{"event":{"type":"Cleared"},"rows":[],"effects":[]}', "actor"),
        (b'{"rows":[],"effects":[]}', "event"),
        (
            b'{"event":{"type":"Cleared","actor":{"role":"dealer","name":"d"}},"rows":[],"hole":17}',
            "hole",
        ),
        (b'{"event":7,"rows":[],"effects":[]}', "event"),
        (b"[]", "object"),
    ],
)
def test_an_invalid_decision_is_rejected(data: bytes, why: str) -> None:
    record = replace(as_read(decision_entry(events.Cleared(DEALER), TAKEN)), data=msgspec.Raw(data))
    with pytest.raises(msgspec.DecodeError, match=why):
        read_decision(record)


def test_a_refusal_is_not_read_as_a_decision() -> None:
    refused = refusal_entry(events.Cleared(DEALER), Refused("x", "y"), State())
    with pytest.raises(ValueError, match="no decision"):
        read_decision(as_read(refused))
