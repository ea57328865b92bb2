"""A witness reads records that were written from FORMAT.md alone, valid and invalid, with the
table's keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller.audit.errors import RecordDamaged
from controller.audit.read.signatures import BadSignature
from controller.audit.witness.witness import RecordRewritten
from tests.support.audit.tools.by_page import ORIGIN, Json, Pen, Signer, started, tree_hash
from tests.support.audit.witnessing import seen_by


def begun(size: int = 16384) -> Pen:
    return started(size, rounds=1)


def seen(pen: Pen, place: Path) -> Any:
    return seen_by(pen.save(place / "record"), place / "archive")


def test_a_record_written_from_the_format_is_cosigned(tmp_path: Path) -> None:
    pen = begun(8192)
    pen.play(6)
    pen.close()
    assert len(pen.files) > 2
    made = seen(pen, tmp_path)
    assert made.origin == ORIGIN
    assert pen.seq - 2 <= made.size < pen.seq
    assert made.root == tree_hash(pen.leaves[: made.size])
    assert made.table_key == pen.table_key.vkey()


def test_a_continued_record_is_cosigned_again(tmp_path: Path) -> None:
    pen = begun(8192)
    before = seen(pen, tmp_path).size
    pen.play(5)
    made = seen(pen, tmp_path)
    assert (made.before, made.root) == (before, tree_hash(pen.leaves[: made.size]))


def test_a_snapshot_with_another_tree_is_rejected(tmp_path: Path) -> None:
    pen = begun(8192)

    def lies(data: Json) -> None:
        data["frontier"][0] = "00" * 32

    pen.snapshots = lies
    pen.play(5)
    with pytest.raises(RecordRewritten, match="its snapshot has another tree"):
        seen(pen, tmp_path)


def test_a_snapshot_of_another_record_is_rejected(tmp_path: Path) -> None:
    pen = begun(8192)

    def lies(data: Json) -> None:
        data["origin"] = ORIGIN[:-1] + ("0" if ORIGIN[-1] != "0" else "1")

    pen.snapshots = lies
    pen.play(5)
    with pytest.raises(RecordDamaged, match=f"not of {ORIGIN}"):
        seen(pen, tmp_path)


def test_a_checkpoint_over_other_records_is_rejected(tmp_path: Path) -> None:
    pen = begun()
    pen.leaves, right = [*pen.leaves[:-1], b"\0" * 32], pen.leaves
    note = pen.note()
    pen.leaves = right
    pen.checkpoint(note)
    with pytest.raises(RecordRewritten, match="a checkpoint over other records than these"):
        seen(pen, tmp_path)


def test_a_checkpoint_over_later_records_is_rejected(tmp_path: Path) -> None:
    pen = begun()
    note = pen.note().replace(f"\n{pen.seq}\n", f"\n{pen.seq + 1}\n")
    pen.checkpoint(pen.key.sign(note.rpartition("\n\n")[0] + "\n"))
    with pytest.raises(BadSignature, match="of which not all stand before it"):
        seen(pen, tmp_path)


def test_a_checkpoint_that_is_too_late_is_rejected(tmp_path: Path) -> None:
    pen = begun()
    pen.play(3)
    pen.checkpoint(pen.note(5))
    with pytest.raises(RecordDamaged, match="over 5 records, and comes too late"):
        seen(pen, tmp_path)


def test_a_key_of_another_boot_is_rejected(tmp_path: Path) -> None:
    pen = started()
    pen.certify(2, boot="00" * 8)
    pen.checkpoint()
    with pytest.raises(BadSignature, match="a boot without a certificate"):
        seen(pen, tmp_path)


def test_a_key_with_a_foreign_certificate_is_rejected(tmp_path: Path) -> None:
    pen = started()
    pen.certify(2, by=Signer(f"{ORIGIN}/table", "a stranger"))
    with pytest.raises(BadSignature, match="has not certified the key of the boot"):
        seen(pen, tmp_path)


def test_a_checkpoint_before_the_certificate_is_rejected(tmp_path: Path) -> None:
    """The key of the previous boot is not accepted."""
    pen = begun()
    pen.open()
    pen.checkpoint()
    with pytest.raises(BadSignature, match="a boot without a certificate"):
        seen(pen, tmp_path)
