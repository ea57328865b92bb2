"""How the pages look: contrast, names, structure; device events are behind a link."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from controller.audit.format.records import Kind, RecordActor, RecordEntry
from tests.support.screens.looked_at import Browser, dealt, looking, seen, written
from tests.support.screens.markup import BASE, PATHS, Structure, colours, contrast, weak

PAIRS: Final = (
    ("ink", "ground"),
    ("ink", "panel"),
    ("ink", "accent-ground"),
    ("ink", "alarm-ground"),
    ("ink", "care-ground"),
    ("soft", "ground"),
    ("soft", "panel"),
    ("accent", "panel"),
    ("accent", "ground"),
    ("on-accent", "accent"),
    ("alarm", "alarm-ground"),
    ("alarm", "panel"),
    ("care", "care-ground"),
    ("care", "panel"),
    ("good", "good-ground"),
    ("good", "panel"),
    ("on-cloth", "cloth"),
    ("black-suit", "card"),
    ("red-suit", "card"),
    ("blue-suit", "card"),
    ("green-suit", "card"),
)
"""What stands on what."""


def test_contrast_is_computed_as_it_is_defined() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_text_stands_out_in_every_theme() -> None:
    found = colours(BASE)
    assert len(found) == 3
    assert not weak(found, PAIRS)


@pytest.mark.parametrize("path", PATHS)
def test_everything_has_a_name_and_its_place(browser: Browser, path: str) -> None:
    page = Structure()
    page.feed(browser.get(path).text)
    assert not page.nameless
    assert not page.wrong
    assert not page.open
    assert (len(page.ids), page.headings.count(1), page.headings[0]) == (len(set(page.ids)), 1, 1)
    steps = zip(page.headings, page.headings[1:], strict=False)
    assert all(later <= former + 1 for former, later in steps)
    assert page.landmarks == ["header", "nav", "main"]


def test_a_page_without_a_session_has_its_structure_too(browser: Browser) -> None:
    stranger = Browser(browser.app)
    page = Structure()
    page.feed(stranger.get("/rounds").text)
    assert not [*page.nameless, *page.wrong, *page.open]
    assert page.landmarks == ["header", "main"]


def test_every_page_says_where_it_is(browser: Browser) -> None:
    for path in PATHS:
        text = browser.get(path).text
        name = path.split("/")[1]
        (here,) = re.findall(r'<a href="/(\w+)" aria-current="page"', text)
        assert here == name
        assert re.search(r"<title>[^<]+ - Holecard review</title>", text)
        assert 'lang="en"' in text
        assert 'class="skip" href="#page"' in text


def test_nothing_is_told_by_colour_alone(browser: Browser) -> None:
    """Marks have words, and a card its suit as a letter and in words."""
    text = browser.get("/rounds/3").text
    for mark in re.findall(r'<span class="mark[^"]*">(.*?)</span>', text):
        assert mark.strip()
    chips = re.findall(r'<span class="chip-card suit-\w">(.*?)</span></span>', text)
    assert chips
    for chip in chips:
        assert re.search("[\u2663\u2666\u2665\u2660]", chip)
        assert re.search(r"\w+ of (?:clubs|diamonds|hearts|spades)", chip)


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
