"""Mutation testing of rules, procedure, record, table and drivers.

    python -m tests.long.mutants cover OUT             which tests reach which lines
    python -m tests.long.mutants sample OUT [--count N] [--seed S]
    python -m tests.long.mutants match IN OUT          the same mutants in this tree
    python -m tests.long.mutants run IN COVERAGE OUT   killed or survived; OUT is continued

`sample` is made in one tree and matched in another one, so that the tests of both are held to the
same faults. Needs coverage.py, which is in the extra `mutants`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec

from tests.long.mutants.run import Outcome, try_all
from tests.long.mutants.sample import PACKAGES, Mutant, match, sample
from tests.support.paths import ROOT

AFTER = (*PACKAGES, "controller/people", "firmware_protocol/host")
"""Where a statement may have gone to."""
SETTINGS = """\
[run]
parallel = true
source = {packages}
"""


def cover(out: Path) -> int:
    """Run the tests once under coverage.py, with a context for each test."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "coveragerc"
        there = [name for name in AFTER if (ROOT / name).exists()]
        settings.write_text(SETTINGS.format(packages=",".join(there)))
        command = [sys.executable, "-m", "pytest", "-q", "-n", "4", "--dist", "worksteal"]
        command += [f"--cov-config={settings}", "--cov", "--cov-context=test", "--cov-report="]
        ran = subprocess.run(command, cwd=ROOT, check=False)
        (ROOT / ".coverage").replace(out)
    return ran.returncode


def report(outcomes: list[Outcome]) -> str:
    """The share that was killed, and every survivor."""
    counts = Counter(one.result for one in outcomes)
    lines = [f"{counts['killed']} of {len(outcomes)} killed: {dict(counts)}"]
    for one in outcomes:
        if one.result != "killed":
            where = f"{one.mutant.file}: {one.mutant.function}"
            lines.append(f"  {one.result}: {where}: {one.mutant.statement} ({one.mutant.operator})")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.long.mutants", description=__doc__)
    parser.add_argument("what", choices=["cover", "sample", "match", "run"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree (default: this one)")
    asked = parser.parse_args()
    if asked.what == "cover":
        return cover(asked.files[0].absolute())
    if asked.what == "sample":
        found = sample(asked.root, asked.count, asked.seed)
        asked.files[0].write_bytes(msgspec.json.format(msgspec.json.encode(found)))
        return 0
    mutants = msgspec.json.decode(asked.files[0].read_bytes(), type=list[Mutant | None])
    if asked.what == "match":
        known = [one for one in mutants if one is not None]
        there = tuple(name for name in AFTER if (asked.root / name).exists())
        matched = match(known, asked.root, there)
        asked.files[1].write_bytes(msgspec.json.format(msgspec.json.encode(matched)))
        print(f"{sum(one is not None for one in matched)} of {len(matched)} found")
        return 0
    path = asked.files[2]
    done = path.read_bytes().splitlines() if path.exists() else []
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in done]
    tried = {outcome.mutant for outcome in outcomes}
    with tempfile.TemporaryDirectory() as scratch, path.open("ab") as out:
        wanted = [one for one in mutants if one is not None and one not in tried]
        for one in try_all(wanted, asked.root, asked.files[1], Path(scratch), asked.jobs):
            outcomes.append(one)
            out.write(msgspec.json.encode(one) + b"\n")
            out.flush()
    print(report(outcomes))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
