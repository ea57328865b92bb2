"""Checks of the machine: user, udev, probing programs, groups, clock, systemd, software."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from controller.doctor.check import (
    CheckFindings,
    DoctorCase,
    DoctorProblem,
    Machine,
    found,
    line,
    name_of_user,
    skipped,
    warning,
    wrong,
)
from controller.doctor.permissions import as_user
from controller.errors import printable

_LISTENS: Final = "0A"
"""TCP_LISTEN in /proc/net/tcp."""
_PTRACE_SCOPE: Final = "/proc/sys/kernel/yama/ptrace_scope"
_MAX_SHOWN: Final = 60
_PSEUDO: Final = "/dev/pts/"
_MAKERS: Final = frozenset({"/dev/ptmx", "/dev/pts/ptmx"})
"""Files that the creator of a pseudo terminal has open."""


class Process(NamedTuple):
    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" if self.command else f"process {self.pid}"

    @property
    def table(self) -> bool:
        """Whether it serves a table."""
        return "serve" in self.command.split() and "holecard" in self.command


def named(machine: Machine, pid: int) -> Process:
    """Returns the process with this number, and its command line."""
    words = (machine.text(f"/proc/{pid}/cmdline") or "").replace("\0", " ").strip()
    command = printable(words or machine.text(f"/proc/{pid}/comm") or "")
    return Process(pid, command if len(command) <= _MAX_SHOWN else f"{command[:_MAX_SHOWN]}...")


def running(machine: Machine, names: Iterable[str]) -> list[str]:
    """Returns the programs of these names that are running."""
    there = {machine.text(f"/proc/{pid}/comm") for pid in _pids(machine)}
    return [name for name in names if name in there]


def locking(machine: Machine, file: Path) -> list[Process]:
    """Returns the processes with a lock on this file. Visible to every user."""
    try:
        about = file.stat()
    except OSError:
        return []
    wanted = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    pids = {
        int(words[4])
        for words in map(str.split, (machine.text("/proc/locks") or "").splitlines())
        if len(words) >= 6 and words[5] == wanted and words[4].isdigit()
    }
    return [named(machine, pid) for pid in sorted(pids)]


def opening(machine: Machine, place: Path) -> list[Process]:
    """The other processes that have this file or device open, without the creator of a pseudo
    terminal. A user sees only their own processes."""
    target = os.path.realpath(place)
    every = _holding(machine, target)
    if not target.startswith(_PSEUDO):
        return every
    return [one for one in every if _MAKERS.isdisjoint(_open_files(machine, one.pid).values())]


def listening(machine: Machine, port: int) -> list[Process]:
    """Returns the processes that listen on this TCP port."""
    inodes = {
        words[9]
        for name in ("tcp", "tcp6")
        for words in map(str.split, (machine.text(f"/proc/net/{name}") or "").splitlines()[1:])
        if len(words) > 9 and words[3] == _LISTENS and words[1].endswith(f":{port:04X}")
    }
    return sorted({one for inode in inodes for one in _holding(machine, f"socket:[{inode}]")})


def _holding(machine: Machine, target: str) -> list[Process]:
    return [
        named(machine, pid)
        for pid in _pids(machine)
        if pid != os.getpid() and _has_open(machine, pid, target)
    ]


def _has_open(machine: Machine, pid: int, target: str) -> bool:
    """Whether a process has this file or socket open, and not a different file of the same name,
    such as a terminal of another container."""
    links = [link for link, name in _open_files(machine, pid).items() if name == target]
    try:
        return any(not target.startswith("/") or os.path.samefile(link, target) for link in links)
    except OSError:  # closed since
        return False


def _open_files(machine: Machine, pid: int) -> dict[Path, str]:
    """Returns what a process has open, by the link of its descriptor; {} for other users'."""
    found = {}
    with suppress(OSError):  # of a different user, or ended
        for link in machine.at(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed since
                found[link] = os.readlink(link)
    return found


def _pids(machine: Machine) -> list[int]:
    try:
        names = [entry.name for entry in machine.at("/proc").iterdir()]
    except OSError:
        return []
    return sorted(int(name) for name in names if name.isdigit())


RULES: Final = "60-holecard.rules"
UNIT: Final = "holecard@.service"
_RULE_PLACES: Final = (
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
)
_UNIT_PLACES: Final = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
"""In the order of precedence."""
TABLES: Final = "/etc/holecard"
"""The directory where the unit expects table files."""
_SYSTEMD: Final = "/run/systemd/system"
"""Exists if systemd is the init system."""
_PROBING: Final = ("ModemManager", "brltty")
"""Programs that open serial ports automatically to probe them."""
_GROUPS: Final = ("dialout", "holecard")
_PYTHON: Final = (3, 11)
REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)$")


