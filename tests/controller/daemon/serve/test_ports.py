"""The whole of it: the command in a process of its own, devices behind real ports, people at a
screen; a cable that is pulled, a kill, and an end in good order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from drivers.devices import LinkState
from firmware_protocol.device import Plug
from hil.simulator import LiveDevice
from hil.simulator.run import device_in_loop
from hil.table.robots import Api, Unreachable
from hil.table.robots.api_client import Pin
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import Child, child, free_port, furnished, right, whats
from tests.support.table.simulated.house import PINS

BO, GIL = Pin("F-2", PINS["F-2"]), Pin("D-18", PINS["D-18"])
SERIALS = ("SH-1", "SF-1", "ST-1")


@asynccontextmanager
async def plugged(folder: Path) -> AsyncIterator[LiveDevice]:
    """All devices; the shoe in hand."""
    async with (
        device_in_loop("shoe", folder / "shoe") as shoe,
        device_in_loop("shuffler", folder / "shuffler"),
        device_in_loop("station", folder / "station", seats=(1, 2)),
    ):
        yield shoe


async def told(daemon: Child, word: str) -> None:
    """The devices live in this loop, so it must not stand still."""
    await asyncio.to_thread(daemon.until_told, word)


async def stands(api: Api, serial: str, *states: LinkState) -> None:
    async with asyncio.timeout(60):
        while True:
            links = {link.serial: link.state for link in (await api.health()).links}
            if links[serial] in {state.value for state in states}:
                return
            await asyncio.sleep(0.02)


async def held(figures: int) -> float:
    """How many devices wait for two people."""
    async with httpx.AsyncClient(trust_env=False) as client:
        text = (await client.get(f"http://127.0.0.1:{figures}/metrics")).text
    found = [line for line in text.splitlines() if line.startswith("holecard_link_held{")]
    assert len(found) == len(SERIALS)
    return sum(float(line.rsplit(" ", 1)[1]) for line in found)


@asynchronous
async def test_a_table_with_its_devices_and_people(tmp_path: Path) -> None:
    figures = free_port()
    file = furnished(tmp_path, f"metrics_port = {figures}")

    async def first(daemon: Child, shoe: LiveDevice) -> None:
        await told(daemon, "READY=1")
        async with Api(tmp_path / "s") as api:
            screen = await api.open("dealer")
            async with asyncio.timeout(60):
                while await held(figures) < len(SERIALS):
                    await asyncio.sleep(0.02)
            for serial in SERIALS:
                await screen.adopt(serial, BO, GIL)
                await stands(api, serial, LinkState.READY)
            assert (await api.health()).ready
            assert await held(figures) == 0
            await screen.sign_in("D-17", PINS["D-17"])
            # A cable that is pulled is no reason to begin anew, for as long as it is looked for.
            shoe.request(Plug(connected=False))
            await stands(api, "SH-1", LinkState.ABSENT, LinkState.LOST, LinkState.OPENING)
            for _ in range(2):
                daemon.forget()
                await told(daemon, "WATCHDOG=1")
            shoe.request(Plug(connected=True))
            await stands(api, "SH-1", LinkState.READY)
            daemon.signal(signal.SIGKILL)
            assert await asyncio.to_thread(daemon.code) == -signal.SIGKILL
            try:
                await api.health()
            except Unreachable:
                return
            raise AssertionError("it answers")

    async def second(daemon: Child) -> None:
        await told(daemon, "READY=1")
        async with Api(tmp_path / "s") as api:
            for serial in SERIALS:  # adopted once, and from then on known
                await stands(api, serial, LinkState.READY)
            view = await (await api.open("dealer")).table()
            assert view.dealer is not None
            assert view.dealer.name == "Ann Lee"
            daemon.signal(signal.SIGTERM)
            assert await asyncio.to_thread(daemon.code) == 0

    async with plugged(tmp_path) as shoe:
        with child(file, env={"WATCHDOG_USEC": "600000"}) as daemon:
            await first(daemon, shoe)
        with child(file) as daemon:
            await second(daemon)
    people = [(data["what"], data.get("name")) for data in whats(tmp_path, "person")]
    assert people.count(("authorised", "Bo Chan")) == 3
    assert people.count(("authorised", "Gil Ode")) == 3
    assert people[-2:] == [("signed in", "Ann Lee"), ("signed out", "Ann Lee")]
    adopted = [data for data in whats(tmp_path, "link") if data["what"] == "adopted"]
    assert [data["two"] for data in adopted] == [["Bo Chan", "Gil Ode"]] * 3
    right(tmp_path)
