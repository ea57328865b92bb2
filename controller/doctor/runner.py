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
from controller.config import files
from controller.config.equipment import read_equipment
from controller.config.tables import MOST_SEATS, TableConfig, parse_table
from controller.doctor import devices as doctor_devices
from controller.doctor import disk as doctor_disk
from controller.doctor import host as doctor_host
from controller.doctor import keys as doctor_keys
from controller.doctor import network as doctor_control
from controller.doctor import network_doctor_screens as doctor_screens
from controller.doctor import people as doctor_people
from controller.doctor import permissions_doctor_rights as doctor_rights
from controller.doctor import record as doctor_record
from controller.doctor import runner_doctor_table as doctor_table
from controller.doctor.check import (
    Case,
    Check,
    Found,
    Machine,
    Result,
    Verdict,
    found,
    skipped,
    wrong,
)
from controller.doctor.record import Unreadable
from controller.errors import UsageProblem
from controller.errors_problems import each
from drivers.keys.private_files import KeyProblem

CHECKS: Final = (
    Check("table file", "the file, its game and its jurisdiction", doctor_table.table_file),
    Check("sections", "all that serving a table needs", doctor_table.sections),
    Check("user", "as whom this is looked at", doctor_host.user),
    Check("software", "Python and packages", doctor_host.software),
    Check("keys' place", "the directory of the keys", doctor_rights.keys_place),
    Check("keys", "the keys themselves", doctor_keys.keys_there, ("keys' place",)),
    Check("record's place", "the directory of the record", doctor_rights.record_place),
    Check("record", "whether it opens, and whose it is", doctor_record.record_opens),
    Check(
        "record's key",
        "whether record and keys belong together",
        doctor_record.record_key,
        ("record",),
    ),
    Check("round", "where the table would go on", doctor_record.round_open, ("record",)),
    Check("clock", "what the clock goes by", doctor_host.synchronised),
    Check("time", "clock and record", doctor_record.clock_goes_on, ("record",)),
    Check("room", "room for the record", doctor_disk.room),
    Check("file system", "what the record lies on", doctor_disk.file_system),
    Check("syncs", "how long a record waits for the disk", doctor_disk.syncing),
    Check("people's place", "who may touch the file of the people", doctor_people.people_place),
    Check(
        "people",
        "the people in it, and their key",
        doctor_people.people_file,
        ("keys' place", "people's place"),
    ),
    Check(
        "history",
        "whether the people are what their history says",
        doctor_people.history_agrees,
        ("people",),
    ),
    Check("roles", "people enough to play", doctor_people.enough_people, ("people",)),
    Check("pairing", "the keys of the devices", doctor_devices.paired, ("keys' place",)),
    Check("ports", "where the devices are plugged in", doctor_devices.ports),
    Check("groups", "groups that ports belong to", doctor_host.groups),
    Check("udev", "the rules for ports", doctor_host.udev),
    Check("probing", "programs that open ports by themselves", doctor_host.probing),
    Check("socket", "where the table is spoken to", doctor_control.control_socket),
    Check("control ports", "its ports on this machine", doctor_control.control_ports),
    Check("pages", "where browsers find its pages", doctor_screens.pages),
    Check("service", "the unit of systemd", doctor_host.service),
    Check(
        "put together",
        "all of it, as serving does it",
        doctor_table.put_together,
        ("table file", "sections", "keys", "pairing"),
    ),
)
"""In the order in which things are mended."""


# --- the case ---------------------------------------------------------------------------------


def case_of(table: str, machine: Machine) -> Case:
    """The table of this name or file, as far as it can be read. UsageProblem where it is no table
    file at all."""
    document = files.read_named("table", table, "CONFIG")
    files.expect(document, "table")
    own = document.folder is not None
    file = Path(os.path.abspath(table)) if own else Path(str(files.installed("table")[table]))
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
        equipment, _ = read_equipment(content, document.source, folder, MOST_SEATS)
    return Case(
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


def look(case: Case, checks: tuple[Check, ...] = CHECKS) -> Iterator[Result]:
    """Each check's result, as soon as there is one."""
    verdicts: dict[str, Verdict] = {}
    for check in checks:
        before = [name for name in check.after if verdicts.get(name) in ("wrong", "skipped")]
        made = skipped(f"first {' and '.join(before)}") if before else _made(check, case)
        verdicts[check.name] = made.verdict
        yield Result(check, made)


def _made(check: Check, case: Case) -> Found:
    """What cannot be looked at is not as it must be, and ends nothing else."""
    try:
        return check.look(case)
    except Unreadable:
        return skipped("the record does not open")
    except (OSError, KeyProblem, RecordProblem, UsageProblem) as problem:
        return found("", [wrong(f"cannot be looked at: {problem}")])
