"""measure the speed, as ratios in one run"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterator
from typing import Final

from controller.errors import UsageProblem
from hil.bench.devices import DEVICES
from hil.bench.event import EVENT
from hil.bench.measure import Line, Pace, Section
from hil.bench.record import RECORD
from hil.bench.reference import PEER
from hil.bench.review import REVIEW
from hil.bench.rows import JOBS, ROWS, TRANSITIONS
from hil.bench.table import TABLE
from hil.bench.verify import VERIFY
from hil.bench.wire import WIRE

SECTIONS: Final[tuple[Section, ...]] = (
    ROWS,
    TRANSITIONS,
    PEER,
    JOBS,
    WIRE,
    EVENT,
    DEVICES,
    RECORD,
    VERIFY,
    REVIEW,
    TABLE,
)
"""What is measured, in this order. A new measurement is a module with a section, and a place here.
"""

_QUICK: Final = Pace(slices=3, seconds=0.03)
_FULL: Final = Pace(full=True)
_EPILOG: Final = """\
The contestants of a section run by turns in short slices, and medians are compared, so that a busy
machine does not change the ratios much. Rates are of this machine, now.

Exit codes: 0 measured; 1 with --check, when a ratio is below its aim; 2 wrong arguments.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "bench",
        help="measure the speed",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    names = ", ".join(section.name for section in SECTIONS)
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
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=bench)


def bench(args: argparse.Namespace) -> int:
    pace = _QUICK if args.quick else _FULL if args.full else Pace()
    found: dict[str, list[Line]] = {}
    for section in _chosen(args.sections):
        lines = found[section.name] = section.measure(pace)
        if not args.json:
            for text in _text(section, lines):
                print(text, flush=True)
    if args.json:
        print(json.dumps(_json(found), indent=2))
    missed = any(line.missed for lines in found.values() for line in lines)
    return 1 if args.check and missed else 0


def _chosen(names: list[str]) -> list[Section]:
    known = {section.name: section for section in SECTIONS}
    for name in names:
        if name not in known:
            raise UsageProblem("--section", f"there is no {name}", ", ".join(known))
    return [section for section in SECTIONS if not names or section.name in names]


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
