"""The table as browsers see it change: what they are sent, how often it is made, how it ends; and
no hidden card or secret in any of it."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Final

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from controller.api.contract.view import View
from controller.procedure.model.state import Step
from controller.rules.cards import Card
from controller.screens.console.view import Viewer
from controller.screens.console.web import Browser
from controller.screens.console.web.streams import MAX_STREAMS, MAX_STREAMS_OF_BROWSER, RenderedPage
from hil.table.robots import Robot, wire_name
from tests.support.api.at_api import ApiScreen, run
from tests.support.api.hidden_cards import (
    DEEP,
    Heard,
    Whims,
    are_twins,
    deep_alike,
    few_rounds,
    twins,
)
from tests.support.drivers.simulated import until
from tests.support.screens.at_pages import AtPages, Reader, Tab, at_pages, came, pages_test
from tests.support.table.simulated.house import PINS

WATCHERS = 200


class Plain:
    """A face that counts how often it is asked for."""

    def __init__(self) -> None:
        self.pictures: list[tuple[int, bool]] = []

    def picture(self, view: View, here: Viewer) -> RenderedPage:
        self.pictures.append((view.record.seq, here.controls))
        return RenderedPage(f"<p>{view.step.value} {view.record.seq}</p>", view.step.value)

    def page(
        self, view: View, here: Viewer, browser: Browser, signed: tuple[tuple[str, str], ...]
    ) -> str:
        meta = f'<meta name="secret" content="{browser.secret}">'
        return f'{meta}<main data-seq="{view.seq}">{signed}</main>'


async def settled(reader: Reader, pages: AtPages) -> None:
    """The last that it was sent is how all stands."""
    seq = pages.at.table.table.seq
    await until(lambda: f" {seq}<" in reader.events[-1]["html"], 60)


@pages_test()
async def test_what_is_sent(pages: AtPages) -> None:
    tab = await pages.dealing()
    async with tab.stream() as sse:
        await came(sse)
        assert (sse.status, sse.headers["content-type"], sse.headers["cache-control"]) == (
            200,
            "text/event-stream; charset=utf-8",
            "no-store",
        )
        first = sse.events[0]
        assert set(first) == {"seq", "html", "say", "controls", "signed"}
        assert (first["controls"], first["signed"]) == (True, "dealer")
        assert first["seq"] == pages.at.table.shown.seq
        assert first["say"]
        count = len(sse.events)
        assert (await tab.post("/sign-out")).json()["done"]
        await came(sse, count + 1)
        last = sse.events[-1]
        assert (last["controls"], last["signed"]) == (False, "")


def test_each_change_is_drawn_once_however_many_look(tmp_path: Path) -> None:
    async def main() -> None:
        face = Plain()
        async with at_pages(tmp_path, face=face) as pages, AsyncExitStack() as stack:
            streams = [
                await stack.enter_async_context((await pages.open()).stream()) for _ in range(20)
            ]
            for one in streams:
                await came(one)
            face.pictures.clear()
            await pages.at.to_step(await pages.at.dealing(), Step.WAGERING)
            for one in streams:
                await settled(one, pages)
            assert len(face.pictures) > 3
            assert len(face.pictures) == len(set(face.pictures))
            assert {controls for _, controls in face.pictures} == {False}

    run(main())


def test_nothing_is_drawn_while_nobody_looks(tmp_path: Path) -> None:
    async def main() -> None:
        face = Plain()
        async with at_pages(tmp_path, face=face) as pages:
            await pages.at.to_step(await pages.at.dealing(), Step.WAGERING)
            assert face.pictures == []

    run(main())


@pages_test()
async def test_a_card_is_shown_and_acknowledged_while_200_look_and_one_never_reads(
    pages: AtPages,
) -> None:
    async with AsyncExitStack() as stack:
        streams = []
        for number in range(WATCHERS):
            streams.append(await stack.enter_async_context((await pages.open()).stream()))
            if number == 0:
                streams[0].reads.clear()
        assert len(pages.screens.browsers) == WATCHERS
        await until(lambda: all(one.events for one in streams[1:]), 60)
        robot = await pages.at.to_step(await pages.at.dealing(), Step.WAGERING)
        lies = len(pages.at.room.records("decision"))
        await robot.play(lambda shown: len(shown.state.dealer) > 0)
        assert len(pages.at.room.records("decision")) > lies
        assert pages.at.table.supervisor("SH-1").held is None
        shoe = pages.at.room.shoe.stand.firmware
        await until(lambda: shoe.records.room.acked == shoe.ring.head, 10)
        seq = pages.at.table.shown.seq
        await until(lambda: all(one.events[-1]["seq"] >= seq for one in streams[1:]), 60)
        assert streams[0].events == []


@pages_test()
async def test_there_are_so_many_streams(pages: AtPages) -> None:
    async with AsyncExitStack() as stack:
        tab = await pages.open()
        for _ in range(MAX_STREAMS_OF_BROWSER):
            await came(await stack.enter_async_context(tab.stream()))
        refused = await tab.ask("GET", "/stream")
        assert (refused.status_code, refused.json()["code"]) == (429, "streams_full")
        assert len(pages.screens.console.streams.listeners) == MAX_STREAMS_OF_BROWSER <= MAX_STREAMS
        assert (await pages.tab().ask("GET", "/stream")).status_code == 401


@pages_test()
async def test_each_browser_has_a_stream_whoever_has_many(pages: AtPages) -> None:
    async with AsyncExitStack() as stack:
        pages.screens.console.streams.listeners.limit = 2
        tab, other = pages.tab(), pages.tab()
        await tab.open()
        await other.open()
        for _ in range(2):
            await came(await stack.enter_async_context(tab.stream()))
        assert (await tab.ask("GET", "/stream")).status_code == 429
        await came(await stack.enter_async_context(other.stream()))
        assert (await other.ask("GET", "/stream")).status_code == 429


@pages_test()
async def test_a_stream_ends_with_the_table_and_with_its_session(pages: AtPages) -> None:
    async with AsyncExitStack() as stack:
        first, second = [pages.tab() for _ in range(2)]
        streams = []
        for tab in (first, second):
            await tab.open()
            streams.append(await stack.enter_async_context(tab.stream()))
            await came(streams[-1])
        (word,) = first.cookies.values()
        browser = pages.screens.browsers.find(word)
        assert browser is not None
        await pages.screens.browsers.end(browser)
        await until(lambda: streams[0].over, 2)
        assert not streams[1].over
        pages.at.served.stopping.set()
        await until(lambda: streams[1].over, 2)
        await until(lambda: len(pages.screens.console.streams.listeners) == 0, 2)


PATHS: Final = ("/", "/stream", "/review", "/review/", "/review/enter", "/nothing", "/act")
ACTS: Final = ("CheckHole", "RevealHole", "Cleared", "LaySpare", "TableOpened")
_CHANCE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""A session's words."""


