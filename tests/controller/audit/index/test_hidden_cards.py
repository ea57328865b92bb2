"""What an index says of a card that lies face down: nothing."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Final

import pytest
from msgspec import json

from controller.audit.format.records import RecordEntry
from controller.audit.index import Index
from controller.audit.read.reader import records
from controller.games import SHOE
from controller.procedure.engine import Procedure
from tests.support.audit.record.dealing import recorded
from tests.support.audit.record.table import ANN, begun
from tests.support.audit.tools.indexing import Dump, dealt, rebuilt, written
from tests.support.audit.twin import Twin
from tests.support.procedure.random_games import GAMES, some_game

_TWINS: Final = 15
"""Pairs of hole cards, for each game."""


@pytest.mark.parametrize("name", GAMES)
def test_up_to_the_reveal_two_indexes_are_the_same_whatever_the_hole_card_is(
    tmp_path: Path, name: str
) -> None:
    pairs = number = 0
    while pairs < _TWINS:
        number += 1
        seed = f"index {name} {number}"
        game, _ = some_game(Random(seed), name)
        one, other = (Twin(Procedure(game), seed, second=second) for second in (False, True))
        for twin in (one, other):
            twin.play(number % 2)
            twin.exchange()
        if not all([one.to_the_reveal(), other.to_the_reveal()]) or one.pair is None:
            continue
        assert one.face(one.state.hole) != other.face(other.state.hole)
        said = []
        for which, twin in (("one", one), ("other", other)):
            place = tmp_path / f"{number} {which}"
            recorded(place, twin.game, twin.entries)
            said.append(_but_for_chance(rebuilt(place, tmp_path / f"{number} {which}.db")))
        assert said[0] == said[1], seed
        pairs += 1


def _but_for_chance(said: Dump) -> Dump:
    """Without what is drawn for each record anew."""
    return {name: rows for name, rows in said.items() if name != "goes"}


def test_no_commitment_and_no_opening_stands_in_an_index(tmp_path: Path) -> None:
    place = tmp_path / "record"
    file = tmp_path / "index.db"
    written(place, dealt("hidden", 60))
    hidden: set[str] = set()
    for _, one in records(place):
        if one.kind == "decision":
            data = json.decode(one.data)
            secret = (
                data.get("sealed"),
                *(data["event"].get(n) for n in ("commitment", "opening")),
            )
            hidden.update(text for text in secret if text)
    assert len(hidden) > 90
    with Index.rebuild(place, file) as index:
        index.catch_up()
        words = {word for (word,) in index.db.execute("SELECT word FROM words")}
    content = file.read_bytes()
    assert not hidden & words
    assert not [text for text in hidden if text.encode() in content]
    assert not [word for word in words if re.search(r"[0-9a-f]{16}", word)]


def test_a_card_that_a_refused_event_names_is_none(tmp_path: Path) -> None:
    """Nor is one that is told by an event which does not show it."""
    place = tmp_path / "record"
    log = begun(place)
    for kind in ("HoleRevealed", "CardDrawn", "FaceUpCardFound", "CardEntered"):
        event = {"type": kind, "actor": SHOE, "card": 7}
        log.write([RecordEntry("refusal", ANN, {"event": event, "id": "no", "why": "not now"}, 1)])
    for kind in ("HoleDealt", "ErrorCardDrawn", "HoleChecked", "Hit"):
        shown = {"type": kind, "actor": SHOE, "card": 7, "cards": [7]}
        log.write([RecordEntry("decision", ANN, {"event": shown, "rows": [], "effects": []}, 1)])
    log.write([RecordEntry("device", ANN, {"what": "card", "card": 7})])
    log.close()
    said = rebuilt(place, tmp_path / "index.db")
    assert said["cards"] == []
    assert [what for _, what in said["problems"]] == ["no"] * 4
