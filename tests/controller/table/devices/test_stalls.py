"""How late the loop of a table is, and how much of it is its own work."""

from __future__ import annotations

import asyncio
import time

import pytest

from controller.audit.format.records import RecordEntry
from controller.table.devices.stalls import STALL, TICK_INTERVAL, LoopMonitor
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import stand_still, stopped


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of processor time that were used."""
    used = [0.0]
    monkeypatch.setattr(time, "thread_time", lambda: used[0])
    return used


def test_delays_and_their_ends(processor: list[float]) -> None:
    recorded: list[RecordEntry] = []
    lags: list[float] = []

    @simulated
    async def main() -> None:
        monitor = LoopMonitor(recorded.append, lambda: 10_000_000)
        monitor.add_listener(lags.append)
        loop = asyncio.get_running_loop()
        assert (monitor.late, monitor.own_lag, monitor.stalled_until) == (0, 0, float("-inf"))
        task = asyncio.create_task(monitor.run())
        await asyncio.sleep(3 * TICK_INTERVAL + 0.1)
        stand_still(TICK_INTERVAL - 0.1 + STALL - 0.01)
        assert monitor.stalled_until == float("-inf")
        stand_still(0.02)
        assert monitor.late == pytest.approx(STALL + 0.01)
        assert monitor.stalled_until == loop.time()
        stand_still(3)
        ended = loop.time()
        await asyncio.sleep(1)
        assert monitor.stalled_until == pytest.approx(ended)
        assert monitor.late == 0
        await stopped(task)

    main()
    assert max(lags) == pytest.approx(3 + STALL + 0.01)
    assert [one.data["total_ms"] for one in recorded] == [3260]
    assert recorded[0].data["since"] == 10_000_000 - 3_260_000


@pytest.mark.parametrize(("used", "own"), [(0.5, 0.5), (5.0, 5.0), (9.0, 6.0)])
def test_a_busy_loop_is_told_from_a_process_that_did_not_run(
    processor: list[float], used: float, own: float
) -> None:
    @simulated
    async def main() -> None:
        monitor = LoopMonitor(lambda entry: None)
        task = asyncio.create_task(monitor.run())
        await asyncio.sleep(TICK_INTERVAL + 0.1)
        stand_still(6 + TICK_INTERVAL - 0.1)
        processor[0] += used
        before = monitor.own_lag
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert before == pytest.approx(own)
        assert monitor.own_lag == pytest.approx(own)
        await stopped(task)

    main()
