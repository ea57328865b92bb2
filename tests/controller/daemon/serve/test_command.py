"""`holecard serve` as somebody starts it: what it says, what it does with signals, how it ends,
and when it does not believe the clock."""

import errno
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from controller import early_signals
from controller.audit.errors import RecordProblem
from controller.audit.format.records import Moment
from controller.audit.read.reader import records
from controller.cli import main
from controller.config import load_table
from controller.daemon.cli import STOP_WITHIN
from controller.errors import UsageProblem
from controller.procedure.engine import Procedure
from controller.table.loop import TableEnvironment, TableParts, parts_of
from controller.table.restart import open_record
from controller.table.restart.restore import ClockBehind
from tests.support.daemon.rig import (
    COMMAND,
    PATIENCE,
    UNIT_ENVIRONMENT,
    child,
    free_port,
    furnished,
    right,
    run_once,
    whats,
)
from tests.support.hil.conform.failing_disk import FailingDisk
from tests.support.paths import ROOT

BROKEN = (
    sys.executable,
    "-c",
    """
import asyncio, sys
from controller.cli import main
from controller.daemon import command, people_watch, watchdog
{patch}
sys.exit(main())
""",
    "serve",
    "--allow-root",
)
"""The same command with a defect in it."""


SERVE = ("serve", "--allow-root", "--debuggable")
"""In this process, which stays as it is."""


def broken(patch: str) -> tuple[str, ...]:
    return tuple(word.format(patch=patch) if "{patch}" in word else word for word in BROKEN)


HANGS = """
async def out(self):
    await asyncio.sleep(600)
people_watch.PeopleWatch.sign_all_out = out
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_from_ready_to_its_end(number: signal.Signals, tmp_path: Path) -> None:
    port, figures = free_port(), free_port()
    file = furnished(tmp_path, f"port = {port}", f"metrics_port = {figures}")
    with child(file, env={**UNIT_ENVIRONMENT, "WATCHDOG_USEC": "900000"}, told="READY=1") as daemon:
        text = httpx.get(f"http://127.0.0.1:{figures}/metrics", timeout=30).text
        assert 'holecard_table_info{table="real-1"} 1.0' in text
        assert 'holecard_link_state{class="shoe",device="SH-1",state="absent"} 1.0' in text
        health = httpx.get(f"http://127.0.0.1:{port}/api/v1/health", timeout=30).json()
        assert health["table"] == "real-1"
        daemon.forget()
        for _ in range(2):
            daemon.until_told("WATCHDOG=1")
            daemon.forget()
        assert daemon.ends(number) == 0
        out, err = daemon.rest()
        daemon.hear()
        assert "STOPPING=1" in daemon.told
    assert out == f"ready: real-1 at {tmp_path}/s, http://127.0.0.1:{port}\n"
    lines = [json.loads(line) for line in err.splitlines()]
    assert {line["table"] for line in lines} == {"real-1"}
    ended = [line["event"] for line in lines if line["event"] in ("ready", "ending", "ended")]
    assert ended == ["ready", "ending", "ended"]
    assert all(line["audit_seq"] > 0 for line in lines if line["event"] == "ready")
    assert not (tmp_path / "s").exists()
    assert len(whats(tmp_path, "closed")) == 1
    right(tmp_path)


def test_no_crash_puts_what_it_knows_on_a_disk(tmp_path: Path) -> None:
    """Whatever it was started with."""
    allowed = ("sh", "-c", 'ulimit -c 1000; exec "$@"', "sh", *COMMAND)
    with child(furnished(tmp_path), command=allowed, told="READY=1") as daemon:
        limits = Path(f"/proc/{daemon.process.pid}/limits").read_text()
        (core,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
        assert core.split()[-3:] == ["0", "0", "bytes"]
        assert daemon.ends() == 0


def test_the_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    with child(file, command=broken(HANGS), told="READY=1") as daemon:
        daemon.send(signal.SIGTERM)
        daemon.until_told("STOPPING=1")
        began = time.monotonic()
        assert daemon.ends(signal.SIGINT) == 130
        assert time.monotonic() - began < STOP_WITHIN / 2
        assert "holecard: ended at once" in daemon.rest()[1]
    assert (tmp_path / "s").is_socket()  # left behind, and in nobody's way
    with child(file, told="READY=1") as daemon:
        assert daemon.ends() == 0
    assert len(whats(tmp_path, "opened")) == 2
    right(tmp_path)


def test_a_record_that_hangs_starves_the_watchdog(tmp_path: Path) -> None:
    patch = """
from controller.audit.log import LogWriter
async def append(self, *entries):
    await asyncio.sleep(600)
