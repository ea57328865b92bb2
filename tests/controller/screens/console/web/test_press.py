"""How many modules a press at the console passes through, from HTTP to the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller.procedure.model.state import Step
from tests.support.api.at_api import run
from tests.support.screens.at_pages import at_pages
from tests.support.tracing import Trace, traced

DEVICES = ("drivers/", "firmware_protocol/")
"""Devices are told of the new state by tasks of their own."""


WAGER = {"seat": 1, "bet": "main", "amount": 1000}


@pytest.mark.parametrize(
    ("kind", "fields", "step", "limit"),
    [
        ("WagerPlaced", WAGER, Step.WAGERING, 45),
        ("ShuffleCalled", {}, Step.WAGERING, 45),
        ("Paid", {}, Step.PAYING, 49),  # the record is signed as well
    ],
)
def test_a_press(tmp_path: Path, kind: str, fields: dict[str, Any], step: Step, limit: int) -> None:
    traces: list[Trace] = []

    async def main() -> None:
        async with at_pages(tmp_path) as pages:
            await pages.at.to_step(await pages.at.dealing(), step)
            tab = await pages.dealing()
            with traced() as trace:
                answer = await tab.act(kind, **fields)
            assert answer.json()["done"], answer.text
            traces.append(trace.without(DEVICES))

    run(main())
    (found,) = traces
    assert "controller/table/loop/loop.py" in found.files
    assert len(found.files) <= limit, found.files
