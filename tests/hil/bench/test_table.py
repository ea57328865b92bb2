"""The bench's whole table: it counts what was dealt, and times what was shown."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from controller.api.contract.view import View
from controller.commands import parse
from hil.bench import cli
from hil.bench.measure import Pace, times
from hil.bench.table import (
    CARDS,
    ECHO_BYTES,
    FULL_RECORDS,
    FULL_ROUNDS,
    RECORDS,
    TABLE,
    DaemonMemory,
    echo,
    memory,
    processor,
    sizes,
)
from hil.bench.table_clients import GAP_MS, SEATS, StandingPlayers, ViewStream, played
from hil.table.setup import FEW, example, staged

# --- what is measured -------------------------------------------------------------------------

NAMES = {
    *("cards", "raw_p50", "raw_p99", "echo_p50", "echo_p99", "card_p50", "card_p99"),
    *("card_ratio_p50", "card_ratio_p99", "memory_0", "memory_1", "memory_2", "memory_growth"),
    *("watched_p50", "watched_p99", "round_rate", "idle", "start", "start_long", "start_ratio"),
}


def test_a_table_is_measured() -> None:
    lines = {line.name: line for line in TABLE.measure(Pace(slices=1, seconds=0.001))}
    assert set(lines) == NAMES
    growth = lines.pop("memory_growth")
    assert growth.value is not None
    assert all(line.value is not None and line.value > 0 for line in lines.values())
    value = {name: line.value or 0.0 for name, line in lines.items()}
    assert SEATS <= value["cards"] < 2 * (SEATS + 1) * 4  # those of a round or two, and no others
    assert (lines["watched_p50"].at_most, lines["watched_p99"].at_most) == (1.5, 2.0)
    for part in ("p50", "p99"):
        both = value[f"raw_{part}"] + value[f"echo_{part}"]
        assert value[f"card_ratio_{part}"] == pytest.approx(value[f"card_{part}"] / both)
        assert value[f"card_{part}"] > value[f"echo_{part}"]


def test_how_much_is_measured() -> None:
    usual, full, least = sizes(Pace()), sizes(Pace(full=True)), sizes(Pace(1, 0.001))
    assert (usual.cards, usual.records) == (CARDS, RECORDS) == (2_000, 200_000)
    assert (full.rounds, full.records) == (FULL_ROUNDS, FULL_RECORDS) == ((1_000, 20_000), 10**7)
    assert full.cards == CARDS
    assert least.cards < 100 < usual.cards
    assert least.starts == 1


def test_it_is_short_or_full_and_not_both(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["bench", "--quick", "--full"], cli.register)
    assert ended.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err


# --- cards ------------------------------------------------------------------------------------


def test_each_card_that_is_laid_is_timed_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with staged(tmp_path, FEW, gap_ms=GAP_MS) as stage:
            await stage.serve(example("mega-1"))
            async with played(stage) as table:
                begun = time.monotonic()
                await table.play(rounds=2)
                took = time.monotonic() - begun
                shoe = stage.shoe.device.firmware.mechanism
                cards = table.cards
                assert cards.drawn == len(cards.times) >= 2 * 2 * (SEATS + 1)
                assert all(0 < one < took for one in cards.times)
                assert sum(cards.times) < took  # they came one after the other
                assert shoe.due() is None  # and none is on its way
                cards.forget()
                assert (cards.drawn, cards.times) == (0, [])
                table.players.seats = 1
                await table.play(rounds=1)
                assert cards.drawn == len(cards.times) >= 4
            assert await stage.daemon.stop() == 0

    asyncio.run(main())


def test_players_stand_at_the_seats_that_are_taken() -> None:
    players = StandingPlayers()
    assert [seat for seat, _, _ in players.wagers()] == list(range(1, 8))
    players.seats = 1
    assert [seat for seat, _, _ in players.wagers()] == [1]


def test_an_event_is_timed_by_its_first_byte() -> None:
    """Also where its bytes come in pieces, or with those of another one."""
    clock = iter(range(100, 1000, 100))
    told: list[tuple[object, int]] = []
    stream = ViewStream(
        "token",
        lambda view, at: told.append((view, at)),
        decode=lambda data: cast(View, data),
        clock=lambda: next(clock),
    )
    for data in (
        b"HTTP/1.1 200 OK\r\nA: b\r\n",  # 100
        b"\r\n",  # 200
        b"event: table\nid: 1\nda",  # 300
        b"ta: one",  # 400
        b"\n\nevent: table\nid: 2\ndata: two\n\n: all is well\n\nev",  # 500
        b"ent: table\nid: 3\ndata: three\n\n",  # 600
    ):
        stream.data_received(data)
    assert told == [(b"one", 300), (b"two", 500), (b"three", 500)]


# --- what it is held beside -------------------------------------------------------------------


def test_an_echo_comes_from_another_process() -> None:
    with echo() as bare:
        took = times(bare.once, 20)
    assert len(took) == 20
    assert all(one > 0 for one in took)
    assert ECHO_BYTES > 80


def test_memory_and_processor_are_those_of_the_process() -> None:
    text = "held = bytearray(64 << 20)\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", text])
    try:
        found: DaemonMemory = memory(process.pid, 3)
        last = time.monotonic() + 30
        while found.resident < 64 << 10 or processor(process.pid) < 0.2:
            assert time.monotonic() < last
            found = memory(process.pid, 3)
        assert found.rounds == 3
        assert found.resident < 256 << 10
        assert found.proportional is None or found.proportional <= found.resident
    finally:
        process.kill()
        process.wait()
    used = processor(os.getpid())
    assert abs(used - time.process_time()) < 1
