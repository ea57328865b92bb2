"""Records to be indexed, and what an index says of them in words."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

import apsw

from controller.audit.format.records import RecordEntry
from controller.audit.index import Index
from controller.audit.index.schema import TABLES
from controller.audit.log import Log
from controller.procedure.engine import Procedure
from tests.support.audit.record.dealing import Dealing, boot
from tests.support.audit.record.table import FakeClock
from tests.support.procedure.random_games import some_game

Dump: TypeAlias = dict[str, list[tuple[Any, ...]]]
SMALL: Final = 32 * 1024


def dealt(seed: str, rounds: int, name: str = "mega") -> Dealing:
    """Rounds of a game at random, with all that goes wrong."""
    game, _ = some_game(Random(seed), name)
    table = Dealing(Procedure(game), seed)
    table.play(rounds)
    return table


def written(place: Path, table: Dealing, *, size: int = SMALL, together: int = 3) -> None:
    """Their record, some entries in each write, with a checkpoint now and then."""
    log = boot(place, table.game, size=size)
    for at, entries in enumerate(in_groups(table.entries, together)):
        log.write(entries)
        if at % 5 == 0:
            log.sign()
    log.close()


def in_groups(entries: Sequence[RecordEntry], size: int) -> list[Sequence[RecordEntry]]:
    return [entries[at : at + size] for at in range(0, len(entries), size)]


def write_all(log: Log, entries: Sequence[RecordEntry], together: int = 3) -> None:
    for group in in_groups(entries, together):
        log.write(group)


def dump(db: apsw.Connection) -> Dump:
    """All that an index says, whatever numbers its words have; and how far it goes."""
    said: Dump = {
        table.name: sorted(db.execute(f"SELECT * FROM {table.name}").fetchall()) for table in TABLES
    }
    goes = "SELECT origin, segment, offset, until, seq, chain FROM goes"
    said["goes"] = db.execute(goes).fetchall()
    return said


def dump_of(file: Path) -> Dump:
    db = apsw.Connection(str(file), apsw.SQLITE_OPEN_READONLY)
    try:
        return dump(db)
    finally:
        db.close()


def rebuilt(record: Path, file: Path) -> Dump:
    """What an index made at one go, in another place, says."""
    with Index.rebuild(record, file) as index:
        index.catch_up()
        return dump(index.db)


@contextmanager
def with_its_clock_set(place: Path) -> Iterator[Index]:
    """The index of rounds during which the clock was set, back and forth."""
    table = dealt("query", 60)
    clock = FakeClock()
    log = boot(place, table.game, clock=clock)
    for at in range(0, len(table.entries), 150):
        write_all(log, table.entries[at : at + 150])
        clock.set((-3600, 5400, 2)[at // 150 % 3])
    log.close()
    with Index.open(place) as index:
        index.catch_up()
        yield index


@cache
def some_rounds() -> Dealing:
    return dealt("interleaved", 25)


def caught_up(record: Path, file: Path | None = None) -> None:
    with Index.rebuild(record, file) as index:
        index.catch_up()


def same_as_rebuilt(index: Index) -> bool:
    with tempfile.TemporaryDirectory() as elsewhere:
        return dump(index.db) == rebuilt(index.record, Path(elsewhere) / "other.db")


@contextmanager
def held(index: Index) -> Iterator[None]:
    """Somebody writes the index, and does not end."""
    index.db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        index.db.execute("ROLLBACK")
