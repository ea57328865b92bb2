"""`holecard audit`: witnesses, proofs and cases, as people type them."""

import csv
import errno
import io
import json
import os
import shutil
import subprocess
import sys
from argparse import Namespace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.commands.export import export_record
from controller.audit.export import time_text
from controller.audit.export.rows import COLUMNS, csv_cell, record_rows, write_rows
from controller.audit.format.notes import parse_checkpoint, parse_note
from controller.audit.format.records import DeviceCursor, RecordActor, RecordEntry
from controller.audit.keys import create_key
from controller.audit.proofs import last_signed
from controller.audit.read.access_log import access_log_file
from controller.audit.read.lookup import NoMatch, Selection
from controller.audit.read.reader import records
from controller.errors import UsageProblem
from tests.support.audit.record.table import device_report, failing, written
from tests.support.audit.tools.outside import (
    audit,
    bytes_of,
    files_in,
    flip,
    grow,
    leaves_of,
    of_round,
    origin_of,
    played,
    printed,
    root_of,
    table_key,
)
from tests.support.paths import ROOT

Out = pytest.CaptureFixture[str]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    create_key(tmp_path / "keys", "witness", "floor.example/archive")
    return tmp_path / "keys"


def witness_key(keys: Path) -> str:
    return (keys / "witness.pub").read_text("utf-8")


def cosign(record: Path, keys: Path, *more: object) -> int:
    return audit("cosign", record, "--keys", keys, "--archive", keys.parent / "archive", *more)


# --- witnesses --------------------------------------------------------------------------------


def test_a_checkpoint_goes_there_and_back(
    record: Path, keys: Path, tmp_path: Path, capsys: Out
) -> None:
    assert cosign(record, keys) == 0
    out, err = capsys.readouterr()
    said = parse_checkpoint(parse_note(out).text)
    assert said == last_signed(record).checkpoint
    assert f"all {said.size} records up to its last checkpoint were read" in err
    assert str(table_key(record)) in err
    grow(record)
    assert cosign(record, keys, "--out", tmp_path / "w.note") == 0
    out, err = capsys.readouterr()
    assert out == ""
    now = last_signed(record).checkpoint
    words = f"{origin_of(record)}: {now.size} records, continues the {said.size} seen before"
    assert err == f"holecard: {words}\n"
    bring = ("witnessed", record, tmp_path / "w.note", "--witness-key", witness_key(keys))
    assert (audit(*bring), capsys.readouterr().out) == (0, f"{now.size}.note: brought\n")
    (told,) = json.loads(printed(capsys, 0, *bring, "--json").out)
    assert told == {"size": now.size, "file": f"{now.size}.note", "new": False}
    assert files_in(record / "cosigned")[f"{now.size}.note"] == (tmp_path / "w.note").read_bytes()


def test_cosign_as_json(record: Path, keys: Path, capsys: Out) -> None:
    assert cosign(record, keys, "--table-key", table_key(record), "--json") == 0
    out, err = capsys.readouterr()
    found: dict[str, Any] = json.loads(out)
    assert found["root"] == root_of(record, found["size"]).hex()
    assert (found["before"], found["table_key_proven"]) == (0, True)
    assert parse_checkpoint(parse_note(found["note"]).text).size == found["size"]
    assert "comes from the record itself" not in err


def test_no_is_exit_1_and_one_line(record: Path, keys: Path, tmp_path: Path, capsys: Out) -> None:
    old = shutil.copytree(record, tmp_path / "old")
    grow(record)
    assert cosign(record, keys) == 0
    capsys.readouterr()
    assert cosign(old, keys, "--out", tmp_path / "w.note") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"holecard: {old}: it was cut off, or is an older copy: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "w.note").exists()


def test_a_new_record_of_the_table_must_be_said(
    record: Path, keys: Path, tmp_path: Path, capsys: Out
) -> None:
    assert cosign(record, keys) == 0
    fresh = played(tmp_path / "fresh", 1)
    assert cosign(fresh, keys) == 1
    assert "say --new-record" in capsys.readouterr().err
    assert cosign(fresh, keys, "--new-record") == 0


