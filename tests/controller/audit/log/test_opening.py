"""Opening a record for writing: what is found, why it is rejected, how it is closed."""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from threading import Event, Thread

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.errors import (
    CannotWrite,
    InUse,
    NoRecord,
    OtherTable,
    RecordDamaged,
    RecordsMissing,
    UnexplainedTail,
)
from controller.audit.files import LOCK, Disk
from controller.audit.format.merkle import leaf_hash
from controller.audit.format.segments import HEADER_SIZE, NAME, SPARE, chained, pack, segment_file
from controller.audit.log import Log, RecordOpening
from controller.audit.log.checkpoints import UnsignedRecords
from controller.audit.log.log import EntryTooLarge
from controller.audit.read.reader import read_segment, record_of, segments
from controller.audit.read.signatures import BadSignature
from tests.support.audit.record.table import (
    IDENTITY,
    SMALL,
    TABLE,
    TABLE_KEY,
    begun,
    device_report,
    everything,
    kinds_of,
    note,
    submitted,
    written,
)


def test_a_dangling_link_is_reported(place: Path) -> None:
    place.symlink_to(place.parent / "disk")
    with pytest.raises(NoRecord) as caught:
        opened(place)
    assert (caught.value.what, caught.value.todo) == (
        f"is a link to {place.parent}/disk, where nothing is",
        "make that directory, or name another one",
    )


def opened(place: Path, table: str = TABLE) -> RecordOpening:
    opening = RecordOpening.at(place, table=table)
    opening.close()
    return opening


def filled(place: Path, count: int = 40) -> None:
    pairs = ((note(f"{at}", 700), device_report("SH-1", at + 1, epoch=3)) for at in range(count))
    written(place, *chain.from_iterable(pairs))


def everything_in(folder: Path) -> dict[str, bytes | None]:
    every = sorted(folder.rglob("*"))
    return {str(one): one.read_bytes() if one.is_file() else None for one in every}


def test_an_empty_place_is_a_new_record(place: Path) -> None:
    opening = opened(place)
    assert opening.segment is None
    assert opening.last is None
    assert opening.state is None
    assert opening.opened() is None
    assert not opening.closed()


def test_the_last_segment_is_read(place: Path) -> None:
    filled(place)
    opening = opened(place)
    assert opening.closed()
    assert opening.segment is not None
    assert opening.segment.number > 2
    found = opening.cursors.get("SH-1")
    assert found is not None
    assert (found.epoch, found.seq) == (3, 40)
    assert opening.cursors.get("SH-2") is None
    chains = opening.chains("SH-1")
    assert chains[40] == f"{40:016x}"
    assert 1 < len(chains) < 40
    assert opening.opened() is not None
    assert opening.certificate() is not None


def test_an_unclosed_record_is_detected(place: Path) -> None:
    log = begun(place)
    log.write([note("in the middle")])
    log.release()
    assert not opened(place).closed()


def test_a_second_writer_is_rejected(place: Path) -> None:
    with closing(begun(place)), pytest.raises(InUse, match="another process writes it"):
        RecordOpening.at(place, table=TABLE)
    opened(place)


def test_a_record_of_another_table_is_rejected(place: Path) -> None:
    filled(place, 1)
    before = everything_in(place)
    with pytest.raises(OtherTable) as caught:
        RecordOpening.at(place, table="mega-2")
    what = "is the record of table mega-1, not of mega-2"
    assert str(caught.value) == f"{place}: {what}; name the record of this table"
    assert everything_in(place) == before


@pytest.mark.parametrize(
    ("existing", "what"),
    [
        ("record/letter.txt", r"holds no record, but letter\.txt"),
        ("record/segments/a.seg", r"segments: holds no record, but a\.seg"),
        ("record/cosigned/21.note", "holds no record, but cosigned"),
        ("record/tails/1.json", "holds no record, but tails"),
        ("record/index.db", r"holds no record, but index\.db"),
        ("record", "is no directory"),
        ("", r"there is no directory to make it in; make .*nowhere"),
    ],
)
def test_a_place_with_something_else_is_rejected_unchanged(
    place: Path, existing: str, what: str
) -> None:
    if existing:
        (place.parent / existing).parent.mkdir(parents=True, exist_ok=True)
        (place.parent / existing).write_text("dear")
    else:
        place = place / "nowhere" / "record"
    before = everything_in(place.parent)
    with pytest.raises(NoRecord, match=what):
        RecordOpening.at(place, table=TABLE)
    assert everything_in(place.parent) == before


def test_an_interrupted_start_is_repeated(place: Path) -> None:
    (place / "segments").mkdir(parents=True)
    (place / "segments" / SPARE).write_bytes(b"half")
    begun(place).close()
    assert opened(place).closed()


def test_a_place_that_cannot_be_written_is_rejected(tmp_path: Path, place: Path) -> None:
    """A link instead of the lock file: an error that root gets too."""
    place.mkdir()
    (place / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CannotWrite, match="cannot be written: Too many levels"):
        RecordOpening.at(place, table=TABLE)


