"""`holecard doctor`: makes the checks serially, and prints the problems with their solutions.

The checks are read-only: no port is opened, each lock is only tested, and the disk is measured with
an unnamed file. The table may be in service. A problem does not stop the other checks.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from controller.audit.errors import RecordProblem
from controller.commands import print_json
from controller.config import (
    MAX_SEATS,
    TableConfig,
    expect,
    installed,
    parse_table,
    read_equipment,
    read_named,
)
from controller.doctor import devices, host, network, people, permissions, record
from controller.doctor import keys as doctor_keys
from controller.doctor.check import (
    CannotCheck,
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
from controller.doctor.release import release_checks
from controller.errors import EXIT_NO, UsageProblem, each, printable
from controller.table.loop import parts_of
from drivers.keys import KeyProblem

# --- the table --------------------------------------------------------------------------------


def case_of(table: str, machine: Machine) -> DoctorCase:
    """Parse and validate the table of this name or file. Raises UsageProblem if it is not a
    table file."""
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
"""Lines to add if a section is missing. The devices of a table cannot be guessed."""
_DEVICES: Final = 'add [devices.shoe] with serial = "...", as `holecard devices list` shows it'


def table_file(case: DoctorCase) -> CheckFindings:
    """The table file is valid, with its game sheet and jurisdiction."""
    if case.config is None:
        return found("", [_to_edit(case, one) for one in case.problems])
    config = case.config
    game, rulings = config.sheet.title, config.jurisdiction.title
    return found(f"{config.name}: deals {game}, {config.seats} seats, under {rulings}")


def sections(case: DoctorCase) -> CheckFindings:
    """The file has all sections that serving needs."""
    missing = [name for name in SECTIONS if name not in case.given]
    return found(
        ", ".join(f"[{name}]" for name in SECTIONS), [_missing(case, one) for one in missing]
    )


def put_together(case: DoctorCase) -> CheckFindings:
    """Build the table's parts as `serve` does, to find problems that no other check covers."""
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
        mend=f"edit the file{allowed}; then check it with",
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
    DoctorCheck("sections", "the sections that serving needs", sections),
    DoctorCheck("user", "the user who runs the checks", host.user),
    DoctorCheck("software", "Python and packages", host.software),
    DoctorCheck("keys' place", "the directory of the keys", permissions.keys_place),
    DoctorCheck("keys", "the keys themselves", doctor_keys.keys_there, ("keys' place",)),
    DoctorCheck("record's place", "the directory of the record", permissions.record_place),
    DoctorCheck("record", "whether it opens, and is of this table", record.record_opens),
    DoctorCheck(
        "record's key",
        "whether record and keys belong together",
        record.record_key,
        ("record",),
    ),
    DoctorCheck("round", "where the table would continue", record.round_open, ("record",)),
    DoctorCheck("clock", "how the clock is synchronised", host.synchronised),
    DoctorCheck("time", "clock and record", record.clock_goes_on, ("record",)),
    DoctorCheck("room", "room for the record", record.room),
    DoctorCheck("file system", "the file system of the record", record.file_system),
    DoctorCheck("syncs", "how long an append waits for the disk", record.syncing),
    DoctorCheck("people's place", "permissions of the people file", people.people_place),
    DoctorCheck(
        "people",
        "the people in it, and their key",
        people.people_file,
        ("keys' place", "people's place"),
    ),
    DoctorCheck(
        "history",
        "whether people file and history agree",
        people.history_agrees,
        ("people",),
    ),
    DoctorCheck("roles", "enough people to play", people.enough_people, ("people",)),
    DoctorCheck("pairing", "the keys of the devices", devices.paired, ("keys' place",)),
    DoctorCheck("ports", "the ports of the devices", devices.ports),
    DoctorCheck("groups", "the groups of ports", host.groups),
    DoctorCheck("udev", "the rules for ports", host.udev),
    DoctorCheck("probing", "programs that open ports automatically", host.probing),
    DoctorCheck("debugging", "debuggers of the table's user", host.debugging),
    DoctorCheck("socket", "the control socket", network.control_socket),
    DoctorCheck("control ports", "its ports on this machine", network.control_ports),
    DoctorCheck("pages", "the address of its pages", network.pages),
    DoctorCheck("service", "the unit of systemd", host.service),
    DoctorCheck(
        "put together",
        "all parts together, as serving builds them",
        put_together,
        ("table file", "sections", "keys", "pairing"),
    ),
)
"""In the order in which problems should be solved."""


