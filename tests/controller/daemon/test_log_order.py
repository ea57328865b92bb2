"""Whoever looks at a table is shown what happened before lines are written of it."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from controller.api.http import sse
from controller.api.service import CachedView
from controller.config import load_table
from controller.daemon import logging as lines
from controller.table.loop import RequestResult
from hil.table.robots import Api
from hil.table.robots.api_client import Pin
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import furnished, served
from tests.support.table.simulated.house import PINS


@asynchronous
async def test_readers_are_served_before_lines_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = furnished(tmp_path)
    order: list[str] = []
    event, told = sse.event, lines.log_result

    def shown(seen: CachedView) -> bytes:
        order.append(seen.view.step.value)
        return event(seen)

    def line(done: RequestResult) -> None:
        order.extend(f"line of {type(one.event).__name__}" for one in done.answered)
        told(done)

    monkeypatch.setattr(sse, "event", shown)
    monkeypatch.setattr("controller.daemon.serve.log_result", line)

    async with served(load_table(file)) as here, Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        async with aclosing(screen.stream()) as views:
            await anext(views)
            order.clear()
            first, second = Pin("F-2", PINS["F-2"]), Pin("D-18", PINS["D-18"])
            done = await screen.floor("TableOpened", first, second, bank=100_000)
            assert done.answers[0].taken
        assert await here.end() == 0
    assert order.index(done_step(order)) < order.index("line of TableOpened")


def done_step(order: list[str]) -> str:
    """The step that the act has led to."""
    return next(one for one in order if one != "closed" and not one.startswith("line"))
