"""The record's appends beside the bare disk: 4 KiB overwritten in a file that is there, and
fdatasync, in turns with what is measured, on the disk of the system's directory for such files.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.format.records import BootIdentity, RecordActor, RecordEntry
from controller.audit.format.segments import SIZE
from controller.audit.log import Log, LogWriter, RecordOpening
from hil.bench.measure import Line, Pace, Section, rate

PLACE: Final = "HOLECARD_BENCH_DISK"
"""Names another directory to measure in: that of the disk that the record will be on."""
TOGETHER: Final = 64
ROUND: Final = 30
"""Records of a round with a few players; a checkpoint follows it."""
_PAGE: Final = 4096
_PAGES: Final = SIZE // _PAGE
_OPS_A_SECOND: Final = 4000
"""About; a slice is so many operations of each contestant for each of its seconds."""
_TEXT: Final = "x" * 300


def entry(text: str = _TEXT) -> RecordEntry:
    """One of the usual length: a decision has some 600 bytes."""
    return RecordEntry("note", RecordActor("dealer", "Ann"), {"text": text}, 1)


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="holecard-bench-", dir=os.environ.get(PLACE)) as name:
        yield Path(name)


def begun(record: Path) -> Log:
    identity = BootIdentity("bench", "holecard", "00" * 32, "00" * 32, "00" * 32, b"{}")
    return Log.begin(
        RecordOpening.at(record, table="bench"), identity, Ed25519PrivateKey.generate()
    )


class RawDisk:
    """What a disk can do at best: a page written over, and on it."""

    def __init__(self, file: Path) -> None:
        self.fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(_PAGES):
            os.write(self.fd, bytes(_PAGE))
        os.fsync(self.fd)
        self._page = os.urandom(_PAGE)
        self._at = 0

    def once(self) -> None:
        os.pwrite(self.fd, self._page, self._at * _PAGE)
        os.fdatasync(self.fd)
        self._at = (self._at + 1) % _PAGES


def _timed(once: Callable[[], object], count: int, into: list[float]) -> None:
    clock = time.perf_counter
    for _ in range(count):
        begun_at = clock()
        once()
        into.append(clock() - begun_at)


def at(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


class _Signed:
    """A checkpoint follows each round. It is not the append's, but the next one waits for it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._count = 0
        self._entry = entry()

    def once(self) -> None:
        if self._count == ROUND:
            self._log.sign()
            self._count = 0
        self._log.write([self._entry])
        self._count += 1


def _measure(pace: Pace) -> list[Line]:
    count = max(20, round(pace.seconds * _OPS_A_SECOND))
    times: dict[str, list[float]] = {name: [] for name in ("raw", "log", "signed", "book")}
    counted = ("raw", "log", "book", "group", "together")
    rates: dict[str, list[float]] = {name: [] for name in counted}
    with scratch() as place:
        raw, log, signed = RawDisk(place / "raw"), begun(place / "log"), begun(place / "signed")
        book = LogWriter(begun(place / "book"))
        signing, one, group = _Signed(signed), entry(), [entry()] * TOGETHER
        contestants: dict[str, Callable[[], object]] = {
            "raw": raw.once,
            "log": lambda: log.write([one]),
            "signed": signing.once,
            "book": lambda: book.submit(one).result(),
        }
        for _ in range(pace.slices):
            for name, once in contestants.items():
                begun_at = time.perf_counter()
                _timed(once, count, times[name])
                if name in rates:
                    rates[name].append(count / (time.perf_counter() - begun_at))
            turns = count // 4
            begun_at = time.perf_counter()
            for _ in range(turns):
                log.write(group)
            rates["group"].append(turns * TOGETHER / (time.perf_counter() - begun_at))
            begun_at = time.perf_counter()
            _together(book, turns)
            rates["together"].append(turns * TOGETHER / (time.perf_counter() - begun_at))
        book.close_now()
        log.close()
        signed.close()
        os.close(raw.fd)
    return _lines(times, rates)


def _together(book: LogWriter, turns: int) -> None:
    """So many always wait, on a loop as at a table: each appends again when it is answered."""
    one = entry()

    async def appends() -> None:
        for _ in range(turns):
            await book.append(one)

    async def all_of_them() -> None:
        await asyncio.gather(*(appends() for _ in range(TOGETHER)))

    asyncio.run(all_of_them())


def _lines(times: dict[str, list[float]], rates: dict[str, list[float]]) -> list[Line]:
    def beside(name: str, part: float) -> float:
        return at(times[name], part) / at(times["raw"], part)

    def by_turns(name: str) -> float:
        pairs = zip(rates[name], rates["raw"], strict=True)
        return median(one / other for one, other in pairs)

    unsigned = at(times["signed"], 0.5) / at(times["log"], 0.5)
    micro = 1e6
    raw = median(rates["raw"])
    # What one more costs that waits with others: the disk is asked once for all of them.
    computed = (TOGETHER / median(rates["together"]) - 1 / raw) / TOGETHER
    return [
        rate("raw", "4 KiB overwritten and fdatasync", raw, "writes"),
        Line("raw_p50", "  the same, p50", at(times["raw"], 0.5) * micro, "us"),
        Line("raw_p99", "  the same, p99", at(times["raw"], 0.99) * micro, "us"),
        Line("log_rate", "written one by one, rate beside it", by_turns("log"), "times", 0.9),
        Line("log_p50", "  p50 beside its p50", beside("log", 0.5), "times"),
        Line("log_p99", "  p99 beside its p99", beside("log", 0.99), "times", at_most=1.5),
        Line("book_rate", "appended one by one, by a thread", by_turns("book"), "times", 0.9),
        Line("book_p50", "  p50 beside its p50", beside("book", 0.5), "times"),
        Line("book_p99", "  p99 beside its p99", beside("book", 0.99), "times", at_most=1.5),
        Line("group", "64 written with one sync, rate beside it", by_turns("group"), "times"),
        Line("together", "64 waiting at once, rate beside it", by_turns("together"), "times", 12),
        Line("computed", "  one of them, without the disk", computed * micro, "us"),
        Line("signed", "signed each round, p50 beside unsigned", unsigned, "times", at_most=1.1),
    ]


RECORD: Final = Section("record", "durable appends beside the bare disk, on this machine", _measure)
