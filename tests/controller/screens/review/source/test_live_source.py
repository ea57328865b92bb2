"""The record of a running table as a source: its index, and no hidden card in anything it shows."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import urlencode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from controller.audit.errors import IndexBusy, IndexFileProblem
from controller.audit.format.records import KINDS, RecordActor, RecordEntry
from controller.audit.index import Index
from controller.procedure.model.state import Step
from controller.rules.cards import NAMES, Card
from controller.rules.irregularities import Irregularity
from controller.screens.review.source import LiveSource, source
from controller.screens.review.source.source import IndexGap
from controller.screens.review.view.queries import last_seq
from controller.screens.review.view.rounds import FIELDS, HAPPENINGS
from controller.screens.review.web.app import FLOWS, PAGES
from controller.table.running import RunningTable
from hil.table.robots import Robot, wire_name
from tests.support.api.at_api import ApiScreen, AtApi, api_test, run
from tests.support.api.hidden_cards import DEEP, Heard, Whims, are_twins, few_rounds, twins
from tests.support.screens.at_pages import BASE, AtPages, Tab, at_pages, comes_in
from tests.support.screens.threads_stand import threads_stand

_UPTO = re.compile(r"goes up to record ([\d,]+)")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits, and nothing is new enough."""
    monkeypatch.setattr(source, "INDEX_TIMEOUT", 0.0)
    monkeypatch.setattr(source, "REFRESH_INTERVAL", -1.0)


def made(table: RunningTable, room: int = source.CHUNK_BYTES) -> Path:
    """The index, as far as one step of so many bytes goes."""
    with Index.open_or_rebuild(table.parts.record) as index:
        if room:
            index.step(table.table.seq, room)
        return index.file


def followed(table: RunningTable) -> LiveSource:
    found = LiveSource(table)
    found.update()
    return found


def goes(of: LiveSource) -> int:
    with of.index() as (db, _):
        return last_seq(db)


def short(of: LiveSource) -> IndexGap | None:
    with of.index() as (_, found):
        return found


@api_test()
async def test_who_looks_first_waits_until_there_is_something_to_look_at(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "INDEX_TIMEOUT", 60.0)

    of = LiveSource(at.table)
    with ThreadPoolExecutor(1) as thread:
        looking = thread.submit(goes, of)
        of.update()
        assert looking.result(60) == at.table.table.seq
    assert short(of) is None


@api_test()
async def test_an_index_that_has_nothing_yet_is_not_shown_as_an_empty_record(at: AtApi) -> None:
    of = LiveSource(at.table)
    with pytest.raises(IndexBusy, match=r"nothing can be looked up yet.*look again"):
        goes(of)  # there is no file yet
    made(at.table, 0)
    with pytest.raises(IndexBusy, match=r"nothing can be looked up yet.*look again"):
        goes(of)
    of.update()
    assert goes(of) == at.table.table.seq


@api_test()
async def test_how_far_a_half_made_index_goes_is_said(at: AtApi) -> None:
    made(at.table, 1)
    of = LiveSource(at.table)
    last = goes(of)
    assert 0 < last < at.table.table.seq
    assert short(of) == IndexGap(last)
    of.update()
    assert short(of) is None
    assert goes(of) == at.table.table.seq


async def more(table: RunningTable, count: int = 3) -> None:
    for _ in range(count):
        await table.record(
            RecordEntry("note", RecordActor("floor", "Flo"), {"text": "chips counted"})
        )


