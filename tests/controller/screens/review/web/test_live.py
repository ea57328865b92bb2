"""The record as it grows, told while somebody looks."""

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
import pytest
import uvicorn

from controller.audit.format.records import ChainPosition, RecordActor, RecordEntry
from controller.audit.log import Log, RecordOpening
from controller.audit.read.follow import Follower
from controller.audit.read.reader import records
from controller.audit.replay import identity_of
from controller.screens.common import server
from controller.screens.common.access import HEADERS
from controller.screens.review.source import LiveSource
from controller.screens.review.web import live
from tests.support.api.at_api import AtApi, api_test
from tests.support.audit.record.dealing import TABLE
from tests.support.audit.record.table import TABLE_KEY
from tests.support.drivers.simulated import until
from tests.support.screens.looked_at import Browser, Looking, Paced, dealt, mega, written

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
        page = browser.get("/live")
        (after,) = re.findall(r"/live/stream\?after=(\d+)", page.text)
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
    assert known.start == taken
    assert list(known.more()) == []
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
            data = file.read_bytes()
            end = data.index(bytes(one.data), at.offset) + len(bytes(one.data)) + 1
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
