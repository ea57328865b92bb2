"""`holecard audit accept-tail`: what nothing explains is set aside when two people accept it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from controller.audit.errors import UnexplainedTail
from controller.audit.format.segments import segment_file
from controller.audit.log import RecordOpening
from controller.audit.read.reader import records, segments
from controller.audit.verify import INCOMPLETE, VALID, verify
from tests.support.audit.tools.audit_command import LEFT_OPEN, Runs, rounds
from tests.support.audit.tools.outside import files_in
from tests.support.audit.verifying import read as read_independently
from tests.support.paths import ROOT
from tests.support.terminal import terminal

GARBAGE = b"somebody was here " * 20
ANN_AND_BO = ("--by", "Ann", "--second", "Bo", "--yes")


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    runs = Runs(tmp_path, capsys)
    runs.make(*rounds(1))
    return runs


def spoil(record: Path, garbage: bytes = GARBAGE) -> int:
    """Something behind the last record; where it begins."""
    *_, last = segments(record)
    data = bytearray(last.buffer)
    data[last.end : last.end + len(garbage)] = garbage
    last.file.write_bytes(data)
    return last.end


def accept(runs: Runs, *options: str) -> tuple[int, str, str]:
    return runs("accept-tail", "--keys", str(runs.keys), *options)


def test_two_people_accept_what_nothing_explains(runs: Runs) -> None:
    at = spoil(runs.record)
    before = [record for _, record in records(runs.record)]
    with pytest.raises(UnexplainedTail, match="accept-tail"):
        RecordOpening.at(runs.record, table="scripts")
    assert runs("verify").code == 1
    code, out, err = accept(runs, *ANN_AND_BO)
    assert code == 0
    for words in (
        f"there are {len(GARBAGE)} bytes after the last record",
        f"segment 00000001, offset {at}",
        "they begin with 73 6f 6d 65",
    ):
        assert words in err
    assert out.startswith(f"{len(GARBAGE)} bytes are in tails/, accepted by Ann and Bo; the record")
    now = [record for _, record in records(runs.record)]
    assert now[: len(before)] == before
    assert [record.kind for record in now[len(before) :]] == [
        "opened",
        "tail",
        "certificate",
        "checkpoint",
        "closed",
        "checkpoint",
    ]
    (kept,) = (runs.record / "tails").glob("*.json")
    assert json.loads(kept.read_text())["two"] == ["Ann", "Bo"]
    report = verify(runs.record)
    assert (report.code, report.findings, report.boots) == (VALID, (), 2)
    assert read_independently(runs.record)["exit"] == VALID
    RecordOpening.at(runs.record, table="scripts").close()
    runs.make(*rounds(1))
    assert verify(runs.record).code == VALID


def test_an_open_round_is_still_open_afterwards(runs: Runs) -> None:
    """The table goes on where it stood: the boot in between has decided nothing."""
    runs.make(LEFT_OPEN)
    (only,) = segments(runs.record)
    open_ = next(
        at for at, frame in enumerate(only.frames) if b'"HoleDealt"' in frame.data and at > 30
    )
    end = only.frames[open_].end
    segment_file(runs.record, 1).write_bytes(only.buffer[:end].ljust(len(only.buffer), b"\0"))
    spoil(runs.record)
    assert accept(runs, *ANN_AND_BO)[0] == 0
    assert verify(runs.record).findings == ()
    runs.make(*rounds(1))  # voids what was left open
    report = verify(runs.record)
    assert (report.code, report.findings) == (VALID, ())
    assert runs("open", "--round", "2", "--keys", str(runs.keys)).code == 0


@pytest.mark.parametrize("garbage", [b"", b"\x40"])
def test_what_needs_nobody_is_not_accepted(runs: Runs, garbage: bytes) -> None:
    """Nothing there, or what a write that was cut off may have left."""
    spoil(runs.record, garbage)
    before = files_in(runs.record)
    code, out, err = accept(runs, *ANN_AND_BO)
    assert (code, out) == (1, "")
    assert "nobody has to accept anything" in err
    assert files_in(runs.record) == before


def test_records_that_are_missing_cannot_be_accepted(runs: Runs) -> None:
    (only,) = segments(runs.record)
    data = bytearray(only.buffer)
    data[only.frames[-4].offset + 60] ^= 1
    segment_file(runs.record, 1).write_bytes(data)
    before = files_in(runs.record)
    code, out, err = accept(runs, *ANN_AND_BO)
    assert (code, out) == (1, "")
    assert "were acknowledged" in err
    assert files_in(runs.record) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--by", "Ann", "--second", "Bo"), "--yes: is missing: there is no terminal to ask at"),
        (("--by", "Ann", "--yes"), "--and: is missing: two people must approve"),
        (("--second", "Bo", "--yes"), "--by: is missing: two people must approve"),
        (("--by", "Ann", "--second", "ann ", "--yes"), "is the same person"),
        (("--by", "\t", "--second", "Bo", "--yes"), "is no name"),
    ],
)
def test_it_takes_two_people_who_say_so(runs: Runs, options: tuple[str, ...], words: str) -> None:
    spoil(runs.record)
    before = files_in(runs.record)
    code, out, err = accept(runs, *options)
    assert (code, out) == (2, "")
    assert words in err
    assert files_in(runs.record) == before


def test_it_takes_the_tables_key(runs: Runs, tmp_path: Path) -> None:
    spoil(runs.record)
    before = files_in(runs.record)
    other = Runs(tmp_path / "other", runs.capsys)
    other.folder.mkdir()
    other.make(*rounds(1))
    for keys, code, words in (
        (other.keys, 2, "was begun with another table's key"),
        (tmp_path / "nowhere", 2, "there is no such directory"),
    ):
        ran = runs("accept-tail", "--keys", str(keys), *ANN_AND_BO)
        assert (ran.code, ran.out) == (code, "")
        assert words in ran.err
        assert files_in(runs.record) == before


def at_a_terminal(runs: Runs, typed: str) -> tuple[int, str]:
    with terminal() as at:
        run = subprocess.Popen(
            [
                *(sys.executable, "-m", "controller.cli", "audit", "accept-tail"),
                *(str(runs.record), "--keys", str(runs.keys)),
            ],
            cwd=ROOT,
            stdin=at.far,
            stdout=subprocess.PIPE,
            stderr=at.far,
        )
        at.type(typed)
        code = run.wait(60)
        assert run.stdout is not None
        run.stdout.close()
        return code, at.shown()


def test_at_a_terminal_it_is_asked_for_once_it_was_shown(runs: Runs) -> None:
    spoil(runs.record)
    before = files_in(runs.record)
    code, shown = at_a_terminal(runs, "Ann\nBo\nno\n")
    assert code == 1
    assert "nothing was done" in shown
    assert files_in(runs.record) == before
    code, shown = at_a_terminal(runs, "Ann\nBo\nyes\n")
    assert code == 0
    asked = [shown.index(words) for words in ("Your name:", "no power loss", "Type yes:")]
    assert asked == sorted(asked)
    assert verify(runs.record).findings == ()


# --- hole cards of voided rounds --------------------------------------------------------------


def test_surveillance_opens_the_hole_card_of_a_voided_round(runs: Runs) -> None:
    runs.make(LEFT_OPEN)
    ran = runs("open", "--round", "2", "--keys", str(runs.keys), "--by", "Eve", "--reason", "4711")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("round 2: the hole card was the 10 of spades (TS), dealt at 20")
    (look,) = map(json.loads, Path(f"{runs.record}.looks.jsonl").read_text().splitlines())
    assert (look["what"], look["of"], look["who"], look["reason"]) == (
        "open hole card",
        "round 2",
        "Eve",
        "4711",
    )
    (found,) = runs("open", "--round", "2", "--keys", str(runs.keys), "--json").json
    assert (found["round"], found["card"]) == (2, "TS")


def test_no_other_hole_card_is_opened(runs: Runs, tmp_path: Path) -> None:
    runs.make(LEFT_OPEN)
    looks = Path(f"{runs.record}.looks.jsonl")
    keys = ("--keys", str(runs.keys))
    for options, code, words in (
        (("--round", "1", *keys), 1, "round 1 was not voided"),
        (("--round", "99", *keys), 1, "round 99 was not voided"),
        (("--round", "1-2", *keys), 2, "'1-2' is no round"),
        (("--round", "2", "--keys", str(tmp_path / "nowhere")), 2, "no such directory"),
    ):
        ran = runs("open", *options)
        assert (ran.code, ran.out) == (code, ""), ran
        assert words in ran.line
        assert not looks.exists()


def test_another_key_opens_nothing_and_the_look_is_written_all_the_same(
    runs: Runs, tmp_path: Path
) -> None:
    runs.make(LEFT_OPEN)
    other = Runs(tmp_path / "other", runs.capsys)
    other.folder.mkdir()
    other.make(*rounds(1))
    ran = runs("open", "--round", "2", "--keys", str(other.keys))
    assert (ran.code, ran.out) == (1, "")
    assert "this key does not open it" in ran.line
    assert Path(f"{runs.record}.looks.jsonl").exists()


def test_a_copy_will_do_and_a_record_is_never_changed(runs: Runs, tmp_path: Path) -> None:
    runs.make(LEFT_OPEN)
    copy = shutil.copytree(runs.record, tmp_path / "copy")
    before = files_in(copy)
    assert runs("open", "--round", "2", "--keys", str(runs.keys), record=copy).code == 0
    assert runs("verify", record=copy).code == VALID != INCOMPLETE
    assert files_in(copy) == before
