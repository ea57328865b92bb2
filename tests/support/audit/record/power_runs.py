"""Runs of a record with a power loss at any call, and what must remain."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from controller.audit.errors import DiskFull
from controller.audit.format.records import OWN, RecordEntry, encode
from controller.audit.log import RecordOpening
from controller.audit.read.reader import records
from tests.support.audit.record.power import PowerDisk, PowerLost, discard
from tests.support.audit.record.table import SMALL, TABLE, FakeClock, begun, note, told

STEPS: Final = 40
MOST_BOOTS: Final = 3


class Kept(Struct):
    """What a run was promised."""

    acknowledged: list[tuple[int, bytes]]
    """Seq and data of every acknowledged entry."""
    in_flight: list[bytes]
    """Data of unacknowledged entries, which may exist, in this order."""


def entries(random: Random, step: int) -> list[RecordEntry]:
    """A batch."""
    count = random.choice((1, 1, 1, 2, 5))
    size = random.choice((0, 0, 40, 300, 600, 2500))
    made = [note(f"{step}.{one}", random.randint(0, size), round=step) for one in range(count)]
    return [*made, told("SH-1", step + 1)] if random.random() < 0.3 else made


def play(place: Path, disk: PowerDisk, random: Random, kept: Kept) -> None:
    """Boot, write, sign and close, until all is done or power is lost."""
    log = begun(place, disk=disk, size=SMALL, clock=FakeClock())
    try:
        for step in range(STEPS):
            wanted = entries(random, step)
            kept.in_flight = [encode(entry.data) for entry in wanted]
            made = log.write(wanted)
            pairs = zip(made, kept.in_flight, strict=True)
            kept.acknowledged += [(one.seq, data) for one, data in pairs]
            kept.in_flight = []
            if random.random() < 0.2:
                log.sign()
        log.close()
    except PowerLost:
        log.let_go()
        raise


def check(place: Path, kept: Kept) -> list[tuple[int, bytes]]:
    """The record opens, contains all acknowledged entries and no others."""
    opening = RecordOpening.at(place, table=TABLE)
    opening.close()
    found = [(one.seq, bytes(one.data)) for _, one in records(place) if one.kind not in OWN]
    assert found[: len(kept.acknowledged)] == kept.acknowledged
    rest = [data for _, data in found[len(kept.acknowledged) :]]
    assert rest == kept.in_flight[: len(rest)]
    return found


def states(scratch: Path, seed: int, count: int) -> Iterator[int]:
    """Check this many possible states; returns the number of records of each."""
    random = Random(seed)
    tried = 0
    while tried < count:
        for each in _history(scratch, random):
            tried += 1
            yield each
            if tried == count:
                return


def _killed(place: Path, disk: PowerDisk, random: Random, kept: Kept) -> PowerDisk:
    """A kill, then a power loss in the next boot. Unacknowledged entries may be lost until that
    boot has acknowledged a later one."""
    found = check(place, kept)
    later = Kept(list(found), [])
    disk = disk.killed(random.randint(0, 12))
    with contextlib.suppress(PowerLost, DiskFull):
        play(place, disk, random, later)
    if len(later.acknowledged) > len(found):
        kept.acknowledged, kept.in_flight = later.acknowledged, later.in_flight
    else:
        unsure = [data for _, data in found[len(kept.acknowledged) :]]
        kept.in_flight = [*unsure, *later.in_flight]
    return disk


def _history(scratch: Path, random: Random) -> Iterator[int]:
    """One record through several power losses, each with some of its states."""
    place = scratch / "record"
    kept = Kept([], [])
    place.mkdir()
    for _ in range(random.randint(1, MOST_BOOTS)):
        disk = PowerDisk(place, off_at=random.randint(0, 3 * STEPS))
        disk.know()
        with contextlib.suppress(PowerLost, DiskFull):
            play(place, disk, random, kept)
        if random.random() < 0.4 and (place / "segments").exists():
            disk = _killed(place, disk, random, kept)
        for _ in range(6):
            state = scratch / "state"
            disk.left(state, random)
            if (state / "segments").exists():
                found = check(state, kept)
                yield len(found)
            if random.random() < 0.2:
                break
            discard(state) if state.exists() else None
        else:
            break
        # The next boot starts from the state of this power loss.
        discard(place)
        state.mkdir(exist_ok=True)
        state.rename(place)
        kept.acknowledged = check(place, kept) if (place / "segments").exists() else []
        kept.in_flight = []
    discard(place)
    if (scratch / "state").exists():
        discard(scratch / "state")
