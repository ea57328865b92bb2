"""The API client: parsing of events and errors, and answers that are not from the API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.table.robots import Api, ApiProblem, Unreachable
from hil.table.robots.api_client import MAX_EVENT_BYTES, PROBLEMS, bearer, problem_of, server_sent
from tests.support.asynchronous import asynchronous


def events_of(*chunks: bytes, max_bytes: int = MAX_EVENT_BYTES) -> list[tuple[bytes, bytes]]:
    async def come() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def main() -> list[tuple[bytes, bytes]]:
        return [event async for event in server_sent(come(), max_bytes)]

    return asyncio.run(main())


lines = st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"").replace(b"\r", b""))


@given(st.lists(lines, max_size=4), st.data())
def test_events_come_whole_however_they_are_cut(said: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(b": beat\n\nevent: table\nid: 7\ndata: %s\n\n" % one for one in said)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert events_of(*pieces) == [(b"table", one) for one in said]


def test_an_event_that_is_cut_off_is_none() -> None:
    assert events_of(b"event: table\ndata: {}\n") == []
    assert events_of(b"data: {}\n\n") == [(b"message", b"{}")]
    assert events_of(b": only a comment\n\n", b"event: table\n\n") == []


def test_an_event_without_an_end() -> None:
    with pytest.raises(Unreachable, match="more than 100 bytes"):
        events_of(b"data: " + b"x" * 100, max_bytes=100)


@pytest.mark.parametrize("status", [*PROBLEMS, 405, 500])
def test_each_error_status_has_its_class(status: int) -> None:
    body = b'{"error":{"code":"wait","what":"too many wrong PINs","allowed":"later","wait":30}}'
    problem = problem_of(status, body)
    assert type(problem) is PROBLEMS.get(status, ApiProblem)
    assert (problem.status, problem.code, problem.wait) == (status, "wait", 30)
    assert str(problem) == f"{status} wait: too many wrong PINs; allowed: later"


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"error":{}}', b"\xff\xfe"])
def test_an_error_that_is_none_of_the_api(body: bytes) -> None:
    problem = problem_of(502, body)
    assert problem.code == "no_api"
    assert "no answer of the control API" in str(problem)


@asynchronous
async def test_nobody_answers(tmp_path: Path) -> None:
    for where in (tmp_path / "nowhere.sock", "http://127.0.0.1:1"):
        async with Api(where, wait=5) as api:
            with pytest.raises(Unreachable) as caught:
                await api.health()
            assert str(where) in str(caught.value)


@asynchronous
async def test_an_answer_that_does_not_come() -> None:
    def late(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("", request=request)

    async with Api("http://localhost", transport=httpx.MockTransport(late)) as api:
        with pytest.raises(Unreachable, match="ReadTimeout"):
            await api.health()


def test_no_token_is_no_header() -> None:
    assert bearer("") == {}
    assert bearer("abc") == {"Authorization": "Bearer abc"}
