"""A table that nothing is wrong with, in a place of its own, and somebody who looks at it and does
what is said.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec.structs import replace

from controller.audit.format.records import ClockQuality, Moment
from controller.audit.keys import create_key
from controller.audit.log import Log
from controller.config import load_table
from controller.doctor.check import CheckFindings, DoctorCase, DoctorProblem, Machine
from controller.doctor.command import CHECKS, case_of, run_checks
from controller.games import game_of_table
from controller.people import People
from controller.people.person import key_bytes, people_bytes
from controller.procedure.engine import Procedure
from controller.table.loop import parts_of
from controller.table.restart import open_record
from drivers.keys import KeyStore, PairedDevice
from firmware_protocol.messages import DeviceClass
from tests.support.paths import ROOT
from tests.support.table.simulated.house import KEY, everybody, history_of, put

NAME: Final = "house-1"
NOON: Final = 1_800_000_000_000_000
TABLE: Final = """\
schema = 1

[table]
name = "house-1"
game = "mega"
seats = 3

[options]
decks = 8

[devices.shoe]
serial = "SH-1"
port = "{place}/ports/shoe"

[[devices.stations]]
serial = "ST-1"
port = "{place}/ports/station"
seats = [1, 2, 3]

[record]
directory = "run/record"
segment_mib = 1

[keys]
directory = "run/keys"

[people]
file = "run/people.json"

[control]
socket = "run/control.sock"
port = {port}
metrics_port = {metrics}
"""
FITTED: Final = {"SH-1": DeviceClass.SHOE, "ST-1": DeviceClass.STATION}


class House:
    """The place, its file, and the machine that is looked at."""

    def __init__(self, place: Path, ports: tuple[int, int]) -> None:
        self.place = place
        self.file = place / "table.toml"
        self.run = place / "run"
        self.record = self.run / "record"
        self.keys = self.run / "keys"
        self.people = self.run / "people.json"
        self.root = place / "root"
        """Of a machine of our own, where the real one is not meant."""
        self.port, self.metrics_port = ports
        self.machine = machine()

    # --- looking --------------------------------------------------------------------------

    def case(self) -> DoctorCase:
        return case_of(str(self.file), self.machine)

    def check(self, name: str) -> CheckFindings:
        """What this check finds, with those before it that it needs."""
        wanted = _with_former(name)
        checks = tuple(one for one in CHECKS if one.name in wanted)
        return next(one.found for one in run_checks(self.case(), checks) if one.check.name == name)

    def all(self) -> dict[str, CheckFindings]:
        return {one.check.name: one.found for one in run_checks(self.case())}

    def problem(self, name: str) -> DoctorProblem:
        """The only one that this check finds."""
        problems = self.check(name).problems
        assert len(problems) == 1, problems
        return problems[0]

    def expect(
        self, name: str, *, exactly: str = "", begins: str = "", **wanted: object
    ) -> DoctorProblem:
        """The only one that this check finds: `exactly` is its text, or it `begins` so; of `what`
        and `mend` it has a part, `grade` and `commands` are equal."""
        found = self.problem(name)
        assert exactly in ("", found.what)
        assert found.what.startswith(begins)
        for field, value in wanted.items():
            there = getattr(found, field)
            assert value in there if field in ("what", "mend") else value == there, (field, found)
        return found

    # --- changing -------------------------------------------------------------------------

    def edit(self, was: str, now: str) -> None:
        text = self.file.read_text()
        assert text.count(was) == 1
        self.file.write_text(text.replace(was, now))

    def elsewhere(self, **files: str) -> None:
        """From now on another machine is looked at, where there is nothing but these files."""
        self.machine = replace(self.machine, root=self.root)
        for name, text in files.items():
            self.put(name, text)

    def put(self, name: str, text: str) -> Path:
        """A file of that machine."""
        file = self.root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def begin(self) -> Log:
        """A boot of this table, by the clock of the machine."""
        config = load_table(self.file)
        procedure = Procedure(game_of_table(config))
        log, _ = open_record(parts_of(config), procedure, self.machine.clock)
        return log

    def recorded(self) -> None:
        """The table was served, and has ended."""
        self.begin().close()

    # --- mending --------------------------------------------------------------------------

    def mend(self, name: str, more: str = "", *, said: str = "", at: Path | None = None) -> None:
        """Every command that is printed is run as it is; then nothing is wrong there any more.
        `more`: what nobody can be asked for here; `said`: what somebody types."""
        commands = [one for problem in self.check(name).problems for one in problem.commands]
        assert commands
        for command in commands:
            self.shell(command + more, said=said, at=at)
        assert self.check(name).problems == ()

    def shell(self, command: str, *, said: str = "", at: Path | None = None) -> None:
        """As a shell runs it, of somebody who may do everything."""
        tools = self.place / "tools"
        if not tools.exists():
            tools.mkdir()
            sudo = tools / "sudo"
            sudo.write_text('#!/bin/sh\nexec "$@"\n')
            sudo.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }
        ended = subprocess.run(
            ["sh", "-c", command],
            input=said,
            capture_output=True,
            text=True,
            env=environment,
            cwd=at or self.place,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, (command, ended.stderr)


def _with_former(name: str) -> set[str]:
    return {name}.union(*map(_with_former, next(one for one in CHECKS if one.name == name).after))


def machine() -> Machine:
    """This one, in good order: its clock is right, and it has what sets it."""
    here = Machine.here()
    python = f"{sys.executable} -m controller.cli"
    return replace(here, clock=clock(NOON), which=lambda name: None, holecard=python)


def clock(utc: int, quality: ClockQuality = "synced") -> Callable[[], Moment]:
    return lambda: Moment(utc, utc * 1000, quality)


# --- a house ----------------------------------------------------------------------------------


@contextmanager
def house(place: Path) -> Iterator[House]:
    """One that nothing is wrong with. Its ports are pseudo terminals."""
    with reserved() as one, reserved() as other:
        yield from _house(place, (one, other))


@contextmanager
def reserved() -> Iterator[int]:
    """A port that the system gives to nobody meanwhile, and that whoever asks for it can have."""
    with socket.socket(socket.AF_INET) as holding:
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holding.bind(("127.0.0.1", 0))
        yield int(holding.getsockname()[1])


def _house(place: Path, ports: tuple[int, int]) -> Iterator[House]:
    made = House(place, ports)
    made.run.mkdir(mode=0o700)
    made.file.write_text(TABLE.format(place=place, port=ports[0], metrics=ports[1]))
    fill_keys(made.keys, place / "surveillance")
    put(made.people, people_bytes(People(KEY, everybody())))
    put(made.people.with_name("people.json.history.jsonl"), history_of(everybody()))
    (place / "ports").mkdir()
    ends = [os.openpty() for _ in range(2)]
    try:
        for name, (_, slave) in zip(("shoe", "station"), ends, strict=True):
            (place / "ports" / name).symlink_to(os.ttyname(slave))
        yield made
    finally:
        for end in (end for both in ends for end in both):
            os.close(end)


def fill_keys(keys: Path, elsewhere: Path) -> None:
    """All that a table has, and surveillance's own on another machine."""
    store = KeyStore.create(keys)
    create_key(keys, "table")
    create_key(keys, "hole")
    create_key(elsewhere, "surveillance")
    put(keys / "surveillance.pub", (elsewhere / "surveillance.pub").read_bytes())
    put(keys / "people.key", key_bytes(KEY))
    for serial, kind in FITTED.items():
        pair(store, serial, kind)


