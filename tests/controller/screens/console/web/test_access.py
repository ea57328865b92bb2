"""Who comes in at the console, from where, and what they may do there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from controller.api.http import subscriber_address
from controller.screens.common.access import HEADERS
from controller.screens.console.web import sessions
from controller.screens.console.web.sessions import ATTEMPTS, IDLE_TIMEOUT
from tests.support.api.at_api import ANN, SECOND, run
from tests.support.drivers.simulated import until
from tests.support.screens.at_pages import (
    BANK,
    HERE,
    TWO,
    AtPages,
    Tab,
    at_pages,
    came,
    opened,
    pages_test,
)

# --- sessions ---------------------------------------------------------------------------------


@pages_test()
async def test_a_session_goes_by_a_cookie_that_no_script_and_no_other_site_has(
    pages: AtPages,
) -> None:
    tab = pages.tab()
    page = await tab.open()
    cookie = page.headers["set-cookie"]
    for word in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert word in cookie
    assert {name: page.headers[name] for name in HEADERS} == HEADERS
    assert page.headers["cache-control"] == "no-store"
    (word,) = tab.cookies.values()
    assert word not in page.text
    assert pages.at.api.screens.find(_token(pages, tab)).name == "console"
    assert _token(pages, tab) not in page.text


def _token(pages: AtPages, tab: Tab) -> str:
    (word,) = tab.cookies.values()
    found = pages.screens.browsers.find(word)
    assert found is not None
    return found.token


@pages_test()
async def test_a_page_loaded_again_is_the_same_screen_and_another_browser_is_another(
    pages: AtPages,
) -> None:
    tab = await opened(pages)
    async with tab.stream() as stream:
        await came(stream)
        assert stream.events[0]["controls"]
    other = await pages.open()
    async with other.stream() as stream:
        await came(stream)
        assert not stream.events[0]["controls"]
    refused = await other.act("ShuffleStarted")
    assert (refused.status_code, refused.json()["code"]) == (403, "no_dealer")
    assert (await tab.act("ShuffleStarted")).json()["done"]


@pages_test()
async def test_a_session_without_a_page_ends_soon_and_with_it_its_screen(pages: AtPages) -> None:
    tab = await pages.open()
    assert (len(pages.screens.browsers), len(pages.at.api.screens)) == (1, 1)
    await asyncio.sleep(IDLE_TIMEOUT + 2 * 5)
    assert (len(pages.screens.browsers), len(pages.at.api.screens)) == (0, 0)
    answer = await tab.post("/sign-out")
    assert (answer.status_code, answer.json()["code"]) == (401, "no_session")


@pages_test()
async def test_a_stream_keeps_a_session_for_as_long_as_it_is_read(
    pages: AtPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "IDLE_TIMEOUT", 20.0)
    tab = await pages.open()
    async with tab.stream() as stream:
        await asyncio.sleep(60)
        assert not stream.over
        assert (await tab.post("/sign-out")).status_code == 200


@pages_test()
async def test_whoever_deals_goes_on_dealing_when_their_page_is_gone(pages: AtPages) -> None:
    await pages.dealing()
    await asyncio.sleep(IDLE_TIMEOUT + 10)
    assert len(pages.screens.browsers) == 0
    view = pages.at.api.views.now().view
    assert view.dealer is not None
    assert view.dealer.name == "Ann Lee"
    back = await pages.dealing()  # without relieving anybody
    assert (await back.act("TableOpened", TWO, bank=BANK)).json()["done"]


@pages_test()
async def test_who_has_signed_in_has_another_cookie_and_the_one_before_is_nothing(
    pages: AtPages,
) -> None:
    """Whoever has put a cookie of their own into somebody's browser has not come in with them."""
    tab = await pages.open()
    planted = pages.tab()
    planted.cookies, planted.secret = dict(tab.cookies), tab.secret
    assert (await tab.sign_in(*ANN)).json()["done"]
    assert tab.cookies != planted.cookies
    assert (await planted.act("ShuffleCalled")).status_code == 401
    assert (await tab.post("/sign-out")).json()["done"]


