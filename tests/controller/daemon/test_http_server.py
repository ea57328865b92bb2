"""Connections that nothing comes over, or whose other end reads nothing, are let go of."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.types import Receive, Scope, Send

from controller.daemon import Server, http_server
from controller.daemon.http_server import MAX_CONNECTIONS, SPARE_CONNECTIONS
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import until

ASKS = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
WORDS = b"x" * 500_000


async def answers(scope: Scope, receive: Receive, send: Send) -> None:
    """So much that what is not read has to wait here."""
    length = [(b"content-length", b"%d" % len(WORDS))]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": WORDS})


@asynccontextmanager
async def served(most: int = MAX_CONNECTIONS) -> AsyncIterator[tuple[Server, tuple[str, int]]]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        server = Server(answers, [listening], most=most)
        running = asyncio.create_task(server.run_until_stopped())
        await server.answering.wait()
        try:
            yield server, listening.getsockname()
        finally:
            server.stop()
            await running


async def gone(server: Server, place: tuple[str, int], said: bytes) -> None:
    """Whoever says this and no more is let go of."""
    with socket.create_connection(place) as line:
        await until(lambda: len(server.server_state.connections) == 1)
        line.sendall(said)
        await until(lambda: not server.server_state.connections)
        await until(lambda: not server.server_state.tasks)


@pytest.mark.parametrize("said", [b"", ASKS[:10]], ids=["nothing", "half a request"])
@asynchronous
async def test_who_asks_nothing(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "IDLE_TIMEOUT", 0.3)
    async with served() as (server, place):
        await gone(server, place, said)


@asynchronous
async def test_half_a_request_after_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first byte does not give it for ever."""
    monkeypatch.setattr(http_server, "IDLE_TIMEOUT", 0.3)
    async with served() as (server, place):
        reader, writer = await asyncio.open_connection(*place)
        writer.write(ASKS)
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(WORDS))
        writer.write(ASKS[:10])
        await until(lambda: not server.server_state.connections)
        writer.close()


@asynchronous
async def test_who_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SEND_TIMEOUT", 0.3)
    async with served() as (server, place):
        await gone(server, place, ASKS * 40)


@asynchronous
async def test_who_reads_after_all_keeps_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SEND_TIMEOUT", 0.5)
    async with served() as (server, place):
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(place)
        reader, writer = await asyncio.open_connection(sock=line, limit=4096)
        for _ in range(10):
            writer.write(ASKS)
        for _ in range(10):
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(len(WORDS)) == WORDS
        await asyncio.sleep(1)
        assert len(server.server_state.connections) == 1
        writer.close()


@asynchronous
async def test_there_are_never_so_many_that_files_cannot_be_opened() -> None:
    """Who comes beyond all measure is let go of at once, without a word."""
    async with served(most=3) as (server, place):
        lines = [socket.create_connection(place) for _ in range(3 + SPARE_CONNECTIONS + 10)]
        try:
            count = len(server.server_state.connections)
            await until(lambda: len(server.server_state.connections) == 3 + SPARE_CONNECTIONS)
            assert count <= 3 + SPARE_CONNECTIONS
            for one in lines:
                one.setblocking(False)
            await until(lambda: sum(_over(one) for one in lines) == 10)
        finally:
            for one in lines:
                one.close()
        await until(lambda: not server.server_state.connections)


def _over(line: socket.socket) -> bool:
    try:
        return line.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
