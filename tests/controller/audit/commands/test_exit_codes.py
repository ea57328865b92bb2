"""Exit codes of `holecard audit`: what each command's help says of them is what it does."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controller import cli
from controller.audit.format.segments import segment_file
from controller.audit.keys import ROLES, create_key, table_text
from tests.support.audit.record.scripted import read_rounds
from tests.support.audit.record.table import TABLE_KEY
from tests.support.audit.tools.audit_command import LEFT_OPEN, Runs, refused, rounds
from tests.support.audit.tools.outside import audit, flip, overwrite, printed, table_key
from tests.support.audit.verifying import json_report
from tests.support.paths import ROOT
from tests.support.sim.a_round import ROUND

COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": ("record",),
    "show": ("record", "--seq", "1-9"),
    "tail": ("record",),
    "open": ("record", "--round", "1", "--keys", "keys"),
    "accept-tail": ("spoilt", "--keys", "keys", "--by", "Ann", "--second", "Bo", "--yes"),
    "sql": ("record", "SELECT 1"),
    "rebuild-index": ("record",),
    "export": ("record", "--format", "jsonl"),
    "check-case": ("case",),
    "prove": ("record", "--seq", "3"),
    "check-proof": ("proof.json", "--table-key", "keys/table.pub"),
    "cosign": ("record", "--keys", "keys", "--archive", "archive"),
    "witnessed": ("record", "a.note", "--witness-key", "keys/witness.pub"),
    "retire": (
        *("record", "--before", "2026-01-01", "--out", "old.zip", "--keys", "keys"),
        *("--by", "Ann", "--and", "Bo"),
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that the commands are about."""
    folder = tmp_path_factory.mktemp("codes")
    for role in ROLES:
        create_key(folder / "keys", role, "floor/1" if role == "witness" else None)
    read_rounds(folder, LEFT_OPEN, ROUND)
    record, keys = str(folder / "record"), str(folder / "keys")
    for words in (
        ["script", "run", str(folder / "rounds.json"), "--record", record, "--keys", keys],
        ["audit", "export", record, "--all", "--out", str(folder / "case")],
        ["audit", "prove", record, "--seq", "3", "--out", str(folder / "proof.json")],
        [
            "audit",
            "cosign",
            record,
            *("--keys", keys, "--archive", str(folder / "archive")),
            "--out",
            str(folder / "a.note"),
        ],
    ):
        assert cli.main(words) in (0, 1)  # of the rounds one does not come out as it is expected to
    file = segment_file(shutil.copytree(record, folder / "spoilt"), 1)
    overwrite(file, file.stat().st_size - 9, b"scribbled")
    return folder


def called(name: str, *words: str) -> int:
    return cli.main(["audit", name, *words])


def writing_to(stdout: int, name: str, *words: str) -> int:
    """By itself, its output going there."""
    command = [sys.executable, "-m", "controller.cli", "audit", name, *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, env=env, stdout=stdout, stderr=subprocess.DEVNULL, timeout=100, check=False
    ).returncode


def nobody_reads(name: str, *words: str) -> int:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        return writing_to(writes, name, *words)
    finally:
        os.close(writes)


def no_room(name: str, *words: str) -> int:
    with Path("/dev/full").open("wb") as full:
        return writing_to(full.fileno(), name, *words)


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shutil.copytree(made, tmp_path / "made")
    monkeypatch.chdir(folder)
    return folder


