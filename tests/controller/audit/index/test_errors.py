"""What is no index of this record is told apart, and never written over but where that is safe."""

import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final

import apsw
import pytest

from controller.audit.errors import (
    IndexAhead,
    IndexDamaged,
    IndexFileProblem,
    IndexOfOther,
    IndexOutdated,
    IndexProblem,
    RecordDamaged,
    RecordProblem,
)
from controller.audit.format.segments import segment_file
from controller.audit.index import Index, open_index
from controller.audit.read.reader import read_segment, segments
from tests.support.audit.record.dealing import boot
from tests.support.audit.record.scripted import fill
from tests.support.audit.record.table import begun, note
from tests.support.audit.tools.indexing import (
    caught_up,
    dealt,
    dump,
    dump_of,
    indexed,
    rebuilt,
    written,
)
from tests.support.audit.tools.outside import grow, overwrite


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


def changed(file: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(file))) as db:
        for statement in statements:
            db.execute(statement)


def refused(
    record: Path, file: Path | None, kind: type[IndexProblem], words: str, *, remake: bool
) -> None:
    """It is told in these words, and made anew where that loses nothing; only then."""
    with pytest.raises(kind, match=words) as told:
        Index.open(record, file)
    assert told.type is kind
    assert "rebuild-index" in told.value.todo or "--index FILE" in told.value.todo
    there = file or record / "index.db"
    before = there.read_bytes()
    said: list[str] = []
    if not remake:
        with pytest.raises(kind, match=words):
            Index.open_or_rebuild(record, file, say=said.append)
        assert (said, there.read_bytes()) == ([], before)
        return
    with Index.open_or_rebuild(record, file, say=said.append) as index:
        assert len(said) == 1
        assert "it is being made anew" in said[0]
        assert dump(index.db)["records"] == []
        index.catch_up()
        assert dump(index.db) == rebuilt(record, there.parent / "again.db")
    with Index.open_or_rebuild(record, file, say=said.append):
        assert len(said) == 1


# --- whose it is ------------------------------------------------------------------------------


def test_the_index_of_another_record(place: Path, file: Path, tmp_path: Path) -> None:
    for other in (place, tmp_path / "other"):
        grow(other)
    caught_up(tmp_path / "other", file)
    refused(place, file, IndexOfOther, "is the index of another record, holecard", remake=False)


def test_of_another_version(place: Path) -> None:
    begun(place).close()
    caught_up(place)
    changed(place / "index.db", "PRAGMA user_version = 7")
    refused(place, None, IndexOutdated, "was made by another version", remake=True)


def test_one_that_has_what_is_no_longer_in_the_record(place: Path) -> None:
    """Whole segments may be deleted after their time; their rows go with them."""
    written(place, dealt("pruned", 12))
    caught_up(place)
    first = list(segments(place))[2]
    for number in (1, 2):
        segment_file(place, number).unlink()
    refused(place, None, IndexOutdated, "knows segments from 00000001 on", remake=True)
    assert dump_of(place / "index.db")["records"][0][0] == first.frames[0].seq


def test_one_that_had_nothing_when_the_record_was_pruned(place: Path) -> None:
    written(place, dealt("pruned", 12))
    Index.open(place).close()
    segment_file(place, 1).unlink()
    refused(place, None, IndexOutdated, "knows segments from 00000001 on", remake=True)


# --- newer than the record --------------------------------------------------------------------


def test_a_record_whose_end_is_gone(place: Path) -> None:
    written(place, dealt("cut", 12))
    caught_up(place)
    last = list(segments(place))[-1]
    start = last.frames[-3].offset
    overwrite(last.file, start, bytes(last.end - start))
    words = f"up to seq {last.after.seq}, the record ends with {last.after.seq - 3}"
    refused(place, None, IndexAhead, words, remake=False)


def test_a_record_whose_last_segments_are_gone(place: Path) -> None:
    written(place, dealt("cut", 12))
    caught_up(place)
    every = list(segments(place))
    for segment in every[3:]:
        segment.file.unlink()
    words = f"up to seq {every[-1].after.seq}, the record ends with {every[2].after.seq}"
    refused(place, None, IndexAhead, words, remake=False)


