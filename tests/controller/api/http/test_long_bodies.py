"""Bodies that are too long, over a real connection: who sends one reads why it is not taken."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.api.contract.errors import Problem, problem_handler
from controller.api.http import body as bodies
from controller.daemon import Server

MIB = 1024 * 1024
HEAD = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
PATIENCE = 60.0


async def _read(request: Request) -> Response:
    await bodies.read_body(request)
    return Response("taken")


@asynccontextmanager
async def served() -> AsyncIterator[tuple[str, int]]:
    app = Starlette(
        routes=[Route("/", _read, methods=["POST"])], exception_handlers={Problem: problem_handler}
    )
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        server = Server(app, [listening])
        running = asyncio.create_task(server.run_until_stopped())
        await server.answering.wait()
        try:
            yield listening.getsockname()
        finally:
            server.stop()
            await running


def sent(place: tuple[str, int], *parts: bytes) -> bytes:
    """All of it, and only then what is answered, to its end."""
    with socket.create_connection(place, timeout=PATIENCE) as line:
        for part in parts:
            line.sendall(part)
        answer = b""
        while data := line.recv(65536):
            answer += data
        return answer


def asked(*parts: bytes) -> bytes:
    async def main() -> bytes:
        async with served() as place:
            return await asyncio.to_thread(sent, place, *parts)

    return asyncio.run(main())


@pytest.mark.parametrize("size", [bodies.MAX_BYTES + 1, MIB, 5 * MIB, 15 * MIB])
def test_who_sends_too_much_reads_why_it_is_not_taken(size: int) -> None:
    answer = asked(HEAD + b"Content-Length: %d\r\n\r\n" % size, bytes(size))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()


def test_so_does_who_says_no_length() -> None:
    chunk = b"%x\r\n%s\r\n" % (MIB, bytes(MIB))
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    assert asked(head, *[chunk] * 5, b"0\r\n\r\n").startswith(b"HTTP/1.1 413 ")


def test_who_asks_first_is_told_not_to_send() -> None:
    head = HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % MIB
    assert asked(head).startswith(b"HTTP/1.1 413 ")


def test_who_never_sends_it_is_answered_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LINGER", 0.2)
    assert asked(HEAD + b"Content-Length: %d\r\n\r\n" % MIB, b"x").startswith(b"HTTP/1.1 413 ")


def test_who_never_ends_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_DROPPED_BYTES", MIB)
    monkeypatch.setattr(bodies, "LINGER", PATIENCE)

    def endless(place: tuple[str, int]) -> bool:
        with socket.create_connection(place, timeout=PATIENCE) as line, suppress(OSError):
            line.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % 10**15)
            for _ in range(1000):
                line.sendall(bytes(MIB))
            return False
        return True

    async def main() -> None:
        async with served() as place:
            assert await asyncio.to_thread(endless, place)

    asyncio.run(main())


def test_one_that_is_there_whole_at_once_is_told_too() -> None:
    """Nothing comes after it: what is dropped is what has come already."""
    body = bytes(bodies.MAX_BYTES + 1)
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    assert asked(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)).startswith(b"HTTP/1.1 413 ")