def said(name: str, capsys: pytest.CaptureFixture[str]) -> set[int]:
    """The codes in a command's help."""
    capsys.readouterr()
    assert called(name, "--help") == 0
    words = " ".join(capsys.readouterr().out.partition("Exit codes:")[2].split())
    return {int(code) for code in re.findall(r"(?:^|; )\s*(\d+) ", words)}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_its_help_says_of_exit_codes_is_what_a_command_does(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = COMMANDS[name]
    assert {0, 1, 2, 74, 141} <= said(name, capsys)
    assert (called(name, *words, "--no-such-option"), called(name, "nowhere", *words[1:])) == (2, 2)
    capsys.readouterr()
    if name == "accept-tail":
        assert called(name, *words) == 0
        assert called(name, *words) == 1  # nothing is left to be accepted
        return
    if name == "retire":
        assert called(name, *words) == 1  # nothing is so old
        return
    assert (no_room(name, *words), nobody_reads(name, *words), called(name, *words)) == (74, 141, 0)
    if name not in ("check-case", "check-proof"):  # which need no record
        flip(segment_file(folder / "record", 1), 60)
        assert called(name, *words) == 1


# --- What `holecard audit` prints for machines, and what its help promises --------------------


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def test_sql_prints_json_whatever_the_values_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Runs(tmp_path, capsys, *rounds(1))
    assert json.loads(
        runs("sql", "SELECT 9e999, -9e999, x'00ff', 1.5, NULL, 'a'", "--json").out,
        parse_constant=no_constant,
    )["rows"] == [[None, None, "00ff", 1.5, None, "a"]]


def test_help_names_the_codes_that_its_commands_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", "100")
        assert cli.main(["audit", "--help"]) == 0
    codes = capsys.readouterr().out.partition("Exit codes: ")[2]
    given = {part.strip().split()[0] for part in codes.replace("\n", " ").split(";")}
    assert given == {"0", "1", "2", "3", "74", "130", "141"}


# --- Names and words that are not UTF-8: said in one line, or taken as they are ---------------


STRANGE = os.fsdecode(b"n\xff\xfe")


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path, capsys, *rounds(1))


@pytest.fixture
def moved(runs: Runs) -> Runs:
    """The record's directory has such a name."""
    place = runs.folder / STRANGE
    runs.record.rename(place)
    runs.record = place
    return runs


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
    assert (moved("verify").code, moved("tail").code) == (0, 0)
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


# --- keys that are named by their files -------------------------------------------------------


Out = pytest.CaptureFixture[str]
PUBLIC = TABLE_KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


@pytest.fixture
def papers(record: Path, tmp_path: Path) -> Path:
    """Files with the table's key, as it is made and by its name; with other keys; a witness's."""
    place = tmp_path / "keys"
    create_key(place, "table")
    create_key(place, "witness", "floor.example/archive")
    (place / "other.pub").write_bytes((place / "table.pub").read_bytes())
    (place / "table.pub").write_bytes(table_text(PUBLIC))
    damaged = table_text(PUBLIC).replace(b"fingerprint ", b"fingerprint 0", 1)
    (place / "damaged.pub").write_bytes(damaged[:-2] + b"\n")
    (place / "named.pub").write_text(f"{table_key(record)}\n", "utf-8")
    return place


@pytest.fixture
def proof(record: Path, tmp_path: Path, papers: Path) -> Path:
    """Of a record, against what a witness has seen."""
    note = tmp_path / "w.note"
    keys = ("--keys", papers, "--archive", tmp_path / "archive")
    assert audit("cosign", record, *keys, "--table-key", papers / "table.pub", "--out", note) == 0
    out = tmp_path / "proof.json"
    assert audit("prove", record, "--seq", 3, "--checkpoint", note, "--out", out) == 0
    return out


@pytest.mark.parametrize("name", ["table.pub", "named.pub"])
def test_a_proof_is_checked_with_keys_in_files(
    name: str, proof: Path, papers: Path, capsys: Out
) -> None:
    keys = ("--table-key", papers / name, "--witness-key", papers / "witness.pub")
    assert "a witness saw" in printed(capsys, 0, "check-proof", proof, *keys).out


def test_another_key_in_a_file_proves_nothing(proof: Path, papers: Path, capsys: Out) -> None:
    other = printed(capsys, 1, "check-proof", proof, "--table-key", papers / "other.pub")
    assert other.err.count("\n") == 1
    damaged = printed(capsys, 2, "check-proof", proof, "--table-key", papers / "damaged.pub")
    assert damaged.err.count("allowed:") == 1


def test_what_a_witness_saw_is_brought_with_its_file(
    record: Path, tmp_path: Path, proof: Path, papers: Path, capsys: Out
) -> None:
    seen = (tmp_path / "w.note", "--witness-key", papers / "witness.pub")
    assert "brought" in printed(capsys, 0, "witnessed", record, *seen).out