async def _walk(pages: AtPages, tab: Tab, random: Random) -> list[str]:
    """Every route, and an act that is not for now."""
    said = []
    for path in PATHS:
        if path != "/stream":
            answer = await tab.ask("GET", path)
            said.append(f"{path} {answer.status_code} {answer.text}")
    await tab.open()
    answer = await tab.act(random.choice(ACTS))
    said.append(answer.text)
    answer = await tab.act("ErrorCardExposed", card=100)  # none that there is
    said.append(answer.text)
    return said


async def play(
    folder: Path, game: str, cards: list[Card], seed: int, two: tuple[Card, Card]
) -> Heard:
    heard = Heard([], [], frozenset())
    async with at_pages(folder, game) as pages:
        dealer = await pages.at.dealing()
        watch = await pages.open()
        random = Random(seed)
        names = tuple(wire_name(card) for card in cards)
        robot = Robot(
            pages.at.room, ApiScreen(pages.at, dealer), Whims(random), cards=lambda: names
        )
        async with watch.stream() as stream:
            while pages.at.state.step not in (Step.REVEAL, Step.CLEARING):
                await robot.step()
                if pages.at.state.hole:
                    heard.hidden.extend(await _walk(pages, watch, random))
            heard.hidden.append(_streamed(stream))
            if pages.at.state.step is Step.REVEAL:
                await robot.step()
            heard.shown.extend(await _walk(pages, watch, random))
        secrets = {secret for one in pages.screens.browsers for secret in (one.token, one.id)}
    return Heard(heard.hidden, heard.shown, frozenset(secrets))


def _streamed(stream: Reader) -> str:
    return stream.data.decode()


def _but_for_chance(said: list[str]) -> list[str]:
    return [_CHANCE.sub("<chance>", one) for one in said]


@pytest.mark.parametrize("game", ["classic", "mega"])
@few_rounds(1)
@given(seed=st.integers(0, 2**32), deep=st.integers(*DEEP))
@example(seed=92383, deep=150)
def test_a_hole_card_shows_in_nothing(game: str, seed: int, deep: int) -> None:
    assume(are_twins(game, seed, deep))
    first, second = twins(play, game, seed, deep)
    assert _but_for_chance(first.hidden) == _but_for_chance(second.hidden)
    assert len(first.hidden) > 20


def test_a_card_that_is_turned_over_shows_and_no_secret_does() -> None:
    """So that what is looked at above would show one."""
    first, second = twins(play, "classic", 5, deep_alike("classic", 5))
    assert _but_for_chance(first.hidden) == _but_for_chance(second.hidden)
    assert _but_for_chance(first.shown) != _but_for_chance(second.shown)
    text = "".join((*first.hidden, *first.shown))
    assert len(first.secrets) == 2
    assert not [one for one in (*first.secrets, *PINS.values()) if one in text]
    assert re.search(r"[0-9a-f]{64}", text) is None  # no commitment, no key