def _of_another_version(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 7")


def _no_database(file: Path) -> None:
    for one in file.parent.glob("index.db*"):
        one.unlink()
    file.write_bytes(b"SQLite format 3\0" + bytes(8_000))


def _not_to_be_gone_on_with(file: Path) -> None:
    """It opens, and what comes next has no place in it."""
    with closing(sqlite3.connect(file)) as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(raw_records)")]
        said = ", ".join("seq + 1" if name == "seq" else name for name in names)
        last = "SELECT max(seq) FROM raw_records"
        db.execute(f"INSERT INTO raw_records SELECT {said} FROM raw_records WHERE seq = ({last})")
        db.commit()


def _put_away(file: Path) -> None:
    for one in file.parent.glob("index.db*"):
        one.unlink()


@pytest.mark.parametrize(
    "spoil", [_of_another_version, _no_database, _not_to_be_gone_on_with, _put_away]
)
@api_test()
async def test_an_index_that_is_spoilt_while_the_table_runs_is_made_anew(
    at: AtApi, spoil: Callable[[Path], None]
) -> None:
    """In the background; until it is made nobody is shown what it was."""
    of = followed(at.table)
    spoil(made(at.table))
    await more(at.table)
    with pytest.raises(IndexBusy, match="is being made"):
        goes(of)
    of.update()
    assert goes(of) == at.table.table.seq
    assert short(of) is None


def _no_room(*given: object) -> None:
    raise IndexFileProblem(Path("index.db"), "no room", "make room")


@api_test()
async def test_an_index_that_cannot_be_written_is_asked_as_far_as_it_goes(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = followed(at.table)
    last = goes(of)
    with monkeypatch.context() as patched:
        patched.setattr(Index, "step", _no_room)
        assert (goes(of), short(of)) == (last, None)  # there is no more
        await more(at.table)
        assert (goes(of), short(of)) == (last, IndexGap(last, "no room"))
    assert goes(of) == at.table.table.seq
    assert short(of) is None


@api_test()
async def test_what_stands_in_the_way_of_making_it_is_said(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = followed(at.table)
    _put_away(made(at.table))
    with pytest.raises(IndexBusy):
        goes(of)
    made(at.table, 1)
    with monkeypatch.context() as patched:
        patched.setattr(Index, "step", _no_room)
        with pytest.raises(IndexFileProblem):
            of.update()
    last = goes(of)
    assert 0 < last < at.table.table.seq
    assert short(of) == IndexGap(last, "no room")
    of.update()
    assert short(of) is None


@api_test()
async def test_one_that_is_spoilt_is_not_shown_while_it_cannot_be_made_anew(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = followed(at.table)
    _not_to_be_gone_on_with(made(at.table))
    await more(at.table)
    with pytest.raises(IndexBusy, match="is being made"):
        goes(of)
    with monkeypatch.context() as patched:
        patched.setattr(Index, "rebuild", _no_room)
        for _ in range(2):
            with pytest.raises(IndexFileProblem):
                of.update()
            with pytest.raises(IndexFileProblem, match=r"cannot be made: no room.*by itself"):
                goes(of)
    of.update()
    assert goes(of) == at.table.table.seq
    assert short(of) is None


# --- on the pages -------------------------------------------------------------------------------


async def _all_pages(pages: AtPages, tab: Tab) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for path in [page.path for page in PAGES if page.method == "GET"]:
        for seq in (1, pages.at.table.table.seq):
            asked = path.format(round=1, seq=seq, id="x")
            answer = await tab.ask("GET", f"{BASE}{asked}")
            found[asked] = answer.status_code, answer.text
    for flow in FLOWS:
        async with tab.stream(f"{BASE}{flow.path}?after=1") as stream:
            async with asyncio.timeout(60):
                while not stream.status:
                    await asyncio.sleep(0.01)
        found[flow.path] = stream.status, stream.data.decode()
    return found


@pytest.mark.parametrize("room", [None, 0, 1])
def test_every_page_says_something_while_the_index_is_made(
    room: int | None, tmp_path: Path
) -> None:
    async def main() -> None:
        async with at_pages(tmp_path) as pages:
            await pages.dealing()
            with threads_stand():
                tab = await comes_in(pages)
                if room is not None:
                    made(pages.at.table, room)
                early = await _all_pages(pages, tab)
                pages.screens.source.update()
                late = await _all_pages(pages, tab)
        allowed = {200, 303, 404} if room else {200, 303, 404, 503}
        assert {status for status, _ in early.values()} <= allowed
        assert early["/rounds"][0] == (200 if room else 503)
        assert bool(_UPTO.search(early["/rounds"][1])) is bool(room)
        assert not any(_UPTO.search(text) for _, text in late.values())
        if room:  # what is not found may only be not there yet
            for path in ("/rounds/1", "/rounds/1/replay"):
                assert early[path][0] == 404
                assert _UPTO.search(early[path][1]), path
        assert {status for status, _ in late.values()} <= {200, 303, 404}

    run(main())


SEARCHES: Final = 2
"""At each step."""
ASKED: Final = 4
"""Pages at each step, in turn."""
_CHANCE: Final = re.compile(
    r"[0-9a-f]{16,}"  # hashes, commitments
    r"|[A-Za-z0-9+/_-]{40,}=*"  # signatures, what is sealed, the words of a session
    r"|(?<=\+)[0-9a-f]{8}(?=\+)"  # which key it was
    r"|\d{8,}"  # a device's random epoch
    r'|(?<=session":)\d+|(?<=session"":)\d+'
)


def _search(random: Random, cards: tuple[Card, Card]) -> dict[str, str]:
    """Anything that somebody may look for: also either of the two cards."""
    choices = {
        "from": ("2026-01-01", "2000-01-01 10:00"),
        "to": ("2100-01-01", "2100-01-01T10:00"),
        "round": ("1", "1-3"),
        "seat": tuple("1234567"),
        "card": (*[NAMES[card] for card in cards] * 20, *NAMES),
        "dealer": ("Ann Lee", "nobody"),
        "person": ("Ann Lee", "Dee Faro"),
        "irregularity": tuple(one.value for one in Irregularity),
        "event": HAPPENINGS,
        "kind": KINDS,
        "least": ("0", "10", "$25"),
        "most": ("30", "1,000"),
        "problems": ("yes",),
    }
    assert set(choices) == set(FIELDS)
    names = random.sample(FIELDS, random.randint(1, 3))
    if random.random() < 0.4:
        names = [*names, "card"]
    return {name: random.choice(choices[name]) for name in sorted(set(names))}


def _pages() -> list[tuple[str, str, dict[str, str]]]:
    """Every page; but for the verification of all of the record, which is in other processes."""
    found: list[tuple[str, str, dict[str, str]]] = []
    for page in PAGES:
        path = page.path.format(round=1, seq=40, id="x")
        if page.method == "GET":
            found.append(("GET", path, {}))
            if "all" in page.fields:
                found.append(("GET", f"{path}?all=yes", {}))
    found += [("FLOW", f"{flow.path}?after=1", {}) for flow in FLOWS]
    found += [("POST", "/rounds/1/verify", said) for said in ({}, {"as": "proof"})]
    rows = {"all": "yes"}
    return [*found, *(("POST", "/export", {**rows, "format": kind}) for kind in ("csv", "jsonl"))]


class Looking:
    """Somebody looks at each step, and all that they are told."""

    def __init__(self, pages: AtPages, tab: Tab, random: Random, cards: tuple[Card, Card]) -> None:
        self._pages, self._tab = pages, tab
        self._random, self._cards = random, cards
        self._pages_left: list[tuple[str, str, dict[str, str]]] = []
        self.said: list[str] = []

    async def look(self, asked: int = ASKED) -> None:
        """Some pages, and searches."""
        self._pages.screens.source.update()  # what follows beside the table does
        for _ in range(asked):
            if not self._pages_left:
                self._pages_left = self._random.sample(_pages(), len(_pages()))
            await self._ask(*self._pages_left.pop())
        for _ in range(SEARCHES):
            query = urlencode(_search(self._random, self._cards))
            await self._ask("GET", f"/rounds?{query}", {})

    async def _ask(self, method: str, path: str, fields: dict[str, str]) -> None:
        if method == "FLOW":
            text = await self._flow(path)
        elif method == "POST":
            answer = await self._tab.post(f"{BASE}{path}", **fields)
            text = f"{answer.status_code} {answer.text}"
        else:
            answer = await self._tab.ask(method, f"{BASE}{path}")
            text = f"{answer.status_code} {answer.headers.get('location', '')} {answer.text}"
        self.said.append(f"{method} {path} {fields} {text}")

    async def _flow(self, path: str) -> str:
        async with self._tab.stream(f"{BASE}{path}") as stream:
            async with asyncio.timeout(60):
                while b"event: here" not in stream.data:
                    await asyncio.sleep(0.01)
        return stream.data.decode()


async def play(
    folder: Path, game: str, cards: list[Card], seed: int, two: tuple[Card, Card]
) -> Heard:
    async with at_pages(folder, game) as pages:
        dealer = await pages.at.dealing()
        names = tuple(wire_name(card) for card in cards)
        screen = ApiScreen(pages.at, dealer)
        robot = Robot(pages.at.room, screen, Whims(Random(seed)), cards=lambda: names)
        with threads_stand(), pytest.MonkeyPatch.context() as patched:
            # By the clock on the wall it follows now and then.
            patched.setattr(source, "REFRESH_INTERVAL", -1.0)
            looking = Looking(pages, await comes_in(pages), Random(seed + 1), two)
            while pages.at.state.step not in (Step.REVEAL, Step.CLEARING):
                await robot.step()
                if pages.at.state.hole:
                    # At first everything that there is.
                    await looking.look(ASKED if looking.said else len(_pages()))
            hidden, looking.said = looking.said, []
            while pages.at.state.step is Step.REVEAL:
                await robot.step()
            await looking.look(len(_pages()))
    return Heard(hidden, looking.said)


def _but_for_chance(said: list[str]) -> list[str]:
    return [_CHANCE.sub("<chance>", one) for one in said]


@few_rounds(1)
@given(
    game=st.sampled_from(["classic", "mega"]), seed=st.integers(0, 2**32), deep=st.integers(*DEEP)
)
def test_a_hole_card_shows_in_nothing_of_the_review(game: str, seed: int, deep: int) -> None:
    assume(are_twins(game, seed, deep))
    first, second = twins(play, game, seed, deep)
    for one, same in zip(
        _but_for_chance(first.hidden), _but_for_chance(second.hidden), strict=True
    ):
        assert one == same
    assert len(first.hidden) > len(_pages()) + 10
    # What is compared does tell the card once it lies face up.
    assert _but_for_chance(first.shown) != _but_for_chance(second.shown)
