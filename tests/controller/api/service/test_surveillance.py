"""Surveillance looks: recorded before anything is shown, once a minute at each screen."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from controller.api.service.table_api import INTERVAL, LOOKS, RECORD_TIMEOUT
from controller.audit.errors import RetryLater as RecordFull
from controller.audit.format.records import RecordEntry
from hil.table.robots import Api, Screen, Unreachable
from hil.table.robots.api_client import Stopped
from tests.support.api.at_api import AtApi, api_test
from tests.support.api.at_port import Port, port_test
from tests.support.drivers.simulated import until
from tests.support.table.simulated.house import PINS


async def watching(client: Api, name: str = "watch") -> Screen:
    """A screen at which surveillance is signed in."""
    screen = await client.open(name)
    await screen.sign_in("S-1", PINS["S-1"], "surveillance")
    return screen


def looks(at: AtApi) -> list[dict[str, Any]]:
    found = [msgspec.json.decode(one.data) for one in at.room.records("person")]
    return [data for data in found if data["what"] == LOOKS]


@api_test()
async def test_a_look_stands_in_the_record_before_it_is_answered(at: AtApi) -> None:
    screen = await watching(at.client)
    view = await screen.table()
    assert looks(at) == [{"what": LOOKS, "badge": "S-1", "screen": "watch", "at": "table"}]
    record = at.room.records("person")[-1]
    assert (record.by.role, record.by.name) == ("surveillance", "Dee Faro")
    assert view.record.seq >= record.seq


@api_test()
async def test_a_minute_s_looks_at_one_screen_are_one(at: AtApi) -> None:
    screen, other = await watching(at.client), await watching(at.client, "other")
    began = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(screen.table())
    assert len(looks(at)) == 1
    await other.table()
    assert [one["screen"] for one in looks(at)] == ["watch", "other"]
    while asyncio.get_running_loop().time() - began < INTERVAL - 1:
        await screen.table()
        await asyncio.sleep(5)
    assert len(looks(at)) == 2
    await asyncio.sleep(6)
    await screen.table()
    assert len(looks(at)) == 3


@port_test()
async def test_a_stream_is_a_look_when_it_begins(port: Port, client: Api) -> None:
    screen = await watching(client)
    async with aclosing(screen.stream(patience=0)) as views:
        view = await anext(views)
        assert [one["at"] for one in looks(port.at)] == ["stream"]
        assert view.record.seq >= port.at.room.records("person")[-1].seq
    port.at.room.book.refusing = RecordFull("record", "no room on the disk", "make room")
    await asyncio.sleep(INTERVAL)
    async with aclosing(screen.stream(patience=0)) as views:
        with pytest.raises(Unreachable, match="no room on the disk"):
            await anext(views)
    assert len(looks(port.at)) == 1


@api_test()
async def test_who_is_not_surveillance_looks_without_a_word(at: AtApi) -> None:
    nobody, dealer = await at.client.open("nobody"), await at.dealing()
    for one in (nobody, dealer):
        await one.table()
    screen = await watching(at.client)
    await screen.sign_out()
    await screen.table()
    assert looks(at) == []


@api_test()
async def test_a_look_that_cannot_be_recorded_shows_nothing(at: AtApi) -> None:
    screen, nobody = await watching(at.client), await at.client.open("nobody")
    at.room.book.refusing = RecordFull("record", "no room on the disk", "make room")
    with pytest.raises(Stopped, match="no room on the disk"):
        await screen.table()
    assert (await nobody.table()).stopped  # who is nobody watches on
    at.room.book.refusing = None
    await until(lambda: not at.table.shown.stopped, 30)
    await screen.table()
    assert len(looks(at)) == 1


@api_test()
async def test_a_disk_that_stalls_holds_up_only_who_is_to_be_recorded(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    screen, other = await watching(at.client), await watching(at.client, "other")
    nobody, dealer = await at.client.open("nobody"), await at.dealing()
    append, goes_on = at.room.book.append, asyncio.Event()

    async def stalls(*entries: RecordEntry) -> Any:
        await goes_on.wait()
        return await append(*entries)

    monkeypatch.setattr(at.room.book, "append", stalls)
    monkeypatch.setattr(at.table.table, "append", stalls)
    began = loop.time()
    looking = [asyncio.create_task(one.table()) for one in (screen, screen, other) for _ in "ab"]
    await asyncio.sleep(1)
    for one in (nobody, dealer):
        assert not (await one.table()).stopped
    assert loop.time() - began < 2
    answers = await asyncio.gather(*looking, return_exceptions=True)
    assert loop.time() - began < RECORD_TIMEOUT + 2
    assert all("nothing was recorded within 10 s" in str(one) for one in answers), answers
    slow = await nobody.table()
    assert (slow.stopped, slow.soon) == ("the record is slow: wait", True)
    assert looks(at) == []
    goes_on.set()
    await until(lambda: not at.table.shown.stopped, 30)
    await screen.table()
    assert looks(at)
