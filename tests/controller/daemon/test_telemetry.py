"""Figures of a table count what happens, and say nothing about cards, seats or people. Lines for
engineers say whose they are and where the table stands, and none has a card."""

import asyncio
import json
import logging
import re
from contextlib import aclosing
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families

from controller.api.http import sse
from controller.api.service import CachedView
from controller.config import load_table
from controller.daemon import logging as lines
from controller.daemon.metrics import Metrics, TimedWriter, metrics_app
from controller.procedure.model.row import Decision
from controller.procedure.model.state import Step
from controller.rules.cards import DECK
from controller.rules.irregularities import Irregularity
from controller.table.loop import RequestResult
from drivers.devices import LinkState
from drivers.events import StateChanged
from firmware_protocol.device import Plug
from hil.table.robots import Api, wire_name
from hil.table.robots.api_client import Pin
from tests.support.asynchronous import asynchronous, simulated, simulated_in
from tests.support.daemon.rig import exposition, furnished, served
from tests.support.drivers.simulated import until
from tests.support.table.simulated.house import PINS
from tests.support.table.simulated.serving import (
    DEALER,
    ROOMLESS,
    Served,
    SimulatedBook,
    serving,
)

LABELS = {"table", "device", "class", "state", "kind", "id", "le"}


def scraped(metrics: Metrics, host: str = "localhost") -> httpx.Response:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(metrics_app(metrics.registry))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.get("/metrics")

    return asyncio.run(main())


def samples(text: str, name: str = "") -> list[Any]:
    every = [one for family in text_string_to_metric_families(text) for one in family.samples]
    return [one for one in every if not name or one.name == name]


def value(text: str, name: str, **labels: str) -> float:
    (found,) = (one.value for one in samples(text, name) if one.labels == labels)
    return float(found)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("bj-1")


@simulated_in(serving)
async def test_rounds_are_counted_and_nobody_is_named(one: Served, metrics: Metrics) -> None:
    metrics.follow(one.table)
    await one.to(lambda s: s.round == 2)
    await one.to_end()
    await one.table.act({"type": "RevealHole"}, DEALER)
    await one.table.act({"type": "FloorCalled"}, DEALER)
    text = exposition(metrics)
    assert (value(text, "holecard_rounds_total"), value(text, "holecard_round")) == (2, 2)
    assert value(text, "holecard_decisions_total") > 40
    assert value(text, "holecard_table_info", table="bj-1") == 1
    assert value(text, "holecard_stopped") == 0
    assert value(text, "holecard_record_seq") > 100
    assert sum(each.value for each in samples(text, "holecard_refusals_total")) == 1
    assert value(text, "holecard_irregularities_total", kind="floor_called") == 1
    ours = [each for each in samples(text) if each.name.startswith("holecard_")]
    assert {label for each in ours for label in each.labels} <= LABELS
    words = {word for each in samples(text) for word in each.labels.values()}
    assert not {"Ann", "Flo", "Bob", "seat"} & words
    assert not [word for word in words if re.fullmatch("(?i)[2-9tjqka][cdhs]", word)]


@simulated_in(serving)
async def test_links_by_device_and_state(one: Served, metrics: Metrics) -> None:
    metrics.follow(one.table)
    here = exposition(metrics)
    await one.asked(one.room.shoe, Plug(connected=False))
    await until(lambda: one.table.supervisor("SH-1").state is not LinkState.READY)
    away = exposition(metrics)
    labels = {"device": "SH-1", "class": "shoe"}
    assert value(here, "holecard_link_state", state="ready", **labels) == 1
    assert value(away, "holecard_link_state", state="ready", **labels) == 0
    states = [each.value for each in samples(away, "holecard_link_state")]
    assert (len(states), sum(states)) == (3 * len(LinkState), 3)
    for name in ("held", "gaps_total", "resends_total"):
        assert value(here, f"holecard_link_{name}", **labels) == 0, name