LogWriter.append = append
watchdog.MAX_APPEND = 0.2
command.STOP_WITHIN = 0.3
"""
    with child(
        furnished(tmp_path), command=broken(patch), env={"WATCHDOG_USEC": "600000"}, told="READY=1"
    ) as daemon:
        transport = httpx.HTTPTransport(uds=str(tmp_path / "s"))
        with httpx.Client(transport=transport, base_url="http://localhost/api/v1") as client:
            token = client.post("/screens", json={"name": "dealer"}).json()["token"]
            bearer = {"Authorization": f"Bearer {token}"}
            somebody = {"badge": "D-17", "pin": "806417"}
            with pytest.raises(httpx.ReadTimeout):
                client.post("/sign-in", json=somebody, headers=bearer, timeout=0.5)
        daemon.until_told("STATUS=the record has not answered for 1 s")
        daemon.forget()
        daemon.until_told("STATUS=the record has not answered for 2 s")
        assert "WATCHDOG=1" not in daemon.told
        assert daemon.ends() == 74


def test_a_loop_that_stands_still_is_ended_at_once_by_the_second_signal(tmp_path: Path) -> None:
    """Also where nobody reads what it says."""
    patch = """
import os, select, time
async def run(self):
    await asyncio.sleep(0.5)
    while select.select([], [2], [], 0)[1]:
        os.write(2, bytes(4096))
    time.sleep(600)
people_watch.PeopleWatch.run = run
"""
    with child(
        furnished(tmp_path), command=broken(patch), env={"WATCHDOG_USEC": "600000"}, told="READY=1"
    ) as daemon:
        fed = 0
        while daemon.tells(1.0):
            fed += daemon.told.count("WATCHDOG=1")
            daemon.forget()
        assert fed >= 1
        daemon.send(signal.SIGTERM)
        # Python looks for signals between two of its steps: one that comes while it goes to sleep
        # again after another is seen with the next.
        while daemon.process.poll() is None:
            daemon.send(signal.SIGINT)
            daemon.tells(0.1)
        assert daemon.code() == 130


def test_an_end_that_takes_too_long_is_one_all_the_same(tmp_path: Path) -> None:
    with child(
        furnished(tmp_path), command=broken(f"{HANGS}\ncommand.STOP_WITHIN = 0.5"), told="READY=1"
    ) as daemon:
        assert daemon.ends() == 74
        assert "holecard: it did not end in time" in daemon.rest()[1]


SLOW_START = """
import os, time
from controller.daemon.watchdog import Notify
from controller.table.running import table as running
opens = running.open_record
def slow(*args, **named):
    Notify(os.environ).tell("STATUS=reads its record")
    end = time.monotonic() + {seconds}
    while time.monotonic() < end:  # as one does that is read: nothing else has a turn
        sum(range(1000))
    return opens(*args, **named)
running.open_record = slow
command.STOP_WITHIN = {within}
"""
"""A record of millions of entries."""


def test_a_start_that_takes_long_has_the_time_that_it_needs(tmp_path: Path) -> None:
    """Only an end has a deadline."""
    file = furnished(tmp_path)
    with child(
        file, command=broken(SLOW_START.format(seconds=2.0, within=0.2)), told="READY=1"
    ) as daemon:
        assert "STATUS=reads its record" in daemon.told
        daemon.process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_end_that_is_asked_for_during_a_start_is_one_in_good_order(
    number: signal.Signals, tmp_path: Path
) -> None:
    with child(
        furnished(tmp_path),
        command=broken(SLOW_START.format(seconds=0.5, within=60)),
        told="STATUS=reads its record",
    ) as daemon:
        assert daemon.ends(number) == 0
        assert "Traceback" not in daemon.rest()[1]
    assert len(whats(tmp_path, "closed")) == 1
    right(tmp_path)


def test_a_start_that_is_to_end_and_does_not_come_to_it(tmp_path: Path) -> None:
    with child(
        furnished(tmp_path),
        command=broken(SLOW_START.format(seconds=600, within=0.3)),
        told="STATUS=reads its record",
    ) as daemon:
        assert daemon.ends() == 74
        assert "holecard: it did not end in time" in daemon.rest()[1]
    assert not (tmp_path / "record" / "00000001.seg").exists()


LOADING = (
    sys.executable,
    "-c",
    """
import os, sys, time
from controller import cli
from controller.daemon.watchdog import Notify
def slow(*command):
    Notify(os.environ).tell("STATUS=loads")
    time.sleep(600)
