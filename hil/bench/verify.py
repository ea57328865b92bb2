"""A record read: verified with and without its rules, opened, indexed; beside SHA-256 over the same
bytes, in turns. The record is of simulated rounds, made for it; what it takes to go on with it is
held beside that for a short one, by turns. With --full the record has ten million records.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
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
from hil.bench.measure import Line, Pace, Section, rate, ratio
from hil.bench.record import scratch

ROUNDS_A_SECOND: Final = 30_000
"""Rounds that are recorded for each second of a slice: some 4,500 in the usual one."""
FULL_ROUNDS: Final = 250_000
"""Some ten million records."""
VERIFIED: Final = 500_000
"""Records a second of one core: what is aimed at."""
_FLAT: Final = 1.25
_GAME: Final = "mega"
_CHILD: Final = """
import sys
from pathlib import Path
from controller.cli import main
code = main()
print(Path("/proc/self/status").read_text())
sys.exit(code)
"""


def _keys() -> RecorderKeys:
    surveillance = X25519PrivateKey.generate().public_key()
    return RecorderKeys(Ed25519PrivateKey.generate(), HoleKey(bytes(range(32))), surveillance)


def _timed(run: Callable[[], None]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def _verified(record: Path, *, replay: bool) -> None:
    report = verify(record, replay=replay, jobs=1)
    if report.findings:
        raise AssertionError(f"the record of the bench is not right: {report.findings[0]}")


def _hashed(record: Path) -> float:
    """Seconds for the same bytes, record by record, and nothing else: once they have been read."""
    took = 0.0
    for number in numbers(record):
        frames = [frame.data for frame in read_segment(record, number).frames]

        def run(frames: list[bytes] = frames) -> None:
            for data in frames:
                sha256(data).digest()

        took += _timed(run)
    return took


def _memory(record: Path) -> float:
    """MiB that verifying takes at most, in a process of its own."""
    words = ["audit", "verify", str(record), "--no-replay", "--jobs", "1"]
    command = [sys.executable, "-c", _CHILD, *words]
    child = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if child.returncode:
        raise AssertionError("the record of the bench is not right, or was not verified")
    most = next(line for line in child.stdout.splitlines() if line.startswith("VmHWM"))
    return int(most.split()[1]) / 1024


def _gone_on_with(record: Path, game: Game, keys: RecorderKeys) -> float:
    """Seconds until a table goes on: its record read, each decision of the last segment made again,
    a boot begun and signed."""
    with Recorder(record, PAR, lambda _: keys) as recorder:
        return _timed(lambda: recorder.begin(Procedure(game)))


def _indexed(record: Path, file: Path) -> None:
    with Index.rebuild(record, file) as index:
        index.catch_up()


def _measure(pace: Pace) -> list[Line]:
    game, keys = game_of(load_game(_GAME), default_jurisdiction()), _keys()
    rounds = FULL_ROUNDS if pace.full else max(50, round(pace.seconds * ROUNDS_A_SECOND))
    times = 1 if pace.full else 3
    with scratch() as place:
        record, short = place / "record", place / "short"
        count = record_par(record, game, rounds, lambda _: keys)
        ends = [segment.end for segment in segments(record)]
        size, last = sum(ends), ends[-1]
        # Its last segment is about as full, for that is what is read.
        least = min(1.0, (SIZE + last) / size)
        fewer = record_par(short, game, round(rounds * least), lambda _: keys)
        best = {
            "hash": min(_hashed(record) for _ in range(times)),
            "verify": min(_timed(lambda: _verified(record, replay=False)) for _ in range(times)),
            "replay": _timed(lambda: _verified(record, replay=True)),
            "index": _timed(lambda: _indexed(record, place / "index.db")),
        }
        most = _memory(record)
        flat = most / _memory(short)
        turns = [
            (_gone_on_with(record, game, keys), _gone_on_with(short, game, keys)) for _ in range(3)
        ]
        best["open"], best["short"] = map(min, zip(*turns, strict=True))
    beside = f"  beside that of {fewer:,} records"
    core = "verified, one core: hashes, root, signatures"
    return [
        Line("records", "records in it", count, "records"),
        Line("bytes", "bytes a record, with its frame", size / count, "bytes"),
        Line("verify", core, count / best["verify"], "r/s", VERIFIED),
        ratio("verify_ratio", "  beside SHA-256 of the same", best["hash"] / best["verify"]),
        Line("memory", "  its memory at most", most, "MiB"),
        Line("memory_ratio", f"  {beside}", flat, "times", at_most=_FLAT),
        rate("replay", "verified with every decision made again", count / best["replay"], "r"),
        ratio("replay_ratio", "  beside SHA-256 of the same", best["hash"] / best["replay"]),
        Line("open", "opened, recovered, gone on with", best["open"], "s", at_most=1.0),
        Line("open_full", "  at most, were its last segment full", best["open"] * SIZE / last, "s"),
        Line("open_ratio", beside, best["open"] / best["short"], "times", at_most=1.5),
        rate("index", "indexed from nothing", count / best["index"], "r"),
        ratio("index_ratio", "  beside SHA-256 of the same", best["hash"] / best["index"]),
    ]


VERIFY: Final = Section("verify", "a record read, beside SHA-256 over the same bytes", _measure)
