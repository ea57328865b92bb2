"""The process of the table stands still while its devices run: the table goes on without people."""

from __future__ import annotations

import asyncio

import pytest

from controller.procedure.model import events
from controller.procedure.model.state import Step
from controller.table.devices.links import LOST_AFTER, MAX_EXCUSED
from controller.table.devices.stalls import RECORDED, REPORT_INTERVAL, TICK_INTERVAL
from firmware_protocol.device import Draw, Freeze, Plug
from firmware_protocol.messages import HANDSHAKE_WAIT_MS
from hil.table.robots.robot import mechanism
from tests.support.asynchronous import simulated_in
from tests.support.drivers.simulated import stand_still, until
from tests.support.table.simulated.serving import CARDS, SHOE, Served, is_ready, verified


def stall(one: Served, seconds: float) -> None:
    """All devices run on, and the table does not."""
    stand_still(seconds, *one.room.desk.devices)


def people_were_asked(one: Served) -> list[str]:
    asked = (events.DeviceLost, events.DeviceBack, events.FeltConfirmed)
    return [type(event).__name__ for event in one.events() if isinstance(event, asked)]


@pytest.mark.parametrize("step", [Step.WAGERING, Step.TURN])
@pytest.mark.parametrize("seconds", [0.5, 1, 2, 3, 5, 59])
@simulated_in(verified, "classic", *CARDS)
async def test_a_stall_asks_nobody_anything(one: Served, step: Step, seconds: float) -> None:
    await one.to_step(step)
    await asyncio.sleep(2)
    for _ in range(2):
        stall(one, seconds)
        await asyncio.sleep(3)
    await one.to_end()
    assert people_were_asked(one) == []
    ended = {data["why"] for data in one.data("link", "SessionEnded")}
    assert ended == ({"stalled"} if seconds >= 1 else set())
    stalls = one.data("link", "host_stalled")
    assert [data["count"] for data in stalls[:1]] == [1] * (seconds >= RECORDED + TICK_INTERVAL)
    assert all(abs(data["longest_ms"] - 1000 * seconds) <= 250 for data in stalls)
    assert len(one.data("link", "PortOpened")) == len(one.room.desk.devices), "as at the start"


@simulated_in(verified, "classic", *CARDS)
async def test_a_card_that_was_pulled_during_a_stall_is_dealt(one: Served) -> None:
    await one.to(lambda s: s.step is Step.DEALING and s.dealt == 1)
    await until(lambda: mechanism(one.room.shoe)["lock"] == "open")
    one.room.shoe.request(Draw())
    stall(one, 5)
    await until(lambda: one.state.dealt == 2, LOST_AFTER)
    await one.to_end()
    assert people_were_asked(one) == []


@pytest.mark.parametrize(
    "mishap", [Plug(connected=False), Freeze(on=True)], ids=["pulled", "hangs"]
)
@simulated_in(verified, "classic", *CARDS)
async def test_a_device_that_is_gone_is_lost_in_spite_of_stalls(
    one: Served, mishap: Plug | Freeze
) -> None:
    await one.to_step(Step.TURN)
    await one.asked(one.room.shoe, mishap)
    for _ in range(3):
        stall(one, 3)
        await asyncio.sleep(1)
    assert one.at(Step.TURN)
    await one.comes_to(Step.DEVICE, LOST_AFTER + 1)
    assert people_were_asked(one) == ["DeviceLost"]


@pytest.mark.parametrize("slow", [(3.0, 0.9), (9.9, 0.9)])
@simulated_in(verified, "classic", *CARDS)
async def test_a_slow_handshake_after_a_stall_asks_nobody_anything(
    one: Served, slow: tuple[float, float]
) -> None:
    await one.to_step(Step.TURN)
    for device in one.room.desk.devices:
        device.slow = slow
    stall(one, 3)
    await asyncio.sleep(sum(slow) - 0.1)
    assert not is_ready(one, SHOE)
    await until(lambda: is_ready(one, SHOE), 1)
    await one.to_end()
    assert people_were_asked(one) == []
    assert len(one.data("link", "PortOpened")) == len(one.room.desk.devices), "as at the start"


@simulated_in(verified, "classic", *CARDS)
async def test_a_device_that_hangs_in_its_handshake_after_a_stall_is_lost(one: Served) -> None:
    """It answers HELLO, and then nothing: its attempt ends after HANDSHAKE_WAIT."""
    await one.to_step(Step.TURN)
    one.room.shoe.slow = (60, 0)
    stall(one, 3)
    await asyncio.sleep(HANDSHAKE_WAIT_MS / 1000 - 1)
    assert one.at(Step.TURN)
    await one.comes_to(Step.DEVICE, 2)
    assert people_were_asked(one) == ["DeviceLost"]


@simulated_in(verified, "classic", *CARDS)
async def test_a_cable_that_is_pulled_in_a_handshake_after_a_stall(one: Served) -> None:
    await one.to_step(Step.TURN)
    one.room.shoe.slow = (5, 0.5)
    stall(one, 3)
    await asyncio.sleep(1)
    await one.asked(one.room.shoe, Plug(connected=False))
    await one.comes_to(Step.DEVICE, LOST_AFTER)
    assert people_were_asked(one) == ["DeviceLost"]


@simulated_in(verified, "classic", *CARDS)
async def test_stalls_without_end_excuse_no_device_for_ever(one: Served) -> None:
    await one.to_step(Step.TURN)
    loop = asyncio.get_running_loop()
    await one.asked(one.room.shoe, Plug(connected=False))
    began = loop.time()
    while one.at(Step.TURN):
        assert loop.time() - began < MAX_EXCUSED + 10
        stall(one, 2)
        await asyncio.sleep(0.5)
    assert loop.time() - began >= MAX_EXCUSED


@simulated_in(verified, "classic", *CARDS)
async def test_stalls_are_recorded_at_a_bounded_rate(one: Served) -> None:
    await one.to_step(Step.WAGERING)
    for _ in range(20):
        stall(one, RECORDED + 0.3)
        await asyncio.sleep(1)
    stalls = one.data("link", "host_stalled")
    assert [data["count"] for data in stalls] == [1]
    await asyncio.sleep(REPORT_INTERVAL)
    first, second = one.data("link", "host_stalled")
    assert second["count"] == 19
    assert second["total_ms"] >= 19 * 1000 * RECORDED
    assert first["since"] < second["since"]
    assert is_ready(one, SHOE)


@simulated_in(verified, "classic", *CARDS)
async def test_the_last_stalls_are_recorded_at_the_end(one: Served) -> None:
    await one.to_step(Step.WAGERING)
    for _ in range(3):
        stall(one, 1)
        await asyncio.sleep(1)
    await one.table.__aexit__(None, None, None)
    assert [data["count"] for data in one.data("link", "host_stalled")] == [1, 2]
