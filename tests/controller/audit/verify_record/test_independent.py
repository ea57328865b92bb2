"""The verifier on records that are right, cut off, witnessed, or there only in part."""

from pathlib import Path

import pytest

from controller.audit.verify_record import main
from tests.support.audit.tools.by_page import ORIGIN, Signer, closed, started
from tests.support.audit.verifying import told


@pytest.mark.parametrize(("size", "boots"), [(16384, 1), (65536, 1), (8192, 3), (4096, 2)])
def test_a_record_in_good_order_is_right(
    size: int, boots: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed(size, rounds=7, boots=boots)
    found = told(capsys, pen.save(tmp_path), "--table-key", pen.table_key.vkey())
    assert (found["exit"], found["verdict"], found["wrong"]) == (0, "right", None)
    assert found["segments"] == len(pen.files)
    assert (found["last_seq"], found["boots"], found["origin"]) == (pen.seq, boots, ORIGIN)
    assert found["signed_through"] >= pen.seq - 2
    assert found["table_key_proven"]
    assert not found["remarks"]
    assert not found["not_checked"]


def test_a_key_that_only_the_record_names_is_said_to_be_no_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(closed().save(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert "THE TABLE'S KEY IS NOT PROVEN" in out
    assert out.endswith("RIGHT\n")


def test_a_record_of_a_running_table_is_right_and_said_to_be_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = started(rounds=1)
    found = told(capsys, pen.save(tmp_path))
    assert found["exit"] == 0
    assert any("does not end with closed" in words for words in found["remarks"])


def test_a_clock_record_lets_the_clock_be_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = started()
    was, pen.utc = pen.utc, pen.utc - 3_000_000
    pen.write("clock", {"utc_was": was, "mono": pen.mono})
    pen.close()
    assert told(capsys, pen.save(tmp_path))["exit"] == 0


def test_the_clock_may_be_set_where_a_segment_begins_and_where_a_boot_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = started(4096)
    while pen.room(650):
        pen.write("note", {"text": ""})
    was, pen.utc = pen.utc, pen.utc + 3_000_000
    pen.write("clock", {"utc_was": was, "mono": pen.mono})
    assert pen.number == 2
    pen.close()
    pen.mono = 5  # the machine started anew
    pen.start()
    pen.close()
    assert told(capsys, pen.save(tmp_path))["exit"] == 0


# --- a part of a record


def test_later_segments_alone_are_held_against_their_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed(8192)
    stranger = Signer(f"{ORIGIN}/table", "a stranger").vkey()
    found = told(capsys, pen.save(tmp_path, 2), "--table-key", stranger)
    assert (found["exit"], found["wrong"]["seq"]) == (1, found["first_seq"])
    assert found["wrong"]["what"] == "the table's key is not the one given"
