"""`holecard sim`: a device that runs behind a real port, what it is told, and what it leaves."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import usb.core
import usb.util

from firmware_protocol.device import (
    ControlRequest,
    CutPower,
    Describe,
    Draw,
    Firmware,
    FolderProblem,
    Freeze,
    Plug,
    Press,
    ServiceSwitch,
    create_identity,
    paired_host,
)
from firmware_protocol.messages import (
    SCHEMA_HASHES,
    DeviceClass,
    FrameKind,
    FrameLimit,
    Hello,
    HelloRsp,
)
from firmware_protocol.tablelink import Deframer, Frame, fingerprint
from hil.control import ControlClient, ControlLost, RequestRefused
from hil.devices import SimulatedShoe
from hil.ports.usb_backend import backend
from hil.ports.usb_messages import END_IN, END_OUT
from hil.simulator import LiveDevice, SimulatedDevice, device_process, exclusive_use
from hil.simulator import run as running
from hil.simulator.run import DeviceFailed, device_in_loop
from tests.support.asynchronous import asynchronous
from tests.support.hil.commands import left_in, sim_until_ready
from tests.support.hil.commands import sim as run

HELLO = Frame(
    FrameKind.HELLO,
    7,
    0,
    Hello(1, 1, DeviceClass.ANY, FrameLimit.LARGE, SCHEMA_HASHES[1], bytes(16)).encode(),
).encode()


def answer(data: bytes) -> HelloRsp | None:
    frames = [frame for frame in Deframer().feed(data) if isinstance(frame, Frame)]
    return HelloRsp.decode(frames[0].payload) if frames else None


async def asked(path: Path) -> HelloRsp:
    """What the device behind this serial port says to HELLO."""
    loop = asyncio.get_running_loop()
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        os.write(descriptor, b"\0" + HELLO)
        data = b""
        async with asyncio.timeout(5):
            while (said := answer(data)) is None:
                await ready.wait()
                ready.clear()
                with suppress(BlockingIOError):  # the loop may tell of the same bytes twice
                    data += os.read(descriptor, 4096)
        return said
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def asked_over_usb(bus: Path) -> HelloRsp:
    device = usb.core.find(backend=backend(str(bus)))
    device.write(END_OUT, b"\0" + HELLO, 5_000)
    said = said_over_usb(device)
    usb.util.dispose_resources(device)
    return said


def said_over_usb(device: Any) -> HelloRsp:
    data = b""
    while (said := answer(data)) is None:
        data += device.read(END_IN, 4096, 5_000).tobytes()
    return said


@asynchronous
async def test_a_missing_device_is_not_created_unless_wanted(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="shoe/in-use"):
        async with device_in_loop("shoe", tmp_path / "shoe"):
            raise AssertionError("it runs")
    assert not (tmp_path / "shoe" / "identity.toml").exists()


# --- in this loop ---------------------------------------------------------------------------------


@asynchronous
async def test_a_device_behind_a_serial_port_answers(tmp_path: Path) -> None:
    async with device_in_loop("shoe", tmp_path / "shoe", create=True) as live:
        said = await asked(tmp_path / "shoe" / "port")
        told = live.request(Describe())
        assert (said.serial, said.device_class) == ("shoe-1", DeviceClass.SHOE)
        assert said.fingerprint == fingerprint(bytes.fromhex(told["key"]))
        assert told["port"] == str(tmp_path / "shoe" / "port")
    assert left_in(tmp_path / "shoe") == set()


@asynchronous
async def test_a_device_on_a_bus_answers_with_the_serial_number_of_its_descriptor(
    tmp_path: Path,
) -> None:
    bus = tmp_path / "bus"
    async with device_in_loop("station", tmp_path / "station", usb=bus, create=True) as live:
        said = await asyncio.to_thread(asked_over_usb, bus)
        assert said.serial == live.request(Describe())["serial"] == "station-1"
    assert [path.name for path in bus.iterdir()] == ["last-address"]
    assert left_in(tmp_path / "station") == set()


@asynchronous
async def test_the_port_follows_the_plug_and_not_the_power(tmp_path: Path) -> None:
    port = tmp_path / "port"
    async with device_in_loop("shoe", tmp_path / "shoe", port=port, create=True) as live:
        live.request(CutPower(off_ms=3_600_000))
        assert port.is_symlink()
        live.request(Plug(connected=False))
        assert not port.is_symlink()
        live.request(Plug(connected=True, other_port=True))
        assert live.request(Describe())["port"] == f"{port}-2"
        assert (tmp_path / "port-2").is_symlink()
    assert not (tmp_path / "port-2").is_symlink()


@asynchronous
async def test_the_bus_follows_plug_and_power_with_another_address_each_time(
    tmp_path: Path,
) -> None:
    bus = tmp_path / "bus"
    async with device_in_loop("shoe", tmp_path / "shoe", usb=bus, create=True) as live:

        def address(request: ControlRequest) -> object:
            live.request(request)
            return live.request(Describe())["usb_address"]

        out = Plug(connected=False)
        assert [address(one) for one in (Describe(), CutPower(), out)] == [1, 2, None]
        assert await asyncio.to_thread(lambda: usb.core.find(backend=backend(str(bus)))) is None
        again = (Plug(connected=True), Firmware(version="another"), CutPower(off_ms=3_600_000))
        assert [address(one) for one in again] == [3, 4, None]


@asynchronous
async def test_power_comes_back_by_the_clock(tmp_path: Path) -> None:
    async with device_in_loop("shoe", tmp_path / "shoe", create=True) as live:

        def powered() -> bool:
            return live.device.powered

        live.request(CutPower(off_ms=20))
        assert not powered()
        async with asyncio.timeout(5):
            while not powered():
                await asyncio.sleep(0.005)
        assert (await asked(tmp_path / "shoe" / "port")).serial == "shoe-1"


@asynchronous
async def test_a_frozen_device_on_a_bus_takes_no_bytes_and_then_does(tmp_path: Path) -> None:
    bus = tmp_path / "bus"
    async with device_in_loop("shoe", tmp_path / "shoe", usb=bus, create=True) as live:
        loop = asyncio.get_running_loop()

        def host() -> None:
            device = usb.core.find(backend=backend(str(bus)))
            assert device.write(END_OUT, b"\0" * 300, 30) == 128
            with pytest.raises(usb.core.USBTimeoutError):
                device.write(END_OUT, HELLO, 30)
            loop.call_soon_threadsafe(loop.call_later, 0.02, live.request, Freeze(on=False))
            device.write(END_OUT, b"\0" + HELLO, 5_000)  # waits until the firmware goes on
            assert said_over_usb(device).serial == "shoe-1"
            usb.util.dispose_resources(device)

        live.request(Freeze(on=True))
        await asyncio.to_thread(host)


# --- in a process of its own ----------------------------------------------------------------------


def test_a_device_process_leaves_no_files(tmp_path: Path) -> None:
    place = tmp_path / "station"
    options = ("--seat", "2", "--seat", "5", "--serial", "ST-77")
    key = bytes(range(32))
    with device_process("station", place, *options, breaks=("bounces",), paired_with=key) as sim:
        assert (sim.serial, sim.described["breaks"]) == ("ST-77", ["bounces"])
        assert sim.port is not None
        assert asyncio.run(asked(sim.port)).fingerprint == fingerprint(sim.key)
        sim.control.do(Press(seat=5, button="hit"))
        with pytest.raises(RequestRefused):
            sim.control.do(Press(seat=1, button="hit"))
        assert sim.control.do(Describe())["label"] == sim.label
        with pytest.raises(DeviceFailed, match="is in use"), device_process("station", place):
            pass
    assert sim.process.returncode == 0
    assert (paired_host(place), left_in(place)) == (key, set())


def test_it_comes_back_as_the_same_device_and_the_same_seed_makes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def described(name: str, *options: str) -> tuple[str, int, int]:
        command = ["shoe", "--dir", str(tmp_path / name), "--create", "--json", *options]
        assert sim_until_ready(monkeypatch, *command) == 0
        found = json.loads(capsys.readouterr().out)
        return found["key"], found["epoch"], found["boot"]

    key, epoch, boot = described("a", "--seed", "5")
    again, same = described("a"), described("b", "--seed", "5")
    assert (boot, again, same) == (1, (key, epoch, 2), (key, epoch, 1))
    other_key, other_epoch, _ = described("c", "--seed", "6")
    assert other_key != key
    assert other_epoch != epoch


def test_files_of_a_killed_device_do_no_harm(tmp_path: Path) -> None:
    place = tmp_path / "shoe"
    with device_process("shoe", place) as sim:
        sim.process.kill()
    assert left_in(place) == {"port", "control"}
    with device_process("shoe", place) as sim:
        assert sim.port is not None
        assert asyncio.run(asked(sim.port)).serial == "SH-0001"
    assert left_in(place) == set()


def test_it_ends_while_hosts_and_control_clients_are_connected(tmp_path: Path) -> None:
    place, bus = tmp_path / "shoe", tmp_path / "bus"
    with device_process("shoe", place, usb=bus) as sim:
        device = usb.core.find(backend=backend(str(bus)))
        usb.util.claim_interface(device, 0)
        others = [ControlClient(place / "control") for _ in range(3)]
        assert device.read(END_IN, 64, 5_000).tobytes() == b"\0"  # a device begins with it
        sim.process.terminate()
        with pytest.raises(usb.core.USBError) as gone:
            device.read(END_IN, 64, 5_000)
        assert gone.value.errno == errno.ENODEV
        assert sim.process.wait(10) == 0
    usb.util.dispose_resources(device)
    for other in others:
        other.close()
    assert left_in(place) == set()
    assert [path.name for path in bus.iterdir()] == ["last-address"]


def test_a_device_that_fails_reports_the_error_and_ends(tmp_path: Path) -> None:
    place = tmp_path / "shoe"

    def fail() -> None:
        with device_process("shoe", place) as sim:
            (place / "ring").write_bytes(b"nonsense")
            with pytest.raises(ControlLost):
                sim.control.do(CutPower())
            assert sim.process.wait(10) != 0

    with pytest.raises(DeviceFailed, match="ring"):
        fail()
    assert left_in(place) == set()


def test_text_output_and_ctrl_c(tmp_path: Path) -> None:
    place = tmp_path / "shoe"
    command = [sys.executable, "-m", "hil.simulator", "shoe", "--dir", str(place), "--create"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [next(process.stdout)]
            while not lines[-1].startswith("runs until"):
                lines.append(next(process.stdout))
            with ControlClient(place / "control") as control:
                label = control.do(Describe())["label"]
                assert run("do", str(place / "control"), "service", "on=true") == 0
                assert "SERVICE" in control.do(Describe())["state"]
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
        finally:
            process.kill()
    told = (label, str(place / "port"), str(place / "control"), "not paired", "service on=true")
    assert [part for part in told if part not in "".join(lines)] == []


# --- the command line -----------------------------------------------------------------------------


def test_requests_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "shoe"
    with device_process("shoe", place) as sim:
        control = str(place / "control")
        assert run("do", control, "load", "cards=Ah,Td,2c", "decks=0") == 0
        assert run("do", control, "draw", "count=2", "force=true", "read=low") == 0
        capsys.readouterr()
        assert run("do", control, '{"do": "describe"}') == 0
        assert json.loads(capsys.readouterr().out)["serial"] == sim.serial
        assert run("do", control, "firmware", "version=7") == 0
        assert run("do", control, "load", "cards=", "decks=1") == 0
        capsys.readouterr()
        assert run("do", control, "break", "name=nonsense") == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("holecard: break: 'nonsense' is no break; allowed: ")
        assert sim.control.do(ServiceSwitch(on=False)) == {"service": False}
        sim.control.do(Draw(force=True))


def test_breaks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("breaks") == 0
    everything = capsys.readouterr().out
    assert "gate-early" in everything
    assert "ST-4" in everything
    assert run("breaks", "--profile", "station", "--json") == 0
    names = {one["name"] for one in json.loads(capsys.readouterr().out)}
    assert {"stuck-counts", "gate-early"} & names == {"stuck-counts"}


def test_one_device_runs_from_a_folder(tmp_path: Path) -> None:
    for _ in range(2):
        with (
            exclusive_use(tmp_path),
            pytest.raises(FolderProblem, match="is in use"),
            exclusive_use(tmp_path),
        ):
            raise AssertionError


def test_an_error_inside_exclusive_use_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError, match="of the body"), exclusive_use(tmp_path):
        raise BlockingIOError("of the body")


def test_a_device_without_output_is_killed_on_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "START_TIMEOUT", 0.2, raising=False)
    popen = subprocess.Popen
    started: list[subprocess.Popen[str]] = []

    def silent(command: list[str], **more: object) -> subprocess.Popen[str]:
        words = "import time; print('half', end='', flush=True); time.sleep(5)"
        started.append(popen([sys.executable, "-c", words], **more))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", silent)
    with (
        pytest.raises(DeviceFailed, match="no output within"),
        device_process("shoe", tmp_path / "shoe"),
    ):
        raise AssertionError
    assert started[0].returncode == -9


def test_the_port_of_a_running_device_is_not_replaced(tmp_path: Path) -> None:
    with device_process("shoe", tmp_path / "one") as sim:
        assert sim.port is not None
        with (
            pytest.raises(DeviceFailed, match="is the port of a device that runs"),
            device_process("shoe", tmp_path / "two", "--port", str(sim.port)),
        ):
            pytest.fail("it runs")
        assert sim.port.is_char_device()


def test_a_folder_need_not_be_named_in_utf_8(tmp_path: Path) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/n\xff\xfe"))
    with device_process("shoe", place) as sim:
        assert "\N{REPLACEMENT CHARACTER}" in sim.control.do(Describe())["port"]


@asynchronous
async def test_a_process_that_stood_still_reads_before_its_device_judges_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short stall of the process is no silence of the host; its own deadline holds after it."""
    clock = [1_000_000]
    monkeypatch.setattr("hil.simulator.run.now", lambda: clock[0])
    create_identity(tmp_path, DeviceClass.SHOE, "SH-1")
    device = SimulatedDevice(tmp_path, SimulatedShoe, now=clock[0], sync=False)
    told: list[tuple[str, int]] = []
    monkeypatch.setattr(device, "due", lambda: 1_250_000)
    monkeypatch.setattr(device, "receive", lambda data, at: told.append(("read", at)))
    monkeypatch.setattr(device, "wake", lambda at: told.append(("wake", at)))
    live = LiveDevice(device)
    for at in (1_499_999, 1_500_000):
        clock[0] = at
        live.receive(b"x")
    live.close()
    assert told == [("read", 1_499_999), ("read", 1_250_000), ("wake", 1_500_000)]