cli.Subcommand.load = slow
sys.exit(cli.main())
""",
    "serve",
)
"""The command while its modules are loaded."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_before_it_has_begun(number: signal.Signals, tmp_path: Path) -> None:
    with child(furnished(tmp_path), command=LOADING, told="STATUS=loads") as daemon:
        daemon.send(number)
        assert (daemon.code(), daemon.rest()) == (0, ("", ""))
    assert not (tmp_path / "record").exists()


def test_a_fault_of_ours_is_70_and_says_where(tmp_path: Path) -> None:
    patch = "async def run(self): raise KeyError('a defect')\npeople_watch.PeopleWatch.run = run"
    with child(furnished(tmp_path), command=broken(patch)) as daemon:
        assert daemon.code() == 70
        _, err = daemon.rest()
    fault = next(
        line for line in map(json.loads, err.splitlines()) if line["event"] == "a fault of ours"
    )
    assert "KeyError: 'a defect'" in fault["exception"]
    right(tmp_path)


def test_killed_it_goes_on_where_its_record_ends(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    with child(file, told="READY=1") as daemon:
        assert daemon.ends(signal.SIGKILL) == -signal.SIGKILL
    with child(file, told="READY=1") as daemon:
        assert daemon.ends() == 0
    assert (len(whats(tmp_path, "opened")), len(whats(tmp_path, "closed"))) == (2, 1)
    right(tmp_path)


# --- what it cannot be started with -----------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--by", "Ann"], "--by: is given without --believe-clock; allowed: both, or neither"),
        (["--and", "Bo"], "--and: is given without --believe-clock"),
        (["--believe-clock"], "--by: is missing: two people must approve"),
        (["--believe-clock", "--by", "Ann", "--and", " ann"], "--and: 'ann' is the same person"),
    ],
)
def test_options_that_cannot_do(
    options: list[str], words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*SERVE, str(furnished(tmp_path)), *options]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert f"holecard: {words}" in err
    assert not (tmp_path / "record").exists()


def test_mistakes_of_users_are_one_line_and_2(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = furnished(tmp_path)
    (tmp_path / "people.json").chmod(0o622)
    assert main([*SERVE, str(file)]) == 2
    err = capfd.readouterr().err
    assert err.startswith(f"holecard: {tmp_path}/people.json: others may touch it (mode 622)")
    assert err.count("\n") == 1
    handlers = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)]
    assert main([*SERVE, str(tmp_path / "none.toml")]) == 2
    assert handlers == [
        signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
    ]


def test_a_record_of_another_table_is_2_and_a_damaged_one_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = furnished(tmp_path)
    with child(file, told="READY=1") as daemon:
        assert daemon.ends() == 0
    other = tmp_path / "other.toml"
    other.write_text(file.read_text().replace('"real-1"', '"real-2"'))
    assert main([*SERVE, str(other)]) == 2
    assert "is the record of table real-1, not of real-2" in capfd.readouterr().err
    segment = tmp_path / "record/segments/00000001.seg"
    with segment.open("r+b") as opened:
        opened.seek(100)
        opened.write(b"\xff\xff")
    assert main([*SERVE, str(file)]) == 1
    assert "00000001.seg" in capfd.readouterr().err


def test_its_page_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    page = capsys.readouterr().out
    for word in ("SIGTERM", "READY=1", "74", "130", "--believe-clock", "ready: TABLE at SOCKET"):
        assert word in page


def test_nobody_listens_to_it_any_more(tmp_path: Path) -> None:
    """Whoever read its output has gone, and the table is served all the same."""
    with child(furnished(tmp_path)) as daemon:
        assert daemon.process.stdout is not None
        assert daemon.process.stderr is not None
        daemon.process.stdout.close()
        daemon.process.stderr.close()
        daemon.until_told("READY=1")
        assert daemon.ends() == 0
    right(tmp_path)


NOON = 1_800_000_000
HOUR = 3600
TWO = ("Ann", "Bo")


def at(seconds: float, believed: tuple[str, str] | None = None) -> TableEnvironment:
    """The machine's clock says so at its beginning."""
    began = time.monotonic()

    def clock() -> Moment:
        gone = time.monotonic() - began
        mono = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return Moment(round((seconds + gone) * 1e6), mono, "synced")

    return TableEnvironment(utc=clock, believed=believed)


def test_a_clock_that_is_an_hour_behind_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    run_once(file, at(NOON))
    before = list(records(tmp_path / "record"))
    with pytest.raises(ClockBehind) as caught:
        run_once(file, at(NOON - HOUR))
    assert isinstance(caught.value, UsageProblem)
    words = str(caught.value)
    assert "the machine's clock: says 2027-01-15 07:00:0" in words
    assert "the record goes to 2027-01-15 08:00:0" in words
    assert words.endswith("a clock that is set right; if it is right now: --believe-clock, once")
    assert list(records(tmp_path / "record")) == before
    run_once(file, at(NOON + 5))
    right(tmp_path)


