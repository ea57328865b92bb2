"""A process that writes a record and says what was acknowledged, until somebody kills it.

python -m tests.long.torture.writer RECORD COUNT [--book]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from random import Random
from typing import Final

from controller.audit.errors import RecordProblem
from controller.audit.format.records import RecordEntry
from controller.audit.log import Log, LogWriter, RecordOpening, SystemClock, Together
from tests.support.audit.record.table import IDENTITY, SMALL, TABLE, TABLE_KEY, note

READY: Final = "ready"
TOGETHER: Final = 16


def main(arguments: list[str]) -> int:
    record, count = Path(arguments[0]), int(arguments[1])
    try:
        opening = RecordOpening.at(record, table=TABLE)
        begin = 1 + sum(one.kind == "note" for one in opening.records)
        log = Log.begin(opening, IDENTITY, TABLE_KEY, clock=SystemClock(), size=SMALL)
        _say(READY)
        if "--book" in arguments:
            _all_at_once(log, begin, count)
        else:
            _one_by_one(log, begin, count)
    except RecordProblem as problem:
        _say(f"failed {type(problem).__name__}: {problem}")
        return 1
    _say("closed")
    return 0


def _one_by_one(log: Log, begin: int, count: int) -> None:
    try:
        for entry in _entries(begin, count):
            _acknowledge(log.write([entry])[0].seq, entry)
            if entry.sign:
                log.sign()
    finally:
        log.close()


def _all_at_once(log: Log, begin: int, count: int) -> None:
    """Under load: several entries are always queued."""
    book = LogWriter(log)
    flying: dict[Future[Together], RecordEntry] = {}
    try:
        for entry in _entries(begin, count):
            flying[book.submit(entry)] = entry
            if len(flying) == TOGETHER:
                done = wait(flying, return_when="FIRST_COMPLETED").done
                for one in sorted(done, key=lambda found: found.result()[0].seq):
                    _acknowledge(one.result()[0].seq, flying.pop(one))
        for one, entry in flying.items():
            _acknowledge(one.result()[0].seq, entry)
    finally:
        book.close_now()


def _entries(begin: int, count: int) -> Iterator[RecordEntry]:
    random = Random(os.getpid())
    for at in range(begin, begin + count):
        yield note(f"{os.getpid()}.{at}", random.randint(0, 900), sign=not at % 7)


def _acknowledge(seq: int, entry: RecordEntry) -> None:
    _say(f"{seq} {entry.data['text'].rstrip('.')}")


def _say(line: str) -> None:
    """With a single write, so that a kill leaves no partial line."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
