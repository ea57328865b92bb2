"""`holecard doctor CONFIG`: what is wrong with a table, and the command that mends it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from controller.doctor.check import CheckResult, DoctorCase, DoctorProblem, Machine, Verdict
from controller.doctor.runner import CHECKS, case_of, look
from controller.errors import printable

EXIT_NO: Final = 1
EPILOG: Final = """\
examples:
  holecard doctor mytable.toml
  holecard doctor mytable.toml --json

Looks at the table file, rights, keys, record, clock, disk, people, devices, ports and the system,
and changes nothing; a table may be served meanwhile. Below each line that says WRONG or warn
stands what it is and how it is mended, commands to be copied as they are. Look as the user who
serves the table: root may do what that one may not.

Exit codes: 0 nothing is wrong (there may be warnings); 1 something is wrong; 2 wrong arguments, or
a file that is no table's; 141 the reader of the output has gone.
"""
_WORDS: Final[dict[Verdict, tuple[str, str]]] = {
    "ok": ("+", "ok"),
    "warning": ("!", "warn"),
    "wrong": ("x", "WRONG"),
    "skipped": ("-", "skip"),
}
"""Symbol and word."""
_COLOURS: Final[dict[Verdict, str]] = {"ok": "32", "warning": "33", "wrong": "1;31", "skipped": "2"}
_WIDE: Final = max(len(check.name) for check in CHECKS)
_INDENT: Final = " " * 8


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = subparsers.add_parser(
        "doctor",
        help="what is wrong with a table, and what mends it",
        description="Says what is wrong with a table that is to be served, and what mends it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    doctor.add_argument(
        "config", metavar="CONFIG", help="the table file, or the name of one of ours"
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Make every check; 1 where one of them finds something wrong."""
    case = case_of(args.config, Machine.here())
    results: list[CheckResult] = []
    for result in look(case):
        results.append(result)
        if not args.json:
            for text in _lines(result, coloured=_coloured()):
                print(text, flush=True)
    if args.json:
        print(json.dumps(as_json(case, results), indent=2))
    else:
        print(_summary(results))
    return EXIT_NO if any(one.verdict == "wrong" for one in results) else 0


def _coloured() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _lines(result: CheckResult, *, coloured: bool) -> Iterator[str]:
    symbol, word = _WORDS[result.verdict]
    head = f"{symbol} {word:<5}"
    if coloured:
        head = f"\x1b[{_COLOURS[result.verdict]}m{head}\x1b[0m"
    told = result.found.note if result.verdict in ("ok", "skipped") else ""
    yield f"{head}  {result.check.name:<{_WIDE}}  {printable(told or result.check.about)}"
    for problem in result.found.problems:
        yield from _problem(problem)


def _problem(problem: DoctorProblem) -> Iterator[str]:
    yield f"{_INDENT}{printable(problem.what)}"
    if problem.mend:
        yield f"{_INDENT}mend: {printable(problem.mend)}{':' if problem.commands else ''}"
    for command in problem.commands:
        yield f"{_INDENT}    {command}"


def _summary(results: Sequence[CheckResult]) -> str:
    counts = Counter(one.verdict for one in results)
    said = (
        f"{counts['ok']} ok",
        f"{counts['warning']} warnings",
        f"{counts['wrong']} wrong",
        f"{counts['skipped']} not looked at",
    )
    return f"{len(results)} checks: {', '.join(said)}"


def as_json(case: DoctorCase, results: Sequence[CheckResult]) -> dict[str, object]:
    counts = Counter(one.verdict for one in results)
    return {
        "table": case.name,
        "file": str(case.file),
        "ok": not counts["wrong"],
        "counts": {verdict: counts[verdict] for verdict in _WORDS},
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
