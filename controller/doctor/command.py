"""Runs `holecard doctor`: makes the checks and prints the problems with their solutions."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from controller.commands import print_json
from controller.doctor.check import CheckResult, DoctorCase, DoctorProblem, Machine, Verdict
from controller.doctor.runner import CHECKS, case_of, run_checks
from controller.errors import EXIT_NO, printable

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
    case = case_of(args.config, Machine.here())
    results: list[CheckResult] = []
    for result in run_checks(case):
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
