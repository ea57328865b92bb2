"""Commands that lock the same file wait for each other, with a timeout."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller import cli
from controller.audit import files
from controller.audit.errors import InUse
from controller.audit.read.access_log import access_log_file, log_access
from controller.audit.witness import COSIGNED, store_notes
from tests.support.audit.tools.outside import WITNESS, files_in
from tests.support.audit.witnessing import seen_by


@contextmanager
def held(place: Path) -> Iterator[int]:
    """Another process holds the lock."""
    fd = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def test_storing_a_note_times_out_on_the_lock(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    record: Path,
) -> None:
    note = seen_by(record, tmp_path / "archive").note.encode()
    (record / COSIGNED).mkdir()
    monkeypatch.setattr(files, "WAIT", 0.05)
    before = files_in(record)
    with held(record / COSIGNED):
        with pytest.raises(InUse, match=r"another command has been writing here for 0\.05 s"):
            store_notes(record, [("a", note)], WITNESS.cosigner)
        file = tmp_path / "a.note"
        file.write_bytes(note)
        words = ["audit", "witnessed", str(record), str(file)]
        assert cli.main([*words, "--witness-key", str(WITNESS.cosigner)]) == 2
        assert "see what holds it, then try again" in capsys.readouterr().err
    assert files_in(record) == before
    assert store_notes(record, [("a", note)], WITNESS.cosigner)[0].new


def test_an_access_that_cannot_be_logged_is_denied(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_access(place, "show", "all")
    before = access_log_file(place).read_bytes()
    monkeypatch.setattr(files, "WAIT", 0.05)
    with held(access_log_file(place)), pytest.raises(InUse):
        log_access(place, "tail", "all")
    assert access_log_file(place).read_bytes() == before


def test_the_lock_is_acquired_after_its_release(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_access(place, "show", "all")
    waits: list[float] = []
    with held(access_log_file(place)) as fd:

        def ended(seconds: float) -> None:
            waits.append(seconds)
            fcntl.flock(fd, fcntl.LOCK_UN)

        sleep: Callable[[float], None] = ended
        monkeypatch.setattr("controller.audit.files.time.sleep", sleep)
        log_access(place, "tail", "all")
    assert len(waits) == 1
    assert len(access_log_file(place).read_text().splitlines()) == 2
