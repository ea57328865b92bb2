"""Bodies of requests: whatever comes, it is one object that every reader takes for the same, or it
is turned away in words, also over a real connection."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.api.contract.errors import Problem, problem_handler
from controller.api.contract.messages import OpenScreen
from controller.api.http import BODY_TIMEOUT, Server, read_as, read_object
from controller.api.http import body as bodies
from controller.api.http.body import MAX_BYTES, MAX_DEPTH
from tests.support.api.at_api import AtApi, api_test, asked
from tests.support.asynchronous import asynchronous

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | texts
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
objects = st.dictionaries(texts, values, max_size=4)


def depth(value: Any) -> int:
    match value:
        case dict():
            return 1 + max(map(depth, value.values()), default=0)
        case list():
            return 1 + max(map(depth, value), default=0)
        case _:
            return 0


@given(objects)
def test_objects_are_read_as_they_were_written(value: dict[str, Any]) -> None:
    for ascii_only in (True, False):
        data = json.dumps(value, ensure_ascii=ascii_only).encode()
        if depth(value) <= MAX_DEPTH:
            assert read_object(data) == value
        else:
            with pytest.raises(Problem):
                read_object(data)


@given(st.binary(max_size=200))
@example(b"")
@example(b"\xff\xfe")
@example(b'{"a":"\\ud800"}')
@example(b'{"a":"\xed\xa0\x80"}')
@example(b'{"a":NaN}')
@example(b'{"a":' + b"9" * 5000 + b"}")
@example(b'{"a":1}{"b":2}')
@example(b'\xef\xbb\xbf{"a":1}')
@example(b'"' + b"[" * 100)
def test_any_bytes_are_read_or_turned_away(data: bytes) -> None:
    found = tried(data)
    if isinstance(found, Problem):
        assert found.status == 400
        assert found.body.what.isprintable()
    else:
        assert isinstance(found, dict)
        assert json.loads(data) == found


def tried(data: bytes) -> dict[str, Any] | Problem:
    try:
        return read_object(data)
    except Problem as problem:
        return problem


@given(objects.filter(bool), st.data())
def test_what_is_said_twice_is_turned_away(value: dict[str, Any], data: st.DataObject) -> None:
    """A reader that takes the last one would see what one that takes the first does not."""
    name = data.draw(st.sampled_from(sorted(value)))
    written = json.dumps(value)[:-1] + f", {json.dumps(name)}: 0}}"
    deep = f'{{"x": [{written}]}}' if depth(value) < MAX_DEPTH - 2 else written
    for text in (written, deep):
        with pytest.raises(Problem, match="no_json"):
            read_object(text.encode())


@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_deep_nesting_costs_nothing(pair: str) -> None:
    """As much of it as fits, which is far beyond what a reader can go into."""
    opening = pair[0] if pair == "[]" else '{"a":'
    deep = (opening * (MAX_BYTES // len(opening))).encode()
    with pytest.raises(Problem) as caught:
        read_object(deep)
    assert f"nested deeper than {MAX_DEPTH}" in caught.value.body.what
    assert read_object(json.dumps({"text": opening * 100 + '\\"' + opening}).encode())


def test_fields_that_are_not_there() -> None:
    with pytest.raises(Problem) as caught:
        read_as({"name": "dealer", "colour": "red"}, OpenScreen)
    body = caught.value.body
    assert (body.code, body.what, body.allowed) == (
        "unknown_field",
        "there is no field 'colour'",
        "name",
    )


# --- through the API --------------------------------------------------------------------------

SCREEN = b'{"name": "dealer"}'


async def sent(at: AtApi, content: Any, **headers: str) -> tuple[int, str]:
    made = {"content-type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    response = await asked(at, "POST", "/api/v1/screens", content=content, headers=made)
    body = response.json()
    return response.status_code, body["error"]["code"] if "error" in body else ""


@api_test(adopted=False)
async def test_what_is_taken_for_json(at: AtApi) -> None:
    for kind in (
        "application/json",
        "Application/JSON; charset=utf-8",
        'application/json;charset="UTF-8"',
    ):
        assert (await sent(at, SCREEN, content_type=kind))[0] == 201, kind
    for kind in (
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=utf-16",
        "application/json-seq",
    ):
        assert await sent(at, SCREEN, content_type=kind) == (415, "no_json"), kind
    assert await sent(at, SCREEN, content_encoding="gzip") == (415, "no_json")
    assert await sent(at, b"[1]") == (400, "no_json")
    assert await sent(at, b"") == (400, "bad_field")  # an empty one names nothing


@api_test(adopted=False)
async def test_how_long_a_body_may_be(at: AtApi) -> None:
    async def pieces(size: int, of: int) -> AsyncIterator[bytes]:
        for _ in range(size // of):
            yield b" " * of

    fits = SCREEN + b" " * (MAX_BYTES - len(SCREEN))
    assert await sent(at, fits) == (201, "")
    assert await sent(at, fits + b" ") == (413, "too_long")
    assert await sent(at, SCREEN, content_length=str(MAX_BYTES + 1)) == (413, "too_long")
    assert await sent(at, SCREEN, content_length="9" * 40) == (413, "too_long")
    assert await sent(at, SCREEN, content_length="-1") == (413, "too_long")
    # One that does not say how long it is.
    assert await sent(at, pieces(MAX_BYTES * 100, 1000)) == (413, "too_long")


@api_test(adopted=False)
async def test_a_body_that_does_not_come(at: AtApi) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b'{"name"'
        await asyncio.sleep(BODY_TIMEOUT + 1)
        yield b': "dealer"}'

    assert await sent(at, slow()) == (408, "too_slow")
    assert len(at.api.screens) == 0


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


def sent_raw(place: tuple[str, int], *parts: bytes) -> bytes:
    """All of it, and only then what is answered, to its end."""
    with socket.create_connection(place, timeout=PATIENCE) as line:
        for part in parts:
            line.sendall(part)
        answer = b""
        while data := line.recv(65536):
            answer += data
        return answer


def answered(*parts: bytes) -> bytes:
    async def main() -> bytes:
        async with served() as place:
            return await asyncio.to_thread(sent_raw, place, *parts)

    return asyncio.run(main())


@pytest.mark.parametrize("size", [bodies.MAX_BYTES + 1, MIB, 5 * MIB, 15 * MIB])
def test_who_sends_too_much_reads_why_it_is_not_taken(size: int) -> None:
    answer = answered(HEAD + b"Content-Length: %d\r\n\r\n" % size, bytes(size))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()


def test_so_does_who_says_no_length() -> None:
    chunk = b"%x\r\n%s\r\n" % (MIB, bytes(MIB))
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    assert answered(head, *[chunk] * 5, b"0\r\n\r\n").startswith(b"HTTP/1.1 413 ")


def test_who_asks_first_is_told_not_to_send() -> None:
    head = HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % MIB
    assert answered(head).startswith(b"HTTP/1.1 413 ")


def test_who_never_sends_it_is_answered_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LINGER", 0.2)
    assert answered(HEAD + b"Content-Length: %d\r\n\r\n" % MIB, b"x").startswith(b"HTTP/1.1 413 ")


@asynchronous
async def test_who_never_ends_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_DROPPED_BYTES", MIB)
    monkeypatch.setattr(bodies, "LINGER", PATIENCE)

    def endless(place: tuple[str, int]) -> bool:
        with socket.create_connection(place, timeout=PATIENCE) as line, suppress(OSError):
            line.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % 10**15)
            for _ in range(1000):
                line.sendall(bytes(MIB))
            return False
        return True

    async with served() as place:
        assert await asyncio.to_thread(endless, place)


def test_one_that_is_there_whole_at_once_is_told_too() -> None:
    """Nothing comes after it: what is dropped is what has come already."""
    body = bytes(bodies.MAX_BYTES + 1)
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    assert answered(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)).startswith(
        b"HTTP/1.1 413 "
    )
