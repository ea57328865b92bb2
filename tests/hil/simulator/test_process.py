"""Simulated devices in processes of their own: who is in the folder, and who says nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firmware_protocol.device import Describe, FolderProblem
from hil.simulator import device_process, exclusive_use, process
from hil.simulator.process import DeviceFailed


def test_one_device_runs_from_a_folder(tmp_path: Path) -> None:
    with (
        exclusive_use(tmp_path),
        pytest.raises(FolderProblem, match="is in use"),
        exclusive_use(tmp_path),
    ):
        raise AssertionError
    with exclusive_use(tmp_path):
        pass


def test_an_error_inside_exclusive_use_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError, match="of the body"), exclusive_use(tmp_path):
        raise BlockingIOError("of the body")


def test_a_device_without_output_is_killed_on_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "START_TIMEOUT", 0.2, raising=False)
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


def test_the_port_of_a_killed_device_is_taken_over(tmp_path: Path) -> None:
    with device_process("shoe", tmp_path / "one") as sim:
        sim.process.kill()
        sim.process.wait()
        assert sim.port is not None
        assert sim.port.is_symlink()
    with device_process("shoe", tmp_path / "one") as again:
        assert again.port == sim.port


def test_a_folder_need_not_be_named_in_utf_8(tmp_path: Path) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/n\xff\xfe"))
    with device_process("shoe", place) as sim:
        assert "\N{REPLACEMENT CHARACTER}" in sim.control.do(Describe())["port"]
