"""`holecard doctor`: the checks in their order, made one after the other. None stops the others.

Nothing is changed: files are read, a lock is looked at, no port is opened, and what is written to
measure the disk is a file without a name. A table that is being served is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from controller.audit.errors import RecordProblem
from controller.config import (
    MAX_SEATS,
    TableConfig,
    expect,
    installed,
    parse_table,
    read_equipment,
    read_named,
)
from controller.doctor import devices, disk, host, network, people, permissions, record
from controller.doctor import keys as doctor_keys
from controller.doctor.check import (
    CheckFindings,
    CheckResult,
    DoctorCase,
    DoctorCheck,
    DoctorProblem,
    Machine,
    Verdict,
    found,
    line,
    skipped,
    wrong,
)
from controller.doctor.record import Unreadable
from controller.errors import UsageProblem, each
from controller.table.running import parts_of
from drivers.keys import KeyProblem

# --- the case ---------------------------------------------------------------------------------


def case_of(table: str, machine: Machine) -> DoctorCase:
    """The table of this name or file, as far as it can be read. UsageProblem where it is no table
    file at all."""
    document = read_named("table", table, "CONFIG")
    expect(document, "table")
    own = document.folder is not None
    file = Path(os.path.abspath(table)) if own else Path(str(installed("table")[table]))
    folder = Path(os.path.abspath(document.folder or Path()))
    document = document._replace(folder=folder)
    content = document.content
    problems: tuple[UsageProblem, ...] = ()
    config: TableConfig | None = None
    try:
        config = parse_table(document)
        equipment = config.equipment
    except UsageProblem as problem:
        problems = each(problem)
        equipment, _ = read_equipment(content, document.source, folder, MAX_SEATS)
    return DoctorCase(
        file,
        _name(content),
        frozenset(content),
        equipment,
        config,
        problems,
        machine,
    )


def _name(content: Mapping[str, Any]) -> str:
    head = content.get("table")
    name = head.get("name") if isinstance(head, Mapping) else None
    return name if isinstance(name, str) else ""


# --- the checks -------------------------------------------------------------------------------


SECTIONS: Final = ("devices", "record", "keys", "people", "control")
_LINES: Final = {
    "record": 'directory = "run/{name}/record"',
    "keys": 'directory = "run/{name}/keys"',
    "people": 'file = "run/{name}/people.json"',
    "control": 'socket = "run/{name}/control.sock"',
}
"""What is to be added where a section is missing. Which devices a table has, only people know."""
_DEVICES: Final = 'add [devices.shoe] with serial = "...", as `holecard devices list` shows it'


def table_file(case: DoctorCase) -> CheckFindings:
    """Its game sheet and its jurisdiction too."""
    if case.config is None:
        return found("", [_to_edit(case, one) for one in case.problems])
    config = case.config
    game, rulings = config.sheet.title, config.jurisdiction.title
    return found(f"{config.name}: deals {game}, {config.seats} seats, under {rulings}")


def sections(case: DoctorCase) -> CheckFindings:
    """Those that a table needs to be served, and not to be checked or simulated."""
    missing = [name for name in SECTIONS if name not in case.given]
    return found(
        ", ".join(f"[{name}]" for name in SECTIONS), [_missing(case, one) for one in missing]
    )


def put_together(case: DoctorCase) -> CheckFindings:
    """As `serve` does it: what no other check has looked at is found here."""
    assert case.config is not None
    try:
        parts = parts_of(case.config)
    except UsageProblem as problem:
        return found("", [_to_edit(case, one) for one in each(problem)])
    return found(f"{len(parts.devices)} devices for {case.config.seats} seats")


def _to_edit(case: DoctorCase, problem: UsageProblem) -> DoctorProblem:
    allowed = f"; allowed: {problem.allowed}" if problem.allowed else ""
    return wrong(
        f"{problem.where}: {problem.what}",
        case.ours("config", "check", case.file),
        mend=f"edit the file{allowed}; then look again with",
    )


def _missing(case: DoctorCase, name: str) -> DoctorProblem:
    what = f"{case.file} has no [{name}]"
    if name not in _LINES:
        return wrong(what, mend=_DEVICES)
    added = _LINES[name].format(name=case.name or case.file.stem)
    printed = line("printf", "%s\\n", "", f"[{name}]", added)
    if case.machine.login and not case.machine.may(case.file, os.W_OK):
        return wrong(what, f"{printed} | {case.admin('tee', '-a', case.file)}")
    return wrong(what, f"{printed} >> {line(case.file)}")


CHECKS: Final = (
    DoctorCheck("table file", "the file, its game and its jurisdiction", table_file),
    DoctorCheck("sections", "all that serving a table needs", sections),
    DoctorCheck("user", "as whom this is looked at", host.user),
    DoctorCheck("software", "Python and packages", host.software),
    DoctorCheck("keys' place", "the directory of the keys", permissions.keys_place),
    DoctorCheck("keys", "the keys themselves", doctor_keys.keys_there, ("keys' place",)),
    DoctorCheck("record's place", "the directory of the record", permissions.record_place),
    DoctorCheck("record", "whether it opens, and whose it is", record.record_opens),
    DoctorCheck(
        "record's key",
        "whether record and keys belong together",
        record.record_key,
        ("record",),
    ),
    DoctorCheck("round", "where the table would go on", record.round_open, ("record",)),
    DoctorCheck("clock", "what the clock goes by", host.synchronised),
    DoctorCheck("time", "clock and record", record.clock_goes_on, ("record",)),
    DoctorCheck("room", "room for the record", disk.room),
    DoctorCheck("file system", "what the record lies on", disk.file_system),
    DoctorCheck("syncs", "how long a record waits for the disk", disk.syncing),
    DoctorCheck("people's place", "who may touch the file of the people", people.people_place),
    DoctorCheck(
        "people",
        "the people in it, and their key",
        people.people_file,
        ("keys' place", "people's place"),
    ),
    DoctorCheck(
        "history",
        "whether the people are what their history says",
        people.history_agrees,
        ("people",),
    ),
    DoctorCheck("roles", "people enough to play", people.enough_people, ("people",)),
    DoctorCheck("pairing", "the keys of the devices", devices.paired, ("keys' place",)),
    DoctorCheck("ports", "where the devices are plugged in", devices.ports),
    DoctorCheck("groups", "groups that ports belong to", host.groups),
    DoctorCheck("udev", "the rules for ports", host.udev),
    DoctorCheck("probing", "programs that open ports by themselves", host.probing),
    DoctorCheck("socket", "where the table is spoken to", network.control_socket),
    DoctorCheck("control ports", "its ports on this machine", network.control_ports),
    DoctorCheck("pages", "where browsers find its pages", network.pages),
    DoctorCheck("service", "the unit of systemd", host.service),
    DoctorCheck(
        "put together",
        "all of it, as serving does it",
        put_together,
        ("table file", "sections", "keys", "pairing"),
    ),
)
"""In the order in which things are mended."""


# --- running them ----------------------------------------------------------------------------


def look(case: DoctorCase, checks: tuple[DoctorCheck, ...] = CHECKS) -> Iterator[CheckResult]:
    """Each check's result, as soon as there is one."""
    verdicts: dict[str, Verdict] = {}
    for check in checks:
        before = [name for name in check.after if verdicts.get(name) in ("wrong", "skipped")]
        made = skipped(f"first {' and '.join(before)}") if before else _made(check, case)
        verdicts[check.name] = made.verdict
        yield CheckResult(check, made)


def _made(check: DoctorCheck, case: DoctorCase) -> CheckFindings:
    """What cannot be looked at is not as it must be, and ends nothing else."""
    try:
        return check.look(case)
    except Unreadable:
        return skipped("the record does not open")
    except (OSError, KeyProblem, RecordProblem, UsageProblem) as problem:
        return found("", [wrong(f"cannot be looked at: {problem}")])
