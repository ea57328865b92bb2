"""Storing cosigned checkpoints with the record."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.audit.errors import NoRecord
from controller.audit.format.notes import (
    Signature,
    SigningKey,
    format_note,
    parse_note,
    verify_note,
)
from controller.audit.witness.cosignatures import NotCosigned, store_notes
from tests.support.audit.tools.outside import WITNESS, files_in, played
from tests.support.audit.tools.signers import STRANGER, signing_key
from tests.support.audit.witnessing import NOW, seen_by

SECOND = signing_key("archive.example/second")


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return played(tmp_path / "record", 2)


def cosigned(record: Path, archive: Path) -> tuple[int, bytes]:
    made = seen_by(record, archive)
    return made.size, made.note.encode()


def by_another(note: bytes, key: SigningKey, seconds: int = NOW) -> bytes:
    found = parse_note(note)
    return format_note(found.text, found.signatures[0], key.cosign(found.text, seconds)).encode()


def test_a_note_is_stored_once(record: Path, tmp_path: Path) -> None:
    size, note = cosigned(record, tmp_path / "archive")
    (brought,) = store_notes(record, [("a", note)], WITNESS.cosigner)
    assert (brought.size, brought.new) == (size, True)
    assert brought.file == record / "cosigned" / f"{size}.note"
    assert brought.file.read_bytes() == note
    (again,) = store_notes(record, [("a", by_another(note, WITNESS, NOW + 9))], WITNESS.cosigner)
    assert not again.new
    assert brought.file.read_bytes() == note


def test_a_second_witness_is_added_to_the_first(record: Path, tmp_path: Path) -> None:
    _, note = cosigned(record, tmp_path / "archive")
    store_notes(record, [("a", note)], WITNESS.cosigner)
    (brought,) = store_notes(record, [("b", by_another(note, SECOND))], SECOND.cosigner)
    assert brought.new
    both = parse_note(brought.file.read_bytes())
    assert len(both.signatures) == 3
    assert len(verify_note(both, (WITNESS.cosigner, SECOND.cosigner))) == 2


def test_only_the_given_witness_is_stored(record: Path, tmp_path: Path) -> None:
    """Signatures of others are removed."""
    _, note = cosigned(record, tmp_path / "archive")
    found = parse_note(note)
    more = format_note(found.text, *found.signatures, STRANGER.sign(found.text)).encode()
    (brought,) = store_notes(record, [("a", more)], WITNESS.cosigner)
    assert brought.file.read_bytes() == note


def test_one_invalid_note_rejects_all(record: Path, tmp_path: Path) -> None:
    _, note = cosigned(record, tmp_path / "archive")
    before = files_in(record)
    with pytest.raises(NotCosigned, match=r"^second: "):
        store_notes(record, [("first", note), ("second", note[:-9])], WITNESS.cosigner)
    assert files_in(record) == before


def test_a_note_without_a_cosignature_is_rejected(record: Path, tmp_path: Path) -> None:
    _, note = cosigned(record, tmp_path / "archive")
    found = parse_note(note)
    table, mine = found.signatures
    flipped = Signature(mine.name, mine.key_id, mine.bytes[:-1] + bytes([mine.bytes[-1] ^ 1]))
    wrong = {
        "none of the known keys": format_note(found.text, table).encode(),
        "is not one of this text": format_note(found.text, table, flipped).encode(),
        "a checkpoint of 1 lines": b"words\n\n" + note.partition(b"\n\n")[2],
        "without an empty line": b"nothing",
        "not UTF-8": b"\xff",
    }
    for words, data in wrong.items():
        with pytest.raises(NotCosigned, match=words):
            store_notes(record, [("a", data)], WITNESS.cosigner)
    assert not (record / "cosigned").exists()


def test_a_note_of_another_record_is_rejected(record: Path, tmp_path: Path) -> None:
    _, note = cosigned(played(tmp_path / "other", 1), tmp_path / "archive")
    with pytest.raises(NotCosigned, match="bring it to its own record"):
        store_notes(record, [("a", note)], WITNESS.cosigner)
    with pytest.raises(NoRecord):
        store_notes(tmp_path / "nothing", [("a", note)], WITNESS.cosigner)


def test_two_roots_of_one_size_are_reported_and_kept(record: Path, tmp_path: Path) -> None:
    size, note = cosigned(record, tmp_path / "archive")
    other = parse_note(note).text.splitlines()
    other[2] = "A" * 43 + "="
    text = "\n".join(other) + "\n"
    forged = format_note(text, WITNESS.cosign(text, NOW)).encode()
    store_notes(record, [("a", forged)], WITNESS.cosigner)
    with pytest.raises(NotCosigned, match=f"another root of {size} records"):
        store_notes(record, [("b", note)], WITNESS.cosigner)
    assert (record / "cosigned" / f"{size}.note").read_bytes() == forged


def test_a_damaged_stored_note_is_reported(record: Path, tmp_path: Path) -> None:
    size, note = cosigned(record, tmp_path / "archive")
    store_notes(record, [("a", note)], WITNESS.cosigner)
    file = record / "cosigned" / f"{size}.note"
    for data in (note[:30], note[:-8] + b"AAAAAAA\n"):
        file.write_bytes(data)
        with pytest.raises(NotCosigned, match="is damaged"):
            store_notes(record, [("a", note)], WITNESS.cosigner)
