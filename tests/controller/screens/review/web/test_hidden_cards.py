"""A card that lies face down is in no page, feed, picture or file, whatever it is.

Two records are alike but for the hole card of their last round, which nobody has turned over: so
whatever is answered of the one must be answered of the other, but for what is drawn by chance.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from starlette.types import ASGIApp, Message

from controller.audit.read.reader import records
from controller.procedure.engine import Procedure
from controller.rules.cards import NAMES
from controller.screens.review.web.app import FLOWS, PAGES
from tests.support.audit.twin import Twin
from tests.support.screens.looked_at import HOST, Browser, Looking, mega, written

_CHANCE: Final = re.compile(rb"[0-9a-f]{16,}|[A-Za-z0-9+/_-]{40,}=*")
"""Hashes, signatures, what is sealed, the words of a session."""
_WHEN: Final = re.compile(rb"\d{4}-\d\d-\d\d[T ][\d:.]+Z?")


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[Path, Twin], ...]:
    """Up to the reveal of the last round."""
    for number in range(100):
        made = tuple(
            Twin(Procedure(mega()), f"screens {number}", second=second) for second in (False, True)
        )
        for twin in made:
            twin.play(2)
            twin.exchange()
        came = [twin.to_the_reveal() for twin in made]
        if all(came) and made[0].pair is not None:
            break
    else:
        pytest.fail("no round came to its reveal")
    places = []
    for name, twin in zip(("one", "other"), made, strict=True):
        place = tmp_path_factory.mktemp(name) / "mega"
        written(place, twin)
        places.append((place, twin))
    return tuple(places)


def asked(last: int, seq: int) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Every page, for the open round and for the one before."""
    for page in PAGES:
        for number in (last, last - 1):
            path = page.path.format(round=number, seq=seq, id="x")
            if page.method == "GET":
                yield "GET", path, {}
                if "round}" in page.path and page.path.endswith("}"):
                    yield "GET", f"{path}?all=yes", {}
        if page.path == "/rounds/{round}/verify":
            yield "POST", f"/rounds/{last}/verify", {}
            yield "POST", f"/rounds/{last}/verify", {"as": "proof"}
        elif page.path == "/export" and page.method == "POST":
            for kind in ("csv", "jsonl"):
                yield "POST", "/export", {"round": str(last), "format": kind}
        elif page.method == "POST":
            yield "POST", page.path, {}
    for name in NAMES:
        yield "GET", f"/rounds?card={name}", {}


def test_every_route_answers_the_same_whatever_the_hole_card_is(
    twins: tuple[tuple[Path, Twin], ...], tmp_path: Path
) -> None:
    said: list[dict[str, bytes]] = []
    for number, (place, twin) in enumerate(twins):
        answers: dict[str, bytes] = {}
        with Looking(place, tmp_path / str(number)) as looking:
            browser = looking.enter()
            last = twin.state.round
            for method, path, fields in asked(last, len(twin.entries)):
                answer = browser.get(path) if method == "GET" else browser.post(path, fields)
                answers[f"{method} {path} {fields}"] = _but_for_chance(answer.bytes)
            looking.review.house.checking.wait(30)
            answers["verified"] = _but_for_chance(browser.get("/verify").bytes)
        said.append(answers)
    one, other = said
    assert one.keys() == other.keys()
    assert not {asked for asked in one if one[asked] != other[asked]}
    assert len(one) > 75
    assert len({twin.face(twin.state.hole) for _, twin in twins}) == 2


def test_what_is_compared_does_tell_cards_apart(
    twins: tuple[tuple[Path, Twin], ...], tmp_path: Path
) -> None:
    """The same comparison sees a card that lies face up."""
    place, twin = twins[0]
    with Looking(place, tmp_path / "scratch") as looking:
        text = looking.enter().get(f"/rounds/{twin.state.round}").bytes
    up = NAMES[twin.state.dealer[0]]
    rank, suit = up[0].replace("T", "10"), "\u2663\u2666\u2665\u2660"["CDHS".index(up[1])]
    assert f"{rank}{suit}".encode() in text
    assert _but_for_chance(text) != _but_for_chance(text.replace(f"{rank}{suit}".encode(), b"x"))


def test_no_page_has_a_commitment_or_an_opening(
    twins: tuple[tuple[Path, Twin], ...], tmp_path: Path
) -> None:
    """Pages are for people: only proofs and exports hold records as they were written."""
    place, twin = twins[0]
    hidden: set[str] = set()
    for _, record in records(place):
        if record.kind == "decision":
            data = msgspec.json.decode(record.data)
            event = data["event"]
            secret = (data.get("sealed"), event.get("commitment"), event.get("opening"))
            hidden.update(text for text in secret if text and len(text) > 32)
    assert len(hidden) > 5
    with Looking(place, tmp_path / "scratch") as looking:
        browser = looking.enter()
        for page in PAGES:
            if page.method == "GET":
                for number in range(1, twin.state.round + 1):
                    path = page.path.format(round=number, seq=20, id="x")
                    text = browser.get(path).text
                    assert not [one for one in hidden if one in text], path
        text = asyncio.run(_streamed(looking.app, browser, "/live/stream?after=5"))
        assert "face down" in text
        assert not [one for one in hidden if one in text]


def test_the_stream_says_the_same_whatever_the_hole_card_is(
    twins: tuple[tuple[Path, Twin], ...], tmp_path: Path
) -> None:
    said = []
    for number, (place, _) in enumerate(twins):
        with Looking(place, tmp_path / str(number)) as looking:
            browser = looking.enter()
            for flow in FLOWS:
                text = asyncio.run(_streamed(looking.app, browser, f"{flow.path}?after=1"))
                said.append(_but_for_chance(text.encode()))
    assert (len(said), said[: len(FLOWS)]) == (2 * len(FLOWS), said[len(FLOWS) :])
    assert b"HoleDealt" not in said[0]
    assert said[0].count(b"event: record") > 30


def test_a_replay_shows_a_hole_card_from_its_reveal_on(browser: Browser) -> None:
    """Before it, only its back."""
    seen = 0
    for number in range(1, 30):
        answer = browser.get(f"/rounds/{number}/replay.json")
        made: dict[str, Any] = json.loads(answer.bytes)
        for at, frame in enumerate(made["frames"]):
            if not frame["what"].startswith("the hole card is turned over:") or frame["refused"]:
                continue
            seen += 1
            earlier = [made["pictures"][one["picture"]] for one in made["frames"][:at]]
            assert sum("face down" in picture for picture in earlier) > 0
            titles = [re.findall("<title[^>]*>(.*?)</title>", picture)[0] for picture in earlier]
            dealers = [title.split(". ")[0].split(", ") for title in titles]
            down = [cards for cards in dealers if cards[0].startswith("Dealer") and len(cards) > 1]
            assert down
            assert {(len(cards), cards[-1]) for cards in down} == {(2, "face down")}
    assert seen > 5


def _but_for_chance(data: bytes) -> bytes:
    return _WHEN.sub(b"<time>", _CHANCE.sub(b"<chance>", data))


async def _streamed(app: ASGIApp, browser: Browser, path: str) -> str:
    """What a stream sends until nothing more comes; then whoever looked has gone."""
    where, _, query = path.partition("?")
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": where,
        "raw_path": where.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", HOST.encode()), (b"cookie", cookie.encode())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8731),
    }
    data = b""
    gone = asyncio.Event()

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal data
        data += message.get("body", b"")
        if b"event: here" in data:
            gone.set()

    await asyncio.wait_for(app(scope, receive, send), 30)
    return data.decode()
