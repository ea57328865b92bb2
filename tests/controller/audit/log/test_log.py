"""Appending, rotation, checkpoints, clocks, disk errors and power losses of a log."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import json

from controller.audit.errors import LogFailed
from controller.audit.format.merkle import Span, leaf_hash
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
from controller.audit.format.segments import pack, segment_file
from controller.audit.log import Log, RecordOpening
from controller.audit.log.log import EntryTooLarge
from controller.audit.read.reader import records, segments
from controller.procedure.model.state import State, Step
from tests.support.audit.record.power import states
from tests.support.audit.record.table import (
    ANN,
    IDENTITY,
    SMALL,
    TABLE,
    FakeClock,
    FaultyDisk,
    begun,
    device_report,
    everything,
    kinds,
    kinds_of,
    note,
    submitted,
    written,
)
from tests.support.audit.tools.outside import overwrite


@pytest.fixture
def log(place: Path) -> Iterator[Log]:
    log = begun(place)
    yield log
    log.close()


def test_a_new_record_begins_with_snapshot_opened_and_checkpoint(place: Path) -> None:
    begun(place).close()
    found = everything(place)
    snapshot = next(segments(place)).snapshot
    assert (bytes(snapshot.state), snapshot.frontier) == (b"null", ())
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
    assert (opened.last, opened.torn, opened.proc, found[2].cause) == (0, 0, IDENTITY.proc, 2)
    assert {one.boot for one in found} == {found[0].boot}


def test_entries_are_read_back_unchanged(place: Path, log: Log) -> None:
    made = log.write([note("one", round=4), device_report("SH-1", 9)])
    first, second = everything(place)[-2:]
    assert [one.seq for one in made] == [first.seq, second.seq] == [5, 6]
    assert log.where == ChainPosition(6, made[1].chain)
    assert (first.kind, first.by, first.round) == ("note", ANN, 4)
    assert bytes(first.data) == b'{"text":"one"}'
    assert second.cursor is not None
    assert (second.cursor.device, second.cursor.seq) == ("SH-1", 9)
    assert (first.sw, first.conf, first.proc) == ("", "", "")


def test_a_second_boot_continues_the_record(place: Path) -> None:
    begun(place).close()
    written(place, note("more"))
    found = everything(place)
    assert ([one.seq for one in found], len({one.boot for one in found})) == (list(range(1, 13)), 2)
    opened = json.decode(found[6].data, type=OpenedData)
    assert (opened.last, opened.origin) == (6, json.decode(found[1].data, type=OpenedData).origin)


def test_every_checkpoint_is_signed_by_its_boot_over_the_tree(place: Path) -> None:
    for text in ("one", "two"):
        with closing(begun(place)) as log:
            log.write([note(text)])
            log.sign()
    tree = Span()
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
            assert (checkpoint.size, checkpoint.root) == (record.seq - 1, roots[checkpoint.size])
            checked += 1
    assert checked == 6


def test_segments_follow_each_other(place: Path) -> None:
    with closing(begun(place)) as log:
        for at in range(60):
            log.write([note(f"{at}", 400), device_report("SH-1", at + 1)])
    found = list(segments(place))
    assert len(found) > 3
    assert [segment.number for segment in found] == list(range(1, len(found) + 1))
    for before, after in pairwise(found):
        assert after.before == before.after
        assert after.snapshot.cursors["SH-1"].seq > 0
        assert len(after.buffer) == SMALL
    assert len(submitted(place)) == 120


def test_a_snapshot_contains_the_last_state(place: Path) -> None:
    told = {"text": "." * 400}
    states = [State(Step.WAGERING, at) for at in range(60)]
    written(place, *(RecordEntry("note", ANN, told, state=state) for state in states))
    snapshot = list(segments(place))[-1].snapshot
    assert json.decode(snapshot.state, type=State).round > 40
    opening = RecordOpening.at(place, table=TABLE)
    opening.close()
    assert opening.state == bytes(snapshot.state)


def test_a_batch_is_never_split_over_segments(place: Path, log: Log) -> None:
    log.write([note("a", 9000)])
    log.write([note("b", 3000), note("c", 3000)])
    where = {one.seq: at.segment for at, one in records(place)}
    seqs = [seq for seq, _ in submitted(place)]
    assert where[seqs[0]] == 1
    assert where[seqs[1]] == where[seqs[2]] == 2


def test_an_entry_too_large_has_no_side_effects(place: Path, log: Log) -> None:
    before = log.where
    with pytest.raises(EntryTooLarge, match="a note of 65536 bytes; a record has at most 65535"):
        log.write([note("first"), note("x", 65_536 - 178)])
    with pytest.raises(EntryTooLarge, match="at once"):
        log.write([note("x", 9000), note("x", 9000)])
    log.write([note("fits")])
    assert [bytes(data) for _, data in submitted(place)] == [b'{"text":"fits"}']
    assert log.where.seq > before.seq


def test_a_boot_with_an_earlier_clock_records_it(place: Path) -> None:
    begun(place, clock=FakeClock()).close()
    begun(place, clock=FakeClock(utc=FakeClock().utc - 10**9, mono=5)).close()
    assert kinds_of(place)[6:9] == ["clock", "opened", "certificate"]


# --- disks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "size"), [("create", 9000), ("rename", 9000), ("write", 10), ("sync", 10)]
)
def test_nothing_is_written_after_a_disk_error(place: Path, call: str, size: int) -> None:
    disk = FaultyDisk()
    with closing(begun(place, disk=disk)) as log:
        log.spares.take()  # so that a file is created for the next segment
        log.write([note("kept", 9000)])
        disk.fails[call] = OSError(errno.EIO, os.strerror(errno.EIO))
        with pytest.raises(LogFailed, match="Input/output error"):
            log.write([note("lost", size)])
        disk.fails.clear()
        with pytest.raises(LogFailed, match="Input/output error"):
            log.write([note("never tried")])
        with pytest.raises(LogFailed):
            log.sign()
    before = submitted(place)
    assert b'"kept' in before[0][1]
    written(place, note("next"))  # it does not block the next boot
    assert submitted(place)[len(before) :][0][1] == b'{"text":"next"}'


def test_a_short_write_is_quarantined_by_the_next_boot(place: Path) -> None:
    disk = FaultyDisk()
    with closing(begun(place, disk=disk)) as log:
        log.write([note("kept")])
        disk.short = 100
        with pytest.raises(LogFailed, match="100 of"):
            log.write([note("cut", 500)])
    written(place, note("goes on"))
    found = everything(place)
    assert [one.kind for one in found if one.kind in ("note", "tail")] == ["note", "tail", "note"]
    told_tail = json.decode(next(one for one in found if one.kind == "tail").data)
    assert (told_tail["size"], told_tail["verdict"]) == (100, "torn")
    assert (place / told_tail["file"]).is_file()
    assert [one.kind for one in everything(place)].count("tail") == 1
    begun(place).close()
    assert [one.kind for one in everything(place)].count("tail") == 1


def test_altered_bytes_are_not_signed(place: Path) -> None:
    with closing(begun(place)) as log:
        log.write([note("as it was")])
        file = segment_file(place, 1)
        overwrite(file, file.read_bytes().index(b"as it was"), b"as it is!")
        with pytest.raises(LogFailed, match="gives back something else"):
            log.sign()
        with pytest.raises(LogFailed, match="gives back something else"):
            log.write([note("more")])


def test_a_closed_log_rejects_entries(place: Path) -> None:
    log = written(place)
    with pytest.raises(LogFailed, match="it is closed"):
        log.write([note("late")])


def test_a_rotation_uses_the_time_of_its_batch(place: Path) -> None:
    written(place, *(note(f"{at}", 400) for at in range(60)))
    found = everything(place)
    assert kinds(found).count("snapshot") > 2
    assert [one.mono for one in found] == sorted(one.mono for one in found)


def test_a_segment_started_before_the_certificate_names_the_previous_one(place: Path) -> None:
    """Each snapshot describes what came before it, wherever a boot's first records are."""
    for at in range(40):
        written(place, note(f"{at}", 37 * at % 500), size=4096)
    last = ""
    for record in everything(place):
        if record.kind == "snapshot":
            assert (json.decode(record.data, type=Snapshot).certificate or "") == last
        if record.kind == "certificate":
            last = json.decode(record.data, type=NoteData).note


