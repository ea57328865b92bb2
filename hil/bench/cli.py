"""measure the speed, as ratios in one run"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from controller.commands import Subparsers, add_command, help_text, load, print_json
from controller.errors import EXIT_NO, UsageProblem

if TYPE_CHECKING:
    from hil.bench.measure import Line, Section

SECTIONS: Final = {
    "rows": "hil.bench.rows:ROWS",
    "transitions": "hil.bench.rows:TRANSITIONS",
    "peer": "hil.bench.reference:PEER",
    "jobs": "hil.bench.rows:JOBS",
    "wire": "hil.bench.wire:WIRE",
    "event": "hil.bench.event:EVENT",
    "devices": "hil.bench.devices:DEVICES",
    "record": "hil.bench.record:RECORD",
    "verify": "hil.bench.verify:VERIFY",
    "review": "hil.bench.review:REVIEW",
    "table": "hil.bench.table:TABLE",
}
"""The sections in the order of measurement, by name. They are imported when they are measured."""


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

    pace = Pace(slices=3, seconds=0.03) if args.quick else Pace(full=args.full)
    found: dict[str, list[Line]] = {}
    for section in _chosen(args.sections):
        lines = found[section.name] = section.measure(pace)
        if not args.json:
            for text in _text(section, lines):
                print(text, flush=True)
    if args.json:
        print_json(_json(found))
    missed = any(line.missed for lines in found.values() for line in lines)
    return EXIT_NO if args.check and missed else 0


def _chosen(names: list[str]) -> list[Section]:
    for name in names:
        if name not in SECTIONS:
            raise UsageProblem("--section", f"there is no {name}", ", ".join(SECTIONS))
    return [load(name, target) for name, target in SECTIONS.items() if not names or name in names]


def _text(section: Section, lines: list[Line]) -> Iterator[str]:
    yield f"{section.name}: {section.summary}"
    for line in lines:
        value = "-" if line.value is None else f"{line.value:,.{line.digits}f}"
        yield f"  {line.text:<44}{value:>10} {line.unit:<10}{line.verdict}".rstrip()
    yield ""


def _json(found: dict[str, list[Line]]) -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "sections": {
            name: [
                {
                    "name": line.name,
                    "value": line.value,
                    "unit": line.unit,
                    "at_least": line.at_least,
                    "at_most": line.at_most,
                    "note": line.note,
                }
                for line in lines
            ]
            for name, lines in found.items()
        },
    }