@simulated_in(serving)
async def test_entries_that_were_not_recorded_are_counted(one: Served, metrics: Metrics) -> None:
    metrics.follow(one.table)
    assert value(exposition(metrics), "holecard_unrecorded_total") == 0
    one.room.book.refusing = ROOMLESS
    await one.asked(one.room.shoe, Plug(connected=False))
    await until(lambda: one.table.supervisor("SH-1").state is not LinkState.READY)
    await until(lambda: one.table.table.stopped is not None)
    one.room.book.refusing = None
    await until(lambda: bool(one.data("link", "not_recorded")))
    dropped = one.data("link", "not_recorded")[0]
    assert "SH-1" in dropped["devices"]
    assert value(exposition(metrics), "holecard_unrecorded_total") == dropped["count"] > 0


def test_each_irregularity_is_there_from_the_beginning() -> None:
    found = samples(exposition(Metrics("bj-1")), "holecard_irregularities_total")
    assert {one.labels["kind"] for one in found} == {kind.value for kind in Irregularity}


@simulated_in(serving)
async def test_a_refusal_can_be_an_irregularity_of_its_own(one: Served, metrics: Metrics) -> None:
    metrics.follow(one.table)
    await one.to_step(Step.TURN)
    await one.table.act({"type": "WagerPlaced", "seat": 7, "bet": "main", "amount": 1000}, DEALER)
    assert value(exposition(metrics), "holecard_irregularities_total", kind="late_wager") == 1


@simulated_in(serving, "mega")
async def test_a_bet_without_a_main_wager_and_a_double_taken_back_are_irregularities(
    one: Served, metrics: Metrics
) -> None:
    metrics.follow(one.table)
    await one.to_step(Step.WAGERING)
    alone = {"type": "WagerPlaced", "seat": 7, "bet": "buster", "amount": 500}
    done = await one.table.act(alone, DEALER)
    assert [getattr(each.answer, "id", "") for each in done.answered] == ["without_main"]
    await one.to_step(Step.TURN)
    hand = one.state.hands[one.state.turn]
    for act in ({"type": "Double", "seat": hand.seat, "hand": hand.number}, {"type": "Withdrawn"}):
        done = await one.table.act(act, DEALER)
        assert isinstance(done.answered[0].answer, Decision)
    for kind in ("late_wager", "cannot_cover"):
        assert value(exposition(metrics), "holecard_irregularities_total", kind=kind) == 1, kind


@asynchronous
async def test_how_long_the_record_takes(metrics: Metrics) -> None:
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
    assert (measured.failed, inner.closed, len(took)) == (None, 1, 1)
    assert took[0] >= 0.015
    metrics.appended(took[0])
    metrics.late(0.002)
    text = exposition(metrics)
    assert value(text, "holecard_append_seconds_count") == 1
    assert value(text, "holecard_append_seconds_bucket", le="0.01") == 0
    assert value(text, "holecard_loop_lag_seconds_bucket", le="0.0025") == 1


def test_they_are_read_at_one_place_and_by_programs_of_this_machine(metrics: Metrics) -> None:
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


# --- lines for engineers --------------------------------------------------------------------------


CARD = re.compile(r"(?<![0-9A-Za-z])(?:[2-9TJQKA]|10)[CDHS](?![0-9A-Za-z])", re.IGNORECASE)
WORDS = re.compile(r"hole|face|rank|suit|salt|confidence|alternative", re.IGNORECASE)


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def cards_in(line: dict[str, Any]) -> list[str]:
    """Whatever looks like a card: a value that names one, a key that is about one."""
    found = [text for value in line.values() for text in CARD.findall(str(value))]
    keys = [key for key in line if "card" in key or WORDS.search(key)]
    return [*found, *keys]


def test_a_card_would_be_found() -> None:
    for found in ({"why": "the card is Ah"}, {"cards": [7]}, {"held": ["TC"]}):
        assert cards_in({"event": "taken", **found}), found
    assert not cards_in({"event": "taken", "why": "the device is absent", "chain": "bbf5ac"})


