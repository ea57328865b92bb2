"""`holecard sim` as somebody types it who does not know it yet, or types it wrong."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.cli import main
from controller.errors import UsageProblem
from drivers.keys import KeyStore
from drivers.ports import Transport, parse
from firmware_protocol.device import (
    Describe,
    DeviceIdentity,
    FolderProblem,
    Plug,
    create_identity,
    load_identity,
    paired_host,
)
from firmware_protocol.messages import DeviceClass
from hil.control import ControlClient
from hil.devices import CLASSES
from hil.ports import pty, unix_sockets
from hil.simulator import DeviceSetup, cli, device_process
from hil.simulator.run import DeviceFailed
from tests.support.hil.commands import left_in, sim_until_ready
from tests.support.hil.commands import sim as run

PATIENCE = 30.0
EMPTY = "is empty; allowed: a path"
BAD: list[tuple[tuple[str, ...], str]] = [
    (("shoe", "--dir", "", "--create"), f"--dir: {EMPTY}"),
    (("shoe", "--dir", "{}/n", "--create", "--port", ""), f"--port: {EMPTY}"),
    (("shoe", "--dir", "{}/n", "--create", "--usb", ""), f"--usb: {EMPTY}"),
    (("shoe", "--dir", "{}/n", "--create", "--control", ""), f"--control: {EMPTY}"),
    (("shoe", "--dir", "{}/n", "--create", "--serial", ""), "--serial: '' is no serial number"),
    (
        ("shoe", "--dir", "{}/a-shoe", "--serial", ""),
        "--serial: '' is no serial number; allowed: 1",
    ),
    (("shoe", "--dir", "{}/n", "--create", "--break", ""), "--break: a shoe has no break ''"),
    (("shoe", "--dir", "{}/n", "--create", "--paired-with", ""), "--paired-with: no public key"),
    (("shoe", "--dir", "{}/n", "--create", "--port", "{}/a-link"), "a symlink to .*/mine"),
    (("shoe", "--dir", "{}/n", "--create", "--control", "{}/a-link"), "exists and is no socket"),
    (("shoe", "--dir", "{}/n", "--create", "--control", "{}/gone"), "exists and is no socket"),
    (("shoe", "--dir", "{}/n", "--create", "--port", "{}/mine"), "--port: .* is no symlink"),
    (
        ("shoe", "--dir", "{}/n", "--create", "--port", "{}/p", "--control", "{}/p"),
        "--control: [^:]*/p is what --port names; allowed: another path$",
    ),
    (
        ("shoe", "--dir", "{}/n", "--create", "--port", "{}/here/../p", "--control", "{}/p"),
        "--control: [^:]*/p is what --port names; allowed: another path$",
    ),
    (
        ("shoe", "--dir", "{}/n", "--create", "--control", "{}/n/port"),
        "--control: [^:]*/n/port is what --port names; allowed: another path$",
    ),
    (
        ("shoe", "--dir", "{}/n", "--create", "--port", "{}/n/control"),
        "--control: [^:]*/n/control is what --port names; allowed: another path$",
    ),
    (
        ("shoe", "--dir", "{}/n", "--create", "--port", "{}/n"),
        "--port: [^:]*/n is what --dir names; allowed: another path$",
    ),
    (
        ("shoe", "--dir", "{}/n", "--create", "--usb", "{}/b", "--control", "{}/b"),
        "--control: [^:]*/b is what --usb names; allowed: another path$",
    ),
    (
        ("shoe", "--dir", "{}/n", "--create", "--gone", "EIO"),
        "--gone: a serial port has no such reads; allowed: --gone with --usb$",
    ),
    (
        ("shoe", "--dir", "{}/keys", "--create"),
        "--dir [^:]*/keys: has host.json, which is no file of a device; allowed: an empty ",
    ),
    (
        ("shoe", "--dir", "{}/" + "x" * 300, "--create"),
        "xxx: File name too long; allowed: a folder",
    ),
    (("shoe", "--dir", "{}/none"), "--dir .*: has no device; allowed: --create makes one"),
    (("shoe", "--dir", "{}/a-station"), "has a station; allowed: holecard sim station"),
    (("shoe", "--dir", "{}/n", "--create", "--break", "x"), "--break: a shoe has no break 'x'"),
    (("shoe", "--dir", "{}/n", "--create", "--break", "bounces"), "a shoe has no break 'bounces'"),
    (("station", "--dir", "{}/n", "--create", "--seat", "0"), "0 is no seat; allowed: 1 to 15"),
    (("station", "--dir", "{}/n", "--create", "--seat", "2", "--seat", "2"), "named twice"),
    (("shoe", "--dir", "{}/n", "--create", "--paired-with", "ab"), "--paired-with: no public key"),
    (("shoe", "--dir", "{}/n", "--create", "--paired-with", "zz"), "64 hexadecimal digits"),
    (("shoe", "--dir", "{}/n", "--create", "--usb", "{}/u", "--port", "{}/p"), "has one cable"),
    (("shoe", "--dir", "{}/n", "--create", "--serial", "a b"), "'a b' is no serial number"),
    (("station", "--dir", "{}/a-station", "--serial", "other"), "--serial: the device has ST-1"),
    (("station", "--dir", "{}/a-station", "--port", "{}/mine"), "--port: .* is no symlink"),
    (("station", "--dir", "{}/a-station", "--port", "{}/x/y/p"), "--port: there is no folder"),
    (("station", "--dir", "{}/a-station", "--control", "{}/mine"), "exists and is no socket"),
    (("station", "--dir", "{}/a-station", "--usb", "{}/mine"), "--usb: .*mine is no folder"),
    (("shoe", "--dir", "{}/mine", "--create"), "--dir: .*mine is no folder"),
    (("shoe", "--dir", "{}/mine/in", "--create"), "/mine/in: Not a directory"),
    (("do", "{}/none", "describe"), "none: .*No such file"),
    (("do", "{}/none", "dance"), "do: 'dance' cannot be done here; allowed: describe, service"),
    (("do", "{}/none", "draw", "count"), "'count': no field=value; allowed: draw field=value"),
    (("do", "{}/none", "draw", "count=0"), "count: .*; allowed: a whole number from 1 to 10000"),
    (("do", "{}/none", "draw", "number=1"), "number: draw has no such field; allowed: count"),
    (("do", "{}/none", '{"do": "draw"}', "count=1"), "count=1: the request is JSON already"),
    (("do", "{}/none", '{"do": "draw"'), "line: no JSON"),
    (("do", "", "describe"), "SOCKET: is empty; allowed: the control socket of a device that runs"),
    (("do", "{}", "describe"), "SOCKET: [^:]*: is a folder; allowed: the control socket"),
    (("do", "{}/mine", "describe"), "SOCKET: [^:]*: is no socket; allowed: the control socket"),
    (("do", "{}/none", "describe"), "SOCKET: [^:]*: No such file or directory; allowed"),
    (("do", "{}/none", ""), "do: '' cannot be done here"),
    (("do", "{}/none", "draw", ""), "'': no field=value"),
    (("do", "{}/none", "draw", "=1"), "'=1': no field=value"),
    (("do", "{}/none", "draw", "count=1", "count=2"), "count: is given twice; allowed: each field"),
    (("do", "{}/none", "draw", "do=load"), "do: is given twice; allowed: each field once"),
    (("do", "{}/none", '{"do": "draw", "count": 1, "count": 2}'), "count: is given twice"),
    (("do", "{}/none", "draw", "count=NaN"), "count: Expected int, got str"),
    (("do", "{}/none", "draw", "count=" + "9" * 5000), "count: Expected int, got str"),
    (("do", "{}/none", "draw", "count=" + "[" * 100_000), "count: Expected int, got str"),
    (("do", "{}/none", '{"do": "draw\udcff"}'), "line: no JSON"),
]


@pytest.mark.parametrize(("arguments", "what"), BAD)
def test_wrong_arguments_are_reported_and_nothing_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], what: str
) -> None:
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")  # where what is empty would be taken for
    (tmp_path / "here").mkdir()
    KeyStore.create(tmp_path / "keys")
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a-link").symlink_to(tmp_path / "mine")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    create_identity(tmp_path / "a-shoe", DeviceClass.SHOE, "SH-1")
    create_identity(tmp_path / "a-station", DeviceClass.STATION, "ST-1")
    (tmp_path / "a-station" / "in-use").touch()
    before = sorted(tmp_path.rglob("*"))
    filled = [argument.replace("{}", str(tmp_path)) for argument in arguments]
    with pytest.raises(UsageProblem, match=what) as caught:
        run(*filled)
    for path in filled:
        assert "/" not in path or str(caught.value).count(path) <= 1
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "a-link").readlink() == tmp_path / "mine"


def test_a_device_that_runs_is_not_paired_by_one_that_may_not(tmp_path: Path) -> None:
    place = tmp_path / "shoe"
    with device_process("shoe", place, paired_with=bytes(range(32))) as sim:
        with (
            pytest.raises(DeviceFailed, match="is in use"),
            device_process("shoe", place, paired_with=b"x" * 32),
        ):
            pytest.fail("it runs")
        assert paired_host(place) == bytes(range(32))
        assert sim.control.do(Describe())["host"] is not None


def test_of_two_that_make_a_device_in_one_folder_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "shoe"
    link = os.link

    def overtaken(source: Path, target: Path) -> None:
        with monkeypatch.context() as alone:
            alone.setattr(os, "link", link)
            alone.setattr(os, "getpid", lambda: 1)  # another process
            first.append(create_identity(place, DeviceClass.SHOE, "SH-1"))
        link(source, target)

    first: list[DeviceIdentity] = []
    monkeypatch.setattr(os, "link", overtaken)
    with pytest.raises(FolderProblem, match="holds a device already"):
        create_identity(place, DeviceClass.SHOE, "SH-2")
    assert load_identity(place).public == first[0].public
    assert [path.name for path in place.iterdir()] == ["identity.toml"]


def test_the_socket_of_a_killed_device_and_of_one_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "shoe"
    control = str(place / "control")
    with device_process("shoe", place) as sim:
        (place / "ring").write_bytes(b"nonsense")
        assert run("do", control, "power") == 74
        assert capsys.readouterr().err == (
            f"holecard: {control}: the simulated device has stopped; its own output says why\n"
        )
        assert sim.process.wait(PATIENCE) != 0
        sim.process.returncode = 0  # it was to end so
    (place / "ring").unlink()
    with device_process("shoe", place) as sim:
        sim.process.kill()
        sim.process.wait(PATIENCE)
        with pytest.raises(UsageProblem, match="no device listens there any more"):
            run("do", control, "describe")


def test_a_socket_of_another_kind_or_of_another_user_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with device_process("shoe", tmp_path / "shoe", usb=tmp_path / "bus"):
        with pytest.raises(UsageProblem, match=r"--control: .* is in use: a process"):
            run(
                "shoe",
                "--dir",
                f"{tmp_path}/n",
                "--create",
                "--control",
                f"{tmp_path}/bus/device-001",
            )

        def refused(sock: socket.socket, path: Path) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(unix_sockets, "connect", refused)
        with pytest.raises(UsageProblem, match=r"--control: .* is in use: a process"):
            run(
                "shoe",
                "--dir",
                f"{tmp_path}/m",
                "--create",
                "--control",
                f"{tmp_path}/shoe/control",
            )
        assert (tmp_path / "shoe" / "control").is_socket()


def test_a_folder_that_may_not_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "shoe").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", refused)
        for command in (["shoe", "--dir", f"{tmp_path}/shoe"], ["do", f"{tmp_path}/c", "describe"]):
            with pytest.raises(UsageProblem, match=r"Permission denied|No such file"):
                run(*command)


# --- what is said ---------------------------------------------------------------------------------


def test_the_printed_commands_are_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for options, transport in (
        (["--dir", "a b", "--create"], Transport.SERIAL),
        (["--dir", "a b", "--port", "p"], Transport.SERIAL),
        (["--dir", "a b", "--usb", "the bus"], Transport.USB),
    ):
        assert sim_until_ready(monkeypatch, "shoe", *options) == 0
        lines = [
            shlex.split(line) for line in capsys.readouterr().out.splitlines() if "holecard" in line
        ]
        assert lines[0] == ["holecard", "sim", "do", "a b/control", "service", "on=true"]
        assert lines[1][:3] == ["holecard", "devices", "pair"]
        assert parse(lines[1][3]).transport is transport


@contextmanager
def running(place: Path, *wrapped: str) -> Iterator[subprocess.Popen[str]]:
    """A shoe that runs meanwhile, and ends as it should; by itself it writes to a pipe."""
    command = [sys.executable, "-m", "hil.simulator", "shoe", "--dir", str(place), "--create"]
    stdout = None if wrapped else subprocess.PIPE
    with subprocess.Popen([*wrapped, *command], stdout=stdout, text=True) as process:
        try:
            yield process
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def test_a_full_stdout_is_not_reported_as_the_devices_disk(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "controller.cli", "sim", "shoe", "--dir", str(tmp_path / "s")]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*command, "--create"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    unwritten = "holecard: the output cannot be written: No space left on device\n"
    assert (ran.returncode, ran.stderr) == (74, unwritten)
    assert left_in(tmp_path / "s") == set()


def test_a_folder_name_need_not_be_utf_8(tmp_path: Path) -> None:
    with running(Path(os.fsdecode(os.fsencode(tmp_path) + b"/n\xff"))) as process:
        assert process.stdout is not None
        while not (line := process.stdout.readline()).startswith("runs until"):
            assert line


def test_the_device_survives_a_reader_that_closes_the_pipe(tmp_path: Path) -> None:
    place = tmp_path / "shoe"
    with running(place) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("shoe SH-0001")
        process.stdout.close()
        with ControlClient(place / "control") as control:
            control.do(Describe())
    assert left_in(place) == set()


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_it_runs_without_its_own_input_and_output(tmp_path: Path, closed: str) -> None:
    place = tmp_path / "shoe"
    with running(place, "bash", "-c", f'exec "$@" {closed}', "bash") as process:
        while not (place / "control").is_socket():
            assert process.poll() is None
        with ControlClient(place / "control") as control:
            assert control.do(Describe())["serial"] == "SH-0001"
    assert left_in(place) == set()


@pytest.mark.parametrize("command", ["shoe", "shuffler", "station", "do"])
def test_each_help_has_examples_and_exit_codes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", command, "--help"]) == 0
    told = capsys.readouterr().out
    assert f"  holecard sim {command} " in told
    assert "Exit codes: 0" in told


# --- plugged in elsewhere -------------------------------------------------------------------------


def test_another_port_and_back_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with device_process("shoe", tmp_path / "shoe") as sim:
        assert sim.port is not None
        control = str(tmp_path / "shoe" / "control")

        def plug(*fields: str) -> dict[str, object]:
            assert run("do", control, "plug", *fields) == 0
            answer: dict[str, object] = json.loads(capsys.readouterr().out)
            return answer

        plug("connected=false")
        assert plug("connected=true", "other_port=true")["port_number"] == 2
        assert not sim.port.is_symlink()
        plug("connected=false")
        assert plug("connected=true", "port_number=1")["port_number"] == 1
        assert sim.port.is_char_device()
        assert sim.control.do(Describe())["port"] == str(sim.port)


def test_plugging_into_a_port_in_use_is_denied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = tmp_path / "port"
    other = tmp_path / "port-2"
    with (
        device_process("shoe", tmp_path / "shoe", "--port", str(port)) as sim,
        device_process("station", tmp_path / "station", "--port", str(other)),
    ):
        control = str(tmp_path / "shoe" / "control")
        sim.control.do(Plug(connected=False))
        assert run("do", control, "plug", "connected=true", "other_port=true") == 1
        assert f"plug: {other} is the port of a device that runs" in capsys.readouterr().err
        told = sim.control.do(Describe())
        assert (told["plugged"], told["port"]) == (False, None)
        assert sim.control.do(Plug(connected=True)) == {"plugged": True, "port_number": 1}
        assert port.is_char_device()
        assert other.is_char_device()


def test_only_a_link_of_a_killed_device_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "left").symlink_to("/dev/pts/987654")
    pty.check_link(tmp_path / "left")
    for target in ("/dev/ttyUSB0", "/dev/pts/", "/dev/pts/1/..", "pts/1"):
        link = tmp_path / "another's"
        link.symlink_to(target)
        with pytest.raises(pty.LinkTaken, match="is a symlink to"):
            pty.check_link(link)
        link.unlink()


@pytest.mark.parametrize(
    "left",
    [
        (),
        ("in-use", "host", "ring", "ring.saved", "ring.new", "kept", "mechanism"),
        ("identity.toml.4711.new", "control", ".control.12", "port", "port-2", ".port-2.12"),
    ],
)
def test_a_device_is_made_in_an_empty_folder_and_where_one_was(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    for name in left:
        (tmp_path / name).touch()
    parsed = argparse.Namespace(device=CLASSES["shoe"], serial=None, create=True, paired_with=None)
    setup = DeviceSetup(device_class=DeviceClass.SHOE, place=tmp_path, control=tmp_path / "control")
    cli.create_device(parsed, setup)
    assert load_identity(tmp_path).serial == "SH-0001"
    # Whoever has made it there may keep other things beside it.
    (tmp_path / "notes").touch()
    cli.create_device(parsed, setup)
