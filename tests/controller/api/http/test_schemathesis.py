"""The API as its own document has it, held against a table that is served: whatever the document
lets somebody send is answered as it says, over HTTP and by none of our own readers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.openapi import from_url
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from controller.api.http.routes import PREFIX, ROUTES
from controller.config import load_table
from tests.support.daemon.rig import free_port, furnished, served

EXAMPLES: Final = 12
"""Of each call: all of them together take some seconds."""
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ASKED: Final = [call for call in ROUTES if not call.streams]


@contextmanager
def table(folder: Path) -> Iterator[str]:
    """Where one is served, in a loop of its own."""
    port = free_port()
    file = furnished(folder, f"port = {port}")
    ready, over = threading.Event(), threading.Event()

    async def main() -> None:
        async with served(load_table(file)) as here:
            ready.set()
            await asyncio.to_thread(over.wait)
            assert await here.end() == 0

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert ready.wait(60)
        yield f"http://127.0.0.1:{port}"
    finally:
        over.set()
        thread.join(60)


def _token(at: str) -> str:
    opened = httpx.post(f"{at}{PREFIX}/screens", json={"name": "fuzz"}, timeout=30)
    return str(opened.json()["token"])


def test_it_answers_as_its_document_says(tmp_path: Path) -> None:
    load_all_checks()
    with table(tmp_path) as at:
        schema = from_url(f"{at}{PREFIX}/openapi.json")
        for call in ASKED:
            operation = schema[PREFIX + call.path][call.method]
            statuses = _asked(operation.as_strategy(), _token(at))
            assert statuses, call.name
            assert not statuses & {405, 500}, call.name


def _asked(cases: Any, token: str) -> set[int]:
    """With what so many requests were answered."""
    statuses: set[int] = set()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def asked(case: schemathesis.Case[Any]) -> None:
        answer = case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=CHECKS)
        statuses.add(answer.status_code)

    asked()
    return statuses
