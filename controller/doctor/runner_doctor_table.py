"""The table file: whether it loads, says all that a served table needs, and can be put together."""

from __future__ import annotations

import os
from typing import Final

from controller.doctor.check import Case, Found, Problem, found, line, wrong
from controller.errors import UsageProblem
from controller.errors_problems import each
from controller.table.running.build import parts_of

SECTIONS: Final = ("devices", "record", "keys", "people", "control")
_LINES: Final = {
    "record": 'directory = "run/{name}/record"',
    "keys": 'directory = "run/{name}/keys"',
    "people": 'file = "run/{name}/people.json"',
    "control": 'socket = "run/{name}/control.sock"',
}
"""What is to be added where a section is missing. Which devices a table has, only people know."""
_DEVICES: Final = 'add [devices.shoe] with serial = "...", as `holecard devices list` shows it'


def table_file(case: Case) -> Found:
    """Its game sheet and its jurisdiction too."""
    if case.config is None:
        return found("", [_to_edit(case, one) for one in case.problems])
    config = case.config
    game, rulings = config.sheet.title, config.jurisdiction.title
    return found(f"{config.name}: deals {game}, {config.seats} seats, under {rulings}")


def sections(case: Case) -> Found:
    """Those that a table needs to be served, and not to be checked or simulated."""
    missing = [name for name in SECTIONS if name not in case.given]
    return found(
        ", ".join(f"[{name}]" for name in SECTIONS), [_missing(case, one) for one in missing]
    )


def put_together(case: Case) -> Found:
    """As `serve` does it: what no other check has looked at is found here."""
    assert case.config is not None
    try:
        parts = parts_of(case.config)
    except UsageProblem as problem:
        return found("", [_to_edit(case, one) for one in each(problem)])
    return found(f"{len(parts.devices)} devices for {case.config.seats} seats")


def _to_edit(case: Case, problem: UsageProblem) -> Problem:
    allowed = f"; allowed: {problem.allowed}" if problem.allowed else ""
    return wrong(
        f"{problem.where}: {problem.what}",
        case.ours("config", "check", case.file),
        mend=f"edit the file{allowed}; then look again with",
    )


def _missing(case: Case, name: str) -> Problem:
    what = f"{case.file} has no [{name}]"
    if name not in _LINES:
        return wrong(what, mend=_DEVICES)
    added = _LINES[name].format(name=case.name or case.file.stem)
    printed = line("printf", "%s\\n", "", f"[{name}]", added)
    if case.machine.login and not case.machine.may(case.file, os.W_OK):
        return wrong(what, f"{printed} | {case.admin('tee', '-a', case.file)}")
    return wrong(what, f"{printed} >> {line(case.file)}")
