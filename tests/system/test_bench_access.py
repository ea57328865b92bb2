"""The bench page without a table behind it: who comes in, what is refused, and that every hand is
there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest

from controller.errors import UsageProblem
from firmware_protocol.conformance import Profile
from firmware_protocol.device import Answer, CannotDo, ControlRequest, Describe, Draw, Load, SetJam
from firmware_protocol.messages import DeviceClass
from hil.control import verbs
from hil.table.page import Desk, bench_page, controls
from hil.table.page.app import MAX_BYTES, SECRET_HEADER, Page, application, listening
from hil.table.page.controls import FAULTS, HANDS, NEXT_PULLS, ShoeFilling, ShortcutButton
from hil.table.robots import SeatClaims
from hil.table.setup import FEW, STAFF_AND_VISITORS, FittedDevice
from tests.support.asynchronous import asynchronous

PORT = 8099
HERE = f"http://127.0.0.1:{PORT}"
POSTS = ("hand", "seat", "say", "next-card", "discards", "deal", "game")
PROFILES: tuple[Profile, ...] = ("shoe", "shuffler", "station")


class Noting:
    """A device that notes what is done to it, and refuses a jam."""

    def __init__(self) -> None:
        self.done: list[ControlRequest] = []

    def request(self, request: ControlRequest) -> Answer:
        if isinstance(request, SetJam):
            raise CannotDo("nothing can get stuck here", "another request")
        self.done.append(request)
        return {"changed": True, "cards": ["As"]}


class Bare:
    """Devices without players."""

    def __init__(self) -> None:
        self.noting = {fitted.serial: Noting() for fitted in FEW}

    @property
    def devices(self) -> tuple[tuple[FittedDevice, Noting], ...]:
        return tuple((fitted, self.noting[fitted.serial]) for fitted in FEW)

    @property
    def done(self) -> list[ControlRequest]:
        return [one for noting in self.noting.values() for one in noting.done]


class Door(NamedTuple):
    http: httpx.AsyncClient
    page: Page
    desk: Desk
    bare: Bare

    async def post(self, what: str, body: object, **headers: str) -> httpx.Response:
        usual = {
            "Content-Type": "application/json",
            SECRET_HEADER: self.page.secret,
            "Origin": HERE,
        }
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        told = {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return await self.http.post(f"/{what}", content=content, headers=told)


@asynccontextmanager
async def door() -> AsyncIterator[Door]:
    bare = Bare()
    desk = Desk(bare, SeatClaims(2))
    page = Page(desk, STAFF_AND_VISITORS)
    transport = httpx.ASGITransport(application(page, PORT))
    async with httpx.AsyncClient(transport=transport, base_url=HERE) as http:
        yield Door(http, page, desk, bare)


# --- who comes in -------------------------------------------------------------------------------


@asynchronous
async def test_its_headers_let_nothing_in_from_elsewhere() -> None:
    async with door() as one:
        for path in ("/", "/static/page.css", "/static/page.js", "/static/icon.svg", "/none"):
            answer = await one.http.get(path)
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["X-Frame-Options"] == "DENY"
        whole = (await one.http.get("/")).text
        assert not re.search(" style=| onclick=", whole)
        for person in STAFF_AND_VISITORS:
            assert person.pin in whole


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "elsewhere.example"}, 421),
        ({"Host": f"127.0.0.1:{PORT + 1}"}, 421),
        ({"Origin": "http://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({SECRET_HEADER: ""}, 403),
        ({SECRET_HEADER: "guessed"}, 403),
        ({"Content_Type": "text/plain"}, 415),
    ],
)
@asynchronous
async def test_posts_from_elsewhere_change_nothing(headers: dict[str, str], status: int) -> None:
    async with door() as one:
        body = {"device": "SH-1", "hand": {"do": "service", "on": True}}
        answer = await one.post("hand", body, **headers)
        assert (answer.status_code, one.bare.done) == (status, [])
        assert (await one.post("hand", body)).json() == {
            "done": True,
            "answer": {"changed": True},
        }
        assert len(one.bare.done) == 1


@asynchronous
async def test_nothing_is_done_by_looking() -> None:
    async with door() as one:
        for path in POSTS:
            assert (await one.http.get(f"/{path}")).status_code == 405
        assert (await one.post("none", {})).status_code == 404
        assert ((await one.http.get("/static/app.py")).status_code, one.bare.done) == (404, [])
        assert not one.desk.claims.touched


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "body", "status", "words"),
    [
        ("hand", b"{", 400, "truncated"),
        ("hand", b"[]", 400, "array"),
        ("hand", {"other": 1}, 400, "unknown field"),
        ("hand", b"x" * (MAX_BYTES + 1), 413, "too long"),
        ("hand", {"device": "SH-9", "hand": {"do": "retract"}}, 400, "no device SH-9"),
        ("hand", {"device": "SH-1", "hand": {"do": "describe"}}, 400, "cannot be done here"),
        ("hand", {"device": "SH-1", "hand": {"do": "put", "decks": 1}}, 400, "cannot be done"),
        ("hand", {"device": "SH-1", "hand": {"do": "cover"}}, 400, "open: is missing"),
        ("hand", {"device": "SH-1", "button": "dance"}, 400, "no such button"),
        ("hand", {"device": "SH-1", "button": "load"}, 503, "no game"),
        ("hand", {"device": "SH-1", "hand": {"do": "draw"}}, 503, "no game"),
        ("hand", {"device": "SH-1", "hand": {"do": "jam", "code": "stuck"}}, 409, "get stuck"),
        ("seat", {"how": "take", "seat": 8}, 400, "no seat 8"),
        ("seat", {"how": "take", "seat": 0}, 400, "no seat 0"),
        ("seat", {"how": "burn", "seat": 1}, 400, "nobody does that"),
        ("seat", {"how": "leave", "seat": 1}, 409, "a robot sits"),
        ("seat", {"how": "out", "seat": 1}, 409, "a robot sits"),
        ("say", {"seat": 1, "choice": "hit"}, 409, "a robot sits"),
        ("next-card", {"how": "upwards"}, 400, "no card comes"),
        ("discards", {}, 503, "no game"),
        ("deal", {}, 503, "no game"),
    ],
)
@asynchronous
async def test_what_cannot_be_is_said(what: str, body: object, status: int, words: str) -> None:
    async with door() as one:
        answer = await one.post(what, body)
        told: dict[str, Any] = answer.json()
        assert (answer.status_code, told["done"]) == (status, False)
        assert words in told["what"].lower() or words in told["what"]
        assert not one.bare.done
        assert not one.desk.claims.seats


@asynchronous
async def test_a_hand_is_done_to_the_device_that_is_named() -> None:
    async with door() as one:
        press = {"do": "press", "seat": 5, "button": "call"}
        assert (await one.post("hand", {"device": "ST-B", "hand": press})).status_code == 200
        assert one.bare.noting["ST-B"].done == one.bare.done
        assert one.desk.claims.touched
        assert (await one.post("next-card", {"how": "double"})).status_code == 200
        assert one.desk.claims.take_next_pull(Draw()) == Draw(double=True)
        assert one.desk.claims.take_next_pull(Draw()) == Draw()
        assert (await one.post("game", {})).status_code == 200
        assert one.desk.claims.next_game


# --- every hand ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(verbs.BY_CLASS))
def test_every_verb_has_its_form(kind: DeviceClass) -> None:
    every = verbs.BY_CLASS[kind]
    forms = {form.verb: form for form in controls.forms(kind)}
    assert set(forms) == set(every) - {"describe"}
    for verb, form in forms.items():
        assert [field.name for field in form.fields] == [
            word.name for word in verbs.request_fields(every[verb])
        ]
        given = {field.name: _given(field) for field in form.fields if not field.default}
        line = msgspec.json.encode({"do": verb, **given})
        assert isinstance(verbs.parse_request(line, every), every[verb])


def _given(field: controls.FormField) -> object:
    if field.choices:
        return msgspec.json.decode(field.choices[0])
    if field.kind == "list":
        return ["hit"]
    return "one" if field.kind == "text" else 1


@pytest.mark.parametrize("profile", PROFILES)
def test_every_button_is_a_hand_that_its_device_takes(profile: Profile) -> None:
    every = (*HANDS[profile], *FAULTS[profile])
    takes = tuple(verbs.BY_CLASS[DeviceClass[profile.upper()]].values())
    for bench in (ShoeFilling(1, None), ShoeFilling(6, 250)):
        for often in every:
            hand = often.makes(bench)
            assert isinstance(hand, takes), often.name
            assert not isinstance(hand, Describe)
    for names in (HANDS[profile], FAULTS[profile]):
        assert len({one.name for one in names}) == len(names)


def test_loads_are_in_an_order_that_nobody_knows() -> None:
    load = _named(HANDS["shoe"], "load")
    twins = _named(FAULTS["shoe"], "twins")
    for often in (load, twins):
        first, second = often.makes(ShoeFilling(2, 80)), often.makes(ShoeFilling(2, 80))
        assert isinstance(first, Load)
        assert first != second
        assert first.cut_at == 80
    made = twins.makes(ShoeFilling(1, None))
    assert isinstance(made, Load)
    assert max(made.cards[:12].count(card) for card in made.cards) > 1
    assert len(made.cards) == 52


def _named(every: tuple[ShortcutButton, ...], name: str) -> ShortcutButton:
    return next(one for one in every if one.name == name)


def test_every_way_of_a_card_is_offered() -> None:
    reads = {pull.read for _, pull in NEXT_PULLS.values() if pull is not None}
    draw = {word.name: word for word in verbs.request_fields(Draw)}["read"]
    assert reads | {"well"} == set(draw.allowed.split(", "))


# --- served -------------------------------------------------------------------------------------


@asynchronous
async def test_it_is_served_on_this_machine_and_its_stream_ends_with_it(tmp_path: Path) -> None:
    desk = Desk(Bare(), SeatClaims())
    async with httpx.AsyncClient(trust_env=False) as http:
        async with bench_page(desk, 0) as where:
            assert where.startswith("http://127.0.0.1:")
            assert (await http.get(where)).status_code == 200
            async with http.stream("GET", f"{where}stream") as answer:
                lines = answer.aiter_lines()
                assert await anext(lines) == "event: bench"
                assert "The next game is being set up" in await anext(lines)
                assert desk.viewers == 1
        assert desk.viewers == 0
        with pytest.raises(httpx.ConnectError):
            await http.get(where)


def test_a_port_that_is_taken_is_said() -> None:
    with listening(0) as taken:
        port = int(taken.getsockname()[1])
        with pytest.raises(UsageProblem, match="address already in use"):
            listening(port)
