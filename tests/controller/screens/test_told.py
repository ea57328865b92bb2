"""What keeps a table running is told behind a link, and is no step of a replay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from controller.audit.format.records import Kind, RecordActor, RecordEntry
from tests.support.screens.looked_at import Browser, dealt, looking, seen, written

ROUND: Final = 3
STATION: Final = RecordActor("device", "station")
RUNS: Final = ("the clock of station ST-7", "says of itself: paired", "lets go of hit")
LOUD: Final = ("station ST-7 is lost: it is silent", "seat 3 pressed hit, not lit: nothing changed")
LOOK: Final = "Eve looked at round 1"


def _between() -> list[RecordEntry]:
    happened: list[tuple[Kind, RecordActor, dict[str, object]]] = [
        ("link", STATION, {"what": "ClockRead", "device": "ST-7", "offset_us": -5_000}),
        ("link", STATION, {"what": "DeviceStands", "device": "ST-7", "state": 1}),
        ("device", STATION, {"what": "ButtonReleased", "seat": 3, "button": "hit"}),
        ("link", STATION, {"what": "StateChanged", "device": "ST-7", "state": "lost",
                           "why": "it is silent"}),
        ("device", STATION, {"what": "ButtonPressed", "seat": 3, "button": "hit",
                             "ignored": "it is not open to the seat now"}),
        ("person", RecordActor("surveillance", "Eve"),
         {"what": "looked", "name": "Eve", "page": "review round", "of": "round 1", "reason": ""}),
    ]  # fmt: skip
    return [RecordEntry(kind, who, data, ROUND) for kind, who, data in happened]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    table = dealt("told", ROUND)
    entries = seen(table.entries)
    late = [at for at, one in enumerate(entries) if one.round == ROUND][-6]
    written(tmp_path / "mega", table, [*entries[:late], *_between(), *entries[late:]])
    with looking(tmp_path / "mega", tmp_path / "scratch") as browser:
        yield browser


def test_a_timeline_has_it_behind_a_link(browser: Browser) -> None:
    usual = browser.get(f"/rounds/{ROUND}").words
    whole = browser.get(f"/rounds/{ROUND}?all=yes").words
    assert all(words in usual for words in (*LOUD, LOOK))
    assert not [words for words in RUNS if words in usual]
    assert all(words in whole for words in (*LOUD, LOOK, *RUNS))
    for internal in ("ClockRead", "DeviceStands", "offset_us", "token", "reason ,"):
        assert internal not in whole


def test_a_replay_has_neither_it_nor_looks(browser: Browser) -> None:
    made = json.loads(browser.get(f"/rounds/{ROUND}/replay.json").bytes)
    frames = [frame["what"] for frame in made["frames"]]
    assert set(LOUD) <= set(frames)
    assert not [one for one in frames if one == LOOK or any(words in one for words in RUNS)]


def test_the_live_page_has_it_behind_a_link(browser: Browser) -> None:
    for words in (*LOUD, LOOK):
        assert words in browser.get("/live").words
    assert not [words for words in RUNS if words in browser.get("/live").words]
    assert 'data-quiet="yes"' in browser.get("/live").text
    assert all(words in browser.get("/live?all=yes").words for words in RUNS)
    assert 'data-quiet="yes"' not in browser.get("/live?all=yes").text