@pages_test()
async def test_there_is_room_for_so_many_browsers(
    pages: AtPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_BROWSERS", 2)

    tabs = [pages.tab() for _ in range(2)]
    for tab in tabs:
        await tab.open()
    with pytest.raises(AssertionError):
        await pages.tab().open()
    async with tabs[0].stream() as stream:
        await came(stream)
        await asyncio.sleep(30)
        await pages.tab().open()  # in the place of the one that nobody looks at
        assert not stream.over
    assert (await tabs[1].post("/sign-out")).status_code == 401


def test_a_stranger_who_opens_all_there_are_shuts_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_BROWSERS", 6)

    async def main() -> None:
        async with at_pages(tmp_path) as pages, AsyncExitStack() as streams:
            dealing = await opened(pages)
            theirs = await streams.enter_async_context(dealing.stream())
            lost = []
            for _ in range(5):
                tab = await pages.open("10.0.0.66")
                lost.append(await streams.enter_async_context(tab.stream()))
            with pytest.raises(AssertionError):
                await pages.tab("10.0.0.66").open()
            for number in (7, 8):
                await pages.tab(f"10.0.0.{number}").open()
            await until(lambda: len([one for one in lost if one.over]) == 2, 60)
            assert [one.over for one in lost] == [True, True, False, False, False]
            with pytest.raises(AssertionError):
                await pages.tab("10.0.0.66").open()
            assert not theirs.over
            assert (await dealing.act("ShuffleStarted")).json()["done"]

    run(main())


@pages_test()
async def test_pages_that_are_only_asked_for_shut_nobody_out(
    pages: AtPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program at the dealer's own address asks for a page again and again, without its cookie."""
    monkeypatch.setattr(sessions, "MAX_BROWSERS", 6)
    seen = await pages.open()
    await seen.post("/looks", theme="dark", suits="four")
    for _ in range(30):
        await pages.tab().open()
        await asyncio.sleep(0.25)
    tab = await pages.open()
    assert (await tab.sign_in(*ANN)).json()["done"]
    assert (await seen.post("/looks", theme="dark", suits="four")).status_code == 200


# --- forms ------------------------------------------------------------------------------------


@pages_test()
async def test_forms_from_elsewhere_come_to_nothing(pages: AtPages) -> None:
    tab = await pages.open()
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": HERE.replace("8099", "8098")},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        answer = await tab.post("/sign-in", headers, badge=ANN.badge, pin=ANN.pin)
        assert answer.status_code == 403, headers
        assert answer.json()["code"] == "from_elsewhere"
    right, tab.secret = tab.secret, "x" * 43
    assert (await tab.sign_in(*ANN)).status_code == 403
    tab.secret = right
    stranger = pages.tab()
    stranger.secret = right
    assert (await stranger.sign_in(*ANN)).status_code == 401
    assert (await tab.ask("GET", "/", headers={"host": "evil.example"})).status_code == 421
    assert pages.at.whats() == []


@pytest.mark.parametrize("path", ["/act", "/sign-in", "/sign-out", "/looks"])
@pages_test()
async def test_a_form_that_is_none_is_told_what_would_be_one(pages: AtPages, path: str) -> None:
    tab = await pages.open()
    assert (await tab.ask("GET", path)).status_code == 405
    origin = {"origin": HERE}
    assert (await tab.ask("POST", path, content=b"{}", headers=origin)).status_code == 400
    long = await tab.ask("POST", path, data={"secret": "x" * 20_000}, headers=origin)
    assert long.status_code == 413
    other = await tab.post(path, more="x")
    assert other.status_code == 400
    assert "more" in other.json()["what"]
    twice = b"secret=" + tab.secret.encode() + b"&secret=x"
    form = {**origin, "content-type": "application/x-www-form-urlencoded"}
    assert (await tab.ask("POST", path, content=twice, headers=form)).status_code == 400


# --- people -----------------------------------------------------------------------------------


@pages_test()
async def test_pins_are_guessed_so_often_and_no_more(pages: AtPages) -> None:
    tab = await pages.open()
    codes = [
        (await tab.sign_in(f"D-{number}", "000000")).json()["code"]
        for number in range(ATTEMPTS + 2)
    ]
    assert (codes[0], codes[-2:]) == ("not_right", ["too_often", "too_often"])
    assert "wait" in codes  # the desk's own lock-out of the screen
    assert (await (await pages.open()).sign_in(*ANN)).json()["done"]


@pages_test()
async def test_all_pages_together_are_limited_too(pages: AtPages) -> None:
    codes: list[str] = []
    while "too_often" not in codes and len(codes) < 2 * sessions.ALL_ATTEMPTS:
        codes += await guessed(pages, f"10.0.0.{len(codes)}")
    assert "too_often" in codes
    assert sessions.ALL_ATTEMPTS <= len(codes) <= sessions.ALL_ATTEMPTS + 5


async def guessed(pages: AtPages, host: str, times: int = 5) -> list[str]:
    """What a new browser there is told."""
    tab = await pages.open(host)
    return [(await tab.sign_in("D-99", "000000")).json()["code"] for _ in range(times)]


@pages_test()
async def test_a_stranger_who_guesses_shuts_nobody_out(pages: AtPages) -> None:
    tab, other = await pages.dealing(), pages.tab("10.0.0.7")
    await other.open()
    codes: list[str] = []
    while "too_often" not in codes and len(codes) < 2 * sessions.ALL_ATTEMPTS:
        codes += await guessed(pages, "10.0.0.66")
    assert sessions.ADDRESS_ATTEMPTS <= len(codes) <= sessions.ADDRESS_ATTEMPTS + 5
    # From elsewhere nothing is used up, and where somebody deals not by anybody.
    assert (await other.sign_in(*SECOND)).json()["code"] == "another_dealer"
    for number in range(sessions.ALL_ATTEMPTS):
        await guessed(pages, f"10.0.1.{number}", 2)
    assert (await guessed(pages, "10.0.2.1", 1)) == ["too_often"]
    await tab.open()
    assert (await tab.act("TableOpened", TWO, bank=BANK)).json()["done"]
    assert (await tab.sign_in(*SECOND, relieve="yes")).json()["done"]


def test_a_network_counts_as_one_place() -> None:
    where = subscriber_address
    assert where("2001:db8:0:1::1") == where("2001:db8:0:1:ffff::9") != where("2001:db8:0:2::1")
    assert where("::ffff:10.0.0.7") == where("10.0.0.7") != where("10.0.0.8")
    assert where("") == ""


@pages_test()
async def test_another_dealer_relieves_and_the_first_one_only_watches(pages: AtPages) -> None:
    first = await opened(pages)
    second = await pages.open()
    assert (await second.sign_in(*SECOND)).json()["code"] == "another_dealer"
    assert (await second.sign_in(*SECOND, relieve="yes")).json()["done"]
    await first.open()
    await second.open()
    assert (await first.act("FloorCalled")).json()["code"] == "no_dealer"
    assert (await second.act("FloorCalled")).json()["done"]
    assert (await second.sign_in(*SECOND, relieve="maybe")).status_code == 400


@pages_test()
async def test_looks_are_kept_for_the_session(pages: AtPages) -> None:
    tab = pages.tab()
    assert "theme-auto" in (await tab.open()).text
    assert (await tab.post("/looks", theme="dark", suits="four")).json()["done"]
    page = (await tab.open()).text
    assert "theme-dark" in page
    assert "suits-four" in page
    wrong = await tab.post("/looks", theme="pink", suits="two")
    assert wrong.status_code == 400
    assert "theme: auto, light or dark" in wrong.json()["allowed"]


@pages_test()
async def test_surveillance_may_read_for_longer(
    pages: AtPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "IDLE_TIMEOUT", 20.0)
    monkeypatch.setattr(sessions, "REVIEW_IDLE_TIMEOUT", 60.0)
    tab = await pages.open()
    (word,) = tab.cookies.values()
    browser = pages.screens.browsers.find(word)
    assert browser is not None
    browser.screen.badges["surveillance"] = "S-1"
    await asyncio.sleep(50)
    assert pages.screens.browsers.find(word) is browser
    await asyncio.sleep(70)
    assert pages.screens.browsers.find(word) is None