# --- user -------------------------------------------------------------------------------------


def user(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The checks are made as the user who serves the table, not as root."""
    machine = case.machine
    if machine.uid != 0:
        shell = "" if machine.login else ", who has no shell: commands are written for root"
        return found(f"{machine.user}{shell}")
    what = "root may do everything: missing permissions of the table's user are not detected"
    record = case.equipment.record
    for place in (case.equipment.keys, None if record is None else record.directory):
        owner = owner_of(place)
        if owner:
            return warning(what, as_user(case, name_of_user(owner)))
    mend = "serve the table as a user of its own, and run the checks as that user"
    return found("root", [warning(what, mend=mend)])


def owner_of(place: Path | None) -> int:
    """Returns the owner; 0 if the path does not exist."""
    try:
        return 0 if place is None else place.stat().st_uid
    except OSError:
        return 0


# --- ports ------------------------------------------------------------------------------------


def deployed(name: str) -> Path:
    """Returns the path of a file in configs/deploy."""
    return Path(str(files("configs").joinpath("deploy", name)))


def udev(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The current udev rules are installed."""
    if not case.machine.at("/run/udev").is_dir():
        return skipped("udev is not running")
    there = _first(case, _RULE_PLACES, RULES)
    if there is not None and case.machine.text(there) == deployed(RULES).read_text().strip():
        return found(str(there))
    what = (
        "the udev rules are not installed"
        if there is None
        else f"{there} is not the current version"
    )
    return warning(
        what,
        *install_rules(case),
        mend="without them ports may be slow, probed by other programs, or closed to this user",
    )


def install_rules(case: DoctorCase) -> tuple[str, ...]:
    return (
        case.admin("install", "-m", "644", deployed(RULES), case.machine.at(_RULE_PLACES[0])),
        case.admin("udevadm", "control", "--reload"),
        case.admin("udevadm", "trigger"),
    )


def _first(case: DoctorCase, places: tuple[str, ...], name: str) -> str | None:
    """Returns the path of the file with the highest precedence."""
    every = (f"{place}/{name}" for place in places)
    return next((place for place in every if case.machine.at(place).is_file()), None)


def probing(case: DoctorCase) -> CheckFindings:
    """No program probes the devices' ports."""
    every = running(case.machine, _PROBING)
    ignored = _first(case, _RULE_PLACES, RULES) is not None
    meant = [name for name in every if name != _PROBING[0] or not ignored]
    problems = [
        warning(
            f"{name} runs, and opens serial ports to probe them",
            case.admin("systemctl", "disable", "--now", f"{name}.service"),
        )
        for name in meant
    ]
    return found(
        f"{', '.join(every)}, which the udev rules keep away" if every else "none", problems
    )


def debugging(case: DoctorCase) -> CheckFindings:
    """A process of the table's user cannot open the daemon's memory while the daemon starts.

    The daemon closes its memory itself, but what was opened before stays open."""
    scope = (case.machine.text(_PTRACE_SCOPE) or "").strip()
    if not scope.isdecimal():
        return skipped("this kernel has no limit for debuggers of the same user (Yama)")
    if int(scope) > 0:
        return found(f"limited (kernel.yama.ptrace_scope = {scope})")
    what = "every process may debug those of the same user until they close their memory"
    return found(what, [warning(what, case.admin("sysctl", "-w", "kernel.yama.ptrace_scope=1"))])


def groups(case: DoctorCase) -> CheckFindings:
    """The user is in the groups of the ports."""
    if case.machine.uid == 0:
        return skipped("root needs no group")
    every = {one.gr_name: one for one in case.machine.every_group()}
    problems = []
    for name in _GROUPS:
        group = every.get(name)
        if group is None:
            what = f"there is no group {name}"
            make = case.admin("groupadd", "--system", name)
            problems.append(warning(what, make, _join(case, name), mend=_LOGIN))
        elif group.gr_gid not in case.machine.groups:
            if case.machine.user in group.gr_mem:
                what = f"{case.machine.user} is in the group {name} only after the next login"
                problems.append(warning(what, line("newgrp", name), mend=_LOGIN))
            else:
                what = f"{case.machine.user} is not in the group {name}"
                problems.append(warning(what, _join(case, name), mend=_LOGIN))
    return found(f"{case.machine.user} is in {' and '.join(_GROUPS)}", problems)


_LOGIN: Final = "a new group takes effect at the next login, or start of the service"


def _join(case: DoctorCase, name: str) -> str:
    return case.admin("usermod", "-aG", name, case.machine.user)


# --- clock ------------------------------------------------------------------------------------


def synchronised(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The clock is synchronised."""
    machine = case.machine
    quality = machine.clock().quality
    if quality == "synced":
        return found("reported by the kernel")
    if quality == "unknown":
        if machine.at("/run/systemd/timesync/synchronized").exists():
            return found("reported by systemd-timesyncd")
        what = "it is unknown whether the clock is synchronised"
        return warning(what, *set_clock(case))
    what = "the clock is not synchronised, which every time in the record states"
    return warning(what, *set_clock(case))


def set_clock(case: DoctorCase) -> tuple[str, ...]:
    """Returns the commands that synchronise the clock."""
    if case.machine.which("chronyc"):
        return (case.admin("chronyc", "makestep"),)
    if case.machine.which("timedatectl") and case.machine.at(_SYSTEMD).is_dir():
        return (case.admin("timedatectl", "set-ntp", "true"),)
    return (case.admin("apt-get", "install", "chrony"),)


# --- systemd ----------------------------------------------------------------------------------


def service(case: DoctorCase) -> CheckFindings:
    """The current unit is installed, and starts this table at boot."""
    other = _not_served(case)
    if other:
        return skipped(other)
    ours = deployed(UNIT)
    there = _first(case, _UNIT_PLACES, UNIT)
    problems = []
    if there is None or case.machine.text(there) != ours.read_text().strip():
        what = (
            f"{UNIT} is not installed" if there is None else f"{there} is not the current version"
        )
        problems.append(
            warning(
                what,
                case.admin("install", "-m", "644", ours, case.machine.at(_UNIT_PLACES[0])),
                case.admin("systemctl", "daemon-reload"),
            )
        )
    instance = unit_of(case)
    if not case.machine.at(f"{_UNIT_PLACES[0]}/multi-user.target.wants/{instance}").is_symlink():
        what = f"{instance} does not start at boot"
        problems.append(warning(what, case.admin("systemctl", "enable", "--now", instance)))
    return found(f"{instance} is enabled", problems)


def _not_served(case: DoctorCase) -> str:
    """Returns why the unit does not serve this table; empty if it does."""
    if not case.machine.at(_SYSTEMD).is_dir():
        return "systemd is not running"
    if case.file.parent != case.machine.at(TABLES):
        return f"the service is for a file in {TABLES}"
    return ""


def shut_off(case: DoctorCase, host: str) -> Iterator[DoctorProblem]:
    """The address of the pages is not reachable because of the unit's settings."""
    if _not_served(case):
        return
    drop_in = f"by a drop-in, as in INSTALL.md: `systemctl edit {unit_of(case)}`"
    if ":" in host and "AF_INET6" not in _settings(case, "RestrictAddressFamilies"):
        what = f"the service cannot listen at {host}: its unit allows no IPv6"
        yield wrong(what, mend=f"RestrictAddressFamilies=AF_INET6 {drop_in}")
    allowed = [one for one in _settings(case, "IPAddressAllow") if one not in _LOOPBACK]
    denied = _settings(case, "IPAddressDeny")
    if not ipaddress.ip_address(host).is_loopback and denied and not allowed:
        what = f"{host} is not reachable from other machines: the service's unit denies them"
        yield wrong(what, mend=f"IPAddressAllow= the browsers' network {drop_in}")


_LOOPBACK: Final = ("localhost", "127.0.0.0/8", "127.0.0.1", "::1", "::1/128")


def _settings(case: DoctorCase, name: str) -> list[str]:
    """The values of a setting in the unit and its drop-ins; an empty value resets it."""
    found: list[str] = []
    for text in _unit_texts(case):
        for one in text.splitlines():
            key, separator, value = one.partition("=")
            if separator and key.strip() == name:
                found = [*found, *value.split()] if value.strip() else []
    return found


def _unit_texts(case: DoctorCase) -> Iterator[str]:
    """The effective unit, else the one in configs/deploy, and its drop-ins in order."""
    machine = case.machine
    there = _first(case, _UNIT_PLACES, UNIT)
    yield deployed(UNIT).read_text() if there is None else machine.text(there) or ""
    drop_ins: dict[str, str] = {}
    for place in _UNIT_PLACES:
        for unit in (unit_of(case), UNIT):
            for file in machine.at(f"{place}/{unit}.d").glob("*.conf"):
                drop_ins.setdefault(file.name, f"{place}/{unit}.d/{file.name}")
    for name in sorted(drop_ins):
        yield machine.text(drop_ins[name]) or ""


def unit_of(case: DoctorCase) -> str:
    """The instance of the unit, named after the table file."""
    return UNIT.replace("@", f"@{case.file.stem}")


def made_by_service(case: DoctorCase, place: Path) -> bool:
    """Whether the unit creates this directory at each start."""
    there = _first(case, _UNIT_PLACES, UNIT) is not None
    return there and place == case.machine.at(f"/run/holecard/{case.file.stem}")


# --- software ---------------------------------------------------------------------------------


def software(case: DoctorCase) -> CheckFindings:
    """Python and the packages have the required versions."""
    del case  # independent of the table
    problems = []
    if sys.version_info < _PYTHON:
        wanted = ".".join(map(str, _PYTHON))
        problems.append(wrong(f"this is Python {sys.version.split()[0]}", mend=f"use {wanted}"))
    try:
        problems += _packages(requires("holecard") or [])
        name = f"holecard {version('holecard')}"
    except PackageNotFoundError:
        name = "holecard, not installed"
        problems.append(
            warning(
                "holecard is not installed as a package: its versions cannot be checked",
                line(sys.executable, "-m", "pip", "install", "holecard"),
            )
        )
    return found(f"{name}, Python {sys.version.split()[0]}", problems)


def _packages(needed: list[str]) -> Iterator[DoctorProblem]:
    for requirement in needed:
        wanted = REQUIREMENT.match(requirement)
        if wanted is None:  # for an extra, or for other platforms
            continue
        name, least = wanted.groups()
        pip = line(sys.executable, "-m", "pip", "install", f"{name}>={least}")
        try:
            there = version(name)
        except PackageNotFoundError:
            yield wrong(f"the package {name} is not installed", pip)
            continue
        if numbered(there) < numbered(least):
            yield wrong(f"{name} {there} is installed, and {least} is needed", pip)


def numbered(text: str) -> tuple[int, ...]:
    """The leading numbers of a version."""
    digits = re.match(r"[0-9.]*", text)
    return tuple(int(part) for part in (digits[0] if digits else "").split(".") if part)
