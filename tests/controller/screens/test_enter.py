"""The way in to the review of a running table, under a path of another application, and what its
pages say of a record that goes on."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.routing import Mount

from controller.screens.common.access import HeaderGuard
from controller.screens.common.sessions import LinkSessions, LoginLinks
from controller.screens.common.texts import load
from controller.screens.console.web.sessions import ATTEMPTS
from controller.screens.review.source import FileSource
from controller.screens.review.view.verdict import RoundProof, RoundVerdict
from controller.screens.review.web import LinkLogin, application, pages_of
from controller.screens.review.web.app import PAGES
from tests.support.screens.at_pages import HERE, AtPages, Tab, pages_test
from tests.support.screens.looked_at import EVE, HOST, Browser, Looking
from tests.support.table.simulated.house import PINS

ENTER = "/review/enter"
_SECRET = re.compile(r'name="secret" value="([\w-]+)"')


async def _entering(pages: AtPages) -> Tab:
    tab = pages.tab()
    return _with_secret(tab, await tab.ask("GET", ENTER))


def _with_secret(tab: Tab, page: httpx.Response) -> Tab:
    found = _SECRET.search(page.text)
    assert found is not None, page.text
    tab.secret = found[1]
    return tab


@pages_test()
async def test_a_wrong_pin_shows_the_form_again_with_the_reason(pages: AtPages) -> None:
    tab = await _entering(pages)
    wrong = await tab.post(ENTER, badge="S-1", pin="000000")
    assert wrong.status_code == 403
    assert "badge or PIN is not right" in wrong.text
    assert 'role="alert"' in wrong.text
    assert "000000" not in wrong.text
    # With what stands in that form somebody comes in.
    _with_secret(tab, wrong)
    right = await tab.post(ENTER, badge="S-1", pin=PINS["S-1"])
    assert (right.status_code, right.headers["location"]) == (303, "/review/rounds")


@pages_test()
async def test_who_guesses_is_told_to_wait_at_the_form(pages: AtPages) -> None:
    tab = await _entering(pages)
    answers = [await tab.post(ENTER, badge="S-9", pin="1") for _ in range(ATTEMPTS + 1)]
    assert answers[-1].status_code == 429
    assert 'action="/review/enter"' in answers[-1].text
    assert "Try again in" in answers[-1].text


@pages_test()
async def test_a_form_of_a_session_that_is_over_is_there_again(pages: AtPages) -> None:
    tab = await _entering(pages)
    tab.cookies.clear()
    stale = await tab.post(ENTER, badge="S-1", pin=PINS["S-1"])
    assert stale.status_code == 401
    right = await _with_secret(tab, stale).post(ENTER, badge="S-1", pin=PINS["S-1"])
    assert right.status_code == 303
    other = await tab.post(ENTER, {"origin": "http://elsewhere"}, badge="S-1", pin="1")
    assert other.status_code == 403
    assert HERE not in other.text


# --- what pages say of a record that goes on ----------------------------------------------------


def _words(browser: Browser) -> dict[str, str]:
    return {
        "about": browser.get("/about").words,
        "export": browser.get("/export").text,
        "verdict": browser.post("/rounds/3/verify").words,
    }


def test_a_running_table_has_looks_in_its_record(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = looking.enter()
    stopped = _words(browser)
    assert "is written beside the record" in stopped["about"]
    assert "beside the record first" in stopped["export"]
    assert "--table-key" in stopped["verdict"]
    monkeypatch.setattr(FileSource, "served", True)
    running = _words(browser)
    assert not [page for page, words in running.items() if "beside the record" in words]
    assert "an entry of the record" in running["about"]
    assert "is recorded first" in running["export"]
    assert "--table-key" not in running["verdict"]
    assert "KEY IS NOT PROVEN" in running["verdict"]


def test_one_is_not_many(looking: Looking) -> None:
    pages = looking.review.pages
    proof = RoundProof(1_719, "", "", "", 3, "x")
    verdict = RoundVerdict("right", (1_620, 1_719), (), 1, 1, 1, 1, 1, True, proof)
    values = {"round": SimpleNamespace(round=3), "served": False}

    def said(**changed: object) -> str:
        return pages.text(
            "review/verdict.html",
            session=SimpleNamespace(secret="", person=SimpleNamespace(name="Eve")),
            appearance=SimpleNamespace(theme="auto", suits="two"),
            verdict=replace(verdict, **changed),
            **values,
        )

    one, many = said(), said(again=1_719, opened=2, taken=2, unsigned=2, elsewhere=2)
    texts = load()
    for name in ("again", "opened", "taken", "unsigned", "elsewhere"):
        assert texts(f"verdict.{name}_one").partition("'")[0] in one
    assert "1 hole cards" not in one
    assert "Records 1,620 to 1,719" in one
    assert "1,719 decisions and refusals" in many
    assert "2 hole cards of this round" in many


BASE = "/review"


def test_every_link_stays_under_the_path(place: Path, tmp_path: Path) -> None:
    source = FileSource(place)
    source.begin(lambda words: None)
    links = LoginLinks()
    review = application(source, pages_of(load(), BASE), LinkLogin(LinkSessions(), links), tmp_path)
    browser = Browser(HeaderGuard(Starlette(routes=[Mount(BASE, review.app)]), (HOST,)))
    entered = browser.get(f"{BASE}/enter?word={links.make(EVE)}")
    assert entered.headers["location"] == f"{BASE}/rounds"
    assert f"path={BASE};" in f"{entered.headers['set-cookie'].lower()};"
    browser.secret = browser.get(f"{BASE}/about").secret
    found: set[str] = set()
    for page in PAGES:
        if page.method != "GET":
            continue
        answer = browser.get(BASE + page.path.format(round=3, seq=40, id="x"))
        if answer.status == 303:
            found.add(answer.headers["location"])
        found.update(re.findall(r'(?:href|action|src|data-source)="([^"]*)"', answer.text))
    paths = {one for one in found if one.startswith("/")}
    assert len(paths) > 100
    assert all(one.startswith(f"{BASE}/") for one in paths)
    for path in sorted(one for one in paths if "/static/" in one or one.endswith("replay.json")):
        assert browser.get(path).status == 200, path
    made = browser.post(f"{BASE}/export", {"round": "2"})
    assert made.headers["location"].startswith(f"{BASE}/export/")
    assert browser.get(made.headers["location"]).status == 200
    assert browser.post(f"{BASE}/looks", {"theme": "dark"}).headers["location"].startswith(BASE)
    review.close()