@pytest.mark.parametrize("game", ["classic", "mega", "sf21x", "maxtime"])
@simulated
async def test_no_line_of_a_random_round_has_a_card(
    game: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = Random().randrange(1 << 32)
    print("seed", seed)
    top = Random(seed).sample(DECK, 30)
    lines.to_stderr(logging.DEBUG, terminal=False)
    secrets: list[str] = []

    async with serving(tmp_path, game, *map(wire_name, top)) as one:
        one.table.add_result_listener(lines.log_result)
        with lines.log_context("t-1", one.table):
            await one.to(lambda s: bool(s.hole) or s.step is Step.CLEARING)
            if one.state.hole:
                read = one.table.context.vault.read(one.state.hole).open()
                secrets.extend((read.encode().hex(), read.salt.hex()))
            await one.to_end()
    found = said(capsys)
    assert len(found) > 50
    assert any(line["event"] == "taken" for line in found)
    for line in found:
        assert cards_in(line) == [], line
        assert not any(secret in json.dumps(line) for secret in secrets), line


@simulated
async def test_each_says_whose_it_is_and_where_the_table_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines.to_stderr(terminal=False)
    async with serving(tmp_path) as one:
        with lines.log_context("bj-7", one.table):
            await one.to(lambda s: s.round == 1)
            structlog.get_logger().info("here")
        structlog.get_logger().info("elsewhere")
    found = said(capsys)
    here = next(line for line in found if line["event"] == "here")
    assert (here["table"], here["round"], here["level"]) == ("bj-7", 1, "info")
    assert here["audit_seq"] > 50
    elsewhere = next(line for line in found if line["event"] == "elsewhere")
    assert not {"table", "round", "audit_seq"} & elsewhere.keys()
    assert {"SH-1", "SF-1", "ST-1"} <= {line.get("device") for line in found}


def test_what_happens_around_a_device_is_told_in_plain_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines.to_stderr(terminal=False)
    happening = StateChanged("SH-1", 5, LinkState.READY, LinkState.LOST, "it was unplugged")
    structlog.get_logger().info("device", happening=happening)
    (line,) = said(capsys)
    del line["timestamp"]
    assert line == {
        "event": "StateChanged",
        "device": "SH-1",
        "former": "ready",
        "state": "lost",
        "why": "it was unplugged",
        "level": "info",
    }


def test_a_fault_shows_where_it_was_and_no_values(capsys: pytest.CaptureFixture[str]) -> None:
    lines.to_stderr(terminal=False)
    secret = "Ah" * 2
    try:
        raise ValueError("a fault")
    except ValueError:
        structlog.get_logger().error("failed", exc_info=True)
    (line,) = said(capsys)
    assert "ValueError: a fault" in line["exception"]
    assert secret not in line["exception"]


def test_libraries_speak_as_we_do_from_warnings_up(capsys: pytest.CaptureFixture[str]) -> None:
    lines.to_stderr(terminal=False)
    lines.to_stderr(terminal=False)  # said twice, heard once
    log = logging.getLogger("uvicorn.error")
    try:
        log.info("not heard")
        log.warning("a %s request", "broken")
    finally:
        root = logging.getLogger()
        for handler in [one for one in root.handlers if isinstance(one, lines.LibraryHandler)]:
            root.removeHandler(handler)
    (line,) = said(capsys)
    assert (line["event"], line["logger"], line["level"]) == (
        "a broken request",
        "uvicorn.error",
        "warning",
    )


def test_at_a_terminal_they_are_for_eyes(capsys: pytest.CaptureFixture[str]) -> None:
    lines.to_stderr(terminal=True)
    structlog.get_logger().info("ready", socket="run/s")
    text = capsys.readouterr().err
    assert "ready" in text
    assert "socket" in text
    assert not text.startswith("{")


@asynchronous
async def test_readers_are_served_before_lines_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    async with served(load_table(furnished(tmp_path))) as here, Api(tmp_path / "s") as api:
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
