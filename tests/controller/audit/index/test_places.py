"""Where an index lies: who may write there, and who may only read."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw
import pytest

from controller.audit.errors import IndexFileProblem, IndexOfOther
from controller.audit.index import Index, open_index
from tests.support.audit.record.table import begun, note
from tests.support.audit.tools.indexing import caught_up


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


def test_a_place_where_no_file_can_be(place: Path, tmp_path: Path) -> None:
    begun(place).close()
    (tmp_path / "file").write_text("")
    places = {
        tmp_path / "nowhere" / "index.db": "No such file or directory",
        tmp_path / "file" / "index.db": "Not a directory",
        tmp_path: "is no file",
    }
    for there, words in places.items():
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
        with Index.open(place) as index:
            index.catch_up()
            told = as_nobody(place, 0o555, _READS) if live else None
        told = told or as_nobody(place, 0o555, _READS)
    assert told.stderr == ""
    assert told.stdout == "snapshot 3\n"


def test_what_is_read_only_must_be_the_records_own(place: Path, tmp_path: Path) -> None:
    log = begun(place)
    with pytest.raises(IndexFileProblem, match=r"--index FILE"):
        open_index(place)
    caught_up(place)
    with closing(open_index(place)) as db, pytest.raises(apsw.ReadOnlyError):
        db.execute("DELETE FROM words")
    log.write([note("more")])
    log.close()
    other = begun(tmp_path / "other")
    other.close()
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
