"""Changes right records in one place each, signs them again, and compares the two verifiers.

    python -m tests.long.fuzz.records --cases 20000 --jobs 2
    python -m tests.long.fuzz.records --seed 3 --only 417      one case of a seed
    python -m tests.long.fuzz.records --again build/fuzz/records/3-417.json

Exit code 0: both verifiers said the same of each record, or differed in what FORMAT.md names. 1:
they did not; the record is written to a file. 2: the arguments are wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from controller.worker_processes import worker_processes
from tests.long.fuzz.records.campaign import Batch, Found, again, batch

PER_BATCH: Final = 250


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.again:
        return again(options.again)
    started = time.monotonic()
    count: Counter[str] = Counter()
    found: list[Found] = []
    first = options.only if options.only is not None else 0
    last = first + 1 if options.only is not None else options.cases
    parts = [
        Batch(options.seed, at, min(last, at + PER_BATCH), str(options.findings), options.scratch)
        for at in range(first, last, PER_BATCH)
    ]
    if options.jobs == 1:
        results = list(map(batch, parts))
    else:
        with worker_processes(options.jobs) as pool:
            results = list(pool.map(batch, parts))
    for one in results:
        count += one.counted
        found += one.found
    _print(count, found, time.monotonic() - started, options.seed)
    return 1 if found else 0


def _print(count: Counter[str], found: list[Found], seconds: float, seed: int) -> None:
    cases = count.pop("cases")
    for name, number in sorted(count.items()):
        print(f"{number:7,} {name}")
    for one in found[:40]:
        print(f"{one.what} - {one.place} - {one.base}\n  {one.said}")
        print(f"  python -m tests.long.fuzz.records --seed {seed} --only {one.case}")
        print(f"  python -m tests.long.fuzz.records --again {one.file}")
    print(f"{cases:,} records in {seconds:.1f} s: {len(found)} differences")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.long.fuzz.records", description=__doc__)
    parser.add_argument("--cases", type=_positive, default=20_000)
    parser.add_argument("--seed", type=_positive, default=1)
    parser.add_argument("--jobs", type=_positive, default=1)
    parser.add_argument("--only", type=int, help="the one case of this number")
    parser.add_argument("--again", type=Path, help="a file of a case")
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz/records"))
    parser.add_argument("--scratch", default=_memory(), help="a folder for records")
    return parser.parse_args(arguments)


def _memory() -> str:
    """A file system in memory, if there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