def test_a_boot_continues_the_round_number(place: Path) -> None:
    written(place, note("dealt", round=7), note("about nothing in particular"))
    begun(place).close()
    assert everything(place)[-1].round == 7


HOUR = 3600.0
YEAR = 365 * 24 * HOUR


@pytest.mark.parametrize("seconds", [-HOUR, YEAR, -FakeClock().utc / 1e6, -0.6, 0.6, -0.3])
def test_large_clock_changes_are_recorded(place: Path, seconds: float) -> None:
    """One hour back, one year forward, to 1970, and slightly beyond the tolerance."""
    clock = FakeClock()
    with closing(begun(place, clock=clock)) as log:
        clock.set(0.4)  # within it
        log.write([note("before")])
        clock.set(seconds)
        log.write([note("after")])
        log.sign()
    found = everything(place)
    assert kinds(found).count("clock") == 1
    at = kinds(found).index("clock")
    assert kinds(found)[at - 1 : at + 2] == ["note", "clock", "note"]
    was = json.decode(found[at].data, type=ClockData).utc_was
    assert abs(found[at].utc - was - seconds * 1e6) < 1000
    assert [one.mono for one in found] == sorted(one.mono for one in found)
    begun(place, clock=FakeClock(found[-1].utc + 1, 5)).close()
    opening = RecordOpening.at(place, table=TABLE)
    opening.close()
    assert opening.closed()


