"""Torture of record and table, with counts:

    python -m tests.long.torture [--part NAME ...] [--share N]

--share 10 does a tenth of each campaign.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.long.torture import altered, altered_rounds, whole_table
from tests.long.torture.kills import KILL, all_injected, killed_under_load, stalled
from tests.support.audit.record.power import states
from tests.support.system.disks import can_mount_images, run_scenario

STATES: Final = 10_000
KILLS: Final = 200
_QUICK: Final = 10
"""A smaller share of the disks leaves out what another scenario contains."""

Counted = dict[str, int]


def power(scratch: Path, share: int, seed: int) -> Counted:
    lengths = list(states(scratch, seed, STATES // share))
    return {"states after a loss of power": len(lengths), "records read back": sum(lengths)}


def kills(scratch: Path, share: int, seed: int) -> Counted:
    promised = list(killed_under_load(scratch / "record", max(1, KILLS // share), seed))
    return {"kills under load": len(promised), "records acknowledged": sum(promised)}


def calls(scratch: Path, share: int, seed: int) -> Counted:
    counted: Counter[str] = Counter()
    for call, fault, promised in all_injected(scratch, share):
        counted[f"{call}: {'killed' if fault == KILL else 'errors'}"] += 1
        counted["records acknowledged"] += promised
    return dict(counted)


def stalls(scratch: Path, share: int, seed: int) -> Counted:
    """A disk that stalls for 3 s and for 30 s while entries are queued: none is lost."""
    counted = [stalled(scratch / str(seconds), seconds) for seconds in (3, 30)]
    return {"stalls": len(counted), "records acknowledged": sum(counted)}


def flips(scratch: Path, share: int, seed: int) -> Counted:
    return altered.counted(altered.flips(scratch / "record", share, seed))


def tampering(scratch: Path, share: int, seed: int) -> Counted:
    return altered.counted(altered.rewritings(scratch, share, seed))


def settlement(scratch: Path, share: int, seed: int) -> Counted:
    """Random rounds settled again, and single values of decisions altered: both verifiers find
    what concerns money and cards."""
    settled = altered_rounds.rounds_of_tables(share, seed)
    return {**settled, **altered_rounds.alterations(share, seed)}


def table(scratch: Path, share: int, seed: int) -> Counted:
    """The whole daemon, with devices behind ptys and USB, killed while it deals."""
    counted = list(whole_table.killed(scratch, share, seed))
    return {
        "kills of the whole daemon": sum(one.kills for one in counted),
        "payments said to be repeats": sum(one.repeats for one in counted),
    }


def disks(scratch: Path, share: int, seed: int) -> Counted:
    """The whole daemon on real disks that fill up, become read-only, or break."""
    names = ["ended_full", "read_only", "broken"] + ["full"] * (share < _QUICK)
    counted: Counter[str] = Counter()
    for name in names:
        place = scratch / name
        place.mkdir()
        counted.update(run_scenario(name, place))
    return dict(counted)


PARTS: Final[dict[str, Callable[[Path, int, int], Counted]]] = {
    "power": power,
    "kills": kills,
    "calls": calls,
    "flips": flips,
    "tampering": tampering,
    "settlement": settlement,
    "stalls": stalls,
    "table": table,
    "disks": disks,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--part", action="append", choices=tuple(PARTS), default=[])
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    for name in args.part or PARTS:
        if name == "calls" and shutil.which("strace") is None:
            print("calls: not tried: there is no strace here (make deps-full)", file=sys.stderr)
            return 1
        if name == "disks" and not can_mount_images():
            why = "they need root, loop devices and e2fsprogs (make deps-full)"
            print(f"disks: not tried: {why}", file=sys.stderr)
            return 1
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
            counted = PARTS[name](Path(scratch), args.share, args.seed)
        said = ", ".join(f"{what} {number:,}" for what, number in counted.items())
        print(f"{name}: {said}, losses 0 ({time.monotonic() - started:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
