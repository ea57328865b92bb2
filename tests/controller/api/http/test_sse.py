"""The table as it changes, over a real socket: what readers are sent, and how it ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from controller.api.contract.view import View
from controller.api.http.sse import HEARTBEAT, MAX_STREAMS_OF_SCREEN, SEND_TIMEOUT
from controller.audit.format.records import CONTROLLER, RecordEntry
from hil.table.robots import Api, Screen, Unreachable
from hil.table.robots.api_client import NoScreen
from tests.support.api.at_api import FIRST, SECOND, refused
from tests.support.api.at_port import Port, port_test
from tests.support.drivers.simulated import until


class Reader:
    """Somebody who reads a stream to its end."""

    def __init__(self, screen: Screen, timeout: float = 0.0) -> None:
        self.views: list[View] = []
        self.task = asyncio.create_task(self._read(screen, timeout))

    async def _read(self, screen: Screen, timeout: float) -> None:
        async with aclosing(screen.stream(timeout)) as views:
            async for view in views:
                self.views.append(view)

    async def ended(self) -> BaseException | None:
        await asyncio.wait((self.task,))
        return self.task.exception()


async def caught_up(reader: Reader, seq: int) -> None:
    await until(lambda: reader.views[-1].record.seq >= seq, 5)


async def note(port: Port, text: str = "something") -> int:
    """Something is recorded."""
    done = await port.at.table.record(RecordEntry("note", CONTROLLER, {"text": text}))
    return done.appended[-1].seq


@port_test()
async def test_each_change_is_told_in_order_and_the_last_one_always(
    port: Port, client: Api
) -> None:
    reader = Reader(await client.open("dealer"))
    await until(lambda: len(reader.views) == 1)
    assert reader.views[0].table == "bj-1"
    seq = max([await note(port) for _ in range(20)])
    await until(lambda: reader.views[-1].record.seq == seq)
    seqs = [view.record.seq for view in reader.views]
    assert seqs == sorted(set(seqs))
    assert len(seqs) > 10
    port.at.served.stopping.set()
    assert isinstance(await reader.ended(), Unreachable)


@port_test()
async def test_people_and_devices_are_told_too(port: Port, client: Api) -> None:
    screen = await client.open("dealer")
    reader = Reader(screen)
    await screen.sign_in("D-17", "402931")
    await until(lambda: reader.views[-1].dealer is not None, 1)
    await until(lambda: port.at.table.supervisor("SH-1").held is not None, 30)
    await until(lambda: reader.views[-1].devices[0].held == "new_epoch", 2)
    await screen.adopt("SH-1", FIRST, SECOND)
    await until(lambda: reader.views[-1].devices[0].state == "ready", 2)
    await screen.sign_out()
    await until(lambda: reader.views[-1].dealer is None, 1)
    port.at.served.stopping.set()
    await reader.ended()


# --- on the wire ------------------------------------------------------------------------------


@asynccontextmanager
async def raw(port: Port, screen: Screen) -> AsyncIterator[socket.socket]:
    """A reader that reads when it is told to."""
    loop = asyncio.get_running_loop()
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.setblocking(False)
    try:
        await loop.sock_connect(made, str(port.path))
        asks = f"GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {screen.token}\r\n"
        await loop.sock_sendall(made, f"{asks}\r\n".encode())
        yield made
    finally:
        made.close()


async def read(made: socket.socket, wanted: bytes) -> bytes:
    """What comes, until that has come."""
    loop = asyncio.get_running_loop()
    data = b""
    async with asyncio.timeout(60):
        while wanted not in data:
            more = await loop.sock_recv(made, 65536)
            if not more:
                break
            data += more
    return data


@port_test()
async def test_what_is_written(port: Port, client: Api) -> None:
    screen = await client.open("dealer")
    await until(lambda: port.at.table.supervisor("ST-1").held is not None, 30)
    async with raw(port, screen) as made:
        head, _, rest = (await read(made, b"\n\n")).partition(b"\r\n\r\n")
        seq = port.at.table.table.seq
        assert b"HTTP/1.1 200" in head
        assert b"content-type: text/event-stream; charset=utf-8" in head
        assert b"cache-control: no-store" in head
        lines = rest.partition(b"\r\n")[2].split(b"\n")
        assert lines[:2] == [b"event: table", b"id: %d" % seq]
        assert lines[2].startswith(b'data: {"seq":')
        # Until all devices have been told of as away, there is news.
        await read(made, b": all is well\n\n")
        loop = asyncio.get_running_loop()
        at = loop.time()
        await read(made, b": all is well\n\n")
        assert HEARTBEAT - 1 <= loop.time() - at <= HEARTBEAT + 2
        port.at.served.stopping.set()
        # Its end is that of a whole answer.
        assert (await read(made, b"0\r\n\r\n")).endswith(b"0\r\n\r\n")


@port_test()
async def test_a_slow_reader_skips_and_delays_nobody(port: Port, client: Api) -> None:
    """What it is sent when it reads again is how all stands then, not what there was."""
    slow, quick = await client.open("slow"), await client.open("quick")
    reader = Reader(quick)
    async with raw(port, slow) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await read(made, b"\n\n")
        loop = asyncio.get_running_loop()
        began = loop.time()
        seq = max([await note(port, "x" * 50) for _ in range(600)])
        assert loop.time() - began < SEND_TIMEOUT
        await until(lambda: reader.views[-1].record.seq == seq, 1)
        assert len(reader.views) > 500
        text = await read(made, b"id: %d\n" % seq)
        ids = [int(part.split(b"\n")[0]) for part in text.split(b"id: ")[1:]]
        assert ids == sorted(set(ids))
        assert len(ids) < 400
    port.at.served.stopping.set()
    await reader.ended()


@port_test()
async def test_a_reader_that_stopped_reading_is_left(port: Port, client: Api) -> None:
    async with raw(port, await client.open("slow")) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(400):
            await note(port)
        assert len(port.at.streams.listeners) == 1
        await asyncio.sleep(SEND_TIMEOUT + 2)
        assert len(port.at.streams.listeners) == 0
        await note(port)


# --- how it ends ------------------------------------------------------------------------------


@port_test()
async def test_a_reader_that_goes_leaves_nothing(port: Port, client: Api) -> None:
    screen = await client.open("dealer")
    for _ in range(3 * MAX_STREAMS_OF_SCREEN):
        async with raw(port, screen) as made:
            await read(made, b"\n\n")
            assert len(port.at.streams.listeners) == 1
        await until(lambda: len(port.at.streams.listeners) == 0, 1)


@port_test()
async def test_a_screen_that_closes_ends_its_stream(port: Port, client: Api) -> None:
    screen = await client.open("dealer")
    reader = Reader(screen, timeout=5)
    await until(lambda: len(reader.views) == 1)
    await screen.close()
    assert isinstance(await reader.ended(), NoScreen)


@port_test()
async def test_the_table_stops(port: Port, client: Api) -> None:
    """At once, whoever reads, and also whoever does not."""
    readers = [Reader(await client.open("dealer")) for _ in range(3)]
    await until(lambda: all(reader.views for reader in readers))
    port.at.served.stopping.set()
    assert await port.end() < 1
    for reader in readers:
        assert isinstance(await reader.ended(), Unreachable)
    assert len(port.at.streams.listeners) == 0


@port_test()
async def test_how_many_streams_there_may_be(
    port: Port, client: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await client.open("first"), await client.open("second")
    readers = [Reader(first) for _ in range(MAX_STREAMS_OF_SCREEN)]
    await until(lambda: all(reader.views for reader in readers))
    assert await refused(anext(first.stream(timeout=0))) == (429, "streams_full")
    await anext(second.stream(timeout=0))
    port.at.streams.listeners.limit = MAX_STREAMS_OF_SCREEN
    assert await refused(anext(second.stream(timeout=0))) == (429, "streams_full")
    port.at.served.stopping.set()
    for reader in readers:
        await reader.ended()


# --- a client that goes on --------------------------------------------------------------------


@port_test()
async def test_a_stream_that_breaks_is_begun_again(port: Port, client: Api) -> None:
    reader = Reader(await client.open("dealer"), timeout=10)
    await until(lambda: len(reader.views) > 0)
    for _ in range(3):
        port.cut()
        await caught_up(reader, await note(port))
    await port.end()
    await asyncio.sleep(3)
    await port.begin()
    await caught_up(reader, await note(port))
    assert not reader.task.done()
    port.at.served.stopping.set()
    assert isinstance(await reader.ended(), Unreachable)


@port_test()
async def test_a_client_gives_up(port: Port, client: Api) -> None:
    loop = asyncio.get_running_loop()
    screen = await client.open("dealer")
    reader = Reader(screen, timeout=8)
    await until(lambda: len(reader.views) > 0)
    port.at.served.stopping.set()
    await port.end()
    at = loop.time()
    assert isinstance(await reader.ended(), Unreachable)
    assert 4 < loop.time() - at < 9
    with pytest.raises(Unreachable, match=r"control\.sock"):
        await screen.table()