@pytest.mark.parametrize(
    ("number", "code"), [(errno.EROFS, 74), (errno.EIO, 74), (errno.ENOSPC, 74), (errno.EACCES, 2)]
)
def test_a_disk_that_fails_at_the_start_is_not_the_users_mistake(
    place: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    """Exit code 74 is started again, 2 is not."""
    begun(place).close()
    before = everything_in(place)
    real = os.open

    def fails(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if Path(path).name == "lock":
            raise OSError(number, os.strerror(number))
        return real(path, flags, mode)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", fails)
        with pytest.raises(CannotWrite, match=os.strerror(number)) as caught:
            RecordOpening.at(place, table=TABLE)
    assert caught.value.exit_code == code
    assert everything_in(place) == before


def test_a_missing_segment_is_reported(place: Path) -> None:
    filled(place)
    segment_file(place, 2).unlink()
    with pytest.raises(RecordDamaged, match=r"00000002\.seg: is missing; put it back"):
        RecordOpening.at(place, table=TABLE)


def test_a_misplaced_segment_is_rejected(place: Path) -> None:
    filled(place)
    max(place.glob("segments/0*.seg")).write_bytes(segment_file(place, 1).read_bytes())
    with pytest.raises(RecordDamaged, match="is segment 1, not"):
        RecordOpening.at(place, table=TABLE)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data[:-1], f"has {SMALL - 1} bytes, its header says {SMALL}"),
        (lambda data: data + b"\0", f"has {SMALL + 1} bytes"),
        (lambda data: b"", "is no segment of a record"),
        (lambda data: b"PK" + data[2:], "is no segment of a record"),
        (lambda data: data[:30] + b"\xff" + data[31:], "its first record is not whole"),
        (lambda data: data[:24] + bytes(SMALL - 24), "its first record is not whole"),
    ],
    ids=["short", "long", "empty", "foreign", "damaged", "zeroed"],
)
def test_a_corrupt_last_segment_is_rejected(
    place: Path, change: Callable[[bytes], bytes], said: str
) -> None:
    filled(place)
    last = max(place.glob("segments/0*.seg"))
    last.write_bytes(change(last.read_bytes()))
    before = everything_in(place)
    with pytest.raises(RecordDamaged, match=said) as told_of:
        RecordOpening.at(place, table=TABLE)
    assert told_of.value.todo
    assert everything_in(place) == before


def test_zeros_before_a_checkpoint_are_missing_records(place: Path) -> None:
    """Zeros before a checkpoint: only lost records explain them."""
    filled(place, 8)
    file = segment_file(place, 1)
    whole = file.read_bytes()
    for frame in next(segments(place)).frames[3:-3]:
        file.write_bytes(
            whole[: frame.offset] + bytes(frame.end - frame.offset) + whole[frame.end :]
        )
        with pytest.raises(
            RecordsMissing, match=f"records after seq {frame.seq - 1} cannot be read"
        ):
            RecordOpening.at(place, table=TABLE)


def refused(place: Path, problem: type[Exception]) -> None:
    """Opening raises `problem` and changes nothing."""
    before = everything_in(place.parent)
    with pytest.raises(problem):
        begun(place)
    assert everything_in(place.parent) == before


def test_a_rejected_start_changes_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything_in(place.parent)
    opened(place)
    assert everything_in(place.parent) == before
    place.mkdir()
    opened(place)
    assert everything_in(place.parent) == {str(place): None}
    place.rmdir()

    filled(place, 3)
    (place / "lock").unlink()  # a copy without the lock file
    opened(place)
    assert not (place / "lock").exists()
    with monkeypatch.context() as patched:
        patched.setattr("tests.support.audit.record.table.TABLE", "mega-2")
        refused(place, OtherTable)
    segment = segment_file(place, 1)
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-1])
    refused(place, RecordDamaged)
    segment.write_bytes(whole[:-9] + b"scribbled")
    refused(place, UnexplainedTail)
    segment.write_bytes(whole)
    other = Ed25519PrivateKey.generate()
    with pytest.raises(BadSignature):
        Log.begin(RecordOpening.at(place, table=TABLE), IDENTITY, other)
    assert not (place / "lock").exists()
    filled(place, 1)
    assert (place / "lock").exists()


