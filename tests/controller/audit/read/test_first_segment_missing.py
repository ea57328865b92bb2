"""Without the first segment, commands report that records may be missing."""

import csv
import io
import json
from pathlib import Path

import pytest

from controller.audit.format.segments import segment_file
from controller.audit.read.lookup import gone_before
from tests.support.audit.tools.outside import audit, of_round

Out = pytest.CaptureFixture[str]
GONE = "segments before 2 are not here"


@pytest.fixture
def cut(record: Path) -> Path:
    """Remove the first segment, which contains the first rounds."""
    segment_file(record, 1).unlink()
    assert not of_round(record, 1)
    return record


def test_a_complete_record_has_no_warning(record: Path, capsys: Out, tmp_path: Path) -> None:
    assert gone_before(record) == ""
    for words in (
        ("show", record, "--round", "1"),
        ("show", record, "--round", "99"),
        ("prove", record, "--round", "99"),
        ("export", record, "--all", "--out", tmp_path / "case.zip"),
    ):
        audit(*words)
        told = capsys.readouterr()
        assert "not here" not in told.out + told.err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("show", "--round", "1"), f"{GONE}, and nothing was found in the others"),
        (("show", "--kind", "opened"), f"{GONE}, and nothing was found in the others"),
        (("prove", "--round", "1"), f"{GONE}, and nothing of round 1 in the others; put them back"),
        (("export", "--format", "csv", "--round", "1"), f"{GONE}, and nothing of round 1 in"),
        (("export", "--round", "1", "--out", "CASE"), f"{GONE}, and nothing of round 1 in the"),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else "",
)
def test_a_search_reports_missing_segments(
    words: tuple[str, ...], what: str, cut: Path, capsys: Out, tmp_path: Path
) -> None:
    name, *rest = (str(tmp_path / "case.zip") if one == "CASE" else one for one in words)
    assert audit(name, cut, *rest) == 1
    assert what in capsys.readouterr().err


def test_existing_records_are_shown_with_a_warning(cut: Path, capsys: Out) -> None:
    for words in (("show", "--round", "5"), ("show", "--kind", "note"), ("prove", "--round", "5")):
        assert audit(words[0], cut, *words[1:]) == 0
        told = capsys.readouterr()
        assert told.out
        assert GONE in told.err
    assert audit("export", cut, "--format", "csv", "--day", of_round(cut, 5)[0].day) == 0
    told = capsys.readouterr()
    assert len(list(csv.reader(io.StringIO(told.out)))) > 2
    assert GONE in told.err


def test_a_case_names_missing_segments(cut: Path, capsys: Out, tmp_path: Path) -> None:
    case = tmp_path / "case"
    assert audit("export", cut, "--all", "--out", case) == 0
    told = capsys.readouterr()
    assert "all that is here of holecard/mega-1/" in told.out
    assert GONE in told.err
    assert json.loads((case / "manifest.json").read_bytes())["remarks"] == [GONE]
    assert audit("check-case", case) == 0
