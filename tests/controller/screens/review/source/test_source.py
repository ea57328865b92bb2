"""Records and cases as sources of a review, and exported cases until they are downloaded."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from controller.audit.errors import CannotWrite, NoRecord, RecordProblem
from controller.audit.export import SealedCase, export_case
from controller.audit.index import Index
from controller.audit.index import index as index_file
from controller.audit.read.access_log import access_log_file
from controller.audit.read.lookup import Selection
from controller.errors import UsageProblem
from controller.screens.common.sessions import LinkSessions, LoginLinks
from controller.screens.common.texts import load
from controller.screens.review.source import FileSource, open_source
from controller.screens.review.source import source as sources
from controller.screens.review.source.context import MAX_CASES, CaseStore
from controller.screens.review.view.queries import last_seq
from controller.screens.review.web import LinkLogin, application, pages_of
from controller.screens.review.web.app import ReviewApp
from tests.support.audit.tools.indexing import held
from tests.support.screens.looked_at import EVE, Browser


@pytest.fixture(scope="module")
def cases(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cases")
    for name in ("case.zip", "case"):
        export_case(sound, place / name, Selection(4, 5), who="Eve")
    return place


def looked_at(
    source: FileSource, scratch: Path, say: Callable[[str], None] = lambda words: None
) -> tuple[Browser, ReviewApp]:
    source.begin(say)
    links = LoginLinks()
    review = application(source, pages_of(load()), LinkLogin(LinkSessions(), links), scratch)
    browser = Browser(review.app)
    assert browser.get(f"/enter?word={links.make(EVE)}").status == 303
    browser.secret = browser.get("/about").secret
    return browser, review


@pytest.mark.parametrize("name", ["case.zip", "case"])
def test_a_case_is_looked_at_as_a_record_is(cases: Path, tmp_path: Path, name: str) -> None:
    case = cases / name
    before = _files(case)
    browser, _ = looked_at(open_source(case, tmp_path), tmp_path)
    for path in ("/rounds/4", "/rounds/5/replay", "/problems", "/report", "/live"):
        assert browser.get(path).status == 200, path
    assert "It is an exported case" in browser.get("/about").words
    assert '<p class="said">RIGHT</p>' in browser.post("/rounds/4/verify").text
    assert "hand on the file itself" in browser.get("/export").words
    assert browser.post("/export", {"round": "4"}).status == 400
    assert browser.post("/export", {"round": "4", "format": "csv"}).status == 200
    assert _files(case) == before
    assert '"what":"review round","of":"round 4"' in access_log_file(case).read_text()


def _files(case: Path) -> dict[str, bytes]:
    files = [case] if case.is_file() else [one for one in case.rglob("*") if one.is_file()]
    return {str(one): one.read_bytes() for one in files}


def test_a_case_that_is_not_what_was_sealed_is_not_shown(cases: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(cases / "case", tmp_path / "case"))
    segment = next((copy / "record" / "segments").iterdir())
    data = bytearray(segment.read_bytes())
    data[5_000] ^= 1
    segment.write_bytes(data)
    with pytest.raises(RecordProblem, match="not what was sealed"):
        open_source(copy, tmp_path / "scratch")


def test_a_zip_writes_nothing_elsewhere(cases: Path, tmp_path: Path) -> None:
    """What its manifest names is checked, and only a record's own files are unpacked."""
    evil = tmp_path / "evil.zip"
    shutil.copy(cases / "case.zip", evil)
    with zipfile.ZipFile(evil, "a") as packed:
        packed.writestr("record/segments/../../../out", b"x")
    scratch = tmp_path / "in" / "scratch"
    scratch.mkdir(parents=True)
    with pytest.raises(RecordProblem, match="is not of this case"):
        open_source(evil, scratch)
    assert not list(tmp_path.rglob("out"))
    source = open_source(cases / "case.zip", scratch)
    unpacked = {one.name for one in source.record.rglob("*") if one.is_file()}
    assert unpacked
    assert all(name.endswith((".seg", ".note", ".json")) for name in unpacked)


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello")
    for name in ("missing", "empty", "text"):
        with pytest.raises(NoRecord):
            open_source(tmp_path / name, tmp_path)