def test_a_record_that_was_put_back_and_written_on(place: Path, tmp_path: Path) -> None:
    table = dealt("put back", 12)
    fill(boot(place, table.game), table.entries[:60])
    shutil.copytree(place, tmp_path / "older")
    fill(boot(place, table.game), table.entries[60:70])
    caught_up(place)
    shutil.rmtree(place / "segments")
    shutil.copytree(tmp_path / "older" / "segments", place / "segments")
    fill(boot(place, table.game), table.entries[80:])
    refused(place, None, IndexAhead, "has seen another record at seq", remake=False)


def test_making_it_anew_by_hand_is_always_possible(place: Path) -> None:
    written(place, dealt("cut", 12))
    caught_up(place)
    list(segments(place))[-1].file.unlink()
    with Index.rebuild(place) as index:
        index.catch_up()
        assert dump(index.db) == rebuilt(place, place.parent / "other.db")


# --- damaged ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"words, and no index\n" * 50, bytes(4096), bytes(range(256)) * 20, b"x"]
)
def test_what_is_no_database(place: Path, file: Path, content: bytes) -> None:
    """In the record's directory nothing else can have its name; anywhere else it is somebody's."""
    begun(place).close()
    file.write_bytes(content)
    refused(place, file, IndexOfOther, "holds something else", remake=False)
    with pytest.raises(IndexOfOther, match="put it away yourself"):
        Index.rebuild(place, file)
    assert file.read_bytes() == content
    (place / "index.db").write_bytes(content)
    refused(place, None, IndexDamaged, "the index is damaged", remake=True)


def test_somebody_elses_database_is_never_written_over(place: Path, file: Path) -> None:
    begun(place).close()
    for there in (file, place / "index.db"):
        changed(there, "CREATE TABLE guests (name)", "INSERT INTO guests VALUES ('Ann')")
        refused(place, there, IndexOfOther, "holds something else", remake=False)
    with pytest.raises(IndexOfOther):
        Index.rebuild(place, file)
    with closing(apsw.Connection(str(file))) as db:
        assert db.execute("SELECT name FROM guests").get == "Ann"


@pytest.mark.parametrize(
    "statements",
    [
        ["DELETE FROM goes"],
        ["UPDATE goes SET seq = seq + 1"],
        ["UPDATE goes SET standing = '{}'"],
        ["UPDATE goes SET origin = 'holecard/other/0000000000000000'"],
        ["DROP TABLE goes"],
        ["DROP VIEW segments", "DROP TABLE raw_segments"],
    ],
)
def test_one_in_which_something_was_changed(place: Path, statements: list[str]) -> None:
    begun(place).close()
    caught_up(place)
    changed(place / "index.db", *statements)
    refused(place, None, IndexDamaged, "damaged|does not say how far", remake=True)


def test_rows_that_are_there_already(place: Path) -> None:
    with closing(begun(place)) as log:
        caught_up(place)
        changed(
            place / "index.db",
            "INSERT INTO raw_records SELECT seq + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 "
            "FROM raw_records ORDER BY seq DESC LIMIT 1",
        )
        log.write([note("one")])
        with Index.open(place) as index:
            seq = index.position.seq
            with pytest.raises(IndexDamaged, match="UNIQUE"):
                index.catch_up()
            assert index.position.seq == seq


def test_a_bit_that_flipped_anywhere_in_it(place: Path) -> None:
    """It may not be seen; but nothing else than a problem of the index comes of it, and then it is
    made anew from the record."""
    written(place, dealt("flips", 6))
    caught_up(place)
    file = place / "index.db"
    whole = dump_of(file)
    good = file.read_bytes()
    rng = Random("flips")
    offsets = [*range(100), *(rng.randrange(100, len(good)) for _ in range(400))]
    told = 0
    for offset in offsets:
        bad = bytearray(good)
        bad[offset] ^= 1 << rng.randrange(8)
        file.write_bytes(bad)
        try:
            with indexed(place) as index:
                dump(index.db)
                continue
        except IndexProblem:
            told += 1
        except apsw.Error:  # of the dump
            pass
        caught_up(place)
        assert dump_of(file) == whole
    assert told > 30


