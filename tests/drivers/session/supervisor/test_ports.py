"""The whole way in real time: key store, journal, real ptys, the USB bus, and a host that is
killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from drivers.devices import CommandUnanswered, DeviceEvent, Shoe, State
from drivers.devices.shoe import ShoeCardRead
from drivers.journal import Journal
from drivers.journal_entries import Kind, read
from drivers.keys import KeyStore, Paired
from drivers.ports import Address, parse
from drivers.session import Supervisor, Wanted, backoff, events
from firmware_protocol.device import identity
from firmware_protocol.device.control import CutPower, Draw, Freeze, Load, Plug
from firmware_protocol.messages.enums import DeviceClass
from hil.simulator import DeviceSetup, LiveDevice, running_device
from tests.support.drivers.simulated import stopped, until
from tests.support.paths import ROOT

S = State
SERIAL = "SH-0042"
BY = ("Ann", "Bob")


class House:
    """A host's files and a device's, paired."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "device"
        self.device = identity.create(self.place, DeviceClass.SHOE, SERIAL)
        self.store = KeyStore.create(folder / "keys")
        identity.pair_directly(self.place, self.store.own().public_key().public_bytes_raw())
        one = self.device
        self.store.add(
            Paired(
                one.device_class,
                SERIAL,
                one.maker,
                one.model,
                one.public,
                "2026-01-01T00:00:00Z",
                BY,
            )
        )
        self.journal = folder / "SH.journal"

    def setup(self, **where: Any) -> DeviceSetup:
        return DeviceSetup(
            device_class=DeviceClass.SHOE,
            place=self.place,
            control=self.folder / "control",
            sync=False,
            **where,
        )


class Host:
    def __init__(self, house: House, address: Address | None, backend: str) -> None:
        paired = house.store.find(SERIAL)
        assert paired is not None
        self.told: list[events.AnyHappening] = []
        self.events: asyncio.Queue[DeviceEvent] = asyncio.Queue(200)
        self.journal = Journal.open(
            house.journal, serial=SERIAL, fingerprint=house.device.fingerprint
        )
        self.supervisor = Supervisor(
            Wanted(paired.device_class, SERIAL, paired.key, address, backend),
            self.journal,
            own=house.store.standing_own,
            events=self.events,
            tell=self.told.append,
        )
        self.shoe = Shoe(self.supervisor)

    async def ready(self) -> None:
        what = self.supervisor
        await until(lambda: what.state is S.READY or what.held is not None, 20)
        if what.state is not S.READY:
            await what.adopt(BY)
            await until(lambda: what.state is S.READY, 5)

    async def opens(self) -> None:
        """The gate. That a device has started anew is not known before its silence is."""
        for _ in range(5):
            await until(lambda: self.supervisor.state is S.READY, 15)
            with suppress(CommandUnanswered):
                await self.shoe.open_gate()
                return
        raise AssertionError("the gate does not open")

    async def has_all(self, live: LiveDevice) -> None:
        await until(lambda: self.journal.cursor().seq == live.stand.device.ring.head, 10)


@asynccontextmanager
async def hosted(
    house: House, address: Address | None, backend: str = "libusb1"
) -> AsyncIterator[Host]:
    host = Host(house, address, backend)
    task = asyncio.create_task(host.supervisor.run())
    try:
        yield host
        assert not task.done()
    finally:
        await stopped(task)
        await host.journal.close()


async def a_game(live: LiveDevice, host: Host, away: float) -> None:
    """Cards are drawn while the cable is pulled, the power goes and the firmware hangs."""
    await host.ready()
    live.hand(Load(decks=2))
    for hands in (
        (),
        (Plug(connected=False), Plug(connected=True)),
        (CutPower(),),
        (Freeze(on=True), Freeze(on=False)),
    ):
        await host.opens()
        live.hand(Draw(count=3, dwell_ms=5))
        await asyncio.sleep(0.05)
        for hand in hands:
            live.hand(hand)
            await asyncio.sleep(away)
        await until(lambda: host.supervisor.state is S.READY, 15)
    await host.has_all(live)
    await until(lambda: host.events.qsize() == host.journal.cursor().seq, 5)
    seqs = []
    while not host.events.empty():
        seqs.append(host.events.get_nowait())
    assert [one.origin.seq for one in seqs] == list(range(1, len(seqs) + 1))
    assert sum(isinstance(one, ShoeCardRead) for one in seqs) >= 4


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
            live.hand(Plug(connected=False))
            await until(lambda: host.supervisor.state in (S.LOST, S.ABSENT, S.OPENING), 5)
            live.hand(Plug(connected=True, other_port=True))
            await host.ready()

    asyncio.run(main())


def test_of_two_with_one_serial_number_the_key_shows_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is on the bus first: it is refused, and people are told why, and of both."""
    monkeypatch.setattr(backoff, "REST_REFUSED", 0.2)

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
            live.hand(Load(decks=1))
            await host.has_all(live)

    asyncio.run(main())


# --- killed ---------------------------------------------------------------------------------------


async def _host(house: House, port: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.support.drivers.host_process"),
        *(str(house.folder / "keys"), SERIAL, f"serial:{port}", str(house.journal)),
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
        said: list[int] = []
        async with running_device(house.setup(port=port)) as live:
            live.hand(Load(decks=8))
            for life in range(3):
                process = await _host(house, port)
                while await _line(process) != "ready":
                    pass
                live.hand(Draw(count=8, dwell_ms=5, force=True))
                if life < 2:
                    await asyncio.sleep(dice.uniform(0, 0.6))
                else:
                    await asyncio.sleep(1.2)
                process.send_signal(signal.SIGKILL)
                assert process.stdout is not None
                rest = (await process.stdout.read()).decode().splitlines()
                assert await process.wait() == -signal.SIGKILL
                said += [int(line.split()[1]) for line in rest if line.startswith("event ")]
            head = live.stand.device.ring.head
            assert live.stand.device.records.room.acked == head
        entries = [one.entry for one in read(house.journal, house.journal.read_bytes()).entries]
        kept = [one.seq for one in entries if one.kind is Kind.KEPT]
        assert kept == list(range(1, head + 1))
        assert head >= 24
        # With this journal, what was kept and not handed out when the host died is in no record.
        assert sorted(set(said)) == said

    asyncio.run(main())
