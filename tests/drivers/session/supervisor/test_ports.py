"""The whole way in real time: key store, real ptys, the USB bus, and a host that is killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from drivers import events
from drivers.devices import LinkState
from drivers.devices.shoe import ShoeCardRead
from drivers.ports import parse
from drivers.session import supervisor
from firmware_protocol.device import CutPower, Draw, Freeze, Load, Plug
from hil.simulator import LiveDevice, running_device
from tests.support.drivers.file_store import FileStore
from tests.support.drivers.real_host import SERIAL, Host, House, hosted
from tests.support.drivers.simulated import until
from tests.support.paths import ROOT

S = LinkState


async def a_game(live: LiveDevice, host: Host, away: float) -> None:
    """Cards are drawn while the cable is pulled, the power goes and the firmware hangs."""
    await host.ready()
    live.request(Load(decks=2))
    for hands in (
        (),
        (Plug(connected=False), Plug(connected=True)),
        (CutPower(),),
        (Freeze(on=True), Freeze(on=False)),
    ):
        await host.opens()
        live.request(Draw(count=3, dwell_ms=5))
        await asyncio.sleep(0.05)
        for hand in hands:
            live.request(hand)
            await asyncio.sleep(away)
        await until(lambda: host.supervisor.state is S.READY, 15)
    await host.has_all(live)
    events = host.store.events
    assert [one.origin.seq for one in events] == list(range(1, len(events) + 1))
    assert sum(isinstance(one, ShoeCardRead) for one in events) >= 4


def test_on_a_serial_port(tmp_path: Path) -> None:
    async def main() -> None:
        house = House(tmp_path)
        port = tmp_path / "shoe"
        async with (
            running_device(house.setup(port=port)) as live,
            hosted(house, parse(f"serial:{port}")) as host,
        ):
            await a_game(live, host, 0.15)
            assert any(isinstance(one, events.PortGone) for one in host.told)

    asyncio.run(main())


def test_on_usb(tmp_path: Path) -> None:
    async def main() -> None:
        house = House(tmp_path)
        bus = tmp_path / "usb"
        bus.mkdir()
        address = parse(f"usb+sim={bus}:{SERIAL}")
        async with (
            running_device(house.setup(usb=bus)) as live,
            hosted(house, address) as host,
        ):
            await a_game(live, host, 0.15)
            assert any(isinstance(one, events.PortGone) for one in host.told)

    asyncio.run(main())


def test_a_replugged_port_under_another_name_is_found_by_its_serial_number(tmp_path: Path) -> None:
    async def main() -> None:
        house = House(tmp_path)
        bus = tmp_path / "usb"
        bus.mkdir()
        async with (
            running_device(house.setup(usb=bus)) as live,
            hosted(house, None, f"sim={bus}") as host,
        ):
            await host.ready()
            live.request(Plug(connected=False))
            await until(lambda: host.supervisor.state in (S.LOST, S.ABSENT, S.OPENING), 5)
            live.request(Plug(connected=True, other_port=True))
            await host.ready()

    asyncio.run(main())


def test_of_two_with_one_serial_number_the_key_shows_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is on the bus first: it is refused, and people are told why, and of both."""
    monkeypatch.setattr(supervisor, "RETRY_REFUSED", 0.2)

    async def main() -> None:
        house, bus = House(tmp_path), tmp_path / "usb"
        bus.mkdir()
        (tmp_path / "elsewhere").mkdir()
        copy = House(tmp_path / "elsewhere")
        async with (
            running_device(copy.setup(usb=bus)),
            running_device(house.setup(usb=bus)) as live,
            hosted(house, None, f"sim={bus}") as host,
        ):
            await host.ready()
            refused = [one for one in host.told if isinstance(one, events.StateChanged)]
            assert f"shoe {SERIAL} with another key is there" in [one.why for one in refused]
            doubled = [one.port for one in host.told if isinstance(one, events.Doubled)]
            assert len(doubled) == 2
            assert all(f"{SERIAL} (bus 1 address " in port for port in doubled)
            live.request(Load(decks=1))
            await host.has_all(live)

    asyncio.run(main())


# --- killed ---------------------------------------------------------------------------------------


async def _host(house: House, port: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.support.drivers.host_process"),
        *(str(house.folder / "keys"), SERIAL, f"serial:{port}", str(house.file)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )


async def _line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 20)
    assert line, "the host has ended by itself"
    return line.decode().strip()


def test_a_host_may_be_killed_at_any_time(tmp_path: Path) -> None:
    async def main() -> None:
        house = House(tmp_path)
        port = tmp_path / "shoe"
        dice = random.Random(7)
        async with running_device(house.setup(port=port)) as live:
            live.request(Load(decks=8))
            for life in range(3):
                process = await _host(house, port)
                while await _line(process) != "ready":
                    pass
                live.request(Draw(count=8, dwell_ms=5, force=True))
                if life < 2:
                    await asyncio.sleep(dice.uniform(0, 0.6))
                else:
                    await asyncio.sleep(1.2)
                process.send_signal(signal.SIGKILL)
                assert await process.wait() == -signal.SIGKILL
            head = live.device.firmware.ring.head
            assert live.device.firmware.records.room.acked == head
        assert FileStore(house.file).seqs == list(range(1, head + 1))
        assert head >= 24

    asyncio.run(main())
