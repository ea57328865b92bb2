"""Durable appends to the record beside the bare disk: 4 KiB overwritten in a file, and fdatasync.

The record is written to a temporary directory, or below $HOLECARD_BENCH_DISK.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.format.records import BootIdentity, RecordActor, RecordEntry
from controller.audit.format.segments import SIZE
from controller.audit.log import Log, LogWriter, RecordOpening
from hil.bench.measure import Line, Pace, Samples, Section, rate, ratio, scratch, seconds, times

TOGETHER: Final = 64
ROUND: Final = 30
"""Records of a round with a few players; a checkpoint follows it."""
_PAGE: Final = 4096
_PAGES: Final = SIZE // _PAGE
_OPS_A_SECOND: Final = 4000
"""Approximate; the operations of each contestant in a slice, per second of its length."""
_ENTRY: Final = RecordEntry("note", RecordActor("dealer", "Ann"), {"text": "x" * 300}, 1)
"""An entry of the usual length: a decision has some 600 bytes."""
_MICRO: Final = 1e6


def _log_at(record: Path) -> Log:
    identity = BootIdentity("bench", "holecard", "00" * 32, "00" * 32, "00" * 32, b"{}")
    return Log.begin(
        RecordOpening.at(record, table="bench"), identity, Ed25519PrivateKey.generate()
    )


class RawDisk:
    """A file whose pages are overwritten and synced one by one: the fastest durable write."""

    def __init__(self, file: Path) -> None:
        self.fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(_PAGES):
            os.write(self.fd, bytes(_PAGE))
        os.fsync(self.fd)
        self._page = os.urandom(_PAGE)
        self._next = 0

    def once(self) -> None:
        os.pwrite(self.fd, self._page, self._next * _PAGE)
        os.fdatasync(self.fd)
        self._next = (self._next + 1) % _PAGES

    def close(self) -> None:
        os.close(self.fd)


class _Signed:
    """Appends with a checkpoint before each round, for which the next append waits."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._count = 0

    def once(self) -> None:
        if self._count == ROUND:
            self._log.sign()
            self._count = 0
        self._log.write([_ENTRY])
        self._count += 1


def _measure(pace: Pace) -> list[Line]:
    count = max(20, round(pace.seconds * _OPS_A_SECOND))
    turns = count // 4
    took: dict[str, list[float]] = {name: [] for name in ("raw", "log", "signed", "book")}
    rates: dict[str, list[float]] = {name: [] for name in (*took, "group", "together")}
    with scratch() as place:
        raw, log, signed = RawDisk(place / "raw"), _log_at(place / "log"), _log_at(place / "signed")
        writer, group = LogWriter(_log_at(place / "book")), [_ENTRY] * TOGETHER
        contestants: dict[str, Callable[[], object]] = {
            "raw": raw.once,
            "log": lambda: log.write([_ENTRY]),
            "signed": _Signed(signed).once,
            "book": lambda: writer.submit(_ENTRY).result(),
        }
        for _ in range(pace.slices):
            for name, once in contestants.items():
                slice_ = times(once, count)
                took[name] += slice_
                rates[name].append(count / sum(slice_))
            grouped = sum(times(lambda: log.write(group), turns))
            rates["group"].append(turns * TOGETHER / grouped)
            together = seconds(lambda: _append_together(writer, turns))
            rates["together"].append(turns * TOGETHER / together)
        writer.close_now()
        for one in (log, signed, raw):
            one.close()
    return _lines(Samples(took), Samples(rates))


def _append_together(writer: LogWriter, turns: int) -> None:
    """Append from TOGETHER tasks of an event loop, each after its former append is durable."""

    async def appends() -> None:
        for _ in range(turns):
            await writer.append(_ENTRY)

    async def all_of_them() -> None:
        await asyncio.gather(*(appends() for _ in range(TOGETHER)))

    asyncio.run(all_of_them())


def _lines(took: Samples, rates: Samples) -> list[Line]:
    def beside(name: str, part: float) -> float:
        return took.quantile(name, part) / took.quantile("raw", part)

    raw = rates.median("raw")
    unsigned = took.median("signed") / took.median("log")
    # The cost of one more entry in a batch, which needs one sync in all.
    computed = (TOGETHER / rates.median("together") - 1 / raw) / TOGETHER
    by_turns = {name: rates.ratio(name, "raw") for name in ("log", "book", "group", "together")}
    return [
        rate("raw", "4 KiB overwritten and fdatasync", raw, "writes"),
        Line("raw_p50", "  the same, p50", took.quantile("raw", 0.5) * _MICRO, "us"),
        Line("raw_p99", "  the same, p99", took.quantile("raw", 0.99) * _MICRO, "us"),
        ratio("log_rate", "written one by one, rate beside it", by_turns["log"], 0.9),
        ratio("log_p50", "  p50 beside its p50", beside("log", 0.5)),
        ratio("log_p99", "  p99 beside its p99", beside("log", 0.99), at_most=1.5),
        ratio("book_rate", "appended one by one, by a thread", by_turns["book"], 0.9),
        ratio("book_p50", "  p50 beside its p50", beside("book", 0.5)),
        ratio("book_p99", "  p99 beside its p99", beside("book", 0.99), at_most=1.5),
        ratio("group", "64 written with one sync, rate beside it", by_turns["group"]),
        ratio("together", "64 waiting at once, rate beside it", by_turns["together"], 12),
        Line("computed", "  one of them, without the disk", computed * _MICRO, "us"),
        ratio("signed", "signed each round, p50 beside unsigned", unsigned, at_most=1.1),
    ]


RECORD: Final = Section("record", "durable appends beside the bare disk, on this machine", _measure)