def test_a_damaged_record_is_not_the_indexs_problem(place: Path) -> None:
    begun(place).close()
    caught_up(place)
    first = read_segment(place, 1)
    overwrite(first.file, first.frames[0].offset + 70, b"\xff")
    for opens in (Index.open, Index.rebuild, Index.open_or_rebuild):
        with pytest.raises(RecordDamaged, match="its first record is not whole"):
            opens(place)


def test_each_problem_says_what_to_do() -> None:
    every = [IndexAhead, IndexDamaged, IndexOfOther, IndexOutdated, IndexFileProblem]
    assert {kind for kind in every if kind.remake} == {IndexDamaged, IndexOutdated}
    assert all(issubclass(kind, RecordProblem) for kind in every)


# --- Where an index lies: who may write there, and who may only read --------------------------


def test_a_place_where_no_file_can_be(place: Path, tmp_path: Path) -> None:
    begun(place).close()
    (tmp_path / "file").write_text("")
    for there, words in {
        tmp_path / "nowhere" / "index.db": "No such file or directory",
        tmp_path / "file" / "index.db": "Not a directory",
        tmp_path: "is no file",
    }.items():
        with pytest.raises(IndexFileProblem, match=f"{words}.*--index FILE"):
            Index.open(place, there)
        with pytest.raises(IndexFileProblem, match=f"{words}.*--index FILE"):
            Index.rebuild(place, there)


def test_a_name_is_a_name_of_a_file(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(place).close()
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:other?mode=memory"):
        caught_up(place, Path(name))
        assert (tmp_path / name).stat().st_size > 4096


_AS_NOBODY: Final = """
import os, sys
from pathlib import Path
from controller.audit.index.index import Index, open_index
from controller.audit.errors import RecordProblem
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    Index.open(Path(sys.argv[1]))
except RecordProblem as problem:
    print(problem)
"""


@pytest.mark.parametrize("there", [False, True])
def test_who_may_not_write_there_is_told_to_name_another_place(there: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "record"
        begun(place).close()
        if there:
            caught_up(place)
        told = as_nobody(place, 0o555)
    assert told.stderr == ""
    assert "the index cannot be" in told.stdout
    assert "--index FILE" in told.stdout


@pytest.mark.parametrize("live", [False, True])
def test_who_may_only_read_reads_it_all_the_same(live: bool) -> None:
    """Whether the table has it open or not."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "record"
        begun(place).close()
        with indexed(place):
            told = as_nobody(place, 0o555, _READS) if live else None
        told = told or as_nobody(place, 0o555, _READS)
    assert (told.stderr, told.stdout) == ("", "snapshot 3\n")


def test_what_is_read_only_must_be_the_records_own(place: Path, tmp_path: Path) -> None:
    with closing(begun(place)) as log:
        with pytest.raises(IndexFileProblem, match=r"--index FILE"):
            open_index(place)
        caught_up(place)
        with closing(open_index(place)) as db, pytest.raises(apsw.ReadOnlyError):
            db.execute("DELETE FROM words")
        log.write([note("more")])
    begun(tmp_path / "other").close()
    with pytest.raises(IndexOfOther, match="of another record"):
        open_index(tmp_path / "other", place / "index.db")


_READS: Final = """
import os, sys
from pathlib import Path
from controller.audit.index.index import open_index
from controller.audit.index.query import find
from controller.audit.index.query import RecordQuery
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
db = open_index(Path(sys.argv[1]))
page = find(db, RecordQuery(), limit=3)
print(page.rows[0].kind, page.next)
db.close()
"""


def test_who_may_not_read_the_record_is_told_that() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "record"
        begun(place).close()
        told = as_nobody(place, 0o000)
    assert told.stderr == ""
    assert "cannot be read: Permission denied" in told.stdout


def as_nobody(place: Path, mode: int, does: str = _AS_NOBODY) -> subprocess.CompletedProcess[str]:
    """Opens the index as somebody who may do with the record's directories what `mode` says."""
    folders = (place, place / "segments")
    for each in (*place.glob("index.db*"), *place.glob("segments/*")):
        each.chmod(0o444)
    place.parent.chmod(0o755)
    for each in reversed(folders):
        each.chmod(mode)
    command = [sys.executable, "-c", does, str(place)]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    finally:
        for each in folders:
            each.chmod(0o755)
