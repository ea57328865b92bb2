"""The record on the disk: appended to, verified, indexed and reviewed.

Appends are measured beside the bare disk: 4 KiB overwritten in a file, and fdatasync. Reading is
measured by turns with SHA-256 over the same bytes, and reopening beside a short record whose last
segment is about as full. The review's pages are measured beside the same rows queried directly in
SQLite. Records are written to a temporary directory, or below $HOLECARD_BENCH_DISK.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from random import Random
from statistics import median
from typing import Final
from urllib.parse import urlencode

import apsw
import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from controller.audit.format.hole_cards import HoleKey
from controller.audit.format.records import BootIdentity, RecordActor, RecordEntry
from controller.audit.format.segments import SIZE, numbers
from controller.audit.index import Index, open_index
from controller.audit.log import Log, LogWriter, RecordOpening
from controller.audit.read.reader import read_segment, segments
from controller.audit.simulate import PAR, Recorder, RecorderKeys, record_par
from controller.audit.verify import INCOMPLETE, verify
from controller.config import load_game
from controller.games import default_jurisdiction, game_of
from controller.procedure.engine import Procedure
from controller.procedure.model.game import Game
from controller.rules.cards import DECK
from controller.rules.cards import NAMES as CARDS
from controller.screens.common.sessions import LinkSessions, LoginLinks, PageUser
from controller.screens.common.texts import load
from controller.screens.review.source import FileSource
from controller.screens.review.web import LinkLogin, application, pages_of
from hil.bench.bare import RawDisk
from hil.bench.measure import (
    Figure,
    Pace,
    Samples,
    Section,
    by_turns,
    p50_and_p99,
    scratch,
    seconds,
)

# --- appends ----------------------------------------------------------------------------------

TOGETHER: Final = 64
ROUND: Final = 30
"""Records of a round with a few players; a checkpoint follows it."""
_OPS_A_SECOND: Final = 4000
"""Approximate; the operations of each contestant in a slice, per second of its length."""
_ENTRY: Final = RecordEntry("note", RecordActor("dealer", "Ann"), {"text": "x" * 300}, 1)
"""An entry of the usual length: a decision has some 600 bytes."""


def _log_at(record: Path) -> Log:
    identity = BootIdentity("bench", "holecard", "00" * 32, "00" * 32, "00" * 32, b"{}")
    return Log.begin(
        RecordOpening.at(record, table="bench"), identity, Ed25519PrivateKey.generate()
    )


def _signed(log: Log) -> Iterator[None]:
    """Appends with a checkpoint before each round, for which the next append waits."""
    while True:
        for _ in range(ROUND):
            log.write([_ENTRY])
            yield
        log.sign()


async def _append_together(writer: LogWriter, turns: int) -> None:
    """Append from TOGETHER tasks, each after its former append is durable."""

    async def appends() -> None:
        for _ in range(turns):
            await writer.append(_ENTRY)

    await asyncio.gather(*(appends() for _ in range(TOGETHER)))


def _appends(pace: Pace) -> Samples:
    count = max(20, round(pace.seconds * _OPS_A_SECOND))
    turns = count // 4
    samples: Samples = defaultdict(list)
    with (
        scratch() as place,
        closing(RawDisk(place / "raw")) as raw,
        closing(_log_at(place / "log")) as log,
        closing(_log_at(place / "signed")) as signed,
    ):
        writer, rounds = LogWriter(_log_at(place / "book")), _signed(signed)
        contestants: dict[str, Callable[[], object]] = {
            "raw": raw.once,
            "log": lambda: log.write([_ENTRY]),
            "signed": lambda: next(rounds),
            "book": lambda: writer.submit(_ENTRY).result(),
        }
        for _ in range(pace.slices):
            for name, once in contestants.items():
                took = [seconds(once) for _ in range(count)]
                samples[name] += took
                samples[f"{name}_rate"].append(count / sum(took))
            group = sum(seconds(lambda: log.write([_ENTRY] * TOGETHER)) for _ in range(turns))
            samples["group"].append(turns * TOGETHER / group)
            together = seconds(lambda: asyncio.run(_append_together(writer, turns)))
            samples["together"].append(turns * TOGETHER / together)
        writer.close_now()
    return samples


def _without_disk(samples: Samples) -> float:
    """Returns the seconds of one more entry in a batch, which needs one sync in all."""
    batch = TOGETHER / median(samples["together"])
    return (batch - 1 / median(samples["raw_rate"])) / TOGETHER


RECORD: Final = Section(
    "durable appends beside the bare disk, on this machine",
    _appends,
    (
        Figure("raw", "4 KiB overwritten and fdatasync", "writes/s", "raw_rate"),
        *p50_and_p99("raw", "  the same"),
        Figure(
            "log_rate", "written one by one, rate beside it", "times", "log_rate : raw_rate", 0.9
        ),
        Figure("log_p50", "  p50 beside its p50", "times", "log / raw"),
        Figure("log_p99", "  p99 beside its p99", "times", "log / raw p99", at_most=1.5),
        Figure(
            "book_rate", "appended one by one, by a thread", "times", "book_rate : raw_rate", 0.9
        ),
        Figure("book_p50", "  p50 beside its p50", "times", "book / raw"),
        Figure("book_p99", "  p99 beside its p99", "times", "book / raw p99", at_most=1.5),
        Figure("group", "64 written with one sync, rate beside it", "times", "group : raw_rate"),
        Figure(
            "together", "64 waiting at once, rate beside it", "times", "together : raw_rate", 12
        ),
        Figure("computed", "  one of them, without the disk", "us", _without_disk),
        Figure(
            "signed", "signed each round, p50 beside unsigned", "times", "signed / log", at_most=1.1
        ),
    ),
)


# --- verification -----------------------------------------------------------------------------

_CHILD: Final = """
import sys
from pathlib import Path
from controller.cli import main
code = main()
print(Path("/proc/self/status").read_text())
sys.exit(code)
"""


def recorder_keys() -> RecorderKeys:
    surveillance = X25519PrivateKey.generate().public_key()
    return RecorderKeys(Ed25519PrivateKey.generate(), HoleKey(bytes(range(32))), surveillance)


def bench_game() -> Game:
    return game_of(load_game("mega"), default_jurisdiction())


def _verify(record: Path, *, replay: bool) -> None:
    report = verify(record, replay=replay, jobs=1)
    if report.findings:
        raise AssertionError(f"the record of the bench is not valid: {report.findings[0]}")


def _hash_seconds(record: Path) -> float:
    """Returns the seconds to hash the record's frames, without reading them."""

    def hash_all() -> None:
        for data in frames:
            sha256(data).digest()

    took = 0.0
    for number in numbers(record):
        frames = [frame.data for frame in read_segment(record, number).frames]
        took += seconds(hash_all)
    return took


