"""Waiting for a device to be ready, whatever is in its way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from drivers import events
from drivers.devices import LinkState, NotReady
from drivers.keys import KeyProblem
from firmware_protocol.device import Freeze, Plug
from tests.support.asynchronous import simulated
from tests.support.drivers.dealing import store_fails
from tests.support.drivers.holding import ending
from tests.support.drivers.simulated import (
    OWN,
    Plugged,
    Watched,
    now_us,
    running,
    stopped,
    supervised,
    table,
    until,
)

S = LinkState
BY = ("Ann", "Bob")


@simulated
async def test_it_returns_when_the_device_is_ready_and_at_once_when_it_is(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, _, watched):
        waiting = [asyncio.create_task(watched.supervisor.ready()) for _ in range(3)]
        await asyncio.sleep(1)  # run() has not begun
        async with running(watched):
            # A device that nobody knows is held for two people: that is waited for too.
            await asyncio.sleep(5)
            assert watched.supervisor.held is not None
            assert not any(one.done() for one in waiting)
            await watched.supervisor.adopt(BY)
            await asyncio.wait_for(asyncio.gather(*waiting), 1)
            assert watched.state is S.READY
            before = now_us()
            await watched.supervisor.ready()
            assert now_us() == before


@simulated
async def test_it_waits_through_all_that_is_in_the_way(tmp_path: Path) -> None:
    async with table(tmp_path) as (desk, device, watched):
        supervisor = watched.supervisor

        async def is_ready_again() -> None:
            await asyncio.sleep(3)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(supervisor.ready(), 3)

        def loose() -> None:
            raise KeyProblem("host.json", "has mode 0644", "mode 0600")

        async with running(watched):
            await watched.ready()
            device.request(Plug(connected=False))
            await is_ready_again()
            desk.refusal = "in use by another program"
            device.request(Plug(connected=True))
            await is_ready_again()
            watched.own = loose
            await is_ready_again()
            assert watched.state is S.REFUSED
            watched.own, desk.refusal = (lambda: OWN), None
            await asyncio.wait_for(supervisor.ready(), 10)
            await store_fails(device, watched)
            await is_ready_again()
            assert watched.states[-1] is S.UNKEPT
            supervisor.recovered()
            await asyncio.wait_for(supervisor.ready(), 10)


@supervised
async def test_a_moment_that_is_over_already_does_not_count(
    device: Plugged, watched: Watched
) -> None:
    """The device is ready and gone before whoever waits has its turn."""
    await watched.ready()
    device.request(Plug(connected=False))
    await watched.until(S.ABSENT)

    def loose(happening: events.AnyHappening) -> None:
        if isinstance(happening, events.StateChanged) and happening.state is S.READY:
            asyncio.get_running_loop().call_soon(device.hang_up, "a loose contact")

    watched.also = loose
    waiting = asyncio.create_task(watched.supervisor.ready())
    device.request(Plug(connected=True))
    await until(lambda: watched.states.count(S.READY) == 2)
    await asyncio.sleep(0)
    assert watched.states[-1] is S.LOST
    assert not waiting.done()
    watched.also = None
    await asyncio.wait_for(waiting, 5)
    assert watched.state is S.READY


@pytest.mark.parametrize("at", [S.ABSENT, S.RESUMING, S.IDENTIFYING])
@simulated
async def test_it_does_not_outlast_the_host(tmp_path: Path, at: LinkState) -> None:
    async with table(tmp_path) as (_, device, watched):
        device.request(Plug(connected=at is not S.ABSENT))
        if at is S.IDENTIFYING:
            device.request(Freeze(on=True))
        task = asyncio.create_task(watched.supervisor.run())
        waiting = asyncio.create_task(watched.supervisor.ready())
        await asyncio.sleep(1)
        assert watched.state is at
        await stopped(task)
        with pytest.raises(NotReady):
            await asyncio.wait_for(waiting, 1)
        with pytest.raises(NotReady):
            await watched.supervisor.ready()


@simulated
async def test_it_says_why_the_host_has_ended(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        async with ending(watched, device):
            waiting = asyncio.create_task(watched.supervisor.ready())
            watched.unable = events.Resumed
            await until(lambda: watched.supervisor.held is not None)
            await watched.supervisor.adopt(BY)
        with pytest.raises(NotReady, match="BrokenPipeError: nobody reads the log"):
            await waiting


@simulated
async def test_a_supervisor_runs_once(tmp_path: Path) -> None:
    """What its keeper was doing when it ended only the keeper knows."""
    async with table(tmp_path) as (desk, device, watched):
        async with running(watched):
            await watched.ready()
            with pytest.raises(ValueError, match="has been run already"):
                await watched.supervisor.run()
            assert watched.state is S.READY
        with pytest.raises(ValueError, match="has been run already"):
            await watched.supervisor.run()
        again = Watched(desk, device.wanted, watched.store)
        async with running(again):
            await again.until(S.READY)
