"""How fast a long record is opened and verified, and with how much memory:

    python -m tests.long.torture.long_record [--records N ...] [--dir DIR]

Records of about 600 bytes, as a card that comes face up has; their decisions are not made again.
What hashlib.sha256 takes for the same bytes is measured in the same run, by turns, as processor
time: so a busy machine does not change the ratio much.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from controller.audit.format.records import DeviceCursor, RecordActor, RecordEntry
from controller.audit.format.segments import SIZE, numbers
from controller.audit.read.reader import read_segment
from controller.audit.verify import VerifyScope, verify_segment
from controller.procedure.model.state import State
from tests.support.audit.record.table import FakeClock, begun

TOGETHER: Final = 1_000
SIGNED: Final = 100_000
"""Records between checkpoints, which are measured separately."""
TURNS: Final = 5
OPENED: Final = 3
_SHOE: Final = RecordActor("device", "shoe")


class Ran(NamedTuple):
    """A command's run time, processor time and memory."""

    seconds: float
    processor: float
    mebibytes: float


def card(number: int) -> RecordEntry:
    """About what is recorded of a card."""
    data = {
        "event": {
            "type": "CardDrawn",
            "actor": {"role": "device", "name": "shoe", "seat": 0},
            "card": number % 52,
            "spare": False,
        },
        "rows": ["deal_card", "next_place"],
        "effects": [{"type": "Prompt", "tell": "deal", "to": "dealer", "seat": number % 7 + 1}],
    }
    cursor = DeviceCursor("SHOE-1", 1, number + 1, f"{number:016x}", 1, number * 400_000)
    return RecordEntry("decision", _SHOE, data, number // 40, cursor=cursor, state=State())


def make(place: Path, count: int) -> None:
    """A closed record of about this many records, in segments of the usual size."""
    log = begun(place, size=SIZE, clock=FakeClock())
    for first in range(0, count, TOGETHER):
        log.write([card(number) for number in range(first, min(count, first + TOGETHER))])
        if first % SIGNED == 0:
            log.sign()
    log.close()


def opened(place: Path) -> float:
    """Seconds until a boot has begun, the best of some. Each adds a few records."""
    best = float("inf")
    for _ in range(OPENED):
        began = time.perf_counter()
        log = begun(place, size=SIZE)
        best = min(best, time.perf_counter() - began)
        log.close()
    return best


def verified(place: Path, jobs: int) -> Ran:
    """In a separate process."""
    words = ["audit", "verify", str(place), "--no-replay", "--jobs", str(jobs)]
    command = [sys.executable, "-m", "controller.cli", *words]
    begun_at = time.perf_counter()
    pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=_QUIET)
    _, status, used = os.wait4(pid, 0)
    seconds = time.perf_counter() - begun_at
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{place}: is not right, or was not verified")
    return Ran(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


_QUIET: Final = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]


def pace(place: Path) -> tuple[int, float, float]:
    """For one whole segment, alternating: number of records, seconds of SHA-256, seconds of
    verifying."""
    number = numbers(place)[1]
    data = [frame.data for frame in read_segment(place, number).frames]

    def hashed() -> None:
        for one in data:
            sha256(one).digest()

    def verify() -> None:
        verify_segment(place, number, False, VerifyScope(replay=False))

    turns = [(_processor(hashed), _processor(verify)) for _ in range(TURNS)]
    plain, whole = map(min, zip(*turns, strict=True))
    return len(data), plain, whole


def _processor(work: Callable[[], Any]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def main() -> int:
    parser = argparse.ArgumentParser(prog="long_record", description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"))
    args = parser.parse_args()
    for count in args.records:
        with tempfile.TemporaryDirectory(prefix="long-record-", dir=args.dir) as scratch:
            place = Path(scratch) / "record"
            began = time.perf_counter()
            make(place, count)
            made = time.perf_counter() - began
            size = sum(file.stat().st_size for file in (place / "segments").glob("0*.seg"))
            print(f"{count:,} records, {size / 2**20:,.0f} MiB, made in {made:.0f} s", flush=True)
            last = read_segment(place, numbers(place)[-1])
            print(
                f"  opened, and a boot begun and signed, in {opened(place):.3f} s; "
                f"{len(last.frames):,} records in its last segment",
                flush=True,
            )
            records, plain, whole = pace(place)
            print(
                f"  one processor: {records / whole:,.0f} records/s of its time; SHA-256 alone "
                f"{records / plain:,.0f}; ratio {plain / whole:.2f}",
                flush=True,
            )
            for jobs in (1, len(os.sched_getaffinity(0))):
                ran = verified(place, jobs)
                print(
                    f"  {jobs} processes: {count / ran.seconds:,.0f} records/s in {ran.seconds:.1f}"
                    f" s, {ran.processor:.1f} s of processors, {ran.mebibytes:.0f} MiB at most "
                    "in the first",
                    flush=True,
                )
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"most memory of any process: {children:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
