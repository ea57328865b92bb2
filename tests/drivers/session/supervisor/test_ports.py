"""The whole way in real time: key store, real ptys, the USB bus, and a host that is killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from drivers import events
from drivers.devices import LinkState
from drivers.devices.shoe import ShoeCardRead
from drivers.events import Identity
from drivers.keys import KeyProblem
from drivers.ports import parse
from drivers.session import PortSearch, WantedDevice, supervisor
from drivers.session.supervisor import RETRY_REFUSED
from firmware_protocol.device import (
    Break,
    CutPower,
    Draw,
    Freeze,
    Load,
    Plug,
    create_identity,
    pair_directly,
)
from firmware_protocol.messages import DeviceClass
from hil.simulator import LiveDevice, running_device
from tests.support.asynchronous import asynchronous, simulated
from tests.support.drivers.dealing import raises
from tests.support.drivers.file_store import FileStore
from tests.support.drivers.real_host import SERIAL, Host, House, hosted
from tests.support.drivers.simulated import (
    Desk,
    Plugged,
    Watched,
    running,
    table,
    until,
    when_ready,
)
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


@asynchronous
async def test_on_a_serial_port(tmp_path: Path) -> None:
    house = House(tmp_path)
    port = tmp_path / "shoe"
    async with (
        running_device(house.setup(port=port)) as live,
        hosted(house, parse(f"serial:{port}")) as host,
    ):
        await a_game(live, host, 0.15)
        assert any(isinstance(one, events.PortGone) for one in host.happenings)


@asynchronous
async def test_on_usb(tmp_path: Path) -> None:
    house = House(tmp_path)
    bus = tmp_path / "usb"
    bus.mkdir()
    async with (
        running_device(house.setup(usb=bus)) as live,
        hosted(house, parse(f"usb+sim={bus}:{SERIAL}")) as host,
    ):
        await a_game(live, host, 0.15)
        assert any(isinstance(one, events.PortGone) for one in host.happenings)


@asynchronous
async def test_a_replugged_port_under_another_name_is_found_by_its_serial_number(
    tmp_path: Path,
) -> None:
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


@asynchronous
async def test_of_two_with_one_serial_number_the_key_shows_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is on the bus first: it is refused, and people are told why, and of both."""
    monkeypatch.setattr(supervisor, "RETRY_REFUSED", 0.2)
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
        whys = [one.why for one in host.happenings if isinstance(one, events.StateChanged)]
        assert f"shoe {SERIAL} with another key is there" in whys
        doubled = [one.port for one in host.happenings if isinstance(one, events.Doubled)]
        assert len(doubled) == 2
        assert all(f"{SERIAL} (bus 1 address " in port for port in doubled)
        live.request(Load(decks=1))
        await host.has_all(live)


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


@asynchronous
async def test_a_host_may_be_killed_at_any_time(tmp_path: Path) -> None:
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


STRANGER = X25519PrivateKey.from_private_bytes(bytes(range(2, 34)))


# --- someone else ---------------------------------------------------------------------------------


@when_ready
async def test_a_copy_with_another_key_is_refused_until_the_right_one_is_back(
    tmp_path: Path, desk: Desk, device: Plugged, watched: Watched
) -> None:
    device.request(Plug(connected=False))
    copy = desk.plug(Plugged(tmp_path / "copy", serial="SH-0001"))
    await watched.until(S.REFUSED)
    assert watched.supervisor.why == "shoe SH-0001 with another key is there"
    (swapped,) = watched.of(events.Swapped)
    assert [swapped.expected, swapped.found] == [
        Identity(DeviceClass.SHOE, "SH-0001", one.identity.fingerprint) for one in (device, copy)
    ]
    opened = copy.opened
    await asyncio.sleep(4 * RETRY_REFUSED + 1)
    assert (copy.opened, len(watched.of(events.Swapped))) == (opened + 4, 1)
    copy.request(Plug(connected=False))
    device.request(Plug(connected=True))
    await watched.until(S.READY, within=RETRY_REFUSED + 2)
    assert copy.stand.firmware.ring.head == 1  # nobody talked it into anything


@pytest.mark.parametrize(
    ("device_class", "serial"),
    [(DeviceClass.SHOE, "SH-0002"), (DeviceClass.STATION, "SH-0001"), (DeviceClass.STATION, "X")],
)
@simulated
async def test_another_device_on_the_port_is_refused(
    tmp_path: Path, device_class: DeviceClass, serial: str
) -> None:
    desk = Desk()
    wanted = create_identity(tmp_path / "wanted", DeviceClass.SHOE, "SH-0001")
    device = desk.plug(Plugged(tmp_path / "device", device_class, serial))
    watched = Watched(
        desk,
        WantedDevice(DeviceClass.SHOE, "SH-0001", wanted.public, device.address),
        find=PortSearch(),
    )
    async with running(watched):
        await watched.until(S.REFUSED)
        assert [one.found for one in watched.of(events.Swapped)] == [
            Identity(device_class, serial, device.identity.fingerprint)
        ]
        assert watched.of(events.AttemptFailed)[0].error == "wrong-device"
    device.switch_off()


@simulated
async def test_one_that_only_knows_the_fingerprint_is_refused(tmp_path: Path) -> None:
    """It claims to be the right one; its HS2 shows that it has not the key."""
    async with table(tmp_path) as (_, device, watched):
        pair_directly(device.place, STRANGER.public_key().public_bytes_raw())
        device.request(Break(name="stranger-answered"))
        async with running(watched):
            await watched.until(S.REFUSED)
            assert S.RESUMING not in watched.states
            assert [(one.error, one.number) for one in watched.of(events.AttemptFailed)] == [
                ("handshake-not-authentic", 403)
            ]


@simulated
async def test_a_device_of_another_host_is_never_reached(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        pair_directly(device.place, STRANGER.public_key().public_bytes_raw())
        async with running(watched):
            await asyncio.sleep(60)
            assert set(watched.states) == {S.IDENTIFYING, S.HANDSHAKING, S.LOST, S.OPENING}
            assert {one.counts for one in watched.of(events.Alert)} == {(("handshake_refused", 1),)}
            assert {one.error for one in watched.of(events.AttemptFailed)} == {"handshake-error"}
            assert len(watched.happenings) < 100


@simulated
async def test_a_device_of_another_catalogue_is_refused(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        device.request(Break(name="schema-wrong"))
        async with running(watched):
            await watched.until(S.REFUSED)
            assert watched.of(events.AttemptFailed)[0].error == "schema-differs"
            device.request(Break(name="schema-wrong", on=False))
            await watched.ready(within=RETRY_REFUSED + 2)


@simulated
async def test_keys_that_are_not_in_order_are_refused_until_they_are(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        good = watched.own
        watched.own = raises(KeyProblem("host.json", "has mode 0644", "mode 0600"))
        async with running(watched):
            await watched.until(S.REFUSED)
            assert watched.supervisor.why == "host.json: has mode 0644; allowed: mode 0600"
            await asyncio.sleep(20)
            assert (device.opened, watched.states) == (0, [S.REFUSED])
            watched.own = good
            await watched.ready(within=RETRY_REFUSED + 2)
