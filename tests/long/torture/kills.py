"""kill -9 at random moments and at each system call; errors at each call; a disk that stalls."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from controller.audit.files import LOCK, Disk
from controller.audit.format.records import OWN
from controller.audit.format.segments import DIRECTORY, segment_file, spare_file
from controller.audit.log import COSIGNED, LogWriter, RecordOpening
from controller.audit.read.reader import records
from tests.long.torture.writer import READY
from tests.support.audit.record.table import TABLE, begun, note, submitted
from tests.support.paths import ROOT

FOREVER: Final = 1_000_000
SPAN: Final = 0.25
"""Seconds after its start within which a writer is killed."""
PATIENCE: Final = 60.0

Acknowledged = dict[int, str]

KILL: Final = "signal=SIGKILL"
FAULTS: Final = {
    "pwrite64": (KILL, "error=EIO", "error=ENOSPC", "error=EDQUOT", "error=EROFS", "retval=7"),
    "fdatasync": (KILL, "error=EIO", "error=ENOSPC"),
    "fsync": (KILL, "error=EIO"),
    "rename": (KILL, "error=EIO", "error=ENOSPC", "error=EROFS"),
    "preadv2": (KILL, "error=EIO", "retval=0"),
}
"""By system call. `retval` skips the call and returns this many bytes."""
ON_THE_RECORD: Final = {
    "openat": (KILL, "error=EIO", "error=EMFILE", "error=EROFS"),
    "close": (KILL, "error=EIO"),
    "unlink": (KILL, "error=EIO"),
    "mkdir": (KILL, "error=EIO", "error=ENOSPC"),
    "ftruncate": (KILL, "error=EIO"),
    "flock": (KILL, "error=EIO"),
    "newfstatat": ("error=EIO",),
}
"""Frequent calls of any process: counted only on the record's paths."""
ENTRIES: Final = 40
"""Enough to fill a segment and start the next."""
FEW: Final = 3
WAITING: Final = 200
"""Entries that are queued while a disk stalls."""
MOST_SEGMENTS: Final = 9
"""Upper limit of segments for these entries."""
_ENDED: Final = re.compile("closed|failed [A-Z][A-Za-z]+: .+")
"""The last line of a writer that ended by itself: it names the error."""


class Lost(AssertionError):
    """An acknowledged entry is missing, or an unknown one exists."""


def killed_under_load(record: Path, times: int, seed: int) -> Iterator[int]:
    """Kill and reopen the same record this many times; yields the number of acknowledged
    entries."""
    random = Random(seed)
    promised: Acknowledged = {}
    for _ in range(times):
        words = ["--book"] if random.random() < 0.7 else []
        child = _writer(record, FOREVER, words)
        try:
            _until_ready(child)
            time.sleep(random.random() * SPAN)  # a random moment; nothing waits for it
        finally:
            child.send_signal(signal.SIGKILL)
        new = _acknowledged(child.communicate(timeout=PATIENCE)[0])
        promised |= new
        check(record, promised)
        yield len(new)


def all_injected(scratch: Path, every: int) -> Iterator[tuple[str, str, int]]:
    """Inject each fault at every nth call until a run has no such call; yields the number of
    acknowledged entries."""
    ways = [(call, fault, False) for call, faults in FAULTS.items() for fault in faults]
    for call, faults in ON_THE_RECORD.items():
        ways += [(call, fault, again) for fault in faults for again in (False, True)]
    for call, fault, again in ways:
        nth = 1
        while True:
            record = scratch / f"{call}-{nth}-{fault}{'-again' if again else ''}"
            promised = _begun(record) if again else {}
            count, met = injected(record, call, nth, fault, promised)
            if not met:
                break
            yield call, fault, count
            nth += every


def injected(
    record: Path, call: str, nth: int, fault: str, promised: Acknowledged
) -> tuple[int, bool]:
    """Run a writer that meets `fault` at the nth `call` of one of its threads; returns the
    number of acknowledged entries, and whether the fault occurred. Unless killed, it prints the
    cause; the record must open again with all acknowledged entries."""
    trace = record.with_name(f"{record.name}.trace")
    wrapped = [
        "strace",
        *("-f", "-qq", "-o", str(trace), "-e", f"trace={call}"),
        *(_paths(record) if call in ON_THE_RECORD else ()),
        *("-e", f"inject={call}:{fault}:when={nth}"),
    ]
    child = _writer(record, ENTRIES, [], wrapped)
    said = child.communicate(timeout=PATIENCE)[0]
    new = _acknowledged(said)
    if fault != KILL and not _ENDED.fullmatch(said.splitlines()[-1] if said else ""):
        raise Lost(f"{call} {nth} {fault}: the writer broke down: {said!r}")
    if (record / "segments").exists():
        check(record, promised | new)
    return len(new), "(INJECTED)" in trace.read_text() or child.returncode < 0


def _begun(record: Path) -> Acknowledged:
    """A record with some entries."""
    return _acknowledged(_writer(record, FEW, []).communicate(timeout=PATIENCE)[0])


def _paths(record: Path) -> Iterator[str]:
    """Arguments for strace: only calls on these paths."""
    files = [segment_file(record, number) for number in range(1, MOST_SEGMENTS + 1)]
    own = (record, record / LOCK, record / COSIGNED, record / DIRECTORY, spare_file(record))
    for path in (*own, *files):
        yield from ("-P", str(path))


def check(record: Path, promised: Acknowledged) -> None:
    """Check that it opens and contains all acknowledged entries, in place."""
    RecordOpening.at(record, table=TABLE).close()
    found = {
        one.seq: msgspec.json.decode(one.data, type=dict[str, str])["text"].rstrip(".")
        for _, one in records(record)
        if one.kind not in OWN
    }
    missing = {seq: text for seq, text in promised.items() if found.get(seq) != text}
    if missing:
        raise Lost(f"{len(missing)} acknowledged records are gone or changed: {missing}")


def _writer(
    record: Path, count: int, words: Sequence[str], wrapped: Sequence[str] = ()
) -> subprocess.Popen[str]:
    command = [*wrapped, sys.executable, "-m", "tests.long.torture.writer", str(record), str(count)]
    return subprocess.Popen(
        [*command, *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def _until_ready(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    line = child.stdout.readline()
    if line.strip() != READY:
        raise Lost(f"a writer did not begin: {line}{child.stdout.read()}")


def _acknowledged(said: str) -> Acknowledged:
    lines = (line.partition(" ") for line in said.splitlines())
    return {int(seq): text for seq, _, text in lines if seq.isdigit()}


class _Stalling(Disk):
    def __init__(self) -> None:
        self.seconds = 0.0

    def sync(self, fd: int) -> None:
        seconds, self.seconds = self.seconds, 0.0
        time.sleep(seconds)
        super().sync(fd)


def stalled(record: Path, seconds: float) -> int:
    """The number of acknowledged entries of those queued; all must be recorded."""
    disk = _Stalling()
    book = LogWriter(begun(record, disk=disk, size=1024 * 1024))
    disk.seconds = seconds
    waiting = [book.submit(note(f"{at}")) for at in range(WAITING)]
    answered = [one.result(seconds + 60)[0].seq for one in waiting]
    book.close_now()
    assert set(answered) <= {seq for seq, _ in submitted(record)}
    return len(answered)
