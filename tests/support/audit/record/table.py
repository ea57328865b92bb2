"""A table with identity, keys, clock and entries, for tests that write records."""

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.files import Disk
from controller.audit.format.records import (
    OWN,
    BootIdentity,
    ChainPosition,
    DeviceCursor,
    Moment,
    OpenedData,
    Record,
    RecordActor,
    RecordEntry,
)
from controller.audit.log import Log, RecordOpening
from controller.audit.read.reader import records

TABLE: Final = "mega-1"
IDENTITY: Final = BootIdentity(
    TABLE, "holecard 0", "5a" * 32, "c0" * 32, "de" * 32, b'{"name":"mega"}'
)
TABLE_KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
ANN: Final = RecordActor("dealer", "Ann")
SMALL: Final = 16 * 1024
"""A segment size for some dozens of records."""
NOON: Final = 1_800_000_000_000_000
_HOURS: Final = count()
"""Each boot is later than those before it."""


class FakeClock:
    """A clock that advances by a millisecond per reading, and can be set."""

    def __init__(self, utc: int = NOON, mono: int = 10**9) -> None:
        self.utc = utc
        self.mono = mono

    def __call__(self) -> Moment:
        self.go(0.001)
        return Moment(self.utc, self.mono, "synced")

    def go(self, seconds: float) -> None:
        self.utc += round(seconds * 1e6)
        self.mono += round(seconds * 1e9)

    def set(self, seconds: float) -> None:
        """Set it forward or back."""
        self.utc += round(seconds * 1e6)


def opened(me: BootIdentity) -> OpenedData:
    """The `opened` data of a boot with this identity."""
    return OpenedData(
        f"holecard/{me.table}/00112233445566ff",
        me.software,
        me.sw,
        me.conf,
        me.proc,
        me.code,
        msgspec.Raw(me.game),
        "",
        0,
        0,
        "direct",
    )


def note(text: str, size: int = 0, *, sign: bool = False, round: int = 0) -> RecordEntry:
    return RecordEntry("note", ANN, {"text": text.ljust(size, ".")}, round, sign=sign)


def device_report(device: str, seq: int, epoch: int = 7) -> RecordEntry:
    """A device report with its cursor."""
    cursor = DeviceCursor(device, epoch, seq, f"{seq:016x}")
    return RecordEntry(
        "device", RecordActor("device", device), {"what": "cover", "open": True}, cursor=cursor
    )


class FastDisk(Disk):
    """A disk without syncs. What a process that is killed has written is there all the same."""

    def sync(self, fd: int) -> None: ...

    def sync_directory(self, directory: Path) -> None: ...

    def drop_cached(self, file: Path) -> None: ...


def begun(
    place: Path,
    *,
    disk: Disk | None = None,
    size: int = SMALL,
    clock: FakeClock | None = None,
    accept: tuple[str, str] | None = None,
) -> Log:
    """A boot at this place, on a fast disk unless another one is given."""
    opening = RecordOpening.at(place, table=TABLE, disk=disk or FastDisk(), accept=accept)
    clock = clock or FakeClock(NOON + next(_HOURS) * 3_600_000_000)
    return Log.begin(opening, IDENTITY, TABLE_KEY, clock=clock, size=size)


def written(place: Path, *entries: RecordEntry, size: int = SMALL) -> Log:
    """A boot that writes these entries, each by itself, and is closed."""
    with closing(begun(place, size=size)) as log:
        for entry in entries:
            log.write([entry])
    return log


def everything(place: Path) -> list[Record]:
    return [record for _, record in records(place)]


def submitted(place: Path) -> list[tuple[int, bytes]]:
    """Seq and data of all records that the log did not write itself."""
    return [(one.seq, bytes(one.data)) for one in everything(place) if one.kind not in OWN]


def kinds(found: Sequence[Record]) -> list[str]:
    return [record.kind for record in found]


def kinds_of(place: Path) -> list[str]:
    return kinds(everything(place))


def seqs(made: Sequence[ChainPosition]) -> list[int]:
    return [one.seq for one in made]


# --- a disk whose calls fail as a test says ---------------------------------------------------


def failing(number: int) -> Callable[..., Any]:
    """A call of the system that fails with this error."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


class FaultyDisk(Disk):
    """Raises what `fails` has for a call, before the call; "second segment": after its rename."""

    def __init__(
        self, fails: Mapping[str, BaseException] | None = None, *, power_off_at: int = -1
    ) -> None:
        self.fails = dict(fails or {})
        self.short = 0
        """The most bytes that a write writes; 0: all."""
        self.calls: list[str] = []
        self._power_off_at = power_off_at
        """The power is lost before the call of this number."""

    def before(self, call: str, file: Path | None = None) -> None:
        """Count a call, and fail at it as the test says."""
        if len(self.calls) == self._power_off_at:
            raise OSError(errno.EIO, "power is gone")
        if call in self.fails:
            raise self.fails[call]
        self.calls.append(call if file is None else f"{call} {file.name}")

    def create(self, file: Path) -> int:
        self.before("create", file)
        return super().create(file)

    def write(self, fd: int, data: bytes, offset: int) -> int:
        self.before("write")
        return super().write(fd, data[: self.short or None], offset)

    def sync(self, fd: int) -> None:
        self.before("sync")
        super().sync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self.before("rename", new)
        super().rename(old, new)

    def sync_directory(self, directory: Path) -> None:
        self.before("sync directory")
        super().sync_directory(directory)
        if "second segment" in self.fails and (directory / "00000002.seg").exists():
            raise self.fails["second segment"]
