"""Who comes in at the pages, with which forms, roles and sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import Route

from controller.audit.read.access_log import access_log_file
from controller.screens.common.access import HEADERS, PageRoute
from controller.screens.common.sessions import (
    IDLE_TIMEOUT,
    LINK_MAX_AGE,
    MAX_AGE,
    MAX_SESSIONS,
    AttemptLimit,
    LinkSessions,
    LoginLinks,
    PageUser,
    is_secret_of,
)
from controller.screens.review.source import ReviewContext
from controller.screens.review.web.app import EXPORTERS, FLOWS, PAGES, ReviewApp
from controller.screens.review.web.login import LINK_ATTEMPTS
from tests.support.screens.looked_at import HERE, Answer, Browser, Looking

OPEN = {"/enter", "/static/{hashed}/{name}"}
"""The only routes for whoever has no session."""


def paths() -> Iterator[tuple[str, str]]:
    """Every route, with something in the place of what it names."""
    for page in PAGES:
        yield page.method, page.path.format(round=3, seq=40, id="x")
    for flow in FLOWS:
        yield "GET", flow.path
    yield "POST", "/leave"


def routes(review: ReviewApp) -> list[Route]:
    return [one for one in review.app.routes if isinstance(one, Route)]


def test_every_route_is_tried_here(looking: Looking) -> None:
    known = {*OPEN, "/leave", *(page.path for page in PAGES), *(flow.path for flow in FLOWS)}
    assert {one.path for one in routes(looking.review)} == known


@pytest.mark.parametrize(("method", "path"), list(paths()))
def test_nobody_sees_anything_without_a_session(looking: Looking, method: str, path: str) -> None:
    browser = Browser(looking.app)
    for cookies in ({}, {"holecard-review": "x"}, {"holecard-review": ""}):
        browser.cookies = dict(cookies)
        answer = browser.send(method, path, headers={"origin": HERE})
        assert answer.status == 401, path
        _has_headers(answer)
        assert "Mega" not in answer.text
    looks = access_log_file(looking.source.record)
    before = looks.read_bytes() if looks.exists() else b""
    browser.send(method, path)
    assert (looks.read_bytes() if looks.exists() else b"") == before


@pytest.mark.parametrize(("method", "path"), list(paths()))
def test_every_answer_has_its_headers(looking: Looking, method: str, path: str) -> None:
    if path == "/live/stream":
        return  # it does not end; see test_live
    browser = looking.enter()
    answer = browser.get(path) if method == "GET" else browser.post(path)
    _has_headers(answer)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.status < 500, answer.text


def _has_headers(answer: Answer) -> None:
    for name, value in HEADERS.items():
        assert answer.headers[name] == value, name
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "server" not in answer.headers


@pytest.mark.parametrize(("method", "path"), [one for one in paths() if one[0] == "POST"])
def test_a_form_from_elsewhere_does_nothing(looking: Looking, method: str, path: str) -> None:
    browser = looking.enter()
    looks = access_log_file(looking.source.record).read_bytes()
    for fields, headers in (
        ({"secret": "x"}, {}),
        ({"secret": ""}, {}),
        ({}, {"origin": "http://evil.example"}),
        ({}, {"origin": "null"}),
        ({}, {"origin": HERE.replace("http", "https")}),
        ({}, {"sec-fetch-site": "cross-site"}),
        ({}, {"sec-fetch-site": "same-site"}),
    ):
        assert browser.post(path, fields, headers).status == 403, (fields, headers)
    assert access_log_file(looking.source.record).read_bytes() == looks
    assert browser.get("/rounds").status == 200


def test_a_form_is_short_and_a_form(looking: Looking) -> None:
    browser = looking.enter()
    secret = browser.secret
    assert browser.post("/export", {"reason": "x" * 20_000}).status == 413
    headers = {"origin": HERE, "content-type": "application/json"}
    assert browser.send("POST", "/verify", content=b"{}", headers=headers).status == 400
    headers["content-type"] = "application/x-www-form-urlencoded"
    for body in (f"secret={secret}&secret={secret}", f"secret={secret}&x=1", "\u00e4=1", "%ff=%ff"):
        answer = browser.send("POST", "/verify", content=body.encode(), headers=headers)
        assert answer.status == 400, body


def test_other_names_of_this_host_are_turned_away(looking: Looking) -> None:
    answer = Browser(looking.app, "rebound.example").get("/rounds")
    assert answer.status == 421
    _has_headers(answer)
    assert "rounds" not in answer.text.lower()


def test_the_cookie_is_for_this_site_and_no_script(looking: Looking) -> None:
    answer = looking.browser.get(f"/enter?word={looking.links.make(PageUser('Eve'))}")
    assert (answer.status, answer.headers["location"]) == (303, "/rounds")
    said = answer.headers["set-cookie"].lower()
    for part in ("httponly", "samesite=strict", "path=/", "max-age="):
        assert part in said
    assert "domain" not in said


def test_a_link_opens_once_and_wrong_ones_are_tried_a_few_times(looking: Looking) -> None:
    word = looking.links.make(PageUser("Eve"))
    assert looking.browser.get(f"/enter?word={word}").status == 303
    other = Browser(looking.app)
    assert other.get(f"/enter?word={word}").status == 401
    found = [other.get(f"/enter?word=x{n}").status for n in range(LINK_ATTEMPTS)]
    assert found == [401] * (LINK_ATTEMPTS - 2) + [429] * 2
    late = looking.links.make(PageUser("Eve"))
    assert (other.get(f"/enter?word={late}").status, other.cookies) == (429, {})


@pytest.mark.parametrize("address", ["", "?word=", "?other=1", "?word=a&word=b"])
def test_what_is_no_link_opens_nothing(looking: Looking, address: str) -> None:
    assert Browser(looking.app).get(f"/enter{address}").status in (400, 401)


def test_whoever_leaves_is_out_and_a_new_link_is_asked_for(looking: Looking) -> None:
    browser = looking.enter()
    cookies = dict(browser.cookies)
    assert (browser.post("/leave").status, browser.cookies) == (200, {})
    browser.cookies = cookies
    assert browser.get("/rounds").status == 401
    assert looking.ended == [PageUser("Eve")]


def test_a_session_ends_when_it_is_not_used(place: Path, tmp_path: Path) -> None:
    now = [0.0]
    with Looking(place, tmp_path / "scratch", lambda: now[0]) as looking:
        browser = looking.enter()
        now[0] += IDLE_TIMEOUT - 1
        assert browser.get("/rounds").status == 200
        now[0] += IDLE_TIMEOUT + 1
        assert browser.get("/rounds").status == 401
        assert looking.ended == [PageUser("Eve")]


@pytest.mark.parametrize("page", [one for one in PAGES if one.roles == EXPORTERS])
def test_the_floor_looks_and_exports_nothing(
    looking: Looking, page: PageRoute[ReviewContext]
) -> None:
    browser = looking.enter(PageUser("Flo", "floor"))
    path = page.path.format(id="x")
    assert (browser.get(path) if page.method == "GET" else browser.post(path)).status == 403
    assert browser.get("/rounds").status == 200


def test_each_look_is_written_down_before_anything_is_shown(looking: Looking) -> None:
    browser = looking.enter()
    file = access_log_file(looking.source.record)
    for path, words in (
        ("/rounds?seat=3&card=TH", '"what":"review list","of":"seat 3, card TH"'),
        ("/rounds/3", '"what":"review round","of":"round 3"'),
        ("/rounds/3/replay", '"what":"review replay","of":"round 3"'),
        ("/rounds/3/replay.json", '"what":"review replay","of":"round 3, as data"'),
        ("/problems", '"what":"review problems","of":"all"'),
        ("/records?from=1", '"what":"review records","of":"1 to 100"'),
        ("/report", '"what":"review report"'),
        ("/live", '"what":"review live"'),
        ("/about", '"what":"review about"'),
    ):
        before = file.read_text()
        assert browser.get(path).status == 200
        added = file.read_text().removeprefix(before)
        assert words in added
        assert '"who":"Eve"' in added
        assert added.count("\n") == 1


def test_where_a_look_cannot_be_written_nothing_is_shown(looking: Looking) -> None:
    browser = looking.enter()
    file = access_log_file(looking.source.record)
    kept = file.read_bytes()
    file.unlink()
    file.mkdir()
    try:
        for path in ("/rounds", "/rounds/3", "/rounds/3/replay.json", "/problems", "/about"):
            answer = browser.get(path)
            assert answer.status == 503
            assert "nobody looks without it" in answer.words
        for fields in ({"all": "yes"}, {"all": "yes", "format": "csv"}):
            assert browser.post("/export", fields).status == 503
        assert browser.post("/rounds/3/verify").status == 503
    finally:
        file.rmdir()
        file.write_bytes(kept)


def test_files_of_the_pages_may_be_kept_and_no_others_are_there(looking: Looking) -> None:
    page = looking.enter().get("/rounds/3/replay").text
    found = sorted(set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page)))
    assert [one.rpartition("/")[2] for one in found] == [
        "base.css",
        "felt.css",
        "icon.svg",
        "replay.js",
        "review.css",
    ]
    anybody = Browser(looking.app)
    for path in found:
        answer = anybody.get(path)
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]
        _has_headers(answer)
    hashed = found[0].split("/")[2]
    for path in (
        "/static/0000000000000000/base.css",
        f"/static/{hashed}/texts.toml",
        f"/static/{hashed}/..%2ftexts.py",
        f"/static/{hashed}/x.css",
    ):
        assert anybody.get(path).status == 404


def test_pages_have_no_script_and_no_style_of_their_own(looking: Looking) -> None:
    browser = looking.enter()
    for method, path in paths():
        if method == "POST" or path == "/live/stream":
            continue
        text = browser.get(path).text
        assert not re.search(r"<script(?![^>]*src=)", text), path
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text), path
        assert not re.search(r"(?:href|src|action)=\"(?:https?:)?//", text), path


EVE, FLO = PageUser("Eve"), PageUser("Flo", "floor")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_session_lasts_while_it_is_used_and_no_longer_than_a_shift() -> None:
    clock = Clock()
    ended: list[PageUser] = []
    sessions = LinkSessions(clock, ended.append)
    session = sessions.begin(EVE)
    for _ in range(int(MAX_AGE / IDLE_TIMEOUT)):
        clock.now += IDLE_TIMEOUT - 1
        assert sessions.find(session.id) is session
    clock.now += IDLE_TIMEOUT - 1
    assert sessions.find(session.id) is None
    assert ended == [EVE]
    assert sessions.find(session.id) is None
    assert ended == [EVE]


def test_a_session_that_nobody_uses_ends() -> None:
    clock = Clock()
    sessions = LinkSessions(clock)
    session = sessions.begin(EVE)
    clock.now += IDLE_TIMEOUT
    assert sessions.alive(session)  # which does not use it
    clock.now += 0.1
    assert not sessions.alive(session)
    assert sessions.find(session.id) is None


def test_one_session_too_many_ends_the_one_that_was_used_least_lately() -> None:
    clock = Clock()
    sessions = LinkSessions(clock)
    made = []
    for _ in range(MAX_SESSIONS):
        clock.now += 1
        made.append(sessions.begin(EVE))
    sessions.find(made[0].id)
    sessions.begin(FLO)
    assert sessions.find(made[0].id) is made[0]
    assert sessions.find(made[1].id) is None
    assert sessions.find(made[2].id) is made[2]


def test_names_and_secrets_are_their_own_and_long() -> None:
    sessions = LinkSessions()
    one, other = sessions.begin(EVE), sessions.begin(EVE)
    assert len({one.id, other.id, one.secret, other.secret}) == 4
    assert min(map(len, (one.id, one.secret))) >= 43
    assert is_secret_of(one, one.secret)
    assert not is_secret_of(one, other.secret)
    assert not is_secret_of(one, "")
    assert not is_secret_of(one, "\u00e4")
    for name in (None, "", "x", one.secret):
        assert sessions.find(name) is None


def test_a_link_opens_once() -> None:
    links = LoginLinks()
    word = links.make(EVE)
    assert (links.take("x" + word), links.take(word), links.take(word)) == (None, EVE, None)


def test_a_new_link_takes_the_place_of_the_one_before() -> None:
    links = LoginLinks()
    old, others = links.make(EVE), links.make(FLO)
    new = links.make(EVE)
    assert (links.take(old), links.take(new), links.take(others)) == (None, EVE, FLO)


@pytest.mark.parametrize(("after", "found"), [(LINK_MAX_AGE, EVE), (LINK_MAX_AGE + 1, None)])
def test_a_link_is_too_old_after_its_time(after: float, found: PageUser | None) -> None:
    clock = Clock()
    links = LoginLinks(clock)
    word = links.make(EVE)
    clock.now += after
    assert links.take(word) == found


def test_tries_are_used_up_and_come_back_one_by_one() -> None:
    clock = Clock()
    tries = AttemptLimit(3, 10, clock)
    assert [tries.one() for _ in range(4)] == [True, True, True, False]
    clock.now += 9
    assert not tries.one()
    clock.now += 1
    assert tries.one()
    assert not tries.one()
    clock.now += 1_000
    assert [tries.one() for _ in range(4)] == [True, True, True, False]