# --- running the checks -----------------------------------------------------------------------


def run_checks(case: DoctorCase, checks: tuple[DoctorCheck, ...] = CHECKS) -> Iterator[CheckResult]:
    """Make the checks serially. Yields each result at once."""
    verdicts: dict[str, Verdict] = {}
    for check in checks:
        before = [name for name in check.after if verdicts.get(name) in ("wrong", "skipped")]
        made = skipped(f"first {' and '.join(before)}") if before else _made(check, case)
        verdicts[check.name] = made.verdict
        yield CheckResult(check, made)


def _made(check: DoctorCheck, case: DoctorCase) -> CheckFindings:
    """Make a check. An exception is returned as a problem."""
    try:
        made = check.look(case)
    except CannotCheck as problem:
        return skipped(str(problem))
    except (OSError, KeyProblem, RecordProblem, UsageProblem) as problem:
        made = wrong(f"cannot be checked: {problem}")
    return found("", [made]) if isinstance(made, DoctorProblem) else made


_SHOWN: Final[dict[Verdict, tuple[str, str, str]]] = {
    "ok": ("+", "ok", "32"),
    "warning": ("!", "warn", "33"),
    "wrong": ("x", "WRONG", "1;31"),
    "skipped": ("-", "skip", "2"),
}
"""Symbol, word and colour of each verdict."""
_WIDE: Final = max(len(check.name) for check in CHECKS)
_INDENT: Final = " " * 8


def run(args: argparse.Namespace) -> int:
    """Make all checks. Returns EXIT_NO if one finds a problem that is not a mere warning."""
    checks = (*CHECKS, *release_checks(args))
    case = case_of(args.config, Machine.here())
    results: list[CheckResult] = []
    for result in run_checks(case, checks):
        results.append(result)
        if not args.json:
            for text in _lines(result, coloured=_coloured()):
                print(text, flush=True)
    if args.json:
        print_json(as_json(case, results))
    else:
        print(_summary(results))
    return EXIT_NO if any(one.verdict == "wrong" for one in results) else 0


def _coloured() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _lines(result: CheckResult, *, coloured: bool) -> Iterator[str]:
    symbol, word, colour = _SHOWN[result.verdict]
    head = f"{symbol} {word:<5}"
    if coloured:
        head = f"\x1b[{colour}m{head}\x1b[0m"
    note = result.found.note if result.verdict in ("ok", "skipped") else ""
    yield f"{head}  {result.check.name:<{_WIDE}}  {printable(note or result.check.about)}"
    for problem in result.found.problems:
        yield from _problem(problem)


def _problem(problem: DoctorProblem) -> Iterator[str]:
    yield f"{_INDENT}{printable(problem.what)}"
    if problem.mend:
        yield f"{_INDENT}fix: {printable(problem.mend)}{':' if problem.commands else ''}"
    for command in problem.commands:
        yield f"{_INDENT}    {command}"


def _summary(results: Sequence[CheckResult]) -> str:
    counts = Counter(one.verdict for one in results)
    parts = (
        f"{counts['ok']} ok",
        f"{counts['warning']} warnings",
        f"{counts['wrong']} wrong",
        f"{counts['skipped']} not checked",
    )
    return f"{len(results)} checks: {', '.join(parts)}"


def as_json(case: DoctorCase, results: Sequence[CheckResult]) -> dict[str, object]:
    counts = Counter(one.verdict for one in results)
    return {
        "table": case.name,
        "file": str(case.file),
        "ok": not counts["wrong"],
        "counts": {verdict: counts[verdict] for verdict in _SHOWN},
        "checks": [
            {
                "name": result.check.name,
                "about": result.check.about,
                "verdict": result.verdict,
                "found": result.found.note,
                "problems": [
                    {
                        "grade": one.grade,
                        "what": one.what,
                        "mend": one.mend,
                        "commands": list(one.commands),
                    }
                    for one in result.found.problems
                ],
            }
            for result in results
        ],
    }
