"""What a doctor looks at, and what it finds: the case, a check, a problem and what mends it."""

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
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from controller.audit.log import Clock, SystemClock
from controller.config import Equipment, TableConfig
from controller.errors import UsageProblem
from drivers.ports import Found as Plugged
from drivers.ports import discovery

Grade: TypeAlias = Literal["warning", "wrong"]
Verdict: TypeAlias = Literal["ok", "warning", "wrong", "skipped"]
_NO_SHELLS: Final = ("nologin", "false")
UNKNOWN: Final = "not checked"
_AS_IT_IS: Final = frozenset(f"{string.ascii_letters}{string.digits}/._- ".encode())


# --- what it finds ----------------------------------------------------------------------------


class DoctorProblem(Struct, frozen=True):
    """Something that is not as it must be, and what mends it."""

    grade: Grade
    what: str
    mend: str = ""
    """In words: where no command does it alone, or before one does."""
    commands: tuple[str, ...] = ()
    """To be copied, in this order."""


class CheckFindings(Struct, frozen=True):
    """What a check has found."""

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
    return CheckFindings(f"{UNKNOWN}: {why}", skipped=True)


# --- the machine ------------------------------------------------------------------------------


def _user(uid: int) -> str:
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
    """How a shell calls us, quoted."""
    if shutil.which("holecard"):
        return "holecard"
    beside = Path(sys.executable).with_name("holecard")
    if beside.exists():
        return shlex.quote(str(beside))
    return shlex.join([sys.executable, "-m", "controller.cli"])


class Machine(Struct, frozen=True):
    """The computer at the table, as whoever asks sees it."""

    root: Path = Path("/")
    """Under which /proc, /sys, /dev, /etc and /run are."""
    uid: int = 0
    user: str = "root"
    login: bool = True
    """Whether this user has a shell. Where not, commands are for that of root."""
    groups: frozenset[int] = frozenset()
    """Those that this process belongs to."""
    clock: Clock = SystemClock()
    may: Callable[[Path, int], bool] = partial(os.access, effective_ids=True)
    every_group: Callable[[], Sequence[grp.struct_group]] = grp.getgrall
    serial_ports: Callable[[], list[Plugged]] = discovery.serial_ports
    usb_devices: Callable[[str], list[Plugged]] = discovery.usb_devices
    which: Callable[[str], str | None] = shutil.which
    holecard: str = "holecard"

    @classmethod
    def here(cls) -> Machine:
        """This one."""
        uid = os.geteuid()
        groups = frozenset({os.getegid(), *os.getgroups()})
        return cls(uid=uid, user=_user(uid), login=_login(uid), groups=groups, holecard=_holecard())

    def at(self, place: str | Path) -> Path:
        """Where this absolute path is."""
        return self.root / str(place).lstrip("/")

    def text(self, place: str | Path) -> str | None:
        """What a file of the system says; None where there is none, or none for us."""
        try:
            return self.at(place).read_text(errors="replace").strip()
        except OSError:
            return None


def name_of_user(uid: int) -> str:
    return _user(uid)


# --- the case ---------------------------------------------------------------------------------


class DoctorCase(Struct, frozen=True):
    """A table file, as far as it can be read, and the machine that is to serve it."""

    file: Path
    """Absolute."""
    name: str
    """The table's; empty where the file does not say."""
    given: frozenset[str]
    """The tables that stand in the file, usable or not."""
    equipment: Equipment
    """Its places are absolute."""
    config: TableConfig | None
    """None where the file cannot be used."""
    problems: tuple[UsageProblem, ...]
    """Why not."""
    machine: Machine

    def ours(self, *words: str | Path) -> str:
        """A command of ours, to be copied. It is run as who serves the table: what it makes is
        that user's."""
        who = "" if self.machine.login else f"{line('runuser', '-u', self.machine.user, '--')} "
        return f"{who}{self.machine.holecard} {line(*words)}"

    def admin(self, *words: str | Path) -> str:
        """A command that only root may run, to be copied."""
        root = self.machine.uid == 0 or not self.machine.login
        return line(*words) if root else f"sudo {line(*words)}"


def line(*words: str | Path) -> str:
    """A command as a shell takes it, and as a terminal shows it."""
    return " ".join(_quoted(str(word)) for word in words)


def _quoted(word: str) -> str:
    """What would command the terminal that it is copied from is written by its bytes."""
    if word.isprintable():
        return shlex.quote(word)
    coded = (chr(one) if one in _AS_IT_IS else f"\\0{one:03o}" for one in os.fsencode(word))
    return f"\"$(printf %b '{''.join(coded)}')\""


# --- a check ----------------------------------------------------------------------------------


class DoctorCheck(NamedTuple):
    """One thing that is looked at."""

    name: str
    about: str
    look: Callable[[DoctorCase], CheckFindings]
    after: tuple[str, ...] = ()
    """Checks without which this one can say nothing: where one of them finds something wrong or
    was not made itself, this one is not made."""


class CheckResult(NamedTuple):
    """A check that was made."""

    check: DoctorCheck
    found: CheckFindings

    @property
    def verdict(self) -> Verdict:
        return self.found.verdict