def pair(store: KeyStore, serial: str, kind: DeviceClass) -> None:
    key = X25519PrivateKey.generate().public_key().public_bytes_raw()
    at = "2027-01-15T08:00:00Z"
    store.add(PairedDevice(kind, serial, "EW", "One", key, at, ("Ann Lee", "Bo Chan")))


@contextmanager
def child(program: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Another process, which has begun: it says so."""
    running = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        yield running
    finally:
        with suppress(ProcessLookupError):
            running.kill()
        running.communicate(timeout=30)


def tree(place: Path) -> Mapping[str, tuple[object, ...]]:
    """All that lies there: rights, times and bytes."""
    every = {}
    for folder, names, files in os.walk(place):
        for name in (*names, *files):
            one = Path(folder) / name
            about = one.lstat()
            data = one.read_bytes() if one.is_file() and not one.is_symlink() else b""
            every[str(one)] = (about.st_mode, about.st_mtime_ns, about.st_uid, data)
    return every


def owned(
    patch: pytest.MonkeyPatch, path: Path, *, mode: int = 0, uid: int = 0, gid: int = 0
) -> None:
    """Whatever lies there, it is told to belong to these; mode 0: as it is."""
    about = path.stat()
    bits = about.st_mode & ~0o777 | mode if mode else about.st_mode
    said = os.stat_result((bits, *about[1:4], uid, gid, *about[6:]))
    real = Path.stat
    patch.setattr(Path, "stat", lambda one, **how: said if one == path else real(one, **how))


LISTENING = """\
import socket, sys
place = sys.argv[1]
kind = socket.AF_INET if place.isdigit() else socket.AF_UNIX
with socket.socket(kind) as one:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", int(place)) if place.isdigit() else place)
    one.listen()
    print("begun", flush=True)
    sys.stdin.read()
"""


def as_installed(made: House, **files: str) -> None:
    """The table's file lies where the service looks for it."""
    made.elsewhere(**{"/run/systemd/system/x": "", "/etc/systemd/system/y": "", **files})
    text = made.file.read_text().replace('"run/', f'"{made.run}/')
    made.file = made.put("/etc/holecard/first.toml", text)


LOCKING = """\
import fcntl, sys
lock = open(sys.argv[1])
fcntl.flock(lock, fcntl.LOCK_EX)
print("begun", flush=True)
sys.stdin.read()
"""
