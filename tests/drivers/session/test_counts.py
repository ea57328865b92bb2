"""Figures of a supervisor: counts over all links of its device, and the time of last activity."""

from __future__ import annotations

import asyncio
from pathlib import Path

from drivers.devices import LinkState
from drivers.session import WantedDevice
from firmware_protocol.device import Draw, LineNoise, Load, Plug
from firmware_protocol.messages import DeviceClass
from tests.long.fuzz.scripted import Wired
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import Desk, Watched, until
from tests.support.table.simulated.serving import run, serving


@simulated
async def test_repeats_and_gaps_are_counted_over_links() -> None:
    supervisor = Watched(Desk(), WantedDevice(DeviceClass.SHOE, "SH-1", bytes(32))).supervisor

    def counts() -> tuple[int, int]:
        return (supervisor.repeats, supervisor.gaps)

    assert counts() == (0, 0)
    first, second = Wired.running(3), Wired.running(3)
    supervisor.link = first.link
    first.send(2)
    assert counts() == (0, 1)
    first.send(1, 2)
    first.stored(2)
    assert counts() == (0, 1)
    first.send(1, 2)
    assert counts() == (2, 1)
    supervisor.failure = OSError("the disk is full")
    supervisor.recovered()  # replaces the link
    await asyncio.sleep(1)  # its timer
    assert counts() == (2, 1)
    supervisor.link = second.link
    second.send(2)
    assert counts() == (2, 2)


def test_something_is_done_for_a_device_all_the_time(tmp_path: Path) -> None:
    """While it is ready, while it is away, and while it is searched for."""

    async def main() -> None:
        async with serving(tmp_path) as one:
            shoe = one.table.supervisor("SH-1")
            for connected, state in ((True, LinkState.READY), (False, LinkState.ABSENT)):
                one.room.shoe.request(Plug(connected=connected))
                await until(lambda state=state: shoe.state is state)  # type: ignore[misc]
                for _ in range(5):
                    at = shoe.last_active_us
                    await until(lambda at=at: shoe.last_active_us > at, 10)  # type: ignore[misc]

    run(main())


def test_a_noisy_cable_shows_in_the_counts(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as one:
            shoe = one.table.supervisor("SH-1")
            one.room.shoe.request(LineNoise(drop=0.3, seed=3))
            one.room.shoe.request(Load(decks=one.room.game.decks, seed=3))
            one.room.shoe.request(Draw(force=True))
            await until(lambda: shoe.repeats + shoe.gaps > 0, 600)
            one.room.shoe.request(LineNoise())

    run(main())
