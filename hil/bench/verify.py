"""A record verified, reopened and indexed, by turns with SHA-256 over the same bytes.

The record consists of simulated rounds. Reopening it is compared with reopening a short record
whose last segment is about as full. With --full it has ten million records.
"""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from controller.audit.format.hole_cards import HoleKey
from controller.audit.format.segments import SIZE, numbers
from controller.audit.index import Index
from controller.audit.read.reader import read_segment, segments
from controller.audit.simulate import PAR, Recorder, RecorderKeys, record_par
from controller.audit.verify import verify
from controller.config import load_game
from controller.games import default_jurisdiction, game_of
from controller.procedure.engine import Procedure
from controller.procedure.model.game import Game
from hil.bench.measure import (
    Line,
    Pace,
    Section,
    rate,
    ratio,
    scratch,
    seconds,
    times,
)

ROUNDS_A_SECOND: Final = 30_000
"""Rounds in the record per second of a slice: some 4,500 at the usual pace."""
FULL_ROUNDS: Final = 250_000
"""Some ten million records."""
VERIFIED: Final = 500_000
"""The aim for one core, in records a second."""
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
    if child.returncode:
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


def _measure(pace: Pace) -> list[Line]:
    game, keys = bench_game(), recorder_keys()
    rounds = FULL_ROUNDS if pace.full else max(50, round(pace.seconds * ROUNDS_A_SECOND))
    turns = 1 if pace.full else 3
    with scratch() as place:
        record, short = place / "record", place / "short"
        count = record_par(record, game, rounds, lambda _: keys)
        ends = [segment.end for segment in segments(record)]
        size, last = sum(ends), ends[-1]
        # One whole segment, and a last one that is about as full as the long record's.
        fewer = record_par(
            short, game, round(rounds * min(1.0, (SIZE + last) / size)), lambda _: keys
        )
        hashed = min(_hash_seconds(record) for _ in range(turns))
        verified = min(times(lambda: _verify(record, replay=False), turns))
        replayed = seconds(lambda: _verify(record, replay=True))
        indexed = seconds(lambda: _index(record, place / "index.db"))
        peak = _peak_memory(record)
        flat = peak / _peak_memory(short)
        reopened = [(_reopen(record, game, keys), _reopen(short, game, keys)) for _ in range(3)]
        opened, opened_short = map(min, zip(*reopened, strict=True))
    beside = f"  beside that of {fewer:,} records"
    core = "verified, one core: hashes, root, signatures"
    return [
        Line("records", "records in it", count, "records"),
        Line("bytes", "bytes a record, with its frame", size / count, "bytes"),
        Line("verify", core, count / verified, "r/s", VERIFIED),
        ratio("verify_ratio", "  beside SHA-256 of the same", hashed / verified),
        Line("memory", "  its memory at most", peak, "MiB"),
        ratio("memory_ratio", f"  {beside}", flat, at_most=1.25),
        rate("replay", "verified with every decision made again", count / replayed, "r"),
        ratio("replay_ratio", "  beside SHA-256 of the same", hashed / replayed),
        Line("open", "opened, recovered, gone on with", opened, "s", at_most=1.0),
        Line("open_full", "  at most, were its last segment full", opened * SIZE / last, "s"),
        ratio("open_ratio", beside, opened / opened_short, at_most=1.5),
        rate("index", "indexed from nothing", count / indexed, "r"),
        ratio("index_ratio", "  beside SHA-256 of the same", hashed / indexed),
    ]


VERIFY: Final = Section("verify", "a record read, beside SHA-256 over the same bytes", _measure)
