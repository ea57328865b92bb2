"""The access log beside a record."""

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from controller.audit.errors import CannotWrite
from controller.audit.read.access_log import access_log_file, account, log_access
from tests.support.audit.record.table import failing


def lines(record: Path) -> list[dict[str, object]]:
    text = access_log_file(record).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_each_access_is_a_line(tmp_path: Path) -> None:
    record = tmp_path / "mega-1"
    record.mkdir()
    first = log_access(record, "show", "round 3", who="Eve", reason='a "complaint"\n')
    log_access(record, "tail", "all")
    one, two = lines(record)
    assert (one["who"], one["what"], one["of"], one["utc"]) == ("Eve", "show", "round 3", first.utc)
    assert one["reason"] == 'a "complaint"\n'
    assert two["who"] == two["account"] == account()
    assert set(two) == {"utc", "who", "account", "what", "of"}


@pytest.mark.parametrize("way", ["mega-1", "mega-1/", "./mega-1", "mega-1/../mega-1", "link"])
def test_the_log_is_beside_the_records_real_directory(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mega-1").mkdir()
    (tmp_path / "link").symlink_to("mega-1")
    monkeypatch.chdir(tmp_path)
    log_access(Path(way), "show", "all")
    assert access_log_file(Path(way)) == tmp_path / "mega-1.looks.jsonl"
    assert len(lines(tmp_path / "mega-1")) == 1
    monkeypatch.chdir(tmp_path / "mega-1")
    log_access(Path("."), "show", "all")
    assert len(lines(tmp_path / "mega-1")) == 2


def test_an_incomplete_line_is_terminated(tmp_path: Path) -> None:
    log_access(tmp_path / "r", "show", "all")
    file = access_log_file(tmp_path / "r")
    file.write_bytes(file.read_bytes()[:-9])
    log_access(tmp_path / "r", "tail", "all")
    texts = file.read_text("utf-8").splitlines()
    assert (len(texts), json.loads(texts[1])["what"]) == (2, "tail")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_reported(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", failing(number))
    with pytest.raises(CannotWrite) as caught:
        log_access(tmp_path / "r", "show", "all")
    monkeypatch.undo()
    assert "make room" in caught.value.todo
    assert "let this user" not in caught.value.todo
    assert access_log_file(tmp_path / "r").read_bytes() == b""


def test_the_log_is_group_writable_and_private(tmp_path: Path) -> None:
    before = os.umask(0o007)
    try:
        log_access(tmp_path / "r", "show", "all")
    finally:
        os.umask(before)
    assert stat.S_IMODE(access_log_file(tmp_path / "r").stat().st_mode) == 0o660


def test_an_unwritable_log_denies_access(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="cannot be written: no such file"):
        log_access(tmp_path / "nowhere" / "r", "show", "all")
    access_log_file(tmp_path / "r").mkdir()
    with pytest.raises(CannotWrite, match="is a directory"):
        log_access(tmp_path / "r", "show", "all")
    (tmp_path / "x").write_text("")
    access_log_file(tmp_path / "s").symlink_to(tmp_path / "x")
    with pytest.raises(CannotWrite):
        log_access(tmp_path / "s", "show", "all")
    assert (tmp_path / "x").read_text() == ""


@pytest.mark.parametrize("short", [True, False])
def test_a_failed_append_is_rolled_back(
    short: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_access(tmp_path / "r", "show", "all")
    before = access_log_file(tmp_path / "r").read_bytes()
    write = os.write

    def full(fd: int, data: bytes) -> int:
        return write(fd, data[:5])

    monkeypatch.setattr(os, "write" if short else "fsync", full if short else failing(errno.EIO))
    with pytest.raises(CannotWrite):
        log_access(tmp_path / "r", "show", "all")
    monkeypatch.undo()
    assert access_log_file(tmp_path / "r").read_bytes() == before
