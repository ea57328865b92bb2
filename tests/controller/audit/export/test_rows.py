"""Records as lines: JSON Lines as they stand in the record, CSV that no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import json
import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.export import time_text
from controller.audit.export.rows import COLUMNS, csv_cell, record_rows, write_rows
from controller.audit.format.records import DeviceCursor, RecordActor, RecordEntry
from controller.audit.read.lookup import NoMatch, Selection
from controller.audit.read.reader import records
from tests.support.audit.record.table import begun, told
from tests.support.audit.tools.outside import bytes_of, leaves_of, of_round, whole

__all__ = ["whole"]

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u3000=1", "\uff1d1"]


def table_of(record: Path, pick: Selection) -> list[dict[str, str]]:
    text = b"".join(record_rows(record, pick, "csv")).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def the_note(record: Path) -> dict[str, str]:
    (line,) = [line for line in table_of(record, Selection()) if line["kind"] == "note"]
    return line


def test_json_lines_are_the_bytes_of_the_record(whole: Path) -> None:
    lines = list(record_rows(whole, Selection(), "jsonl"))
    assert b"".join(lines) == b"\n".join(bytes_of(whole)) + b"\n"
    assert [sha256(b"\0" + line[:-1]).digest() for line in lines] == leaves_of(whole)


def test_a_line_of_csv_says_what_the_record_does(whole: Path) -> None:
    found = table_of(whole, Selection())
    for line, (_, record) in zip(found, records(whole), strict=True):
        assert tuple(line) == COLUMNS
        assert (line["seq"], line["round"]) == (str(record.seq), str(record.round))
        assert (line["kind"], line["name"]) == (record.kind, record.by.name)
        assert json.loads(line["data"]) == json.loads(bytes(record.data))
        assert line["utc_us"] == str(record.utc)
        assert line["time"] == time_text(record.utc)


def test_only_what_is_picked_is_in_it(whole: Path) -> None:
    picked = [json.loads(line) for line in record_rows(whole, Selection(3, 4), "jsonl")]
    assert [one["seq"] for one in picked] == [
        one.seq for turn in (3, 4) for one in of_round(whole, turn)
    ]
    with pytest.raises(NoMatch, match="has nothing of round 77"):
        list(record_rows(whole, Selection(77, 77), "csv"))


@pytest.mark.parametrize("text", FORMULAS)
def test_what_people_typed_is_never_a_formula(text: str, tmp_path: Path) -> None:
    record = tmp_path / "record"
    log = begun(record)
    log.write([RecordEntry("note", RecordActor("dealer", text), {"text": text}, 7)])
    log.write([told(text, 1)])
    log.close()
    line = the_note(record)
    assert line["name"] == f"'{text}"
    assert json.loads(line["data"]) == {"text": text}
    device = next(one for one in table_of(record, Selection()) if one["device"])
    assert device["device"] == f"'{text}"


@given(st.text(max_size=30))
def test_no_cell_begins_as_a_formula_does(text: str) -> None:
    cell = str(csv_cell(text))
    assert cell in (text, f"'{text}")
    assert not cell.strip().startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"))
    assert not cell.startswith(("\t", "\r", "\n"))


def test_numbers_stay_numbers_and_texts_stay_whole(tmp_path: Path) -> None:
    record = tmp_path / "record"
    words = 'a "word", and; another\nline\u2028 \N{PLAYING CARD BACK}'
    cursor = DeviceCursor("SHOE-1", 7, 12, "00" * 8)
    log = begun(record)
    log.write(
        [
            RecordEntry(
                "note", RecordActor("player", words, 3), {"text": words}, 2, cause=1, cursor=cursor
            )
        ]
    )
    log.close()
    line = the_note(record)
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
