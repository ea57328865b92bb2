"""What is on the pages, compared with the record itself, and the texts of all pages."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from controller.audit.export import check_case
from controller.audit.format.records import Record
from controller.audit.index import Index, RecordQuery, RoundRow, find_rounds
from controller.audit.read.access_log import access_log_file
from controller.audit.read.lookup import of_rounds
from controller.audit.read.reader import records
from controller.audit.text.device_events import KEEPING
from controller.errors import UsageProblem
from controller.procedure.prompts import card_words
from controller.screens.common.sessions import PageUser
from controller.screens.common.texts import load
from controller.screens.review.view.rounds import HAPPENINGS
from tests.support.paths import ROOT
from tests.support.screens.looked_at import Browser, Looking


def numbers(text: str) -> list[int]:
    return [int(one) for one in re.findall(r'<td class="number"><a href="/rounds/(\d+)"', text)]


def lines(text: str) -> list[int]:
    return [int(one) for one in re.findall(r'<tr id="s(\d+)"', text)]


@pytest.fixture(scope="module")
def rounds(place: Path, tmp_path_factory: pytest.TempPathFactory) -> list[RoundRow]:
    with Index.open(place, tmp_path_factory.mktemp("pages") / "index.db") as index:
        index.catch_up()
        return list(find_rounds(index.db, RecordQuery(), 0, 1_000).rounds)


def of(place: Path, found: RoundRow) -> list[Record]:
    return [one for _, one in records(place) if found.first_seq <= one.seq <= found.last_seq]


def all_pages(browser: Browser, path: str, on: str = r'rel="next" href="([^"]+)"') -> Iterator[str]:
    """The page at a path and those to which it leads; `on` finds the link to the next."""
    while True:
        text = browser.get(path).text
        yield text
        link = re.search(on, text)
        if link is None:
            return
        path = link[1].replace("&amp;", "&")


def test_the_list_has_every_round_the_newest_first(
    browser: Browser, rounds: list[RoundRow]
) -> None:
    page = browser.get("/rounds")
    assert numbers(page.text) == [one.round for one in reversed(rounds)]
    for one in rounds:
        if one.irregularities:
            assert f"{one.irregularities} irregular" in page.words
    assert page.words.count(" not over ") == sum(not one.over_seq for one in rounds) == 1
    assert len(re.findall('class="mark alarm">void<', page.text)) == sum(one.void for one in rounds)


def test_a_page_goes_on_before_the_round_that_it_names(browser: Browser) -> None:
    assert numbers(browser.get("/rounds?before=7").text) == [6, 5, 4, 3, 2, 1]
    assert numbers(browser.get("/rounds?before=1").text) == []
    assert numbers(browser.get("/rounds?round=3-5&before=5").text) == [4, 3]


def test_a_list_that_is_long_has_more_pages(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.screens.review.web.rounds.ROWS", 4)
    browser = looking.enter()
    found = [one for text in all_pages(browser, "/rounds?seat=3") for one in numbers(text)]
    monkeypatch.undo()
    assert found == numbers(browser.get("/rounds?seat=3").text)
    assert len(found) > 8


def test_filters_find_what_the_record_says(
    browser: Browser, place: Path, rounds: list[RoundRow]
) -> None:
    refusals = [
        one.round
        for one in reversed(rounds)
        if any(record.kind == "refusal" for record in of(place, one))
    ]
    assert numbers(browser.get("/rounds?kind=refusal").text) == refusals
    happened: dict[str, list[int]] = {}
    for one in reversed(rounds):
        told = {
            msgspec.json.decode(record.data)["event"]["type"]
            for record in of(place, one)
            if record.kind in ("decision", "refusal")
        }
        for name in told:
            happened.setdefault(name, []).append(one.round)
    assert len(happened) > 20
    for name, found in happened.items():
        assert numbers(browser.get(f"/rounds?event={name}").text) == found, name
    page = browser.get("/rounds?seat=3&card=TH&dealer=dealer")
    for field in ('name="seat" value="3"', 'name="card" value="TH"', 'value="dealer"'):
        assert field in page.text
    assert "No round is like that" in browser.get("/rounds?dealer=Nobody").words


def test_a_round_has_all_its_records(browser: Browser, place: Path, rounds: list[RoundRow]) -> None:
    for one in rounds:
        mine = of(place, one)
        assert lines(browser.get(f"/rounds/{one.round}?all=yes").text) == [r.seq for r in mine]
        shown = set(lines(browser.get(f"/rounds/{one.round}").text))
        hidden = {record.seq for record in mine} - shown
        assert {record.kind for record in mine if record.seq in hidden} <= {*KEEPING, "device"}
        same = [told.record.seq for told in of_rounds(place, one.round, one.round)]
        assert same == [record.seq for record in mine if record.kind != "snapshot"]


def test_a_timeline_tells_cards_readers_people_and_reasons(
    browser: Browser, place: Path, rounds: list[RoundRow]
) -> None:
    cards = refused = 0
    for one in rounds[:20]:
        page = browser.get(f"/rounds/{one.round}")
        rows = dict(re.findall(r'<tr id="s(\d+)"(.*?)</tr>', page.text, re.DOTALL))
        seen = ""
        for record in of(place, one):
            row = rows.get(str(record.seq), "")
            data = msgspec.json.decode(record.data)
            if data.get("what") == "CardSeen":
                seen = f"read with {data['confidence']} %"
            elif record.kind == "decision":
                if data["event"]["type"] == "CardDrawn":
                    cards += 1
                    assert card_words(data["event"]["card"]) in row
                    assert seen in row
                assert record.by.name in row
                if data["event"]["type"] == "HoleDealt":
                    assert "card face down" in row
                    assert "suit-" not in row
            elif record.kind == "refusal":
                refused += 1
                assert data["why"].replace("'", "&#39;").replace('"', "&#34;") in row
    assert cards > 100
    assert refused > 10


def test_a_long_round_goes_on_on_another_page(
    looking: Looking, monkeypatch: pytest.MonkeyPatch, rounds: list[RoundRow]
) -> None:
    monkeypatch.setattr("controller.screens.review.web.rounds.LINES", 10)
    on = r'<a class="button" href="(/rounds/5\?from=[^"]+)"'
    found = [
        line for text in all_pages(looking.enter(), "/rounds/5?all=yes", on) for line in lines(text)
    ]
    one = rounds[4]
    assert found == list(range(one.first_seq, one.last_seq + 1))


def test_rounds_and_problems_lead_to_the_next(browser: Browser, rounds: list[RoundRow]) -> None:
    text = browser.get("/rounds/5").text
    assert 'rel="prev" href="/rounds/4"' in text
    assert 'rel="next" href="/rounds/6"' in text
    assert 'rel="prev"' not in browser.get("/rounds/1").text
    assert 'rel="next"' not in browser.get(f"/rounds/{rounds[-1].round}").text
    problems = [int(one) for one in re.findall(r'href="/records/(\d+)"', _problems(browser))]
    one = rounds[9]
    text = browser.get(f"/rounds/{one.round}").text
    former = max(seq for seq in problems if seq < one.first_seq)
    later = min(seq for seq in problems if seq > one.last_seq)
    assert re.findall(r'<a class="button" href="/records/(\d+)"', text) == [str(former), str(later)]


def _problems(browser: Browser) -> str:
    return "".join(all_pages(browser, "/problems"))


def test_problems_are_all_listed_once_the_newest_first(browser: Browser, place: Path) -> None:
    listed = [
        int(one)
        for one in re.findall(r'<td class="number"><a href="/records/(\d+)"', _problems(browser))
    ]
    assert listed == sorted(set(listed), reverse=True)
    assert {one.seq for _, one in records(place) if one.kind == "refusal"} <= set(listed)
    kinds = re.findall(r'<option value="([a-z_]+)">', browser.get("/problems").text)
    each = [
        int(seq)
        for kind in kinds
        for seq in re.findall(r'href="/records/(\d+)"', browser.get(f"/problems?what={kind}").text)
    ]
    assert sorted(each, reverse=True) == listed


def test_a_deep_link_leads_to_the_record(browser: Browser, rounds: list[RoundRow]) -> None:
    for seq in (1, 2, rounds[0].first_seq, rounds[7].first_seq + 3, rounds[-1].last_seq):
        answer = browser.get(f"/records/{seq}")
        assert answer.status == 303
        path, _, anchor = answer.headers["location"].partition("#")
        assert anchor == f"s{seq}"
        assert seq in lines(browser.get(path).text)
    where = browser.get(f"/records/{rounds[7].first_seq}").headers["location"]
    assert where.startswith("/rounds/8?")


def test_records_go_on_both_ways(browser: Browser, place: Path) -> None:
    last = max(one.seq for _, one in records(place))
    found = [line for text in all_pages(browser, "/records?from=1") for line in lines(text)]
    assert found == list(range(1, last + 1))
    assert lines(browser.get("/records").text)[-1] == last
    assert 'rel="prev"' in browser.get("/records").text
    assert 'rel="prev"' not in browser.get("/records?from=1").text


def test_the_data_of_a_replay_is_the_rounds(
    browser: Browser, place: Path, rounds: list[RoundRow]
) -> None:
    one = rounds[6]
    made = json.loads(browser.get(f"/rounds/{one.round}/replay.json").bytes)
    seqs = [frame["seq"] for frame in made["frames"]]
    told = [record.seq for record in of(place, one) if record.kind in ("decision", "refusal")]
    assert [seq for seq in seqs if seq in told] == told
    times = [frame["at"] for frame in made["frames"]]
    assert times == sorted(times)
    assert times[0] >= 0
    assert all(0 <= frame["picture"] < len(made["pictures"]) for frame in made["frames"])
    assert len(set(made["pictures"])) == len(made["pictures"])
    assert not {"seen", "hole", "commitment"} & set(made["frames"][0])


def test_about_says_what_record_it_is(browser: Browser, place: Path) -> None:
    page = browser.get("/about")
    assert "Mega Blackjack" in page.words
    assert "bj-1/" in page.words
    assert re.search(r"\+[0-9a-f]{8}\+", page.text)


def test_how_pages_look_is_each_persons_own(looking: Looking) -> None:
    browser = looking.enter()
    assert '<html lang="en" class="theme-auto suits-two">' in browser.get("/rounds").text
    assert browser.post("/looks", {"theme": "dark", "suits": "four"}).status == 303
    assert 'class="theme-dark suits-four"' in browser.get("/rounds").text
    assert browser.post("/looks", {"theme": "pink"}).status == 400
    assert 'class="theme-dark suits-four"' in browser.get("/rounds").text
    assert 'class="theme-auto suits-two"' in Browser(looking.app).get("/rounds").text


# --- export -----------------------------------------------------------------------------------


def test_a_case_is_made_fetched_and_right(looking: Looking, tmp_path: Path) -> None:
    browser = looking.enter()
    answer = browser.post("/export", {"round": "3-4", "reason": "seat 2 disputes"})
    assert answer.status == 303, answer.words
    page = browser.get(answer.headers["location"])
    (path,) = re.findall(r'href="(/export/[^"]+/case.zip)"', page.text)
    fetched = browser.get(path)
    assert fetched.headers["content-disposition"].startswith("attachment;")
    case = tmp_path / "case.zip"
    case.write_bytes(fetched.bytes)
    found = check_case(case)
    assert found.right
    assert found.seal in page.words
    assert (found.manifest.by, found.manifest.reason) == ("Eve", "seat 2 disputes")
    with zipfile.ZipFile(case) as packed:
        data = packed.read("manifest.json")
    assert hashlib.sha256(data).hexdigest() == found.seal
    assert f'"seal":"{found.seal}"' in access_log_file(looking.source.record).read_text()


def test_nobody_fetches_what_somebody_else_made(looking: Looking) -> None:
    browser = looking.enter()
    where = browser.post("/export", {"round": "3"}).headers["location"]
    assert browser.get(where).status == 200
    other = Browser(looking.app)
    other.get(f"/enter?word={looking.links.make(PageUser('Ida'))}")
    assert (other.get("/rounds").status, other.get(where).status) == (200, 404)
    assert other.get(f"{where}/case.zip").status == 404


def test_only_a_few_cases_wait_to_be_fetched(looking: Looking, tmp_path: Path) -> None:
    browser = looking.enter()
    made = [browser.post("/export", {"round": "2"}).headers["location"] for _ in range(5)]
    assert (browser.get(made[0]).status, browser.get(made[-1]).status) == (404, 200)
    assert len(list((tmp_path / "scratch").glob("export-*"))) == 4
    looking.review.close()
    assert not list((tmp_path / "scratch").glob("export-*"))


def test_rows_are_those_of_the_record(
    browser: Browser, place: Path, rounds: list[RoundRow]
) -> None:
    mine = [one for _, one in records(place) if one.round == 3]
    jsonl = browser.post("/export", {"round": "3", "format": "jsonl"})
    found = [json.loads(line)["seq"] for line in jsonl.text.splitlines()]
    assert found == [one.seq for one in mine]
    rows = list(
        csv.DictReader(io.StringIO(browser.post("/export", {"round": "3", "format": "csv"}).text))
    )
    assert [int(row["seq"]) for row in rows] == found
    everything = browser.post("/export", {"all": "yes", "format": "jsonl"})
    assert everything.text.count("\n") == max(one.seq for _, one in records(place))
    assert rounds


def test_choices_of_the_filters_are_words(browser: Browser) -> None:
    text = browser.get("/rounds").text
    for name in HAPPENINGS:
        assert f'<option value="{name}">' in text


ROOM = ROOT / "controller" / "screens"
WORDED = ROOT / "controller" / "procedure" / "prompts"
_USED = re.compile(r"""\b(?:t|texts)\(\s*['"]([a-z_.]+)['"]""")
_TURNED = re.compile(r"""text = "(turned\.[a-z_]+)\"""")
_MADE = re.compile(r"""\bt\('([a-z_]+\.[a-z_.]*)' ~|\bt\.under\('([a-z_.]+)'\)""")
"""A name of which a part is made by the page, or a whole section that it takes."""
_MADE_HERE = re.compile(r"""\btexts\(\s*f"([a-z_]+\.[a-z_.]*)\{""")
"""The same, in a module."""

_SECTION = re.compile(r"""": "(console\.[a-z_]+)",""")
"""Of which a module takes whatever it is asked for."""


def sources() -> tuple[Path, ...]:
    return (*ROOM.rglob("*.py"), *WORDED.rglob("*.py"))


def made() -> tuple[str, ...]:
    """How names begin of which a part is made."""
    pages = [a or b for file in ROOM.rglob("*.html") for a, b in _MADE.findall(file.read_text())]
    modules = [one for file in sources() for one in _MADE_HERE.findall(file.read_text())]
    sections = [one for file in sources() for one in _SECTION.findall(file.read_text())]
    return (*pages, *modules, *(f"{one}." for one in sections))


def used() -> set[str]:
    found = set()
    for file in (*ROOM.rglob("*.html"), *sources()):
        text = file.read_text()
        found |= {*_USED.findall(text), *_TURNED.findall(text)}
        found |= set(re.findall(r'"((?:problem|doors)\.[a-z_]+)"', text))
    return found


def test_every_text_that_is_used_is_there() -> None:
    texts = load()
    begins = made()
    assert begins
    assert not {name for name in used() if not texts.has(name) and name not in begins}


def test_every_text_that_is_there_is_used() -> None:
    begins = made()
    assert not ({name for name in load().names if not name.startswith(begins)} - used())


def test_templates_have_no_words_of_their_own() -> None:
    for file in ROOM.rglob("*.html"):
        text = re.sub(r"\{% block here %\}\w+", "", file.read_text())
        text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", text, flags=re.DOTALL)
        text = re.sub(r"<[^>]*>", " ", text)
        words = re.findall(r"[A-Za-z]{2,}", re.sub(r"&#?\w+;", "", text))
        assert not words, file


def test_a_house_has_its_own_words(tmp_path: Path) -> None:
    file = tmp_path / "de.toml"
    file.write_text('[rounds]\ntitle = "Runden"\nspan = "Runden {first} bis {last}"\n')
    texts = load(file)
    said = (texts("rounds.title"), texts("rounds.span", first=1, last=2), texts("nav.rounds"))
    assert said == ("Runden", "Runden 1 bis 2", load()("nav.rounds"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[rounds]\nnothing = "x"\n', "there is no text"),
        ('[rounds]\nspan = "Runden {first}"\n', "other {fields}"),
        ('[rounds]\ntitle = "{x}"\n', "other {fields}"),
        ('[rounds]\ntitle = "{"\n', "braces"),
        ("[rounds]\ntitle = 3\n", "is no text"),
        ("[rounds\n", "is no TOML"),
        ("\udcff", "is no TOML"),
    ],
)
def test_a_wrong_file_is_refused_in_words(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "texts.toml"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageProblem, match=re.escape(words)):
        load(file)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for file in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(UsageProblem, match="a file of texts"):
            load(file)


def test_the_files_of_the_pages_go_with_the_package() -> None:
    """Their kinds are packed, as pyproject says."""
    pyproject = (ROOM.parent.parent / "pyproject.toml").read_text()
    kinds = {file.suffix for file in ROOM.rglob("*") if file.is_file()} - {".py", ".pyc"}
    assert kinds == {".html", ".css", ".js", ".png", ".svg", ".toml"}
    for kind in kinds:
        assert f'"**/*{kind}"' in pyproject
    assert files("controller.screens.common").joinpath("texts.toml").is_file()
