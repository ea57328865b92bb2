"""measure the speed, as ratios in one run"""

from __future__ import annotations

import argparse
import os
import platform
from typing import TYPE_CHECKING, Final

from controller.commands import Subparsers, add_command, help_text, load, print_json
from controller.errors import EXIT_NO, UsageProblem

if TYPE_CHECKING:
    from hil.bench.measure import Line, Section

SECTIONS: Final = {
    "rows": "hil.bench.rounds:ROWS",
    "transitions": "hil.bench.rounds:TRANSITIONS",
    "peer": "hil.bench.rounds:PEER",
    "jobs": "hil.bench.rounds:JOBS",
    "wire": "hil.bench.link:WIRE",
    "event": "hil.bench.link:EVENT",
    "devices": "hil.bench.link:DEVICES",
    "record": "hil.bench.record:RECORD",
    "verify": "hil.bench.record:VERIFY",
    "review": "hil.bench.record:REVIEW",
    "table": "hil.bench.table:TABLE",
}
"""The sections in the order of measurement, by name. They are imported when they are measured."""
_IN_JSON: Final = ("name", "value", "unit", "at_least", "at_most", "note")


def register(subparsers: Subparsers) -> None:
    parser = add_command(
        subparsers,
        "bench",
        "measure the speed",
        bench,
        epilog=help_text(
            notes="The contestants of a section run in turn in short slices, and medians are "
            "compared, so that a busy\nmachine does not change the ratios much. Rates are of this "
            "machine, now.",
            exit_codes={
                0: "measured",
                1: "with --check, when a ratio is below its aim",
                2: "wrong arguments",
            },
        ),
        json=True,
    )
    names = ", ".join(SECTIONS)
    parser.add_argument(
        "--section",
        dest="sections",
        action="append",
        default=[],
        metavar="NAME",
        help=f"measure only this: {names}; as often as needed",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="measure shortly and roughly")
    length.add_argument(
        "--full",
        action="store_true",
        help="20,000 rounds of a table, 10 million records, a million rounds reviewed (hours)",
    )
    parser.add_argument("--check", action="store_true", help="fail when a ratio misses its aim")


def bench(args: argparse.Namespace) -> int:
    from hil.bench.measure import Pace

    for name in args.sections:
        if name not in SECTIONS:
            raise UsageProblem("--section", f"there is no {name}", ", ".join(SECTIONS))
    pace = Pace(slices=3, seconds=0.03) if args.quick else Pace(full=args.full)
    measured: dict[str, list[Line]] = {}
    for name, target in SECTIONS.items():
        if not args.sections or name in args.sections:
            section: Section = load(name, target)
            lines = measured[name] = section.lines(pace)
            if not args.json:
                print(_text(name, section, lines), flush=True)
    if args.json:
        print_json(_json(measured))
    missed = any(line.missed for lines in measured.values() for line in lines)
    return EXIT_NO if args.check and missed else 0


def _text(name: str, section: Section, lines: list[Line]) -> str:
    shown = (
        f"  {line.text:<44}{_number(line.value):>10} {line.unit:<10}{_verdict(line)}".rstrip()
        for line in lines
    )
    return "\n".join((f"{name}: {section.summary}", *shown, ""))


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def _verdict(line: Line) -> str:
    aims = {"at least": line.at_least, "at most": line.at_most}
    result = "missed" if line.missed else "met"
    aim = [f"{text} {limit:g}: {result}" for text, limit in aims.items() if limit is not None]
    return " ".join((*aim, line.note))


def _json(measured: dict[str, list[Line]]) -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "sections": {
            name: [{key: getattr(line, key) for key in _IN_JSON} for line in lines]
            for name, lines in measured.items()
        },
    }
