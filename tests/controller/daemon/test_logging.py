"""Lines for engineers: each says whose it is and where the table stands, and none has a card."""

from __future__ import annotations

import json
import logging
import re
from contextlib import aclosing
from pathlib import Path
from random import Random
from typing import Any

import pytest
import structlog

from controller.api.http import sse
from controller.api.service import CachedView
from controller.config import load_table
from controller.daemon import logging as lines
from controller.procedure.model.state import Step
from controller.rules.cards import DECK
from controller.table.loop import RequestResult
from drivers.devices import LinkState
from drivers.events import StateChanged
from hil.table.robots import Api, wire_name
from hil.table.robots.api_client import Pin
from tests.support.asynchronous import asynchronous, simulated
from tests.support.daemon.rig import furnished, served
from tests.support.table.simulated.house import PINS
from tests.support.table.simulated.serving import serving

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
    assert cards_in({"event": "taken", "why": "the card is Ah"})
    assert cards_in({"event": "taken", "cards": [7]})
    assert cards_in({"event": "taken", "held": ["TC"]})
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
