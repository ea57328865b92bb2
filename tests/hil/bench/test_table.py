"""The bench's whole table: it counts what was dealt, and times what was shown."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import pytest
from msgspec.structs import replace

from hil.bench import table
from hil.bench.bare import echo, memory, processor
from hil.bench.measure import Pace, Samples
from hil.bench.table import SEATS, TABLE, StandingPlayers, read_stream
from hil.table.setup import FEW, FittedDevice, staged
from tests.support.asynchronous import asynchronous

# --- what is measured -------------------------------------------------------------------------

NAMES = {
    *("cards", "raw_p50", "raw_p99", "echo_p50", "echo_p99", "card_p50", "card_p99"),
    *("card_ratio_p50", "card_ratio_p99", "memory_0", "memory_1", "memory_2", "memory_growth"),
    *("watched_p50", "watched_p99", "round_rate", "idle", "start", "start_long", "start_ratio"),
}


@pytest.mark.timeout(400)
def test_a_table_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """With three devices: to adopt each takes two PINs, which are slow to check."""
    three = (*FEW[:2], FittedDevice("station", "ST-A", seats=tuple(range(1, 8))))
    monkeypatch.setattr(
        table, "staged", lambda place, *_, gap_ms: staged(place, three, gap_ms=gap_ms)
    )
    lines = {line.name: line for line in TABLE.lines(Pace(slices=1, seconds=0.001))}
    value = {name: line.value or 0.0 for name, line in lines.items()}
    assert set(value) == NAMES
    assert all(value[name] > 0 for name in NAMES - {"memory_growth"})
    assert SEATS <= value["cards"] < 2 * (SEATS + 1) * 4  # those of a round or two, and no others
    assert (lines["watched_p50"].at_most, lines["watched_p99"].at_most) == (1.5, 2.0)
    for part in ("p50", "p99"):
        both = value[f"raw_{part}"] + value[f"echo_{part}"]
        assert value[f"card_ratio_{part}"] == pytest.approx(value[f"card_{part}"] / both)
    assert value["card_p50"] > value["echo_p50"]  # the p99 of so few is that of a busy machine


def test_memory_has_a_limit_at_full_length() -> None:
    times = ("card", "raw", "echo", "watched", "alone", "round_rate", "idle", "start", "start_long")
    samples: Samples = {name: [0.002] for name in times}
    samples |= {name: [200] for name in ("watchers", "fewer", "records")}
    samples |= {"rounds": [1, 10, 1_000, 20_000], "VmRSS": [80, 81, 82, 92], "Pss": []}
    section = replace(TABLE, measure=lambda pace: samples)
    lines = {line.name: line for line in section.lines(Pace(full=True))}
    assert set(lines) == NAMES | {"memory_3"}
    assert lines["memory_3"].text == "daemon's memory after 20,000 rounds"
    growth = lines["memory_growth"]
    assert growth.text == "  growth from 1,000 to 20,000, a round"
    assert growth.value == pytest.approx(10 * 1024 / 19_000)
    assert growth.at_most == 0.5
    assert growth.missed


# --- cards ------------------------------------------------------------------------------------


def test_players_stand_at_the_seats_that_are_taken() -> None:
    players = StandingPlayers()
    assert [seat for seat, _, _ in players.wagers()] == list(range(1, 8))
    players.seats = 1
    assert [seat for seat, _, _ in players.wagers()] == [1]


@asynchronous
async def test_an_event_is_timed_by_its_first_byte() -> None:
    """Also where its bytes come in pieces, or with those of another one."""
    clock = iter(range(100, 1000, 100))
    events: list[tuple[bytes, int]] = []
    stream = asyncio.StreamReader()
    reading = asyncio.create_task(
        read_stream(stream, lambda *event: events.append(event), lambda: next(clock))
    )
    for data in (
        b"HTTP/1.1 200 OK\r\nA: b\r\n",
        b"\r\n",
        b"event: table\nid: 1\nda",  # 100
        b"ta: one",
        b"\n\nevent: table\nid: 2\ndata: two\n\n: all is well\n\nev",  # 200, 300, 400
        b"ent: table\nid: 3\ndata: three\n\n",
    ):
        stream.feed_data(data)
        await asyncio.sleep(0)
    stream.feed_eof()
    with pytest.raises(asyncio.IncompleteReadError):
        await reading
    assert events == [(b"one", 100), (b"two", 200), (b"three", 400)]


# --- what it is compared with -----------------------------------------------------------------


def test_an_echo_comes_from_another_process() -> None:
    with echo() as seconds:
        assert all(seconds() > 0 for _ in range(20))


def test_memory_and_processor_are_those_of_the_process() -> None:
    text = "held = bytearray(64 << 20)\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", text])
    try:
        last = time.monotonic() + 30
        while (found := memory(process.pid))["VmRSS"] < 64 or processor(process.pid) < 0.2:
            assert time.monotonic() < last
        assert found["VmRSS"] < 256
        assert found.get("Pss", 0) <= found["VmRSS"]
    finally:
        process.kill()
        process.wait()
    assert abs(processor(os.getpid()) - time.process_time()) < 1
