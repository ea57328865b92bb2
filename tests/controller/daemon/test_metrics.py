"""Figures of a table: they count what happens, and say nothing about cards, seats or people."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from controller.daemon.metrics import Metrics, TimedWriter, metrics_app
from controller.procedure.model.row import Decision
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity
from drivers.devices import LinkState
from firmware_protocol.device import Plug
from tests.support.asynchronous import asynchronous, simulated
from tests.support.daemon.rig import exposition
from tests.support.drivers.simulated import until
from tests.support.table.simulated.serving import DEALER, SimulatedBook, serving

LABELS = {"table", "device", "class", "state", "kind", "id", "le"}


def scraped(metrics: Metrics, host: str = "localhost") -> httpx.Response:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(metrics_app(metrics.registry))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.get("/metrics")

    return asyncio.run(main())


def samples(text: str) -> Iterator[Any]:
    for family in text_string_to_metric_families(text):
        yield from family.samples


def value(text: str, name: str, **labels: str) -> float:
    (found,) = (one.value for one in samples(text) if one.name == name and one.labels == labels)
    return float(found)


@simulated
async def test_rounds_are_counted_and_nobody_is_named(tmp_path: Path) -> None:
    metrics = Metrics("bj-1")
    texts: list[str] = []

    async with serving(tmp_path) as one:
        metrics.follow(one.table)
        await one.to(lambda s: s.round == 2)
        await one.to_end()
        await one.table.act({"type": "RevealHole"}, DEALER)
        await one.table.act({"type": "FloorCalled"}, DEALER)
        texts.append(exposition(metrics))
    (text,) = texts
    assert (value(text, "holecard_rounds_total"), value(text, "holecard_round")) == (2, 2)
    assert value(text, "holecard_decisions_total") > 40
    assert value(text, "holecard_table_info", table="bj-1") == 1
    assert value(text, "holecard_stopped") == 0
    assert value(text, "holecard_record_seq") > 100
    refusals = [one for one in samples(text) if one.name == "holecard_refusals_total"]
    assert sum(one.value for one in refusals) == 1
    assert value(text, "holecard_irregularities_total", kind="floor_called") == 1
    for one in samples(text):
        if one.name.startswith("holecard_"):
            assert set(one.labels) <= LABELS, one
    words = {word for one in samples(text) for word in one.labels.values()}
    assert not {"Ann", "Flo", "Bob", "seat"} & words
    assert not [word for word in words if re.fullmatch("(?i)[2-9tjqka][cdhs]", word)]


@simulated
async def test_links_by_device_and_state(tmp_path: Path) -> None:
    metrics = Metrics("bj-1")
    texts: list[str] = []

    async with serving(tmp_path) as one:
        metrics.follow(one.table)
        texts.append(exposition(metrics))
        one.room.shoe.request(Plug(connected=False))
        shoe = one.table.supervisor("SH-1")
        await until(lambda: shoe.state is not LinkState.READY)
        texts.append(exposition(metrics))
    here, away = texts
    labels = {"device": "SH-1", "class": "shoe"}
    assert value(here, "holecard_link_state", state="ready", **labels) == 1
    assert value(away, "holecard_link_state", state="ready", **labels) == 0
    states = [one for one in samples(away) if one.name == "holecard_link_state"]
    assert len(states) == 3 * len(LinkState)
    assert sum(one.value for one in states) == 3
    assert value(here, "holecard_link_held", **labels) == 0
    for name in ("gaps", "resends"):
        assert value(here, f"holecard_link_{name}_total", **labels) == 0


def test_each_irregularity_is_there_from_the_beginning() -> None:
    text = exposition(Metrics("bj-1"))
    assert {
        one.labels["kind"] for one in samples(text) if one.name == "holecard_irregularities_total"
    } == {kind.value for kind in Irregularity}


@simulated
async def test_a_refusal_can_be_an_irregularity_of_its_own(tmp_path: Path) -> None:
    metrics = Metrics("bj-1")
    texts: list[str] = []

    async with serving(tmp_path) as one:
        metrics.follow(one.table)
        await one.to_step(Step.TURN)
        late = {"type": "WagerPlaced", "seat": 7, "bet": "main", "amount": 1000}
        await one.table.act(late, DEALER)
        texts.append(exposition(metrics))
    assert value(texts[0], "holecard_irregularities_total", kind="late_wager") == 1


@simulated
async def test_a_bet_without_a_main_wager_and_a_double_taken_back_are_irregularities(
    tmp_path: Path,
) -> None:
    metrics = Metrics("bj-1")
    texts: list[str] = []

    async with serving(tmp_path, "mega") as one:
        metrics.follow(one.table)
        await one.to_step(Step.WAGERING)
        alone = {"type": "WagerPlaced", "seat": 7, "bet": "buster", "amount": 500}
        done = await one.table.act(alone, DEALER)
        assert [getattr(each.answer, "id", "") for each in done.answered] == ["without_main"]
        await one.to_step(Step.TURN)
        hand = one.table.shown.state.hands[one.table.shown.state.turn]
        double = {"type": "Double", "seat": hand.seat, "hand": hand.number}
        for act in (double, {"type": "Withdrawn"}):
            done = await one.table.act(act, DEALER)
            assert isinstance(done.answered[0].answer, Decision)
        texts.append(exposition(metrics))
    assert value(texts[0], "holecard_irregularities_total", kind="late_wager") == 1
    assert value(texts[0], "holecard_irregularities_total", kind="cannot_cover") == 1


@asynchronous
async def test_how_long_the_record_takes() -> None:
    took: list[float] = []

    class Inner(SimulatedBook):
        def __init__(self) -> None:
            self.failed = None
            self.closed = 0

        async def append(self, *entries: object) -> tuple[()]:
            await asyncio.sleep(0.02)
            if entries == ("bad",):
                raise ValueError("no entry")
            return ()

        async def close(self) -> None:
            self.closed += 1

    inner = Inner()
    measured = TimedWriter(inner, took.append)

    await measured.append()
    with pytest.raises(ValueError, match="no entry"):
        await measured.append("bad")  # type: ignore[arg-type]
    await measured.close()
    assert measured.failed is None
    assert inner.closed == 1
    assert len(took) == 1
    assert took[0] >= 0.015
    metrics = Metrics("bj-1")
    metrics.appended(took[0])
    metrics.late(0.002)
    text = exposition(metrics)
    assert value(text, "holecard_append_seconds_count") == 1
    assert value(text, "holecard_append_seconds_bucket", le="0.01") == 0
    assert value(text, "holecard_loop_lag_seconds_bucket", le="0.0025") == 1


def test_they_are_read_at_one_place_and_by_programs_of_this_machine() -> None:
    metrics = Metrics("bj-1")
    answer = scraped(metrics)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert "holecard_rounds_total 0.0" in answer.text
    assert scraped(metrics, "127.0.0.1").status_code == 200
    assert scraped(metrics, "attacker.example").status_code == 400

    async def others() -> list[int]:
        transport = httpx.ASGITransport(metrics_app(metrics.registry))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            posted = await client.post("/metrics")
            return [posted.status_code, (await client.get("/")).status_code]

    assert asyncio.run(others()) == [405, 404]
