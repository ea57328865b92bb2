"""A look at a table that is served: it is told so, and it is not disturbed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from controller.audit.log import SystemClock
from controller.audit.verify import verify
from tests.support.daemon.doctor_house import House, house
from tests.support.paths import ROOT


@contextmanager
def served(made: House) -> Iterator[subprocess.Popen[str]]:
    """`holecard serve`, which is ready."""
    running = subprocess.Popen(
        [sys.executable, "-m", "controller.cli", "serve", str(made.file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("ready: house-1 at ")
        yield running
    finally:
        running.kill()
        running.communicate(timeout=30)


def wrongs(made: House) -> list[str]:
    return [name for name, found in made.all().items() if found.verdict == "wrong"]


def test_beside_a_table_that_is_served(tmp_path: Path) -> None:
    with house(tmp_path) as made:
        made.machine = replace(made.machine, clock=SystemClock())
        assert wrongs(made) == []
        with served(made) as running:
            for _ in range(3):
                every = made.all()
                assert [name for name, one in every.items() if one.verdict == "wrong"] == []
                said = f"the table is being served by process {running.pid} ("
                assert said in every["record"].note
                assert every["socket"].note.endswith("the table is being served")
                assert every["control ports"].note.endswith("the table is being served")
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == 0
        assert wrongs(made) == []
        assert made.check("round").note == "round 0, at closed"
        report = verify(made.record)
        assert [one.what for one in report.findings] == []


def test_a_table_that_a_killed_controller_has_left(tmp_path: Path) -> None:
    with house(tmp_path) as made:
        made.machine = replace(made.machine, clock=SystemClock())
        with served(made) as running:
            running.send_signal(signal.SIGKILL)
            running.wait(30)
        assert wrongs(made) == []
        assert "left from a former start" in made.check("socket").note
