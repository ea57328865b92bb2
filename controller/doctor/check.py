"""The types of the doctor: table and machine to check, checks, problems and their solutions."""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import shutil
import string
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from controller.audit.log import Clock, SystemClock
from controller.config import ControlPlace, DevicePlaces, Equipment, RecordPlace, TableConfig
from controller.errors import UsageProblem
from drivers.ports import FoundPort as Plugged
from drivers.ports import serial_ports, usb_devices

Grade: TypeAlias = Literal["warning", "wrong"]
Verdict: TypeAlias = Literal["ok", "warning", "wrong", "skipped"]
_T = TypeVar("_T")
_NO_SHELLS: Final = ("nologin", "false")
_AS_IT_IS: Final = frozenset(f"{string.ascii_letters}{string.digits}/._- ".encode())


# --- findings ---------------------------------------------------------------------------------


class DoctorProblem(Struct, frozen=True):
    """A problem and its solution."""

    grade: Grade
    what: str
    mend: str = ""
    """The solution as text, if commands alone do not solve it."""
    commands: tuple[str, ...] = ()
    """Shell commands that solve it, in order."""


class CheckFindings(Struct, frozen=True):
    """The result of a check: a note, and the problems."""

    note: str = ""
    problems: tuple[DoctorProblem, ...] = ()
    skipped: bool = False

    @property
    def verdict(self) -> Verdict:
        if self.skipped:
            return "skipped"
        if any(one.grade == "wrong" for one in self.problems):
            return "wrong"
        return "warning" if self.problems else "ok"


def wrong(what: str, *commands: str, mend: str = "") -> DoctorProblem:
    return DoctorProblem("wrong", what, mend, commands)


def warning(what: str, *commands: str, mend: str = "") -> DoctorProblem:
    return DoctorProblem("warning", what, mend, commands)


def found(note: str, problems: Iterable[DoctorProblem] = ()) -> CheckFindings:
    return CheckFindings(note, tuple(problems))


def skipped(why: str) -> CheckFindings:
    return CheckFindings(f"not checked: {why}", skipped=True)


# --- the machine ------------------------------------------------------------------------------


def name_of_user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _login(uid: int) -> bool:
    try:
        shell = Path(pwd.getpwuid(uid).pw_shell).name
    except KeyError:
        return True
    return shell not in _NO_SHELLS


def _holecard() -> str:
    """The quoted shell command of `holecard`."""
    if shutil.which("holecard"):
        return "holecard"
    beside = Path(sys.executable).with_name("holecard")
    if beside.exists():
        return shlex.quote(str(beside))
    return shlex.join([sys.executable, "-m", "controller.cli"])


class Machine(Struct, frozen=True):
    """The computer at the table, as the current user sees it. Replaced in tests."""

    root: Path = Path("/")
    """The directory with /proc, /sys, /dev, /etc and /run."""
    uid: int = 0
    user: str = "root"
    login: bool = True
    """Whether the user has a shell; if not, commands are written for root."""
    groups: frozenset[int] = frozenset()
    """The groups of this process."""
    clock: Clock = SystemClock()
    may: Callable[[Path, int], bool] = partial(os.access, effective_ids=True)
    every_group: Callable[[], Sequence[grp.struct_group]] = grp.getgrall
    serial_ports: Callable[[], list[Plugged]] = serial_ports
    usb_devices: Callable[[str], list[Plugged]] = usb_devices
    which: Callable[[str], str | None] = shutil.which
    holecard: str = "holecard"

    @classmethod
    def here(cls) -> Machine:
        """The machine of this process."""
        uid = os.geteuid()
        groups = frozenset({os.getegid(), *os.getgroups()})
        return cls(
            uid=uid, user=name_of_user(uid), login=_login(uid), groups=groups, holecard=_holecard()
        )

    def at(self, place: str | Path) -> Path:
        """The path below `root`."""
        return self.root / str(place).lstrip("/")

    def text(self, place: str | Path) -> str | None:
        """Returns the content of a system file; None if it cannot be read."""
        try:
            return self.at(place).read_text(errors="replace").strip()
        except OSError:
            return None


# --- the table --------------------------------------------------------------------------------


class CannotCheck(Exception):
    """A check cannot be made, for a reason that is not a problem itself."""


class DoctorCase(Struct, frozen=True):
    """A parsed table file, maybe invalid, and the machine that serves the table."""

    file: Path
    """An absolute path."""
    name: str
    """The name of the table; empty if the file has none."""
    given: frozenset[str]
    """The sections of the file, valid or not."""
    equipment: Equipment
    """Its paths are absolute."""
    config: TableConfig | None
    """None if the file is invalid."""
    problems: tuple[UsageProblem, ...]
    """Why it is invalid."""
    machine: Machine

    @property
    def record(self) -> RecordPlace:
        return _section(self.equipment.record, "record")

    @property
    def keys(self) -> Path:
        return _section(self.equipment.keys, "keys")

    @property
    def people(self) -> Path:
        return _section(self.equipment.people, "people")

    @property
    def control(self) -> ControlPlace:
        return _section(self.equipment.control, "control")

    @property
    def devices(self) -> DevicePlaces:
        return _section(self.equipment.devices, "devices")

    def ours(self, *words: str | Path) -> str:
        """Returns a `holecard` command for the user who serves the table."""
        who = "" if self.machine.login else f"{line('runuser', '-u', self.machine.user, '--')} "
        return f"{who}{self.machine.holecard} {line(*words)}"

    def admin(self, *words: str | Path) -> str:
        """Returns a command that only root may run."""
        root = self.machine.uid == 0 or not self.machine.login
        return line(*words) if root else f"sudo {line(*words)}"


def _section(found: _T | None, name: str) -> _T:
    """The section of the table file. Raises CannotCheck without one."""
    if found is None:
        raise CannotCheck(f"no [{name}]")
    return found


def line(*words: str | Path) -> str:
    """Returns a shell command line with quoted words."""
    return " ".join(_quoted(str(word)) for word in words)


def _quoted(word: str) -> str:
    """The quoted word. Characters that could control a terminal are written as octal bytes."""
    if word.isprintable():
        return shlex.quote(word)
    coded = (chr(one) if one in _AS_IT_IS else f"\\0{one:03o}" for one in os.fsencode(word))
    return f"\"$(printf %b '{''.join(coded)}')\""


# --- a check ----------------------------------------------------------------------------------


class DoctorCheck(NamedTuple):
    """A check, and the checks that it depends on."""

    name: str
    about: str
    look: Callable[[DoctorCase], CheckFindings | DoctorProblem]
    after: tuple[str, ...] = ()
    """Names of checks; if one of them finds a problem or is skipped, this one is skipped."""


class CheckResult(NamedTuple):
    """A check with its findings."""

    check: DoctorCheck
    found: CheckFindings

    @property
    def verdict(self) -> Verdict:
        return self.found.verdict