def test_the_note_is_kept_though_it_cannot_be_put_out(
    record: Path, keys: Path, tmp_path: Path, capsys: Out
) -> None:
    assert cosign(record, keys, "--out", tmp_path / "none" / "w.note") == 2
    assert "--out: " in capsys.readouterr().err
    assert len(list((tmp_path / "archive").glob("*/cosigned/*.note"))) == 1


# --- proofs -----------------------------------------------------------------------------------


def test_a_proof_of_a_round_is_made_and_checked(record: Path, tmp_path: Path, capsys: Out) -> None:
    proof, key = tmp_path / "p.json", table_key(record)
    assert audit("prove", record, "--round", 4, "--out", proof, "--by", "Eve") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(of_round(record, 4))
    (look,) = map(json.loads, access_log_file(record).read_text("utf-8").splitlines())
    assert (look["who"], look["what"], look["of"]) == ("Eve", "prove", "round 4")
    record.rename(tmp_path / "gone")
    out = printed(capsys, 0, "check-proof", proof, "--table-key", key).out
    assert f"{key.name.removesuffix('/table')}: signed by the table" in out
    assert "note of round 4, " in out
    assert audit("check-proof", proof, "--table-key", key, "--json") == 0
    assert json.loads(capsys.readouterr().out)["witnessed"] is None
    proof.write_text(proof.read_text("utf-8").replace("round 4, 2", "round 4, 3"), "utf-8")
    out, err = printed(capsys, 1, "check-proof", proof, "--table-key", key)
    assert (out, "is not in the tree of the checkpoint" in err) == ("", True)


def test_a_proof_against_what_a_witness_saw(
    record: Path, keys: Path, tmp_path: Path, capsys: Out
) -> None:
    seen, proof = tmp_path / "w.note", tmp_path / "p.json"
    assert cosign(record, keys, "--out", seen) == 0
    grow(record)
    assert audit("prove", record, "--since", seen, "--since", 7, "--out", proof) == 0
    assert audit("prove", record, "--seq", 3, 9, "--checkpoint", seen, "--json") == 0
    capsys.readouterr()
    check = ("check-proof", proof, "--table-key", table_key(record))
    out = printed(capsys, 0, *check, "--witness-key", witness_key(keys)).out
    assert "a witness saw " in out
    assert "grown from 7 records" in out


def test_a_proof_on_stdout_is_the_file(record: Path, tmp_path: Path, capsys: Out) -> None:
    assert audit("prove", record, "--seq", 3, "--json", "--out", tmp_path / "p.json") == 0
    assert capsys.readouterr().out == (tmp_path / "p.json").read_text("utf-8")


# --- exports ----------------------------------------------------------------------------------


