"""Lines for engineers go to stderr, and nobody fails for them; stdout stays data."""

from __future__ import annotations

import errno
import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from drivers import events
from drivers import logging as log_lines
from drivers.devices import LinkState
from tests.support.drivers.simulated import running, simulate, table


def plays(tmp_path: Path) -> list[events.AnyHappening]:
    """A device is plugged in and adopted; what was told of it."""

    async def main() -> list[events.AnyHappening]:
        async with table(tmp_path) as (_, _, watched), running(watched):
            await watched.ready()
            assert watched.state is LinkState.READY
            happenings: list[events.AnyHappening] = watched.happenings
            return happenings

    return simulate(main())


def test_log_lines_of_drivers_are_written_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_lines.to_stderr()
    happenings = plays(tmp_path)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) >= len(happenings) > 5
    assert all("[info" in line for line in lines)
    assert "NEW_EPOCH" in err


def test_nothing_below_the_level_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_lines.to_stderr(logging.ERROR)
    plays(tmp_path)
    structlog.get_logger("drivers").error("a bug")
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)


def test_an_error_shows_no_local_variable(capsys: pytest.CaptureFixture[str]) -> None:
    log_lines.to_stderr()
    card = 0x2A5F
    try:
        raise ValueError(f"a bug, {card - card}")
    except ValueError:
        structlog.get_logger("drivers").exception("it failed")
    err = capsys.readouterr().err
    assert "ValueError: a bug, 0" in err
    assert str(card) not in err


class Broken(io.StringIO):
    """A stderr whose reader has gone, or whose disk is full."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, _: str) -> int:
        raise OSError(self.number, "no way")


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize(
    "stream",
    [Broken(errno.EPIPE), Broken(errno.ENOSPC), closed(), None],
    ids=["no reader", "full disk", "closed", "none"],
)
def test_a_line_that_cannot_be_written_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None
) -> None:
    log_lines.to_stderr()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        plays(tmp_path)


_PROCESS = """\
import importlib.metadata, sys
from controller import cli
point = importlib.metadata.EntryPoint("speaks", "speaks:register", cli.GROUP)
importlib.metadata.entry_points = lambda group: [point]
sys.exit(cli.main(["speaks"]))
"""
_COMMAND = """\
def register(subparsers):
    subparsers.add_parser("speaks").set_defaults(func=run)

def run(args):
    import structlog
    structlog.get_logger("drivers").info("words for engineers")
    print("data")
    return 0
"""


def test_a_command_keeps_stdout_clean(tmp_path: Path) -> None:
    (tmp_path / "speaks.py").write_text(_COMMAND)
    done = subprocess.run(
        [sys.executable, "-c", _PROCESS],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "data\n"
    assert "words for engineers" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_does_not_read_blocks_no_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has no room for is dropped, and what comes once there is room is not."""
    log_lines.to_stderr()
    log = structlog.get_logger("drivers")
    reading, writing = os.pipe()
    with open(reading, "rb") as reader, open(writing, "w", encoding="utf-8") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        for number in range(5000):
            log.info("a line", number=number, more="x" * 300)
        log.info("long", more="y" * 100_000)
        os.set_blocking(reading, False)
        first = reader.read()
        assert b"number=0\n" in first
        assert b"number=4999\n" not in first
        log.info("there is room")
        assert b"there is room" in reader.read()
        log.info("long", more="y" * 20_000)
        assert reader.read().count(b"y") == 20_000


def test_a_stderr_that_is_closed_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    log_lines.to_stderr()
    reading, writing = os.pipe()
    stderr = open(writing, "w", encoding="utf-8")  # noqa: SIM115 - closed while it is in use
    monkeypatch.setattr(sys, "stderr", stderr)
    stderr.close()
    structlog.get_logger("drivers").info("to nobody")
    os.close(reading)
