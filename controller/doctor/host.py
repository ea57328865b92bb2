"""The machine: its user, udev, programs that open ports, groups, clock, systemd, our software."""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.resources import files
from pathlib import Path
from typing import Final

from controller.doctor.check import (
    CheckFindings,
    DoctorCase,
    DoctorProblem,
    found,
    line,
    name_of_user,
    skipped,
    warning,
    wrong,
)
from controller.doctor.permissions import as_user
from controller.doctor.processes import running

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
"""In the order in which they count."""
TABLES: Final = "/etc/holecard"
"""Where the unit looks for a table's file."""
_SYSTEMD: Final = "/run/systemd/system"
"""There where systemd runs the machine."""
_PROBING: Final = ("ModemManager", "brltty")
"""What opens serial ports by itself, to see what hangs there."""
_GROUPS: Final = ("dialout", "holecard")
_PYTHON: Final = (3, 11)
_NEEDED: Final = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)$")


# --- who asks ---------------------------------------------------------------------------------


def user(case: DoctorCase) -> CheckFindings:
    """What a look shows is what its user may see and do."""
    machine = case.machine
    if machine.uid != 0:
        shell = "" if machine.login else ", who has no shell: commands are for that of root"
        return found(f"{machine.user}{shell}")
    what = "root may do everything: what the table's own user may not do is not seen"
    record = case.equipment.record
    for place in (case.equipment.keys, None if record is None else record.directory):
        owner = _owner(place)
        if owner:
            return found("", [warning(what, as_user(case, name_of_user(owner)))])
    mend = "serve the table as a user of its own, and look again as that one"
    return found("root", [warning(what, mend=mend)])


def _owner(place: Path | None) -> int:
    """Whose it is; 0 where nothing is there."""
    try:
        return 0 if place is None else place.stat().st_uid
    except OSError:
        return 0


# --- ports ------------------------------------------------------------------------------------


def deployed(name: str) -> Path:
    """The file of ours, to be installed."""
    return Path(str(files("configs").joinpath("deploy", name)))


def udev(case: DoctorCase) -> CheckFindings:
    """Our rules are installed as they are here."""
    if not case.machine.at("/run/udev").is_dir():
        return skipped("no udev runs here")
    there = _first(case, _RULE_PLACES, RULES)
    if there is not None and case.machine.text(there) == deployed(RULES).read_text().strip():
        return found(str(there))
    what = "our rules are not installed" if there is None else f"{there} is not as we have it now"
    mend = "ports without them may be late, probed by other programs, or closed to this user"
    return found("", [warning(what, *install_rules(case), mend=mend)])


def install_rules(case: DoctorCase) -> tuple[str, ...]:
    return (
        case.admin("install", "-m", "644", deployed(RULES), case.machine.at(_RULE_PLACES[0])),
        case.admin("udevadm", "control", "--reload"),
        case.admin("udevadm", "trigger"),
    )


def _first(case: DoctorCase, places: tuple[str, ...], name: str) -> str | None:
    """The one that counts."""
    every = (f"{place}/{name}" for place in places)
    return next((place for place in every if case.machine.at(place).is_file()), None)


def probing(case: DoctorCase) -> CheckFindings:
    """Programs that open ports by themselves leave ours alone."""
    every = running(case.machine, _PROBING)
    ignored = _first(case, _RULE_PLACES, RULES) is not None
    meant = [name for name in every if name != _PROBING[0] or not ignored]
    problems = [
        warning(
            f"{name} runs, and opens serial ports to see what hangs there",
            case.admin("systemctl", "disable", "--now", f"{name}.service"),
        )
        for name in meant
    ]
    return found(f"{', '.join(every)}, which our rules hold off" if every else "none", problems)


def groups(case: DoctorCase) -> CheckFindings:
    """This user is in the groups that ports belong to."""
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
                what = f"{case.machine.user} is in the group {name} since the last login only"
                problems.append(warning(what, line("newgrp", name), mend=_LOGIN))
            else:
                what = f"{case.machine.user} is not in the group {name}"
                problems.append(warning(what, _join(case, name), mend=_LOGIN))
    return found(f"{case.machine.user} is in {' and '.join(_GROUPS)}", problems)


_LOGIN: Final = "a group is taken on at a login, and at a start of the service"


def _join(case: DoctorCase, name: str) -> str:
    return case.admin("usermod", "-aG", name, case.machine.user)


# --- the clock --------------------------------------------------------------------------------


def synchronised(case: DoctorCase) -> CheckFindings:
    """The machine's clock follows others."""
    machine = case.machine
    quality = machine.clock().quality
    if quality == "synced":
        return found("as the kernel says")
    if quality == "unknown":
        if machine.at("/run/systemd/timesync/synchronized").exists():
            return found("as systemd-timesyncd says")
        what = "nobody here says whether the clock is synchronised"
        return found("", [warning(what, *set_clock(case))])
    what = "the clock is not synchronised, and every time in the record says so"
    return found("", [warning(what, *set_clock(case))])


