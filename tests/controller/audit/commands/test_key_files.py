"""Keys that are named by their files, where somebody checks what a table has signed."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controller.audit.keys import create_key, table_text
from tests.support.audit.record.table import TABLE_KEY
from tests.support.audit.tools.cases import record
from tests.support.audit.tools.outside import audit, table_key, whole
from tests.support.audit.verifying import told

__all__ = ["record", "whole"]

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
    capsys.readouterr()
    witness = ("--witness-key", papers / "witness.pub")
    assert audit("check-proof", proof, "--table-key", papers / name, *witness) == 0
    assert "a witness saw" in capsys.readouterr().out


def test_another_key_in_a_file_proves_nothing(proof: Path, papers: Path, capsys: Out) -> None:
    capsys.readouterr()
    assert audit("check-proof", proof, "--table-key", papers / "other.pub") == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert audit("check-proof", proof, "--table-key", papers / "damaged.pub") == 2
    assert capsys.readouterr().err.count("allowed:") == 1


def test_what_a_witness_saw_is_brought_with_its_file(
    record: Path, tmp_path: Path, proof: Path, papers: Path, capsys: Out
) -> None:
    capsys.readouterr()
    note = tmp_path / "w.note"
    assert audit("witnessed", record, note, "--witness-key", papers / "witness.pub") == 0
    assert "brought" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["table.pub", "named.pub"])
def test_the_verifier_by_itself_takes_files(
    name: str, record: Path, tmp_path: Path, proof: Path, papers: Path, capsys: Out
) -> None:
    capsys.readouterr()
    seen = ("--checkpoint", str(tmp_path / "w.note"), "--witness-key", str(papers / "witness.pub"))
    found = told(capsys, record, "--table-key", str(papers / name), *seen)
    assert found["wrong"] is None
    assert found["table_key_proven"]
    assert found["table_key"].startswith(f"{table_key(record).name}+")
    assert found["held_by_witness_at"]


def test_the_verifier_by_itself_refuses_another_key(
    record: Path, papers: Path, capsys: Out
) -> None:
    found = told(capsys, record, "--table-key", str(papers / "other.pub"))
    assert "the table's key is not the one given" in found["wrong"]["what"]
    for name, option, words in (
        ("damaged.pub", "--table-key", "a verifier key is"),
        ("witness.key", "--table-key", "a verifier key is"),
    ):
        with pytest.raises(SystemExit) as left:
            told(capsys, record, option, str(papers / name))
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
        capsys.readouterr()
        code = audit(command, *words[command], *options)
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        assert option in err
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
