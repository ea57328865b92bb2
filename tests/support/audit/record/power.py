"""A disk that simulates power losses: unsynced data is lost in part or completely.

`PowerDisk` works on real files without waiting for the real disk, and tracks what a disk must
have after a power loss. `left(...)` builds one of the possible states: any subset of unsynced
sectors, and the first few of the unsynced names.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from controller.audit.errors import DiskFull
from controller.audit.files import Disk
from controller.audit.format.records import OWN, RecordEntry, encode
from controller.audit.log import RecordOpening
from controller.audit.read.reader import records
from tests.support.audit.record.table import SMALL, TABLE, FakeClock, begun, device_report, note

SECTOR: Final = 512


class PowerLost(Exception):
    """Power loss."""


class _File:
    """What a disk must have of a file, and what it may have."""

    def __init__(self) -> None:
        self.safe = bytearray()
        self.loose: list[tuple[int, bytes]] = []
        """Unsynced sectors, in order."""


class PowerDisk(Disk):
    def __init__(self, root: Path, off_at: int | None = None) -> None:
        self.root = root
        self.calls = 0
        self.off_at = off_at
        self._files: dict[int, _File] = {}
        self._names: dict[str, _File] = {}
        """All names, as if everything had been synced."""
        self._safe_names: dict[str, _File] = {}
        self._loose_names: dict[str, list[dict[str, _File]]] = {}
        """By directory: the names after each unsynced change."""

    def _count(self) -> None:
        """Count a call; the power loss is before call `off_at`."""
        self.calls += 1
        if self.off_at is not None and self.calls > self.off_at:
            raise PowerLost

    def know(self) -> None:
        """Treat the current files as durable: the record of an earlier run."""
        for file in sorted(self.root.rglob("*")):
            if file.is_file():
                known = _File()
                known.safe = bytearray(file.read_bytes())
                self._names[self._name(file)] = known
        self._safe_names = dict(self._names)

    def killed(self, off_at: int | None) -> "PowerDisk":
        """The process is killed without power loss: the next one sees all writes, durable or
        not."""
        other = PowerDisk(self.root, off_at)
        other._names = dict(self._names)
        other._safe_names = dict(self._safe_names)
        other._loose_names = {where: list(all_) for where, all_ in self._loose_names.items()}
        return other

    def _name(self, file: Path) -> str:
        return str(file.relative_to(self.root))

    def _renamed(self, file: Path) -> None:
        self._loose_names.setdefault(str(file.parent.relative_to(self.root)), []).append(
            dict(self._names)
        )

    def create(self, file: Path) -> int:
        self._count()
        fd = super().create(file)
        self._files[fd] = self._names[self._name(file)] = _File()
        self._renamed(file)
        return fd

    def open(self, file: Path) -> int:
        self._count()
        fd = super().open(file)
        self._files[fd] = self._names[self._name(file)]
        return fd

    def write(self, fd: int, data: bytes, offset: int) -> int:
        self._count()
        loose = self._files[fd].loose
        at = 0
        while at < len(data):
            room = SECTOR - (offset + at) % SECTOR
            loose.append((offset + at, data[at : at + room]))
            at += room
        return super().write(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._count()
        file = self._files[fd]
        _put(file.safe, file.loose)
        file.loose = []

    def close(self, fd: int) -> None:
        self._files.pop(fd)
        super().close(fd)

    def rename(self, old: Path, new: Path) -> None:
        self._count()
        super().rename(old, new)
        self._names[self._name(new)] = self._names.pop(self._name(old))
        self._renamed(new)

    def remove(self, file: Path) -> None:
        self._count()
        super().remove(file)
        del self._names[self._name(file)]
        self._renamed(file)

    def sync_directory(self, directory: Path) -> None:
        self._count()
        if not directory.is_relative_to(self.root):
            return
        name = str(directory.relative_to(self.root))
        self._loose_names.pop(name, None)
        if not self._loose_names:
            self._safe_names = dict(self._names)
        else:
            for file, known in self._names.items():
                if str(Path(file).parent) == name:
                    self._safe_names[file] = known
            for file in list(self._safe_names):
                if str(Path(file).parent) == name and file not in self._names:
                    del self._safe_names[file]

    def left(self, place: Path, random: Random) -> None:
        """Build a possible state after the power loss below `place`."""
        names = dict(self._safe_names)
        for directory, changes in self._loose_names.items():
            happened = random.randint(0, len(changes))
            if happened:
                for name in [one for one in names if str(Path(one).parent) == directory]:
                    del names[name]
                found = changes[happened - 1].items()
                names |= {one: file for one, file in found if str(Path(one).parent) == directory}
        for name, file in names.items():
            target = place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_survived(file, random))


def _survived(file: _File, random: Random) -> bytes:
    content = bytearray(file.safe)
    way = random.randrange(4)
    if way == 0:
        kept = file.loose
    elif way == 1:
        kept = file.loose[: random.randint(0, len(file.loose))]
    else:
        chance = random.random()
        kept = [piece for piece in file.loose if random.random() < chance]
    _put(content, kept)
    return bytes(content)


def _put(content: bytearray, pieces: list[tuple[int, bytes]]) -> None:
    for offset, data in pieces:
        if offset + len(data) > len(content):
            content.extend(bytes(offset + len(data) - len(content)))
        content[offset : offset + len(data)] = data


STEPS: Final = 40
MAX_BOOTS: Final = 3


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
    return [*made, device_report("SH-1", step + 1)] if random.random() < 0.3 else made


def play(place: Path, disk: "PowerDisk", random: Random, kept: Kept) -> None:
    """Boot, write, sign and close, until all is done or power is lost."""
    log = begun(place, disk=disk, size=SMALL, clock=FakeClock())
    try:
        for step in range(STEPS):
            wanted = entries(random, step)
            kept.in_flight = [encode(entry.data) for entry in wanted]
            pairs = zip(log.write(wanted), kept.in_flight, strict=True)
            kept.acknowledged += [(one.seq, data) for one, data in pairs]
            kept.in_flight = []
            if random.random() < 0.2:
                log.sign()
        log.close()
    except PowerLost:
        log.release()
        raise


def check(place: Path, kept: Kept) -> list[tuple[int, bytes]]:
    """The record opens, contains all acknowledged entries and no others."""
    RecordOpening.at(place, table=TABLE).close()
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


def _killed(place: Path, disk: "PowerDisk", random: Random, kept: Kept) -> "PowerDisk":
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
        kept.in_flight = [data for _, data in found[len(kept.acknowledged) :]] + later.in_flight
    return disk


def _history(scratch: Path, random: Random) -> Iterator[int]:
    """One record through several power losses, each with some of its states."""
    place = scratch / "record"
    kept = Kept([], [])
    place.mkdir()
    for _ in range(random.randint(1, MAX_BOOTS)):
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
                yield len(check(state, kept))
            if random.random() < 0.2:
                break
            shutil.rmtree(state, ignore_errors=True)
        else:
            break
        # The next boot starts from the state of this power loss.
        shutil.rmtree(place)
        state.mkdir(exist_ok=True)
        state.rename(place)
        kept.acknowledged = check(place, kept) if (place / "segments").exists() else []
        kept.in_flight = []
    shutil.rmtree(place)
    shutil.rmtree(scratch / "state", ignore_errors=True)
