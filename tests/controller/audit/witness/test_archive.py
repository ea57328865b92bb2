"""A witness's archive is written before a cosignature, and rejected when it is corrupt."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.errors import CannotWrite, InUse, WitnessProblem
from controller.audit.files import Disk
from controller.audit.format.notes import Signature, SigningKey, parse_note
from controller.audit.witness.witness import (
    ArchiveProblem,
    ClockWentBack,
    WitnessedRecord,
    cosign_record,
    open_archive,
)
from tests.support.audit.faulty_disk import FaultyDisk
from tests.support.audit.record.table import begun
from tests.support.audit.tools.outside import (
    WITNESS,
    files_in,
    grow,
    origin_of,
    played,
    root_of,
)
from tests.support.audit.witnessing import NOW, copied, refused, seen_by, seen_in

# --- the archive ------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", ["", "archive", "segments/archive"])
def test_an_archive_in_the_record_is_rejected(inside: str, record: Path) -> None:
    before = files_in(record)
    with pytest.raises(WitnessProblem, match="in the record's own directory"):
        seen_by(record, record / inside)
    assert files_in(record) == before


def test_a_witness_whose_clock_is_behind_signs_nothing(record: Path, archive: Path) -> None:
    seen_by(record, archive)
    grow(record)
    before = files_in(archive)
    with pytest.raises(ClockWentBack, match=f"says second {NOW - 1}"):
        seen_by(record, archive, NOW - 1)
    assert files_in(archive) == before


def test_concurrent_cosigning_is_rejected(whole: Path, archive: Path) -> None:
    with (
        open_archive(archive, origin_of(whole), Disk()),
        pytest.raises(InUse, match="is being countersigned already"),
    ):
        seen_by(whole, archive)
    assert seen_by(whole, archive).size


def lose(file: Path) -> None:
    file.unlink()


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    at = data.index(b'"frontier"') + 30
    data[at] ^= 1
    file.write_bytes(data)


def shorten(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("harm", "words"), [(lose, "it is gone"), (flip, "damaged"), (shorten, "it is damaged")]
)
def test_an_archive_without_its_state_is_rejected(
    harm: Callable[[Path], None], words: str, whole: Path, archive: Path
) -> None:
    seen_by(whole, archive)
    (file,) = archive.glob("*/seen.json")
    harm(file)
    refused(whole, archive, ArchiveProblem, words)


def test_an_older_archive_is_rejected(record: Path, archive: Path) -> None:
    seen_by(record, archive)
    (file,) = archive.glob("*/seen.json")
    old = file.read_bytes()
    grow(record)
    made = seen_by(record, archive)
    file.write_bytes(old)
    refused(record, archive, ArchiveProblem, f"it is an old one.*{made.size} were countersigned")


def test_two_trees_of_one_size_are_never_cosigned(tmp_path: Path) -> None:
    """Even if another witness's state replaced its own."""
    record, archive, theirs = tmp_path / "record", tmp_path / "archive", tmp_path / "theirs"
    begun(record).close()
    other = copied(record, tmp_path / "other")
    grow(record, "one")
    grow(other, "two")
    made = seen_by(record, archive)
    assert seen_by(other, theirs).size == made.size
    (file,), (foreign,) = archive.glob("*/seen.json"), theirs.glob("*/seen.json")
    shutil.copy(foreign, file)
    refused(other, archive, ArchiveProblem, f"another tree of {made.size} records was counters")


class Watching(SigningKey):
    """Checks the archive when it is asked to sign."""

    __slots__ = ("archive", "kept")

    def __init__(self, archive: Path) -> None:
        super().__init__(WITNESS.name, Ed25519PrivateKey.generate())
        self.archive = archive
        self.kept: list[tuple[str, WitnessedRecord]] = []

    def cosign(self, text: str, seconds: int) -> Signature:
        self.kept.append((text, seen_in(self.archive)))
        return super().cosign(text, seconds)


def test_the_state_is_stored_before_cosigning(whole: Path, tmp_path: Path) -> None:
    archive, disk = tmp_path / "archive", FaultyDisk()
    key = Watching(archive)
    cosign_record(whole, archive, key, now=lambda: NOW, disk=disk)
    ((text, seen),) = key.kept
    assert parse_note(seen.checkpoint).text == text
    assert seen.time == NOW
    at = disk.calls.index("rename seen.json")
    assert disk.calls[at - 2 : at + 2] == ["write", "sync", "rename seen.json", "sync directory"]


@pytest.mark.parametrize("at", range(10))
def test_a_power_loss_at_any_call_is_recovered(at: int, tmp_path: Path) -> None:
    record, archive = played(tmp_path / "record", 2), tmp_path / "archive"
    seen_by(record, archive)
    grow(record)
    key, disk = Watching(archive), FaultyDisk(power_off_at=at)
    with pytest.raises(CannotWrite):
        cosign_record(record, archive, key, now=lambda: NOW + 1, disk=disk)
    assert len(disk.calls) == at
    assert not list(archive.rglob("*.new"))
    assert bool(key.kept) == (at >= 5)  # the calls that store seen.json
    assert all(parse_note(seen.checkpoint).text == text for text, seen in key.kept)
    again = seen_by(record, archive, NOW + 2)
    assert again.root == root_of(record, again.size)
    assert not list(archive.rglob("*.new"))


def test_an_unwritable_archive_prevents_cosigning(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("a file")
    with pytest.raises(CannotWrite, match=r"cannot be written: (not a directory|file exists)"):
        seen_by(whole, tmp_path / "archive")
    assert not os.path.isdir(tmp_path / "archive")