def set_clock(case: DoctorCase) -> tuple[str, ...]:
    """What has the clock follow others."""
    if case.machine.which("chronyc"):
        return (case.admin("chronyc", "makestep"),)
    if case.machine.which("timedatectl") and case.machine.at(_SYSTEMD).is_dir():
        return (case.admin("timedatectl", "set-ntp", "true"),)
    return (case.admin("apt-get", "install", "chrony"),)


# --- systemd ----------------------------------------------------------------------------------


def service(case: DoctorCase) -> CheckFindings:
    """The unit is installed as it is here, and begins this table with the machine."""
    other = _not_served(case)
    if other:
        return skipped(other)
    ours = deployed(UNIT)
    there = _first(case, _UNIT_PLACES, UNIT)
    problems = []
    if there is None or case.machine.text(there) != ours.read_text().strip():
        what = f"{UNIT} is not installed" if there is None else f"{there} is not as we have it now"
        problems.append(
            warning(
                what,
                case.admin("install", "-m", "644", ours, case.machine.at(_UNIT_PLACES[0])),
                case.admin("systemctl", "daemon-reload"),
            )
        )
    instance = unit_of(case)
    wants = case.machine.at(f"{_UNIT_PLACES[0]}/multi-user.target.wants/{instance}")
    if not wants.is_symlink():
        what = f"{instance} does not begin with the machine"
        problems.append(warning(what, case.admin("systemctl", "enable", "--now", instance)))
    return found(f"{instance} is enabled", problems)


def _not_served(case: DoctorCase) -> str:
    """Why the unit has nothing to do with this table; empty where it serves it."""
    if not case.machine.at(_SYSTEMD).is_dir():
        return "no systemd runs here"
    if case.file.parent != case.machine.at(TABLES):
        return f"the service is for a file in {TABLES}"
    return ""


def shut_off(case: DoctorCase, host: str) -> Iterator[DoctorProblem]:
    """Where the table listens at an address, and the unit as it is here lets nobody there."""
    if _not_served(case):
        return
    drop_in = f"by a drop-in, as INSTALL.md has it: `systemctl edit {unit_of(case)}`"
    if ":" in host and "AF_INET6" not in _settings(case, "RestrictAddressFamilies"):
        what = f"the service may not listen at {host}: its unit allows no IPv6"
        yield wrong(what, mend=f"RestrictAddressFamilies=AF_INET6 {drop_in}")
    allowed = [one for one in _settings(case, "IPAddressAllow") if one not in _LOOPBACK]
    denied = _settings(case, "IPAddressDeny")
    if not ipaddress.ip_address(host).is_loopback and denied and not allowed:
        what = f"nobody elsewhere reaches {host}: the service's unit shuts all but this machine out"
        yield wrong(what, mend=f"IPAddressAllow= the browsers' network {drop_in}")


_LOOPBACK: Final = ("localhost", "127.0.0.0/8", "127.0.0.1", "::1", "::1/128")


def _settings(case: DoctorCase, name: str) -> list[str]:
    """What the unit and its drop-ins allow by that name; an empty one begins anew."""
    found: list[str] = []
    for text in _unit_texts(case):
        for one in text.splitlines():
            key, separator, value = one.partition("=")
            if separator and key.strip() == name:
                found = [*found, *value.split()] if value.strip() else []
    return found


def _unit_texts(case: DoctorCase) -> Iterator[str]:
    """The unit that counts, or ours where there is none, and its drop-ins in their order."""
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
    """Named as the table's file is."""
    return UNIT.replace("@", f"@{case.file.stem}")


def made_by_service(case: DoctorCase, place: Path) -> bool:
    """Whether the unit makes this directory at each start, and takes it away at the end."""
    there = _first(case, _UNIT_PLACES, UNIT) is not None
    return there and place == case.machine.at(f"/run/holecard/{case.file.stem}")


# --- our software -----------------------------------------------------------------------------


def software(case: DoctorCase) -> CheckFindings:
    """Python and the packages are those that we need."""
    del case  # the same for every table
    problems = []
    if sys.version_info < _PYTHON:
        wanted = ".".join(map(str, _PYTHON))
        problems.append(wrong(f"this is Python {sys.version.split()[0]}", mend=f"use {wanted}"))
    try:
        problems += _packages(requires("holecard") or [])
        name = f"holecard {version('holecard')}"
    except PackageNotFoundError:
        name = "holecard, not installed"
        what = "holecard is not installed as a package: its versions cannot be looked at"
        problems.append(warning(what, line(sys.executable, "-m", "pip", "install", "holecard")))
    return found(f"{name}, Python {sys.version.split()[0]}", problems)


def _packages(needed: list[str]) -> Iterator[DoctorProblem]:
    for requirement in needed:
        wanted = _NEEDED.match(requirement)
        if wanted is None:  # an extra's, or for other machines
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
    """A version, as far as it is numbers."""
    digits = re.match(r"[0-9.]*", text)
    return tuple(int(part) for part in (digits[0] if digits else "").split(".") if part)
