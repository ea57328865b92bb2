"""The live review, and that no hidden card is in any page of the review."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self

import httpx
import msgspec
import pytest
import uvicorn
from starlette.types import ASGIApp, Message

from controller.audit.format.records import ChainPosition, RecordActor, RecordEntry
from controller.audit.log import Log, RecordOpening
from controller.audit.read.follow import Follower
from controller.audit.read.reader import records
from controller.audit.replay import identity_of
from controller.procedure.engine import Procedure
from controller.rules.cards import NAMES
from controller.screens.common import server
from controller.screens.common.access import HEADERS
from controller.screens.review.source import LiveSource
from controller.screens.review.web import live
from controller.screens.review.web.app import FLOWS, PAGES
from tests.support.api.at_api import AtApi, api_test
from tests.support.audit.record.dealing import TABLE
from tests.support.audit.record.table import TABLE_KEY
from tests.support.audit.twin import Twin
from tests.support.drivers.simulated import until
from tests.support.screens.looked_at import HOST, Browser, Looking, Paced, dealt, mega, written

ALONE: Final = server.ListenAddress(server.LOOPBACK, 0)


class Served:
    """A review behind a real port."""

    def __init__(self, looking: Looking) -> None:
        self._listening = server.bound(ALONE)
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        config = uvicorn.Config(
            looking.review.app, log_config=None, lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, kwargs={"sockets": [self._listening]})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()


@contextmanager
def streamed(served: Served, browser: Browser, after: int) -> Iterator[Callable[[], Any]]:
    """Asks for what follows; gives what reads the next event of it."""
    with (
        httpx.Client(base_url=served.address, cookies=browser.cookies, timeout=20) as client,
        client.stream("GET", f"/live/stream?after={after}") as answer,
    ):
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()

        def following() -> tuple[str, Any]:
            name = ""
            for line in lines:
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    return name, json.loads(line.removeprefix("data: "))
            return "", None

        yield following


def begun(place: Path) -> Log:
    opening = RecordOpening.at(place, table=TABLE)
    last = opening.last
    assert last is not None
    clock = Paced(last.utc + 10**9)
    return Log.begin(opening, identity_of(TABLE, mega()), TABLE_KEY, state=None, clock=clock)


@pytest.fixture
def growing(tmp_path: Path) -> Path:
    place = tmp_path / "mega"
    written(place, dealt("live", 3))
    return place


def test_what_is_written_comes_at_once(growing: Path, tmp_path: Path) -> None:
    with Looking(growing, tmp_path / "scratch") as looking:
        browser = looking.enter()
        (after,) = re.findall(r"/live/stream\?after=(\d+)", browser.get("/live").text)
        last = int(after)
        with Served(looking) as served, streamed(served, browser, last - 3) as following:
            for seq in range(last - 2, last + 1):
                name, told = following()
                assert (name, told["seq"]) == ("record", seq)
            assert following()[0] == "here"
            log = begun(growing)
            try:
                log.write(
                    [RecordEntry("note", RecordActor("floor", "Flo"), {"text": "chips counted"})]
                )
                found: list[dict[str, Any]] = []
                while not found or found[-1]["what"] != "note: chips counted":
                    name, told = following()
                    assert name == "record"
                    found.append(told)
            finally:
                log.close()
            assert [one["seq"] for one in found] == list(range(last + 1, last + 1 + len(found)))
            assert found[-1]["who"] == "Flo"


def test_what_is_not_known_to_be_on_the_disk_waits(
    growing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "POLL_INTERVAL", 0.02)
    last = max(one.seq for _, one in records(growing))
    durable = [last - 2]
    with Looking(growing, tmp_path / "scratch") as looking:
        monkeypatch.setattr(looking.source, "durable", lambda: durable[0])
        browser = looking.enter()
        with Served(looking) as served, streamed(served, browser, last - 3) as following:
            assert following()[1]["seq"] == last - 2
            assert following()[0] == "here"  # and not the one behind it, which is in the file
            durable[0] = last
            assert [following()[1]["seq"] for _ in range(2)] == [last - 1, last]


@api_test()
async def test_what_a_table_has_not_taken_yet_is_told_to_nobody(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = LiveSource(at.table)
    append, goes_on = at.room.book.append, asyncio.Event()

    async def stalls(*entries: RecordEntry) -> tuple[ChainPosition, ...]:
        made = await append(*entries)  # in the file; the disk has not answered yet
        await goes_on.wait()
        return made

    taken = at.table.table.seq
    known = live.DurableTail(source, Follower(source.record), None)
    assert (known.start, list(known.more())) == (taken, [])
    monkeypatch.setattr(at.table.table, "append", stalls)
    note = RecordEntry("note", RecordActor("floor", "Flo"), {"text": "chips counted"})
    noting = asyncio.create_task(at.table.record(note))
    await until(lambda: Follower(source.record).where.seq > taken, 10)
    assert list(known.more()) == []
    late = live.DurableTail(source, Follower(source.record), None)
    assert (late.start, list(late.more())) == (taken, [])
    goes_on.set()
    await noting
    for one in (known, late):
        told = [one.place.seq for one in one.more()]
        assert told == list(range(taken + 1, at.table.table.seq + 1))
        assert list(one.more()) == []


def test_a_stream_ends_with_its_session(
    growing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "POLL_INTERVAL", 0.02)
    now = [0.0]
    with Looking(growing, tmp_path / "scratch", lambda: now[0]) as looking:
        browser = looking.enter()
        last = max(one.seq for _, one in records(growing))
        with Served(looking) as served, streamed(served, browser, last) as following:
            assert following()[0] == "here"
            now[0] += 100_000
            name, told = following()
            assert name == "over"
            assert told["why"] == "Your session has ended."
        assert len(looking.review.house.streams) == 0


def test_a_damaged_end_is_told(
    growing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "POLL_INTERVAL", 0.02)
    with Looking(growing, tmp_path / "scratch") as looking:
        browser = looking.enter()
        last = max(one.seq for _, one in records(growing))
        with Served(looking) as served, streamed(served, browser, last) as following:
            assert following()[0] == "here"
            at, one = list(records(growing))[-1]
            file = next((growing / "segments").glob(f"*{at.segment:08d}.seg"))
            end = file.read_bytes().index(bytes(one.data), at.offset) + len(bytes(one.data)) + 1
            with file.open("r+b") as opened:
                opened.seek(end + 40)
                opened.write(b"x" * 20)
            name, told = following()
            assert name == "over"
            assert "no cut-off write explains" in told["why"]


def test_there_are_only_so_many_streams(growing: Path, tmp_path: Path) -> None:
    with Looking(growing, tmp_path / "scratch") as looking:
        looking.review.house.streams.limit = 1
        browser = looking.enter()
        last = max(one.seq for _, one in records(growing))
        with Served(looking) as served, streamed(served, browser, last) as following:
            assert following()[0] == "here"
            answer = browser.get(f"/live/stream?after={last}")
            assert answer.status == 400
            assert "streams run already" in answer.words
            for name, value in HEADERS.items():
                assert answer.headers[name] == value


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
            for method, path, fields in asked(twin.state.round, len(twin.entries)):
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
        made: dict[str, Any] = json.loads(browser.get(f"/rounds/{number}/replay.json").bytes)
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