def test_a_removed_lock_file_excludes_no_writer(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock file is removed between opening and locking it, then another process locks a new
    one."""
    first = RecordOpening.at(place, table=TABLE)
    real = fcntl.flock
    others: list[RecordOpening] = []

    def slow(fd: int, how: int) -> None:
        monkeypatch.setattr("controller.audit.files.fcntl.flock", real)
        first.close()
        others.append(RecordOpening.at(place, table=TABLE))
        real(fd, how)

    monkeypatch.setattr("controller.audit.files.fcntl.flock", slow)
    with pytest.raises(InUse):
        RecordOpening.at(place, table=TABLE)
    (other,) = others
    with pytest.raises(InUse):
        RecordOpening.at(place, table=TABLE)
    other.close()
    opened(place)


def test_a_record_that_lost_its_segments_is_not_begun_again(place: Path) -> None:
    """The lock file distinguishes an interrupted start from a record that lost its segments."""
    (place / "segments").mkdir(parents=True)
    (place / "segments" / SPARE).write_bytes(bytes(SMALL))
    (place / "lock").touch()
    (place / "keys").mkdir()
    log = begun(place)
    log.close()
    assert (place / "lock").read_text() == log.origin
    first = {file.name: file.read_bytes() for file in place.glob("segments/0*.seg")}
    for name in first:
        (place / "segments" / name).unlink()
    words = f"the record {log.origin} was begun here, and its segments are gone"
    for gone in (place / "segments" / SPARE, place / "segments"):
        before = everything_in(place)
        with pytest.raises(
            RecordsMissing, match=f"{words}; .* a new record needs a directory of its own"
        ):
            RecordOpening.at(place, table=TABLE)
        assert everything_in(place) == before
        gone.rmdir() if gone.is_dir() else gone.unlink(missing_ok=True)
    (place / "segments").mkdir()
    for name, data in first.items():
        (place / "segments" / name).write_bytes(data)
    (place / "lock").write_bytes(b"")  # as older versions left it
    begun(place).close()
    assert (place / "lock").read_text() == log.origin


def test_an_older_copy_than_a_cosignature_is_rejected(place: Path) -> None:
    filled(place, 1)
    (place / "cosigned").mkdir()
    (place / "cosigned" / "21.note").write_text("as a witness wrote it")
    with pytest.raises(RecordsMissing, match="ends with record 8; a witness has seen 21"):
        RecordOpening.at(place, table=TABLE)


def test_unsigned_records_are_not_signed_by_the_next_boot(place: Path) -> None:
    """The last segment is rewritten with valid hashes, but without signatures."""
    filled(place, 3)
    found = read_segment(place, 1)
    kept = [
        one
        for one in found.frames
        if record_of(found.file, one).kind not in ("certificate", "checkpoint")
    ]
    seq, chain, data = found.before.seq, found.before.chain, b""
    for frame in kept:
        seq += 1
        text = frame.data.replace(b'"seq":%d,' % frame.seq, b'"seq":%d,' % seq)
        text = text.replace(b'"text":"1', b'"text":"9')
        chain = chained(chain, leaf_hash(text))
        data += pack(seq, seq - 1, chain, text)
    found.file.write_bytes((found.buffer[:HEADER_SIZE] + data).ljust(len(found.buffer), b"\0"))
    opening = RecordOpening.at(place, table=TABLE)
    with pytest.raises(UnsignedRecords, match="recorded this before it had signed anything"):
        Log.begin(opening, IDENTITY, TABLE_KEY)
    begun(place, accept=("Ann", "Bo")).close()
    assert b'"two":["Ann","Bo"]' in bytes(
        next(one for one in everything(place) if one.kind == "fault").data
    )
    opened(place)


FOREIGN = b"somebody else's words"


def file_of(fd: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{fd}"))


class Reusing(Disk):
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
    log.release()
    assert disk.foreign.read_bytes() == FOREIGN
    assert submitted(place) == [
        (seq, b'{"text":"%s"}' % text.encode()) for seq, text in zip(made, texts, strict=True)
    ]
    begun(place).close()


def test_the_first_error_is_kept_if_a_close_fails_too(place: Path) -> None:
    class Interrupted(Disk):
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
    log.release()


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
    log.release()
    log.release()
    monkeypatch.undo()
    assert {"lock", "segments/00000001.seg"} <= {
        file.relative_to(place).as_posix() for file in closed.failed
    }
    assert closed.failed.count(segment_file(place, 1)) == 2  # one for writing, one for reading back
    assert not closed.twice
    begun(place).close()


def test_the_read_back_descriptor_is_closed_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the next segment starts."""
    with closing(begun(place)) as log:
        log.write([note("kept", 8000)])
        closed = Closed(lambda file: bool(NAME.fullmatch(file.name)))
        monkeypatch.setattr(os, "close", closed)
        log.write([note("next", 9000)])
    monkeypatch.undo()
    assert closed.failed.count(segment_file(place, 1)) == 2
    assert not closed.twice
    assert (kinds_of(place)[-2:], len(list(segments(place)))) == (["closed", "checkpoint"], 2)


def test_a_lock_whose_close_fails_is_closed_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(place).close()
    with closing(RecordOpening.at(place, table=TABLE)) as opening:
        closed = Closed(lambda file: file.name == LOCK)
        monkeypatch.setattr(os, "close", closed)
    opening.close()
    monkeypatch.undo()
    assert (closed.failed, closed.twice) == ([place / LOCK], [])


def test_the_lock_is_held_during_preallocation(place: Path) -> None:
    class Slow(Disk):
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
    ends = Thread(target=log.release)
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
    log.release()
    file = segment_file(place, 1)
    file.write_bytes(b"X" + file.read_bytes()[1:])
    for _ in range(2):
        with pytest.raises(RecordDamaged, match="is no segment of a record"):
            begun(place)
