"""Appending, rotation, checkpoints and disk errors of a log."""

import errno
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import json

from controller.audit.errors import LogFailed
from controller.audit.files import RealDisk
from controller.audit.format.merkle import Frontier, leaf_hash
from controller.audit.format.notes import (
    VerifierKey,
    parse_checkpoint,
    parse_note,
    read_certificate,
    verify_note,
)
from controller.audit.format.records import (
    ChainPosition,
    ClockData,
    NoteData,
    OpenedData,
    RecordEntry,
    Snapshot,
)
from controller.audit.format.segments import segment_file
from controller.audit.log import Log, RecordOpening
from controller.audit.log.log import EntryTooLarge
from controller.audit.read.reader import records, segments
from controller.procedure.model.state import State, Step
from tests.support.audit.record.table import (
    ANN,
    IDENTITY,
    SMALL,
    TABLE,
    FakeClock,
    begun,
    everything,
    handed_in,
    kinds,
    note,
    told,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


@pytest.fixture
def log(place: Path) -> Iterator[Log]:
    log = begun(place)
    yield log
    log.close()


def test_a_new_record_begins_with_snapshot_opened_and_checkpoint(place: Path) -> None:
    begun(place).close()
    found = everything(place)
    assert kinds(found) == [
        "snapshot",
        "opened",
        "certificate",
        "checkpoint",
        "closed",
        "checkpoint",
    ]
    assert [one.seq for one in found] == [1, 2, 3, 4, 5, 6]
    opened = json.decode(found[1].data, type=OpenedData)
    assert (opened.last, opened.torn, opened.proc) == (0, 0, IDENTITY.proc)
    assert found[2].cause == 2
    assert {one.boot for one in found} == {found[0].boot}


def test_entries_are_read_back_unchanged(place: Path, log: Log) -> None:
    made = log.write([note("one", round=4), told("SH-1", 9)])
    first, second = everything(place)[-2:]
    assert [one.seq for one in made] == [first.seq, second.seq] == [5, 6]
    assert log.where == ChainPosition(6, made[1].chain)
    assert (first.kind, first.by, first.round) == ("note", ANN, 4)
    assert bytes(first.data) == b'{"text":"one"}'
    assert second.cursor is not None
    assert (second.cursor.device, second.cursor.seq) == ("SH-1", 9)
    assert (first.sw, first.conf, first.proc) == ("5a" * 8, "c0" * 8, IDENTITY.proc[:16])


def test_a_second_boot_continues_the_record(place: Path) -> None:
    begun(place).close()
    log = begun(place)
    log.write([note("more")])
    log.close()
    found = everything(place)
    assert [one.seq for one in found] == list(range(1, 13))
    assert len({one.boot for one in found}) == 2
    opened = json.decode(found[6].data, type=OpenedData)
    assert opened.last == 6
    assert opened.origin == json.decode(found[1].data, type=OpenedData).origin


def test_every_checkpoint_is_signed_by_its_boot_over_the_tree(place: Path) -> None:
    for text in ("one", "two"):
        log = begun(place)
        log.write([note(text)])
        log.sign()
        log.close()
    tree = Frontier()
    roots = {}
    key = table_key = None
    for segment in segments(place):
        for frame in segment.frames:
            tree.add(leaf_hash(frame.data))
            roots[frame.seq] = tree.root()
    checked = 0
    for record in everything(place):
        if record.kind == "opened":
            table_key = VerifierKey.parse(json.decode(record.data, type=OpenedData).table_key)
        if record.kind == "certificate":
            assert table_key is not None
            certificate = read_certificate(json.decode(record.data, type=NoteData).note, table_key)
            assert (certificate.boot, certificate.seq) == (record.boot, record.cause)
            key = certificate.verifier
        if record.kind == "checkpoint":
            signed = parse_note(json.decode(record.data, type=NoteData).note)
            assert key is not None
            assert verify_note(signed, [key])
            checkpoint = parse_checkpoint(signed.text)
            assert checkpoint.size == record.seq - 1
            assert checkpoint.root == roots[checkpoint.size]
            checked += 1
    assert checked == 6


def test_segments_follow_each_other(place: Path) -> None:
    log = begun(place)
    for at in range(60):
        log.write([note(f"{at}", 400), told("SH-1", at + 1)])
    log.close()
    found = list(segments(place))
    assert len(found) > 3
    assert [segment.number for segment in found] == list(range(1, len(found) + 1))
    for before, after in pairwise(found):
        assert after.before == before.after
        assert after.snapshot.cursors["SH-1"].seq > 0
        assert len(after.buffer) == SMALL
    assert len(handed_in(place)) == 120


def test_a_snapshot_contains_the_last_state(place: Path) -> None:
    log = begun(place)
    for at in range(60):
        log.write([RecordEntry("note", ANN, {"text": "." * 400}, state=State(Step.WAGERING, at))])
    log.close()
    snapshot = list(segments(place))[-1].snapshot
    assert json.decode(snapshot.state, type=State).round > 40
    opening = RecordOpening.at(place, table=TABLE)
    opening.close()
    assert opening.state == bytes(snapshot.state)


def test_a_batch_is_never_split_over_segments(place: Path, log: Log) -> None:
    log.write([note("a", 9000)])
    log.write([note("b", 3000), note("c", 3000)])
    where = {one.seq: at.segment for at, one in records(place)}
    seqs = [seq for seq, _ in handed_in(place)]
    assert where[seqs[0]] == 1
    assert where[seqs[1]] == where[seqs[2]] == 2


def test_an_entry_too_large_has_no_side_effects(place: Path, log: Log) -> None:
    before = log.where
    with pytest.raises(EntryTooLarge, match="a note of 300290 bytes"):
        log.write([note("first"), note("x", 300_000)])
    with pytest.raises(EntryTooLarge, match="at once"):
        log.write([note("x", 9000), note("x", 9000)])
    log.write([note("fits")])
    assert [bytes(data) for _, data in handed_in(place)] == [b'{"text":"fits"}']
    assert log.where.seq > before.seq


def test_a_clock_change_is_recorded_first(place: Path) -> None:
    clock = FakeClock()
    log = begun(place, clock=clock)
    for seconds in (3600, -7200, 0.4):
        clock.set(seconds)
        log.write([note("after")])
    log.close()
    found = everything(place)
    set_at = [at for at, one in enumerate(found) if one.kind == "clock"]
    assert [found[at + 1].kind for at in set_at] == ["note", "note"]
    first = json.decode(found[set_at[0]].data, type=ClockData)
    assert abs(found[set_at[0]].utc - first.utc_was - 3_600_000_000) < 1000


def test_a_boot_with_an_earlier_clock_records_it(place: Path) -> None:
    begun(place, clock=FakeClock()).close()
    begun(place, clock=FakeClock(utc=FakeClock().utc - 10**9, mono=5)).close()
    assert kinds(everything(place))[6:9] == ["clock", "opened", "certificate"]


def test_the_first_snapshot_is_of_a_new_record(place: Path, log: Log) -> None:
    first = next(segments(place))
    assert bytes(first.snapshot.state) == b"null"
    assert first.snapshot.frontier == ()


# --- disks ---------------------------------------------------------------------------------------


class Failing(RealDisk):
    """Fails at one of its calls, once or permanently."""

    def __init__(self) -> None:
        self.fail_at = ""
        self.number = errno.EIO
        self.short = 0

    def _may(self, what: str) -> None:
        if what == self.fail_at:
            raise OSError(self.number, os.strerror(self.number))

    def create(self, file: Path) -> int:
        self._may("create")
        return super().create(file)

    def write(self, fd: int, data: bytes, offset: int) -> int:
        self._may("write")
        if self.short:
            return super().write(fd, data[: self.short], offset)
        return super().write(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._may("sync")
        super().sync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self._may("rename")
        super().rename(old, new)


@pytest.mark.parametrize("what", ["create", "write", "sync"])
def test_nothing_is_written_after_a_disk_error(place: Path, what: str) -> None:
    disk = Failing()
    log = begun(place, disk=disk)
    log.spares.take()  # so that a file is created for the next segment
    log.write([note("kept")])
    disk.fail_at = what
    with pytest.raises(LogFailed, match="Input/output error"):
        log.write([note("lost", SMALL - 1000 if what == "create" else 10)])
    disk.fail_at = ""
    with pytest.raises(LogFailed, match="Input/output error"):
        log.write([note("never tried")])
    with pytest.raises(LogFailed):
        log.sign()
    log.close()
    assert handed_in(place)[0] == (5, b'{"text":"kept"}')
    begun(place).close()  # it does not block the next boot


def test_a_short_write_is_quarantined_by_the_next_boot(place: Path) -> None:
    disk = Failing()
    log = begun(place, disk=disk)
    log.write([note("kept")])
    disk.short = 100
    with pytest.raises(LogFailed, match="100 of"):
        log.write([note("cut", 500)])
    log.close()
    disk.short = 0
    log = begun(place)
    log.write([note("goes on")])
    log.close()
    found = everything(place)
    assert [one.kind for one in found if one.kind in ("note", "tail")] == ["note", "tail", "note"]
    tail = next(one for one in found if one.kind == "tail")
    told_tail = json.decode(tail.data)
    assert (told_tail["size"], told_tail["verdict"]) == (100, "torn")
    assert (place / told_tail["file"]).is_file()
    assert [one.kind for one in everything(place)].count("tail") == 1
    begun(place).close()
    assert [one.kind for one in everything(place)].count("tail") == 1


def test_altered_bytes_are_not_signed(place: Path) -> None:
    log = begun(place)
    log.write([note("as it was")])
    file = segment_file(place, 1)
    data = file.read_bytes()
    at = data.index(b"as it was")
    with file.open("r+b") as changed:
        changed.seek(at)
        changed.write(b"as it is!")
    with pytest.raises(LogFailed, match="gives back something else"):
        log.sign()
    with pytest.raises(LogFailed, match="gives back something else"):
        log.write([note("more")])
    log.close()


def test_a_failed_rotation_ends_the_log_and_loses_nothing(place: Path) -> None:
    disk = Failing()
    log = begun(place, disk=disk)
    log.write([note("a", 12000)])
    disk.fail_at = "rename"
    with pytest.raises(LogFailed):
        log.write([note("b", 6000)])
    log.close()
    assert len(handed_in(place)) == 1
    log = begun(place)
    log.write([note("b", 6000)])
    log.close()
    assert len(handed_in(place)) == 2


def test_a_closed_log_rejects_entries(place: Path) -> None:
    log = begun(place)
    log.close()
    with pytest.raises(LogFailed, match="it is closed"):
        log.write([note("late")])


def test_a_rotation_uses_the_time_of_its_batch(place: Path) -> None:
    log = begun(place)
    for at in range(60):
        log.write([note(f"{at}", 400)])
    log.close()
    found = everything(place)
    assert kinds(found).count("snapshot") > 2
    assert [one.mono for one in found] == sorted(one.mono for one in found)


def test_a_segment_started_before_the_certificate_names_the_previous_one(place: Path) -> None:
    """Each snapshot describes what came before it, wherever a boot's first records are."""
    for at in range(40):
        log = begun(place, size=4096)
        log.write([note(f"{at}", 37 * at % 500)])
        log.close()
    last = ""
    for record in everything(place):
        if record.kind == "snapshot":
            said = json.decode(record.data, type=Snapshot).certificate
            assert (said or "") == last
        if record.kind == "certificate":
            last = json.decode(record.data, type=NoteData).note


def test_a_boot_continues_the_round_number(place: Path) -> None:
    log = begun(place)
    log.write([note("dealt", round=7), note("about nothing in particular")])
    log.close()
    begun(place).close()
    assert everything(place)[-1].round == 7
