"""Descriptors whose close fails are closed exactly once."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from controller.audit.errors import CannotWrite, InUse, RecordDamaged
from controller.audit.files import LOCK, RealDisk
from controller.audit.format.segments import NAME, segment_file
from controller.audit.log import RecordOpening
from controller.audit.log.log import EntryTooLarge
from controller.audit.read.reader import segments
from tests.support.audit.record.table import SMALL, TABLE, begun, everything, handed_in, kinds, note

FOREIGN = b"somebody else's words"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


def file_of(fd: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{fd}"))


class Reusing(RealDisk):
    """Closes a segment as Linux does and reports an error; the number is reused at once."""

    def __init__(self, foreign: Path) -> None:
        self.foreign = foreign
        self.reused: list[int] = []

    def close(self, fd: int) -> None:
        if not NAME.fullmatch(file_of(fd).name):
            super().close(fd)
            return
        other = os.open(self.foreign, os.O_RDWR)
        os.dup2(other, fd)
        os.close(other)
        self.reused.append(fd)
        raise OSError(errno.EIO, "it could not be closed")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Reusing]:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(FOREIGN)
    disk = Reusing(foreign)
    yield disk
    for fd in disk.reused:
        os.close(fd)


def test_a_segment_whose_close_fails_is_not_written_again(place: Path, disk: Reusing) -> None:
    log = begun(place, disk=disk)
    texts = [f"{at}".ljust(3000, ".") for at in range(12)]
    made = [log.write([note(text)])[0].seq for text in texts]
    assert len(disk.reused) >= 2
    assert disk.foreign.read_bytes() == FOREIGN
    log.let_go()
    assert disk.foreign.read_bytes() == FOREIGN
    assert handed_in(place) == [
        (seq, b'{"text":"%s"}' % text.encode()) for seq, text in zip(made, texts, strict=True)
    ]
    begun(place).close()


def test_the_first_error_is_kept_if_a_close_fails_too(place: Path) -> None:
    class Interrupted(RealDisk):
        def sync_directory(self, directory: Path) -> None:
            super().sync_directory(directory)
            if (directory / "00000002.seg").exists():
                raise KeyboardInterrupt

        def close(self, fd: int) -> None:
            file = file_of(fd)
            super().close(fd)
            if file.name == "00000002.seg":
                raise OSError(errno.EIO, "it could not be closed")

    log = begun(place, disk=Interrupted())
    log.write([note("kept", 8000)])
    with pytest.raises(KeyboardInterrupt):
        log.write([note("half-way", 9000)])
    log.let_go()


class Closed:
    """os.close() that closes the files in `fails` and raises; records double closes."""

    def __init__(self, fails: Callable[[Path], bool]) -> None:
        self.fails = fails
        self.failed: list[Path] = []
        self.twice: list[int] = []
        self._close = os.close

    def __call__(self, fd: int) -> None:
        try:
            file = file_of(fd)
        except FileNotFoundError:
            self.twice.append(fd)
            raise OSError(errno.EBADF, "it is not open") from None
        self._close(fd)
        if self.fails(file):
            self.failed.append(file)
            raise OSError(errno.EIO, "it could not be closed")


def test_a_log_closes_each_descriptor_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = begun(place)
    log.write([note("kept")])
    closed = Closed(lambda file: place in file.parents)
    monkeypatch.setattr(os, "close", closed)
    log.let_go()
    log.let_go()
    monkeypatch.undo()
    ours = {file.relative_to(place).as_posix() for file in closed.failed}
    assert {"lock", "segments/00000001.seg"} <= ours
    assert closed.failed.count(segment_file(place, 1)) == 2  # one for writing, one for reading back
    assert not closed.twice
    begun(place).close()


def test_the_read_back_descriptor_is_closed_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the next segment starts."""
    log = begun(place)
    log.write([note("kept", 8000)])
    closed = Closed(lambda file: bool(NAME.fullmatch(file.name)))
    monkeypatch.setattr(os, "close", closed)
    log.write([note("next", 9000)])
    log.close()
    monkeypatch.undo()
    assert closed.failed.count(segment_file(place, 1)) == 2
    assert not closed.twice
    assert kinds(everything(place))[-2:] == ["closed", "checkpoint"]
    assert len(list(segments(place))) == 2


def test_a_lock_whose_close_fails_is_closed_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(place).close()
    opening = RecordOpening.at(place, table=TABLE)
    closed = Closed(lambda file: file.name == LOCK)
    monkeypatch.setattr(os, "close", closed)
    opening.close()
    opening.close()
    monkeypatch.undo()
    assert (closed.failed, closed.twice) == ([place / LOCK], [])


def test_the_lock_is_held_during_preallocation(place: Path) -> None:
    class Slow(RealDisk):
        def __init__(self) -> None:
            self.goes_on = Event()
            self.goes_on.set()
            self.waits = Event()

        def create(self, file: Path) -> int:
            if not self.goes_on.is_set():
                self.waits.set()
                assert self.goes_on.wait(10)
            return super().create(file)

    disk = Slow()
    log = begun(place, disk=disk)
    log.spares.take()
    disk.goes_on.clear()
    log.spares.prepare()
    assert disk.waits.wait(10)
    ends = Thread(target=log.let_go)
    ends.start()
    ends.join(0.1)
    with pytest.raises(InUse):
        RecordOpening.at(place, table=TABLE)
    disk.goes_on.set()
    ends.join(10)
    RecordOpening.at(place, table=TABLE).close()


# --- what cannot be read while a record is opened ---------------------------------------------


def refusing(name: str, asked: Callable[..., object]) -> Callable[..., object]:
    def refuse(path: object, *args: object, **words: object) -> object:
        if isinstance(path, str | Path) and Path(path).name == name:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return asked(path, *args, **words)

    return refuse


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("stat", "record"),
        ("stat", "segments"),
        ("lstat", LOCK),
        ("listdir", "segments"),
        ("scandir", "cosigned"),
    ],
)
def test_an_unreadable_path_is_named(
    place: Path, monkeypatch: pytest.MonkeyPatch, call: str, name: str
) -> None:
    begun(place).close()
    (place / "cosigned").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(os, call, refusing(name, getattr(os, call)))
        with pytest.raises(CannotWrite, match=rf"{name}: cannot be read: Input/output error"):
            RecordOpening.at(place, table=TABLE)
    RecordOpening.at(place, table=TABLE).close()


def test_a_start_that_fails_leaves_no_files(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", refusing(LOCK, os.lstat))
        with pytest.raises(CannotWrite):
            RecordOpening.at(place, table=TABLE)
    with suppress(FileNotFoundError):
        assert os.listdir(place) == []
    begun(place).close()


def test_a_boot_that_fails_releases_the_lock(place: Path) -> None:
    """The last segment contains only its snapshot, and the one before is corrupt."""
    log = begun(place)
    log.write([note("kept", 8000)])
    with pytest.raises(EntryTooLarge, match="are free"):  # with the snapshot of a new segment
        log.write([note("large", SMALL - 700)])
    log.let_go()
    file = segment_file(place, 1)
    file.write_bytes(b"X" + file.read_bytes()[1:])
    for _ in range(2):
        with pytest.raises(RecordDamaged, match="is no segment of a record"):
            begun(place)