def test_a_clock_that_is_a_little_behind_is_told_by_the_record(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    run_once(file, at(NOON))
    run_once(file, at(NOON - 50))
    assert (len(whats(tmp_path, "clock")), whats(tmp_path, "person")) == (1, [])
    right(tmp_path)


def test_two_people_who_say_that_it_is_right_stand_in_the_record(tmp_path: Path) -> None:
    """The clock was a year ahead before: without them the table could not be opened for a year."""
    file = furnished(tmp_path)
    run_once(file, at(NOON + 365 * 24 * HOUR))
    with pytest.raises(ClockBehind):
        run_once(file, at(NOON))
    run_once(file, at(NOON, TWO))
    (set_back,) = whats(tmp_path, "clock")
    assert set_back["two"] == ["Ann", "Bo"]
    run_once(file, at(NOON + 10))  # from now on nobody is asked
    right(tmp_path)


def test_where_there_is_nothing_to_believe_nothing_is_recorded(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    run_once(file, at(NOON, TWO))
    run_once(file, at(NOON + 10, TWO))
    assert whats(tmp_path, "clock") == []
    run_once(file, at(NOON - 50 + 10, TWO))  # so little is taken without anybody's word
    assert [list(one) for one in whats(tmp_path, "clock")] == [["utc_was", "mono"]]


def test_wherever_it_ends_the_names_stand_or_are_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that was set back is never taken without them: not by the start that they believed
    it at, and not by the next one."""
    file = furnished(tmp_path)
    run_once(file, at(NOON + HOUR))
    parts = parts_of(load_table(file))
    procedure = Procedure(parts.game)
    came, begun = set[str](), False
    disk = FailingDisk(monkeypatch, tmp_path / "tried", errno.EIO)
    for step in range(100):
        tried = replace(parts, record=tmp_path / "tried" / str(step))
        shutil.copytree(parts.record, tried.record)
        disk.asked, disk.at = 0, step
        begun = _begins(tried, procedure, at(NOON, TWO))
        disk.at = None
        try:
            log, _ = open_record(tried, procedure, at(NOON + 10).utc)
        except ClockBehind:
            came.add("asked again")
        else:
            log.close()
            told = [
                msgspec.json.decode(one.data)
                for _, one in records(tried.record)
                if one.kind == "clock"
            ]
            assert [one["two"] for one in told] == [["Ann", "Bo"]], step
            came.add("stands")
        if begun:
            break
    assert (begun, came) == (True, {"asked again", "stands"})


def _begins(parts: TableParts, procedure: Procedure, world: TableEnvironment) -> bool:
    """Whether it does, with this disk. Whatever it comes to, it is let go of as by a kill."""
    try:
        log, _ = open_record(parts, procedure, world.utc, world.believed)
    except RecordProblem:
        return False
    log.release()
    return True


# --- told to stop while it is loaded --------------------------------------------------------------


FIRST = """
import builtins, os, signal, sys
loads = builtins.__import__
def told(name, *more):
    if name == sys.argv[3]:
        os.kill(os.getpid(), int(sys.argv[4]))
    return loads(name, *more)
builtins.__import__ = told
from controller.cli import main
sys.exit(main([]))
"""
"""The entry point, which gets a signal when it begins to load this module."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("module", ["argparse", "controller.commands"])
def test_while_the_first_modules_are_loaded(number: signal.Signals, module: str) -> None:
    for command, code in (("serve", 0), ("doctor", -number)):
        done = subprocess.run(
            [sys.executable, "-c", FIRST, command, "table.toml", module, str(int(number))],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == code, done.stderr
        if command == "serve":
            assert (done.stdout, done.stderr) == ("", "")


def test_who_ignores_a_signal_goes_on_doing_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_signals, "REPLACED", {})
    former = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        early_signals.watch(["other-program", "doctor"])
        assert signal.getsignal(signal.SIGINT) is former[signal.SIGINT]
        early_signals.watch(["holecard", "doctor"])
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
        early_signals.raise_interrupts()
        assert signal.getsignal(signal.SIGINT) is former[signal.SIGINT]
        early_signals.watch(["holecard", "serve"])
        early_signals.watch(["holecard", "serve"])
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        taken = signal.getsignal(signal.SIGINT)
        assert taken is not former[signal.SIGINT]
        assert early_signals.before(signal.SIGINT, taken) is former[signal.SIGINT]
        assert early_signals.before(signal.SIGTERM, signal.SIG_IGN) is signal.SIG_IGN
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
