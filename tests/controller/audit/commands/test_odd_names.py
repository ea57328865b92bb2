"""Names and words that are not UTF-8: said in one line, or taken as they are."""

import json
import os
from pathlib import Path

import pytest

from controller import cli
from controller.audit.keys import create_key
from tests.support.audit.tools.audit_command import Ran, Runs, rounds

STRANGE = os.fsdecode(b"n\xff\xfe")


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    runs = Runs(tmp_path, capsys)
    runs.make(*rounds(1))
    return runs


@pytest.fixture
def moved(runs: Runs) -> Runs:
    """The record's directory has such a name."""
    place = runs.folder / STRANGE
    runs.record.rename(place)
    runs.record = place
    return runs


def refused(ran: Ran, words: str) -> None:
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.line
    assert ran.err.count("\n") == 1


INDEXED: list[tuple[str, ...]] = [
    ("show", "--seat", "1"),
    ("sql", "SELECT count(*) FROM records"),
    ("rebuild-index",),
]


@pytest.mark.parametrize("words", INDEXED)
def test_an_index_cannot_lie_where_sqlite_has_no_name_for_it(
    words: tuple[str, ...], moved: Runs
) -> None:
    refused(moved(*words), "is not UTF-8; name another file: --index FILE")
    assert not (moved.record / "index.db").exists()
    assert moved(*words, "--index", str(moved.folder / "index.db")).code == 0


@pytest.mark.parametrize("words", INDEXED)
def test_nor_can_one_that_is_named(words: tuple[str, ...], runs: Runs) -> None:
    file = str(runs.folder / STRANGE)
    refused(runs(*words, "--index", file), "is not UTF-8; name another file: --index FILE")


def test_who_needs_no_index_reads_a_record_of_any_name(moved: Runs) -> None:
    assert moved("verify").code == 0
    assert moved("tail").code == 0
    assert moved("show", "--seq", "1-9").code == 0
    assert moved("export", "--out", str(moved.folder / "case")).code == 0
    assert moved("prove", "--seq", "3", "--json").code == 0


def test_a_witness_sees_a_record_of_any_name(moved: Runs) -> None:
    create_key(moved.keys, "witness", "floor.example/archive")
    place = moved.folder / "archive"
    words = ("cosign", "--keys", str(moved.keys), "--archive", str(place), "--json")
    for _ in range(2):
        assert moved(*words).code == 0
    (seen,) = place.glob("*/seen.json")
    assert json.loads(seen.read_bytes())["place"].endswith(r"/n\udcff\udcfe")


WORDS: list[tuple[tuple[str, ...], str]] = [
    (("show", "--dealer", STRANGE), "--dealer: is no text"),
    (("show", "--person", STRANGE), "--person: is no text"),
    (("show", "--irregularity", STRANGE), "--irregularity: is no text"),
    (("show", "--by", STRANGE), "--by: is no text"),
    (("show", "--seq", STRANGE), "--seq: "),
    (("show", "--round", STRANGE), "--round: "),
    (("show", "--card", STRANGE), "--card: "),
    (("tail", "--by", STRANGE), "--by: is no text"),
    (("sql", f"SELECT '{STRANGE}'"), "SELECT: is not UTF-8"),
    (("sql", "SELECT 1", "--by", STRANGE), "--by: is no text"),
    (("export", "--format", "csv", "--by", STRANGE), "--by: is no text"),
    (("export", "--format", "csv", "--reason", STRANGE), "--reason: is no text"),
    (("export", "--day", STRANGE), "--day: "),
    (("prove", "--seq", "3", "--by", STRANGE), "--by: is no text"),
    (("prove", "--since", STRANGE), "--since: "),
    (("verify", "--table-key", STRANGE), "--table-key: "),
    (("open", "--round", "1", "--reason", STRANGE), "--reason: is no text"),
    (("accept-tail", "--by", STRANGE, "--second", "Bo", "--yes"), "--by: "),
    (("witnessed", STRANGE, "--witness-key", STRANGE), "--witness-key: "),
]


@pytest.mark.parametrize(("words", "said"), WORDS, ids=[" ".join(words[:2]) for words, _ in WORDS])
def test_words_that_cannot_be_written_down_are_refused(
    words: tuple[str, ...], said: str, runs: Runs
) -> None:
    before = list(runs.folder.glob("*.looks.jsonl"))
    refused(runs(*words), said)
    assert list(runs.folder.glob("*.looks.jsonl")) == before


def test_keys_lie_in_a_directory_of_any_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / STRANGE
    for words in (["new", "table"], ["show"], ["show", "--json"]):
        assert cli.main(["keys", *words, "--dir", str(place)]) == 0
        assert r"n\udcff\udcfe" in capsys.readouterr().out
