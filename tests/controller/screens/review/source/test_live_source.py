"""The index of a running table as it is made, and what its pages say until it is."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from controller.audit.errors import IndexBusy, IndexFileProblem
from controller.audit.format.records import RecordActor, RecordEntry
from controller.audit.index import Index
from controller.screens.review.source import LiveSource, source
from controller.screens.review.source.source import IndexGap
from controller.screens.review.view.queries import last_seq
from controller.screens.review.web.app import FLOWS, PAGES
from controller.table.running import RunningTable
from tests.support.api.at_api import AtApi, api_test, at_api, run
from tests.support.screens.at_pages import AtPages, Tab, at_pages
from tests.support.screens.live_review import BASE, comes_in
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


def test_who_looks_first_waits_until_there_is_something_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "INDEX_TIMEOUT", 60.0)

    async def main() -> None:
        async with at_api(tmp_path) as at:
            of = LiveSource(at.table)
            with ThreadPoolExecutor(1) as thread:
                looking = thread.submit(goes, of)
                of.update()
                assert looking.result(60) == at.table.table.seq
            assert short(of) is None

    run(main())


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
    paths = [page.path for page in PAGES if page.method == "GET"]
    for path in paths:
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
