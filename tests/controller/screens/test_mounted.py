"""The review under a path of another application."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Mount

from controller.screens.common.access import HeaderGuard
from controller.screens.common.sessions import LinkSessions, LoginLinks
from controller.screens.common.texts import load
from controller.screens.review.source import FileSource
from controller.screens.review.web import LinkLogin, application, pages_of
from controller.screens.review.web.app import PAGES
from tests.support.screens.looked_at import EVE, HOST, Browser

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
