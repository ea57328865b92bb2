"""`holecard sim` on a disk that fails, in whatever step: one line, and nothing half made."""

from __future__ import annotations

import errno
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.errors import UsageProblem
from firmware_protocol.device import ServiceSwitch, TamperWith, read_file, write_at
from hil.control import ControlClient, ControlLost
from hil.simulator import cli, device_process
from tests.support.hil.commands import sim
from tests.support.hil.conform.failing_disk import FailingDisk

ENDED = 74
PATIENCE = 30.0


def leftovers(folder: Path) -> list[str]:
    """What a step that was cut short has left."""
    names = (path.name for path in folder.rglob("*"))
    return [name for name in names if name.endswith(".new") or name.startswith(".")]


@pytest.fixture
def ends_when_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that runs is told to stop at once."""

    def stop(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(cli, "announce", stop)


def each_step(
    folder: Path, number: int, patch: pytest.MonkeyPatch, try_it: Callable[[Path], int]
) -> int:
    """Try it with a failure in each of its steps, in a place of its own; how many steps there
    are."""
    for at in itertools.count():
        place = folder / f"step-{at}" / "deep" / "shoe"
        place.parent.parent.mkdir()
        with patch.context() as patched:
            disk = FailingDisk(patched, place.parent.parent, number, at)
            code = try_it(place)
        if disk.asked <= at:
            assert code == 0
            return at
        assert code != 0, at
        assert leftovers(folder) == [], at
        assert (place / "identity.toml").exists() or not place.parent.exists(), at
        assert sim("shoe", "--dir", str(place), "--create", "--port", str(place / "p")) == 0, at
    raise AssertionError


@pytest.mark.usefixtures("ends_when_ready")
def test_a_disk_that_is_full_at_any_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def try_it(place: Path) -> int:
        code = sim("shoe", "--dir", str(place), "--create")
        out, err = capsys.readouterr()
        assert out == ""
        if code:
            assert code == ENDED
            names_a_file = rf"holecard: {place.parent.parent}[^\n]*"
            why = "No space left on device; make room there, then start it again"
            assert re.fullmatch(f"{names_a_file}: {why}\n", err), err
            assert not re.search(rf"\.new|\.{os.getpid()}", err), err
        return code

    assert each_step(tmp_path, errno.ENOSPC, monkeypatch, try_it) > 30


@pytest.mark.usefixtures("ends_when_ready")
def test_a_folder_that_cannot_be_written_to_is_the_users_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def try_it(place: Path) -> int:
        try:
            return sim(
                "shoe", "--dir", str(place), "--create", "--usb", str(place.parent.parent / "bus")
            )
        except UsageProblem as problem:
            told.append(problem)
            return 2

    told: list[UsageProblem] = []
    assert each_step(tmp_path, errno.EROFS, monkeypatch, try_it) == len(told) > 30
    assert all(problem.where.startswith(f"{tmp_path}/step-") for problem in told)
    said = {(problem.what, problem.allowed) for problem in told}
    assert said == {("Read-only file system", "a folder that can be written to")}


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "No space left on device; make room there, then start it again"),
        (errno.EIO, "Input/output error; the disk fails: move the folder to another one, then"),
        (errno.EROFS, "Read-only file system; have it mounted for writing, then start it again"),
    ],
)
def test_a_disk_that_fails_while_the_device_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
    says: str,
) -> None:
    place = tmp_path / "shoe"
    told: list[str] = []

    def break_it(*_: object) -> None:
        def hands() -> None:
            with ControlClient(place / "control", PATIENCE) as control:
                control.do(ServiceSwitch(on=True))
                disk.at = disk.asked
                try:
                    control.do(TamperWith("case"))
                except ControlLost as lost:
                    told.append(str(lost))

        thread.append(threading.Thread(target=hands))
        thread[0].start()

    thread: list[threading.Thread] = []
    monkeypatch.setattr(cli, "announce", break_it)
    with monkeypatch.context() as patched:
        disk = FailingDisk(patched, tmp_path, number, removes=number == errno.ENOSPC)
        assert sim("shoe", "--dir", str(place), "--create") == ENDED
        thread[0].join(PATIENCE)
    assert re.fullmatch(f"holecard: {place}/ring: {says}.*\n", capsys.readouterr().err)
    assert told == ["the simulated device has stopped; its own output says why"]
    assert leftovers(tmp_path) == []
    with device_process("shoe", place) as again:
        assert again.described["head"] > 0


def test_a_short_write_is_no_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk may take less than it is given, and say so in no other way."""
    taken = os.pwrite

    def bit_by_bit(descriptor: int, data: Any, at: int) -> int:
        return taken(descriptor, data[:5], at)

    file = tmp_path / "ring"
    file.write_bytes(bytes(40))
    monkeypatch.setattr(os, "pwrite", bit_by_bit)
    write_at(file, b"a record of some length", 10, sync=True)
    assert read_file(file) == bytes(10) + b"a record of some length" + bytes(7)


def limited(place: Path, blocks: int) -> subprocess.CompletedProcess[str]:
    """A shoe whose files may be so many kilobytes long: the system itself says no."""
    # -B: Python 3.11 would leave cut-off bytecode of a module that it compiles under the limit.
    command = [sys.executable, "-B", "-m", "hil.simulator", "shoe", "--dir", str(place), "--create"]
    return subprocess.run(
        ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash", *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_a_file_size_limit_is_reported(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "shoe"
    for blocks, file in ((0, "identity.toml"), (1, "ring")):
        ran = limited(place, blocks)
        assert (ran.returncode, ran.stdout) == (ENDED, "")
        says = f"holecard: {place}/{file}: File too large; have the limit raised.*\n"
        assert re.fullmatch(says, ran.stderr)
        assert list(tmp_path.iterdir()) == ([tmp_path / "deep"] if blocks else [])
    assert leftovers(tmp_path) == []
    assert not (place / "ring").exists()
    with device_process("shoe", place) as made:
        assert made.described["boot"] == 1


def test_a_bus_whose_last_address_was_cut_short_gives_out_another(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    for text in ("", "12x\n"):
        (tmp_path / "bus" / "last-address").write_text(text)
        with device_process("shoe", tmp_path / "shoe", usb=tmp_path / "bus") as made:
            assert made.described["usb_address"] == 1


def test_no_pseudo_terminal_is_no_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none() -> tuple[int, int]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "openpty", none)
        assert sim("shoe", "--dir", str(tmp_path / "shoe"), "--create") == ENDED
    assert capsys.readouterr().err == (
        "holecard: /dev/ptmx: no pseudo terminal is left (No space left on device); "
        "close files or terminals of other programs, then start it again\n"
    )
