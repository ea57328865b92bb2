"""Keys that are named by their files, where somebody checks what a table has signed."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controller.audit import key_texts
from controller.audit.key_making import make
from tests.audit.cases import record
from tests.audit.outside import audit, audited, table_key, whole
from tests.audit.table import TABLE_KEY
from tests.audit.verifying import told

__all__ = ["audited", "record", "whole"]

pytestmark = pytest.mark.usefixtures("audited")
Out = pytest.CaptureFixture[str]
PUBLIC = TABLE_KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


@pytest.fixture
def papers(record: Path, tmp_path: Path) -> Path:
    """Files with the table's key, as it is made and by its name; with other keys; a witness's."""
    place = tmp_path / "keys"
    make(place, "table")
    make(place, "witness", "floor.example/archive")
    (place / "other.pub").write_bytes((place / "table.pub").read_bytes())
    (place / "table.pub").write_bytes(key_texts.table_text(PUBLIC))
    damaged = key_texts.table_text(PUBLIC).replace(b"fingerprint ", b"fingerprint 0", 1)
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
