"""A table whose processes are stopped, or get no processor time: idle and in a round.

A stall of the daemon asks nobody anything; a device that is silent for real is noticed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import pytest

from controller.audit.read.reader import records
from controller.audit.verify import verify
from tests.long.starve.table import DONE, IDLE, IN_ROUND

STOPS: Final = (0.5, 1.0, 2.0, 3.0, 5.0)
"""Seconds for which a process is stopped."""
BUSY: Final = (8, 12, 15)
"""Processes that run without end."""
BUSY_SECONDS: Final = 8.0
STARVED_SECONDS: Final = 12.0
REST: Final = 2.0
"""Seconds for the table after each of them: no longer than a device may be away."""
SETTLED: Final = 5.0
"""Seconds until everything goes on, after a machine was too busy."""
NICE: Final = 10
"""Of a daemon that other programs starve: it gets a tenth of their share."""
WATCHDOG_US: Final = 20_000_000
"""The timeout of the service manager's watchdog, as in the unit."""
ASKED: Final = ("DeviceLost", "FeltConfirmed")

Trouble: TypeAlias = Callable[[str, int, int], None]
"""At this step: the process ids of the daemon, and of its devices."""


# --- what happens to a process ----------------------------------------------------------------


def stop(pid: int, seconds: float) -> None:
    """Stop a process, and let it go on."""
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes run without end."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


@contextmanager
def nice(pid: int, value: int) -> Iterator[None]:
    """All threads of a process have this priority meanwhile. Only root can give it back."""
    _renice(pid, value)
    try:
        yield
    finally:
        _renice(pid, 0)


def _renice(pid: int, value: int) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.setpriority(os.PRIO_PROCESS, int(thread), value)


# --- a table in trouble -----------------------------------------------------------------------


class Troubled:
    """What the record of a table says of its troubles."""

    def __init__(self, folder: Path, told: list[str]) -> None:
        self.folder = folder
        self.told = told
        """What the service manager was told."""
        self.asked: Counter[str] = Counter()
        """Events that concern people."""
        self.ended: Counter[str] = Counter()
        """Sessions that ended, by reason."""
        self.stalls = 0
        """Stalls that are recorded."""

    def read(self, since: int, until: int) -> None:
        """Count what was recorded between these times, in microseconds since 1970."""
        for _, record in records(self.folder / "record"):
            if not since <= record.utc <= until:
                continue
            data: dict[str, Any] = msgspec.json.decode(record.data)
            if record.kind == "decision" and data["event"]["type"] in ASKED:
                self.asked[data["event"]["type"]] += 1
            elif record.kind == "link" and data["what"] == "SessionEnded":
                self.ended[data["why"]] += 1
            elif record.kind == "link" and data["what"] == "host_stalled":
                self.stalls += data["count"]

    @property
    def hangs(self) -> list[str]:
        """What the watchdog said of a daemon that hangs."""
        words = ("the loop was busy", "nothing was done", "the record has not answered")
        return [line for line in self.told if any(word in line for word in words)]


def troubled(folder: Path, trouble: Trouble) -> Troubled:
    """A table that meets this trouble when it is idle, and again in a round. It is verified."""
    command = [sys.executable, "-m", "tests.long.starve.table", str(folder)]
    environ = {**os.environ, "WATCHDOG_USEC": str(WATCHDOG_US)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    ) as table:
        assert table.stdin is not None
        assert table.stdout is not None
        try:
            steps: list[str] = []
            told: dict[str, Any] = {}
            began = ended = 0
            for line in table.stdout:
                told = json.loads(line)
                steps.append(told["step"])
                if told["step"] == DONE:
                    ended = time.time_ns() // 1000
                    break
                began = began or time.time_ns() // 1000
                trouble(told["step"], told["pid"], table.pid)
                table.stdin.write("\n")
                table.stdin.flush()
        finally:
            if table.poll() is None and steps[-1:] != [DONE]:
                table.kill()
    assert (steps, told.get("code")) == ([IDLE, IN_ROUND, DONE], 0)
    assert [finding.what for finding in verify(folder / "record").findings] == []
    found = Troubled(folder, told["told"])
    found.read(began, ended)
    found.ended.pop("closed", None)  # the end of the daemon
    print(f"{folder.name}: {dict(found.ended)} ended, {found.stalls} stalls, {dict(found.asked)}")
    return found


# --- tests ------------------------------------------------------------------------------------


def test_a_daemon_that_is_stopped_asks_nobody_anything(tmp_path: Path) -> None:
    def trouble(step: str, daemon: int, devices: int) -> None:
        for seconds in STOPS:
            stop(daemon, seconds)
            time.sleep(REST)

    found = troubled(tmp_path / "stopped", trouble)
    assert found.asked == Counter()
    assert set(found.ended) == {"stalled"}
    assert found.stalls >= 2 * sum(seconds >= 1 for seconds in STOPS)
    assert found.hangs == []
    assert found.told.count("WATCHDOG=1") > 2 * len(STOPS), "the watchdog is fed after each of them"


def test_devices_that_are_silent_are_noticed(tmp_path: Path) -> None:
    def trouble(step: str, daemon: int, devices: int) -> None:
        stop(devices, 0.5)
        time.sleep(REST)
        stop(devices, 4.0)
        time.sleep(SETTLED)

    found = troubled(tmp_path / "silent", trouble)
    assert found.ended["silent"] > 0
    assert found.asked["DeviceLost"] >= 2
    assert found.asked["FeltConfirmed"] == 2, "once when idle, once in the round"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a priority back")
def test_a_daemon_that_is_starved_asks_nobody_anything(tmp_path: Path) -> None:
    def trouble(step: str, daemon: int, devices: int) -> None:
        with nice(daemon, NICE), busy(BUSY[1]):
            time.sleep(STARVED_SECONDS)
        time.sleep(SETTLED)

    found = troubled(tmp_path / "starved", trouble)
    assert found.asked == Counter()
    assert found.hangs == []


def test_a_busy_machine_loses_no_device(tmp_path: Path) -> None:
    def trouble(step: str, daemon: int, devices: int) -> None:
        for count in BUSY if step == IDLE else BUSY[-1:]:
            with busy(count):
                time.sleep(BUSY_SECONDS)
        time.sleep(REST)

    found = troubled(tmp_path / "busy", trouble)
    assert found.asked == Counter()
    assert found.hangs == []