@pytest.mark.parametrize(("call", "size"), [("sync", 10), ("second segment", 9000)])
def test_an_interrupted_log_writes_nothing_more(place: Path, call: str, size: int) -> None:
    disk = FaultyDisk()
    with closing(begun(place, disk=disk)) as log:
        log.write([note("kept", 8000)])
        disk.fails[call] = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            log.write([note("half-way", size)])
        disk.fails.clear()
    assert "closed" not in kinds_of(place)
    assert submitted(place)[0] == (5, b'{"text":"%s"}' % b"kept".ljust(8000, b"."))
    begun(place).close()
    assert kinds_of(place)[-2:] == ["closed", "checkpoint"]


def test_a_quarantined_tail_is_recorded_after_an_interrupted_rotation(place: Path) -> None:
    """A quarantined tail, and a new segment before a boot has recorded it."""
    log = begun(place)
    log.write([note("nearly full", 12_900)])
    log.release()
    file = segment_file(place, 1)
    whole = file.read_bytes()
    end = len(whole.rstrip(b"\0"))
    torn = pack(6, 5, bytes(32), b'{"text":"' + b"x" * 300)[:120]
    file.write_bytes(whole[:end] + torn + whole[end + len(torn) :])
    with pytest.raises(KeyboardInterrupt):
        begun(place, disk=FaultyDisk({"second segment": KeyboardInterrupt()}))
    assert len(list(segments(place))) == 2
    begun(place).close()
    assert kinds(everything(place)).count("tail") == 1
    begun(place).close()
    assert kinds_of(place).count("tail") == 1


@pytest.mark.parametrize("seed", range(2))
def test_acknowledged_entries_survive_a_power_loss(
    tmp_path: Path, record_property: Callable[[str, object], None], seed: int
) -> None:
    lengths = list(states(tmp_path, seed, 200))
    assert len(lengths) == 200
    assert max(lengths) > 30
    record_property("losses of power", len(lengths))