def test_a_case_is_made_of_records_only(cases: Path, tmp_path: Path) -> None:
    source = open_source(cases / "case", tmp_path)
    assert not source.whole
    with pytest.raises(UsageProblem, match="is a case already"):
        source.export(tmp_path / "x.zip", Selection(4, 4), "Eve", "")


def test_an_index_that_somebody_else_writes_is_looked_at_as_far_as_it_goes(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_file, "WAIT_MS", 20)
    monkeypatch.setattr(sources, "REFRESH_INTERVAL", -1.0)
    copy = Path(shutil.copytree(sound, tmp_path / "copy"))
    for one in copy.glob("index.db*"):
        one.unlink()
    said: list[str] = []
    with Index.open(copy) as other:
        other.step(room=1)
        with held(other):
            browser, _ = looked_at(FileSource(copy), tmp_path, said.append)
            goes = "What can be looked up goes up to record 1: the index"
            assert said == [
                "the index goes up to record 1 only: somebody else writes the index for too long"
            ]
            assert goes in browser.get("/rounds").words
        assert goes not in browser.get("/rounds").words


def test_an_index_is_caught_up_while_the_record_grows(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "REFRESH_INTERVAL", -1.0)
    copy = Path(shutil.copytree(sound, tmp_path / "copy"))
    source = FileSource(copy)
    source.begin(lambda words: None)
    with source.index() as (db, _):
        whole = last_seq(db)
    (copy / "index.db").unlink()
    for beside_it in copy.glob("index.db-*"):
        beside_it.unlink()
    with source.index() as (db, _):
        assert last_seq(db) == whole


PICKS = (Selection(), Selection(28, 29))


@pytest.mark.parametrize("pick", PICKS, ids=str)
def test_an_export_ends_at_the_next_segment_and_leaves_nothing(
    pick: Selection, place: Path, tmp_path: Path
) -> None:
    cases, source = CaseStore(tmp_path), FileSource(place)
    told: list[int] = []

    def export(out: Path, tell: Callable[[int], None]) -> SealedCase:
        def also(number: int) -> None:
            told.append(number)
            if len(told) == 2:
                cases.end()
            tell(number)

        return source.export(out, pick, "Eve", "", also)

    with pytest.raises(CannotWrite, match="the review has ended"):
        cases.make("x.zip", "Eve", str(pick), export)
    assert told == [1, 2]  # also where what is picked stands behind them
    with pytest.raises(CannotWrite, match="the review has ended"):
        cases.make("x.zip", "Eve", str(pick), export)
    assert len(told) == 2
    assert list(tmp_path.iterdir()) == []


def test_nobody_waits_for_the_one_that_is_being_made(place: Path, tmp_path: Path) -> None:
    cases, source = CaseStore(tmp_path), FileSource(place)
    begun, goes_on = Event(), Event()

    def export(out: Path, tell: Callable[[int], None]) -> SealedCase:
        return source.export(out, Selection(1, 1), "Eve", "", tell)

    def hangs(out: Path, tell: Callable[[int], None]) -> SealedCase:
        begun.set()
        assert goes_on.wait(60)
        return export(out, lambda number: None)

    first = cases.make("x.zip", "Eve", "round 1", export)
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(cases.make, "y.zip", "Eve", "round 1", hangs)
        assert begun.wait(60)
        assert cases.find(first.id, "Eve") is first
        closing = ThreadPoolExecutor(1)
        try:
            closing.submit(cases.close).result(30)
        finally:
            goes_on.set()
            closing.shutdown()
        with pytest.raises(CannotWrite, match="the review has ended"):
            making.result(60)
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_makes_room(place: Path, tmp_path: Path) -> None:
    cases, source = CaseStore(tmp_path), FileSource(place)
    made = [
        cases.make(
            "x.zip",
            "Eve",
            "round 1",
            lambda out, tell: source.export(out, Selection(1, 1), "Eve", "", tell),
        )
        for _ in range(MAX_CASES + 1)
    ]
    assert cases.find(made[0].id, "Eve") is None
    assert not made[0].file.exists()
    for one in made[1:]:
        assert cases.find(one.id, "Eve") is one
        assert cases.find(one.id, "Ann") is None
    cases.close()
    assert list(tmp_path.iterdir()) == []