def _peak_memory(record: Path) -> float:
    """Returns the peak memory in MiB of a process that verifies the record."""
    words = ["audit", "verify", str(record), "--no-replay", "--jobs", "1"]
    command = [sys.executable, "-c", _CHILD, *words]
    child = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if child.returncode != INCOMPLETE:  # it replays no decisions
        raise AssertionError("the record of the bench is not valid, or was not verified")
    peak = next(line for line in child.stdout.splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def _reopen(record: Path, game: Game, keys: RecorderKeys) -> float:
    """Returns the seconds to reopen a record: the last segment replayed, a boot appended."""
    with Recorder(record, PAR, lambda _: keys) as recorder:
        return seconds(lambda: recorder.begin(Procedure(game)))


def _index(record: Path, file: Path) -> None:
    with Index.rebuild(record, file) as index:
        index.catch_up()


def _reads(pace: Pace) -> Samples:
    game, keys = bench_game(), recorder_keys()
    # Some ten million records at full length, and 4,500 rounds at the usual pace.
    rounds = 250_000 if pace.full else max(50, round(pace.seconds * 30_000))
    turns = 1 if pace.full else 3
    with scratch() as place:
        record, short = place / "record", place / "short"
        count = record_par(record, game, rounds, lambda _: keys)
        ends = [segment.end for segment in segments(record)]
        size, last = sum(ends), ends[-1]
        # One whole segment, and a last one that is about as full as the long record's.
        fewer = round(rounds * min(1.0, (SIZE + last) / size))
        fewer = record_par(short, game, fewer, lambda _: keys)
        read = by_turns(
            {
                "hash": lambda: count / _hash_seconds(record),
                "verify": lambda: count / seconds(lambda: _verify(record, replay=False)),
            },
            turns,
        )
        read["replay"] = [count / seconds(lambda: _verify(record, replay=True))]
        read["index"] = [count / seconds(lambda: _index(record, place / "index.db"))]
        peaks = {"memory": [_peak_memory(record)], "memory_short": [_peak_memory(short)]}
        opened = by_turns(
            {
                "open": lambda: _reopen(record, game, keys),
                "open_short": lambda: _reopen(short, game, keys),
            },
            3,
        )
    sizes: Samples = {
        "records": [count],
        "fewer": [fewer],
        "bytes": [size / count],
        "fill": [last / SIZE],
    }
    return {**read, **peaks, **opened, **sizes}


VERIFY: Final = Section(
    "a record read, beside SHA-256 over the same bytes",
    _reads,
    (
        Figure("records", "records in it", "records", "records"),
        Figure("bytes", "bytes a record, with its frame", "bytes", "bytes"),
        Figure(
            "verify", "verified, one core: hashes, root, signatures", "r/s", "verify max", 500_000
        ),
        Figure("verify_ratio", "  beside SHA-256 of the same", "times", "verify / hash max"),
        Figure("memory", "  its memory at most", "MiB", "memory"),
        Figure(
            "memory_ratio",
            "    beside that of {fewer[0]:,} records",
            "times",
            "memory / memory_short",
            at_most=1.25,
        ),
        Figure("replay", "verified with every decision made again", "r/s", "replay"),
        Figure("replay_ratio", "  beside SHA-256 of the same", "times", "replay / hash max"),
        Figure("open", "opened, recovered, gone on with", "s", "open min", at_most=1.0),
        Figure("open_full", "  at most, were its last segment full", "s", "open / fill min"),
        Figure(
            "open_ratio",
            "  beside that of {fewer[0]:,} records",
            "times",
            "open / open_short min",
            at_most=1.5,
        ),
        Figure("index", "indexed from nothing", "r/s", "index"),
        Figure("index_ratio", "  beside SHA-256 of the same", "times", "index / hash max"),
    ),
)


# --- the review -------------------------------------------------------------------------------

_VIEWS: Final = 15
"""Pages of each kind."""
_PAGE: Final = 50
_OF_ROUND: Final = "w.seq BETWEEN r.first_seq AND r.last_seq"
_NEWEST: Final = "AND r.round <= ? ORDER BY r.round DESC LIMIT ?"
PAGES: Final = {
    "list": (
        "rounds listed",
        "SELECT * FROM raw_rounds WHERE round <= ? ORDER BY round DESC LIMIT ?",
    ),
    "round": (
        "a round opened",
        (
            "SELECT * FROM raw_records WHERE seq BETWEEN "
            "(SELECT first_seq FROM raw_rounds WHERE round = ?) AND "
            "(SELECT last_seq FROM raw_rounds WHERE round = ?)"
        ),
    ),
    "card": (
        "rounds looked for by card",
        (
            "SELECT * FROM raw_rounds r WHERE EXISTS "
            f"(SELECT 1 FROM raw_cards w WHERE w.card = ? AND {_OF_ROUND}) {_NEWEST}"
        ),
    ),
    "amount": (
        "rounds looked for by dealer and amount",
        (
            "SELECT * FROM raw_rounds r WHERE EXISTS (SELECT 1 FROM raw_amounts w JOIN "
            f"raw_records d ON d.seq = w.seq WHERE {_OF_ROUND} AND w.amount >= ? "
            f"AND d.dealer = (SELECT id FROM words WHERE word = ?)) {_NEWEST}"
        ),
    ),
}
"""The kinds of pages: text, and the query for the same rows."""
_DEALER: Final = "SELECT word FROM words WHERE id = (SELECT dealer FROM raw_shifts LIMIT 1)"
_AMOUNT: Final = (
    "SELECT amount FROM raw_amounts GROUP BY amount HAVING count(*) > ? "
    "ORDER BY amount DESC LIMIT 1"
)
"""The largest amount that occurs more often than _RARE."""
_RARE: Final = 0.01
"""Part of the rounds."""


def _searches(
    db: apsw.Connection, random: Random, rounds: int
) -> dict[str, tuple[str, tuple[int | str, ...]]]:
    """Returns one page of each kind, up to a random round: its path, and the query's values."""
    number, card = random.randint(1, rounds), random.choice(DECK)
    before = f"before={number + 1}"
    dealer = str(db.execute(_DEALER).get)
    amount = db.execute(_AMOUNT, (round(rounds * _RARE),)).get or 0
    sought = urlencode({"dealer": dealer, "least": str(amount)})
    return {
        "list": (f"/rounds?{before}", (number, _PAGE)),
        "round": (f"/rounds/{number}", (number, number)),
        "card": (f"/rounds?card={CARDS[card]}&{before}", (card, number, _PAGE)),
        "amount": (f"/rounds?{sought}&{before}", (amount, dealer, number, _PAGE)),
    }


async def _page_times(record: Path, folder: Path, rounds: int) -> Samples:
    """Returns the seconds of each page, and of its rows."""
    source = FileSource(record)
    source.begin(lambda words: None)
    links = LoginLinks()
    review = application(source, pages_of(load()), LinkLogin(LinkSessions(), links), folder)
    review.house.prepare()
    transport = httpx.ASGITransport(review.app)
    samples: Samples = defaultdict(list)
    random = Random(7)
    empty = set(PAGES)
    with closing(review), closing(open_index(record)) as db:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.get(f"/enter?word={links.make(PageUser('Bench'))}")
            for _ in range(_VIEWS):
                for name, (path, values) in _searches(db, random, rounds).items():
                    start = time.perf_counter()
                    answer = await client.get(path)
                    shown = time.perf_counter()
                    found = list(db.execute(PAGES[name][1], values))
                    samples[f"{name}_sql"].append(time.perf_counter() - shown)
                    samples[name].append(shown - start)
                    if answer.status_code != 200:
                        raise AssertionError(f"{path} is not shown: {answer.status_code}")
                    if found:
                        empty.discard(name)
    if empty:
        raise AssertionError(f"no rows were found for: {', '.join(sorted(empty))}")
    return samples


def _pages(pace: Pace) -> Samples:
    rounds, keys = pace.count(20_000, full=1_000_000, minimum=100), recorder_keys()
    with scratch() as place:
        record_par(place / "record", bench_game(), rounds, lambda _: keys)
        took = asyncio.run(_page_times(place / "record", place, rounds))
    return {"rounds": [rounds], **took}


REVIEW: Final = Section(
    "a long record reviewed, beside its rows by hand",
    _pages,
    (
        Figure("rounds", "rounds in the record", "rounds", "rounds"),
        *(
            figure
            for name, (text, _) in PAGES.items()
            for figure in (
                Figure(name, f"{text}, page", "ms", name),
                Figure(f"{name}_longest", "  the longest", "s", f"{name} max", at_most=0.5),
                Figure(f"{name}_sql", f"{text}, rows by hand", "ms", f"{name}_sql"),
                Figure(f"{name}_ratio", "  beside them", "times", f"{name} / {name}_sql"),
            )
        ),
    ),
)