@pytest.mark.parametrize("name", ["table.pub", "named.pub"])
def test_the_verifier_by_itself_takes_files(
    name: str, record: Path, tmp_path: Path, proof: Path, papers: Path, capsys: Out
) -> None:
    capsys.readouterr()
    seen = ("--checkpoint", str(tmp_path / "w.note"), "--witness-key", str(papers / "witness.pub"))
    found = json_report(capsys, record, "--table-key", str(papers / name), *seen)
    assert found["wrong"] is None
    assert found["table_key_proven"]
    assert found["table_key"].startswith(f"{table_key(record).name}+")
    assert found["held_by_witness_at"]


def test_the_verifier_by_itself_refuses_another_key(
    record: Path, papers: Path, capsys: Out
) -> None:
    found = json_report(capsys, record, "--table-key", str(papers / "other.pub"))
    assert "the table's key is not the one given" in found["wrong"]["what"]
    for name, option, words in (
        ("damaged.pub", "--table-key", "a verifier key is"),
        ("witness.key", "--table-key", "a verifier key is"),
    ):
        with pytest.raises(SystemExit) as left:
            json_report(capsys, record, option, str(papers / name))
        assert left.value.code == 2
        assert words in capsys.readouterr().err


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A directory with keys of each kind."""
    place = tmp_path / "private"
    create_key(place, "table")
    create_key(place, "hole")
    create_key(place, "surveillance")
    create_key(place, "witness", "floor.example/other")
    return place


@pytest.fixture
def given_places(
    record: Path, papers: Path, proof: Path, private: Path
) -> tuple[Path, Path, Path, Path]:
    return record, papers, proof, private


TAKES = [
    ("verify", "--table-key"),
    ("verify", "--witness-key"),
    ("cosign", "--table-key"),
    ("check-proof", "--table-key"),
    ("check-proof", "--witness-key"),
    ("witnessed", "--witness-key"),
]


@pytest.mark.parametrize("pasted", [True, False])
@pytest.mark.parametrize("name", ["table.key", "witness.key", "surveillance.key", "hole.key"])
@pytest.mark.parametrize(("command", "option"), TAKES)
def test_nothing_of_a_private_key_that_is_given_by_mistake_is_repeated(
    command: str,
    option: str,
    name: str,
    pasted: bool,
    given_places: tuple[Path, Path, Path, Path],
    capsys: Out,
) -> None:
    """All of a file, its last line, the key alone: pasted, or in a file."""
    record, papers, proof, private = given_places
    tmp_path = proof.parent
    note = tmp_path / "w.note"
    words: dict[str, tuple[object, ...]] = {
        "verify": (record, "--checkpoint", note),
        "cosign": (record, "--keys", papers, "--archive", tmp_path / "archive"),
        "check-proof": (proof,),
        "witnessed": (record, note),
    }
    secret = (private / name).read_text()
    lines = secret.strip().splitlines()
    body = max(lines, key=len) if name != "hole.key" else lines[-1]
    assert len(body) >= 60
    for text in (secret, lines[-1], body):
        given: object = text
        if not pasted:
            given = tmp_path / "wrong"
            (tmp_path / "wrong").write_text(text)
        right = {"--table-key": papers / "table.pub", "--witness-key": papers / "witness.pub"}
        options = [
            word
            for one in right
            if (command, one) in TAKES
            for word in (one, given if one == option else right[one])
        ]
        out, err = printed(capsys, 2, command, *words[command], *options)
        assert (out, option in err) == ("", True)
        assert not [at for at in range(len(body) - 8) if body[at : at + 8] in err]


@pytest.mark.parametrize(("command", "option"), TAKES[:2])
def test_a_file_that_is_not_there_is_named(
    command: str,
    option: str,
    record: Path,
    papers: Path,
    proof: Path,
    tmp_path: Path,
    capsys: Out,
) -> None:
    witness = ("--checkpoint", tmp_path / "w.note", "--witness-key", papers / "witness.pub")
    assert audit(command, record, *witness, option, "papers/table.pub") == 2
    assert f"{option}: papers/table.pub: no such file" in capsys.readouterr().err