def test_a_case_is_made_and_checked(record: Path, tmp_path: Path, capsys: Out) -> None:
    case = tmp_path / "case.zip"
    more = ("--by", "Eve", "--reason", "complaint 7")
    out = printed(capsys, 0, "export", record, "--round", "3-4", "--out", case, *more).out
    seal = out.split()[-1]
    assert f"rounds 3 to 4 of {origin_of(record)}" in out
    assert audit("check-case", case, "--seal", seal) == 0
    assert capsys.readouterr() == (f"right: 10 files, seal {seal}\n", "")
    assert audit("check-case", case, "--seal", "00" * 32) == 1
    assert "manifest.json: is not the one that was sealed" in capsys.readouterr().out
    flip(case, case.stat().st_size // 2)
    assert not json.loads(printed(capsys, 1, "check-case", case, "--json").out)["right"]


def test_an_export_as_json(record: Path, tmp_path: Path, capsys: Out) -> None:
    assert audit("export", record, "--all", "--out", tmp_path / "case", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["records"], found["remarks"]) == ([1, len(bytes_of(record))], [])


def test_lines_go_to_stdout_or_a_file(record: Path, tmp_path: Path, capsys: Out) -> None:
    out, err = printed(capsys, 0, "export", record, "--format", "jsonl")
    assert (out.encode(), err) == (b"\n".join(bytes_of(record)) + b"\n", "")
    file = tmp_path / "r.csv"
    assert audit("export", record, "--round", 2, "--format", "csv", "--out", file) == 0
    count = len(of_round(record, 2))
    assert capsys.readouterr().out == f"{file}: round 2, {count} records\n"
    (day,) = {one.day for one in of_round(record, 2)}
    assert audit("export", record, "--day", day, "--format", "csv") == 0
    assert [
        json.loads(line)["what"] for line in access_log_file(record).read_text().splitlines()
    ] == ["export jsonl", "export csv", "export csv"]


def test_what_is_not_there_is_exit_1(record: Path, tmp_path: Path, capsys: Out) -> None:
    for more in (("--round", 99), ("--day", "1999-12-31")):
        assert audit("export", record, *more, "--out", tmp_path / "case") == 1
        assert audit("export", record, *more, "--format", "jsonl") == 1
        assert "has nothing of" in capsys.readouterr().err
    assert audit("prove", record, "--round", 99) == 1
    assert audit("prove", record, "--seq", 4000) == 1
    assert not (tmp_path / "case").exists()


# --- mistakes ---------------------------------------------------------------------------------

NO_KEY = "NAME+8 hex digits+BASE64"


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["export", "R", "--round", "0", "--out", "c"], "N, or N-M with M not less than N"),
        (["export", "R", "--round", "5-4", "--out", "c"], "N, or N-M with M not less than N"),
        (["export", "R", "--round", "x", "--out", "c"], "N, or N-M with M not less than N"),
        (["export", "R", "--day", "2027-02-30", "--out", "c"], "YYYY-MM-DD"),
        (["export", "R", "--day", "20270101", "--out", "c"], "YYYY-MM-DD"),
        (["export", "R"], "FILE.zip or a new directory"),
        (["export", "R", "--out", ""], "a name"),
        (["export", "R", "--out", "c", "--by", ""], "a line of 1 to 500 characters"),
        (["export", "R", "--out", "c", "--reason", "a\nb"], "a line of 1 to 500 characters"),
        (["export", "R", "--out", "keys"], "another name"),
        (["export", "nothing", "--out", "c"], "there is no record here"),
        (["export", "nothing", "--format", "csv"], "there is no record here"),
        (["prove", "R"], "--seq, --round or --since"),
        (["prove", "R", "--round", "3-4"], "a number from 1"),
        (["prove", "R", "--since", "no such file"], "a file"),
        (["prove", "R", "--seq", "1", "--out", "keys"], "another name"),
        (["prove", "nothing", "--seq", "1"], "there is no record here"),
        (["check-proof", "none.json", "--table-key", "KEY"], "a file"),
        (["check-proof", "none.json", "--table-key", "x"], NO_KEY),
        (["prove", "R", "--seq", "0"], "1 to 999999999999999999"),
        (["prove", "R", "--seq", "2", "-7"], "1 to 999999999999999999"),
        (["prove", "R", "--seq", "1" + 18 * "0"], "1 to 999999999999999999"),
        (["check-proof", "none.json", "--table-key", "keys/witness.key"], "a verifier key, or"),
        (["check-case", "none.zip"], "there is no such case"),
        (["check-case", "keys"], "it has no manifest.json"),
        (["check-case", "keys/witness.pub"], "is no zip, or a part of one"),
        (["check-case", "none.zip", "--seal", "zz"], "64 hex digits"),
        (["cosign", "R", "--archive", "a", "--keys", "none"], "`holecard keys new` makes one"),
        (["cosign", "R", "--archive", "a", "--keys", "keys", "--table-key", "x"], NO_KEY),
        (["cosign", "R", "--archive", "", "--keys", "keys"], "a name"),
        (["cosign", "nothing", "--archive", "a", "--keys", "keys"], "there is no record here"),
        (["witnessed", "R", "none.note", "--witness-key", "WITNESS"], "a file"),
        (["witnessed", "R", "none.note", "--witness-key", "KEY"], "the content of witness.pub"),
        (["witnessed", "R", "none.note", "--witness-key", "keys/nobody"], NO_KEY),
        (
            ["witnessed", "R", "none.note", "--witness-key", "keys/witness.key"],
            "the content of witness.pub",
        ),
    ],
)
def test_mistakes_are_exit_2_and_change_nothing(
    words: list[str],
    allowed: str,
    record: Path,
    keys: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Out,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = files_in(tmp_path)
    stand_for = {"R": str(record), "KEY": str(table_key(record)), "WITNESS": witness_key(keys)}
    out, err = printed(capsys, 2, *(stand_for.get(word, word) for word in words))
    assert (out, err.count("\n"), files_in(tmp_path)) == ("", 1, before)
    assert err.startswith("holecard: ")
    assert allowed in err
    assert err.count("allowed:") <= 1
    assert "PRIVATE" not in err


@pytest.mark.parametrize(
    "words",
    [
        ["export", "R", "--round", "1", "--day", "2027-01-15", "--out", "c"],
        ["export", "R", "--format", "xml"],
        ["prove", "R", "--seq", "x"],
        ["prove", "R", "--seq", "1", "--round", "1"],
        ["cosign", "R"],
        ["witnessed", "R"],
        ["check-proof", "p"],
        ["check-case"],
        ["export", "R", "--outt", "c"],
        [],
        ["burn"],
    ],
)
def test_wrong_arguments_are_exit_2(words: list[str], capsys: Out) -> None:
    out, err = printed(capsys, 2, *words)
    assert (out, err.startswith("usage: holecard audit")) == ("", True)


def test_an_output_that_is_full_is_exit_74(record: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "controller.cli",
        "audit",
        "export",
        str(record),
        "--format",
        "jsonl",
    ]
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert (ran.returncode, ran.stderr) == (
        74,
        b"holecard: the output cannot be written: No space left on device\n",
    )


@pytest.mark.parametrize(("problem", "code"), [(errno.ENOSPC, errno.ENOSPC), (errno.EACCES, 2)])
def test_a_place_that_is_full_is_no_mistake_of_the_user(
    problem: int, code: int, record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command makes 74 of what leaves it as the disk's own word."""

    monkeypatch.setattr("controller.audit.export.case_folder.os.rename", failing(problem))
    arguments = Namespace(
        record=str(record), out=str(tmp_path / "case"), round=None, day=None, format="case",
        by=None, reason=None, json=False,
    )  # fmt: skip
    expected: type[Exception] = OSError if code == problem else UsageProblem
    with pytest.raises(expected):
        export_record(arguments)
    assert not (tmp_path / "case").exists()


def test_a_look_that_cannot_be_written_is_exit_2(record: Path, tmp_path: Path, capsys: Out) -> None:
    access_log_file(record).mkdir()
    for words in (("export", record, "--out", tmp_path / "case"), ("prove", record, "--seq", 1)):
        out, err = printed(capsys, 2, *words)
        assert (out, "nobody looks without it" in err) == ("", True)
    assert not (tmp_path / "case").exists()


def test_progress_is_shown_on_a_terminal_only(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    assert "segment" not in printed(capsys, 0, "export", record, "--out", tmp_path / "a.zip").err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "\rsegment 2 " in printed(capsys, 0, "export", record, "--out", tmp_path / "b.zip").err


# --- records as JSON Lines and as CSV ---------------------------------------------------------


def table_of(record: Path, pick: Selection) -> list[dict[str, str]]:
    return list(
        csv.DictReader(io.StringIO(b"".join(record_rows(record, pick, "csv")).decode(), newline=""))
    )


def the_note(record: Path) -> dict[str, str]:
    (line,) = [line for line in table_of(record, Selection()) if line["kind"] == "note"]
    return line


def test_json_lines_are_the_bytes_of_the_record(whole: Path) -> None:
    lines = list(record_rows(whole, Selection(), "jsonl"))
    assert b"".join(lines) == b"\n".join(bytes_of(whole)) + b"\n"
    assert [sha256(b"\0" + line[:-1]).digest() for line in lines] == leaves_of(whole)


def test_a_line_of_csv_says_what_the_record_does(whole: Path) -> None:
    for line, (_, one) in zip(table_of(whole, Selection()), records(whole), strict=True):
        assert (tuple(line), line["seq"], line["round"]) == (COLUMNS, str(one.seq), str(one.round))
        assert (line["kind"], line["name"]) == (one.kind, one.by.name)
        assert json.loads(line["data"]) == json.loads(bytes(one.data))
        assert (line["utc_us"], line["time"]) == (str(one.utc), time_text(one.utc))


def test_only_what_is_picked_is_in_it(whole: Path) -> None:
    picked = [json.loads(line) for line in record_rows(whole, Selection(3, 4), "jsonl")]
    assert [one["seq"] for one in picked] == [
        one.seq for turn in (3, 4) for one in of_round(whole, turn)
    ]
    with pytest.raises(NoMatch, match="has nothing of round 77"):
        list(record_rows(whole, Selection(77, 77), "csv"))


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u3000=1", "\uff1d1"]
)
def test_what_people_typed_is_never_a_formula(text: str, place: Path) -> None:
    by = RecordActor("dealer", text)
    written(place, RecordEntry("note", by, {"text": text}, 7), device_report(text, 1))
    line = the_note(place)
    assert (line["name"], json.loads(line["data"])) == (f"'{text}", {"text": text})
    device = next(one for one in table_of(place, Selection()) if one["device"])
    assert device["device"] == f"'{text}"


@given(st.text(max_size=30))
def test_no_cell_begins_as_a_formula_does(text: str) -> None:
    cell = str(csv_cell(text))
    assert cell in (text, f"'{text}")
    assert not cell.strip().startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"))
    assert not cell.startswith(("\t", "\r", "\n"))


def test_numbers_stay_numbers_and_texts_stay_whole(place: Path) -> None:
    words = 'a "word", and; another\nline\u2028 \N{PLAYING CARD BACK}'
    cursor = DeviceCursor("SHOE-1", 7, 12, "00" * 8)
    by = RecordActor("player", words, 3)
    written(place, RecordEntry("note", by, {"text": words}, 2, cause=1, cursor=cursor))
    line = the_note(place)
    assert (line["name"], line["seat"], line["cause"]) == (words, "3", "1")
    assert (line["device"], line["device_epoch"], line["device_seq"]) == ("SHOE-1", "7", "12")


@pytest.mark.parametrize(
    ("utc", "text"),
    [
        (0, "1970-01-01 00:00:00.000000"),
        (1_800_000_000_000_001, "2027-01-15 08:00:00.000001"),
        (253_402_300_799_999_999, "9999-12-31 23:59:59.999999"),
        (253_402_300_800_000_000, ""),
        (-1, ""),
    ],
)
def test_times_are_as_people_read_them(utc: int, text: str) -> None:
    assert time_text(utc) == text


def test_a_file_is_there_when_it_is_whole(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.jsonl"
    assert write_rows(out, record_rows(whole, Selection(), "jsonl")) == len(bytes_of(whole))
    assert out.read_bytes() == b"\n".join(bytes_of(whole)) + b"\n"
    with pytest.raises(NoMatch):
        write_rows(tmp_path / "none.csv", record_rows(whole, Selection(99, 99), "csv"))
    assert os.listdir(tmp_path) == ["all.jsonl"]
