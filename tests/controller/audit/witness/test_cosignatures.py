"""Cosigned checkpoints of a record, in the record and in the archive of their witness."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.errors import (
    CannotWrite,
    InUse,
    NoRecord,
    RecordDamaged,
    RecordProblem,
    WitnessProblem,
)
from controller.audit.files import Disk
from controller.audit.format.notes import (
    Signature,
    SigningKey,
    format_note,
    parse_note,
    verify_note,
)
from controller.audit.format.records import CONTROLLER, NoteData, RecordEntry
from controller.audit.format.segments import numbers, segment_file
from controller.audit.log import Log
from controller.audit.read.reader import records
from controller.audit.read.signatures import BadSignature
from controller.audit.witness import (
    CosignedNote,
    WitnessReport,
    WitnessState,
    check_witnesses,
    recorded_state,
)
from controller.audit.witness.cosignatures import MAX_NOTES, NotCosigned, store_notes
from controller.audit.witness.witness import (
    ArchiveProblem,
    ClockWentBack,
    RecordRewritten,
    WitnessedRecord,
    cosign_record,
    open_archive,
)
from tests.support.audit.record.table import FaultyDisk, begun, everything, note
from tests.support.audit.tools.by_page import ORIGIN, Pen, Signer, started, tree_hash
from tests.support.audit.tools.outside import (
    WITNESS,
    files_in,
    flip,
    grow,
    origin_of,
    play,
    played,
    root_of,
)
from tests.support.audit.tools.signers import STRANGER, signing_key
from tests.support.audit.witnessing import NOW, copied, refused, seen_by, seen_in

SECOND = signing_key("archive.example/second")


@pytest.fixture
def cosigned(record: Path, archive: Path) -> CosignedNote:
    return seen_by(record, archive)


@pytest.fixture
def signed(cosigned: CosignedNote) -> bytes:
    """The cosigned checkpoint as it is brought to its record."""
    return cosigned.note.encode()


def by_another(note: bytes, key: SigningKey, seconds: int = NOW) -> bytes:
    found = parse_note(note)
    return format_note(found.text, found.signatures[0], key.cosign(found.text, seconds)).encode()


def test_a_note_is_stored_once(record: Path, cosigned: CosignedNote, signed: bytes) -> None:
    (brought,) = store_notes(record, [("a", signed)], WITNESS.cosigner)
    assert (brought.size, brought.new) == (cosigned.size, True)
    assert (brought.file, brought.file.read_bytes()) == (
        record / "cosigned" / f"{cosigned.size}.note",
        signed,
    )
    (again,) = store_notes(record, [("a", by_another(signed, WITNESS, NOW + 9))], WITNESS.cosigner)
    assert not again.new
    assert brought.file.read_bytes() == signed


def test_a_second_witness_is_added_to_the_first(record: Path, signed: bytes) -> None:
    store_notes(record, [("a", signed)], WITNESS.cosigner)
    (brought,) = store_notes(record, [("b", by_another(signed, SECOND))], SECOND.cosigner)
    assert brought.new
    both = parse_note(brought.file.read_bytes())
    assert len(both.signatures) == 3
    assert len(verify_note(both, (WITNESS.cosigner, SECOND.cosigner))) == 2


def test_only_the_given_witness_is_stored(record: Path, signed: bytes) -> None:
    """Signatures of others are removed."""
    found = parse_note(signed)
    more = format_note(found.text, *found.signatures, STRANGER.sign(found.text)).encode()
    (brought,) = store_notes(record, [("a", more)], WITNESS.cosigner)
    assert brought.file.read_bytes() == signed


def test_one_invalid_note_rejects_all(record: Path, signed: bytes) -> None:
    before = files_in(record)
    with pytest.raises(NotCosigned, match=r"^second: "):
        store_notes(record, [("first", signed), ("second", signed[:-9])], WITNESS.cosigner)
    assert files_in(record) == before


def test_a_note_without_a_cosignature_is_rejected(record: Path, signed: bytes) -> None:
    found = parse_note(signed)
    table, mine = found.signatures
    flipped = Signature(mine.name, mine.key_id, mine.bytes[:-1] + bytes([mine.bytes[-1] ^ 1]))
    for words, data in {
        "none of the known keys": format_note(found.text, table).encode(),
        "is not one of this text": format_note(found.text, table, flipped).encode(),
        "a checkpoint of 1 lines": b"words\n\n" + signed.partition(b"\n\n")[2],
        "without an empty line": b"nothing",
        "not UTF-8": b"\xff",
    }.items():
        with pytest.raises(NotCosigned, match=words):
            store_notes(record, [("a", data)], WITNESS.cosigner)
    assert not (record / "cosigned").exists()


def test_a_note_of_another_record_is_rejected(record: Path, tmp_path: Path) -> None:
    note = seen_by(played(tmp_path / "other", 1), tmp_path / "archive").note.encode()
    with pytest.raises(NotCosigned, match="bring it to its own record"):
        store_notes(record, [("a", note)], WITNESS.cosigner)
    with pytest.raises(NoRecord):
        store_notes(tmp_path / "nothing", [("a", note)], WITNESS.cosigner)


def test_two_roots_of_one_size_are_reported_and_kept(
    record: Path, cosigned: CosignedNote, signed: bytes
) -> None:
    other = parse_note(signed).text.splitlines()
    other[2] = "A" * 43 + "="
    text = "\n".join(other) + "\n"
    forged = format_note(text, WITNESS.cosign(text, NOW)).encode()
    store_notes(record, [("a", forged)], WITNESS.cosigner)
    with pytest.raises(NotCosigned, match=f"another root of {cosigned.size} records"):
        store_notes(record, [("b", signed)], WITNESS.cosigner)
    assert (record / "cosigned" / f"{cosigned.size}.note").read_bytes() == forged


def test_a_damaged_stored_note_is_reported(
    record: Path, cosigned: CosignedNote, signed: bytes
) -> None:
    store_notes(record, [("a", signed)], WITNESS.cosigner)
    file = record / "cosigned" / f"{cosigned.size}.note"
    for data in (signed[:30], signed[:-8] + b"AAAAAAA\n"):
        file.write_bytes(data)
        with pytest.raises(NotCosigned, match="is damaged"):
            store_notes(record, [("a", signed)], WITNESS.cosigner)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A log with one signed round."""
    made = begun(tmp_path / "record")
    play(made, 1, 1)
    yield made
    made.release()


def brought(log: Log) -> int:
    """Cosign and store a note; returns its size."""
    made = seen_by(log.record, log.record.parent / "archive")
    store_notes(log.record, [("n", made.note.encode())], WITNESS.cosigner)
    return made.size


def put(log: Log, size: int, text: str) -> None:
    place = log.record / "cosigned"
    place.mkdir(exist_ok=True)
    (place / f"{size}.note").write_text(text)


def told(log: Log, size: int) -> None:
    """Record the report."""
    text = (log.record / "cosigned" / f"{size}.note").read_text()
    log.write([RecordEntry("witnessed", CONTROLLER, NoteData(text))])
    log.sign()


def test_a_record_without_cosignatures(log: Log) -> None:
    """The time counts from the first start of the controller."""
    first = next(one for one in everything(log.record) if one.kind == "opened")
    found = check_witnesses(log.record, 0)
    assert (found.seen, found.size, found.since, found.wrong) == ((), 0, first.utc, ())
    assert recorded_state(log.record) == WitnessState()


def test_a_stored_note_is_reported_once(log: Log) -> None:
    size = brought(log)
    found = check_witnesses(log.record, 0)
    assert [(one.size, one.note) for one in found.seen] == [
        (size, (log.record / "cosigned" / f"{size}.note").read_text())
    ]
    assert (found.size, found.since) == (size, 0)
    told(log, size)
    assert recorded_state(log.record) == WitnessState(size, 0)
    assert check_witnesses(log.record, size) == WitnessReport((), size, 0, ())


def test_records_after_a_cosignature_are_uncovered(log: Log) -> None:
    size = brought(log)
    log.write([note("later")])
    later = everything(log.record)[-1]
    log.sign()
    assert check_witnesses(log.record, 0).since == later.utc
    assert check_witnesses(log.record, size).since == later.utc


def test_witness_records_need_no_cosignature(log: Log) -> None:
    """Otherwise each recorded cosignature would require the next one."""
    size = brought(log)
    for _ in range(3):
        told(log, size)
        log.write([RecordEntry("unwitnessed", CONTROLLER, {"since": 5})])
        log.sign()
        assert brought(log) > size
        found = check_witnesses(log.record, size)
        assert (found.seen, found.since) == ((), 0)
    log.write([note("a round")])
    log.sign()
    newest = brought(log)
    assert [one.size for one in check_witnesses(log.record, size).seen] == [newest]


def test_each_note_that_covers_more_is_reported(log: Log) -> None:
    sizes = []
    for turn in range(2, 5):
        play(log, turn, turn)
        sizes.append(brought(log))
    assert [one.size for one in check_witnesses(log.record, 0).seen] == sizes


def test_only_the_newest_notes_are_reported(log: Log) -> None:
    sizes = []
    for _ in range(MAX_NOTES + 3):
        log.write([note("more")])
        log.sign()
        sizes.append(brought(log))
    assert [one.size for one in check_witnesses(log.record, 0).seen] == sizes[3:]


def test_an_invalid_note_is_rejected(log: Log) -> None:
    """Recording it would make the record fail verification forever."""
    checkpoint = next(one for one in reversed(everything(log.record)) if one.kind == "checkpoint")
    ours = parse_note(msgspec.json.decode(checkpoint.data, type=NoteData).note)
    size = int(ours.text.splitlines()[1])
    other = ours.text.replace(ours.text.splitlines()[2], "A" * 43 + "=")
    cosigned = WITNESS.cosign(ours.text, NOW)
    for text, why in [
        ("no note", "empty line"),
        (format_note(ours.text, *ours.signatures), "countersigned by nobody"),
        (format_note(ours.text, STRANGER.sign(ours.text), cosigned), "not signed by the table"),
        (format_note(other, *ours.signatures, WITNESS.cosign(other, NOW)), "no checkpoint"),
    ]:
        put(log, size, text)
        found = check_witnesses(log.record, 0)
        assert (found.seen, found.size) == ((), 0)
        (wrong,) = found.wrong
        assert wrong.startswith(f"cosigned/{size}.note: ")
        assert why in wrong
    put(log, size, format_note(ours.text, *ours.signatures, cosigned, STRANGER.sign(ours.text)))
    assert [one.note for one in check_witnesses(log.record, 0).seen] == [
        format_note(ours.text, *ours.signatures, cosigned)
    ]


def test_the_recorded_state_is_found_in_older_segments(log: Log) -> None:
    size = brought(log)
    told(log, size)
    log.write([RecordEntry("unwitnessed", CONTROLLER, {"since": 7})])
    play(log, 2, 30)
    assert len(numbers(log.record)) > 3
    assert recorded_state(log.record) == WitnessState(size, 7)
    first = next(one for _, one in records(log.record) if one.seq > size + 3 and one.round == 2)
    assert check_witnesses(log.record, size).since == first.utc


def test_a_record_without_its_first_segments(log: Log) -> None:
    size = brought(log)
    play(log, 2, 30)
    segment_file(log.record, 1).unlink()
    second = next(one for one in everything(log.record) if one.kind != "snapshot")
    assert check_witnesses(log.record, size).since == second.utc
    assert check_witnesses(log.record, 0).since == second.utc


def seen(pen: Pen, place: Path) -> Any:
    return seen_by(pen.save(place / "record"), place / "archive")


def test_a_record_written_from_the_format_is_cosigned(tmp_path: Path) -> None:
    pen = started(8192, rounds=1)
    pen.play(6)
    pen.close()
    assert len(pen.files) > 2
    made = seen(pen, tmp_path)
    assert made.origin == ORIGIN
    assert pen.seq - 2 <= made.size < pen.seq
    assert (made.root, made.table_key) == (tree_hash(pen.leaves[: made.size]), pen.table_key.vkey())


def test_a_continued_record_is_cosigned_again(tmp_path: Path) -> None:
    pen = started(8192, rounds=1)
    before = seen(pen, tmp_path).size
    pen.play(5)
    made = seen(pen, tmp_path)
    assert (made.before, made.root) == (before, tree_hash(pen.leaves[: made.size]))


def another_tree(pen: Pen) -> None:
    pen.snapshots = lambda data: data["frontier"].__setitem__(0, "00" * 32)
    pen.play(5)


def another_record(pen: Pen) -> None:
    pen.snapshots = lambda data: data.update(origin=ORIGIN[:-1] + "0")
    pen.play(5)


def other_records(pen: Pen) -> None:
    pen.leaves, right = [*pen.leaves[:-1], b"\0" * 32], pen.leaves
    note = pen.note()
    pen.leaves = right
    pen.checkpoint(note)


def later_records(pen: Pen) -> None:
    note = pen.note().replace(f"\n{pen.seq}\n", f"\n{pen.seq + 1}\n")
    pen.checkpoint(pen.key.sign(note.rpartition("\n\n")[0] + "\n"))


def too_late(pen: Pen) -> None:
    pen.play(3)
    pen.checkpoint(pen.note(5))


def another_boot(pen: Pen) -> None:
    pen.certify(2, boot="00" * 8)
    pen.checkpoint()


def before_the_certificate(pen: Pen) -> None:
    """With the key of the boot before."""
    pen.open()
    pen.checkpoint()


@pytest.mark.parametrize(
    ("lie", "problem", "words"),
    [
        (another_tree, RecordRewritten, "its snapshot has another tree"),
        (another_record, RecordDamaged, f"not of {ORIGIN}"),
        (other_records, RecordRewritten, "a checkpoint over other records than these"),
        (later_records, BadSignature, "of which not all stand before it"),
        (too_late, RecordDamaged, "over 5 records, and comes too late"),
        (another_boot, BadSignature, "a boot without a certificate"),
        (
            lambda pen: pen.certify(2, by=Signer(f"{ORIGIN}/table", "a stranger")),
            BadSignature,
            "has not certified the key of the boot",
        ),
        (before_the_certificate, BadSignature, "a boot without a certificate"),
    ],
)
def test_a_record_that_lies_is_not_cosigned(
    lie: Callable[[Pen], object], problem: type[RecordProblem], words: str, tmp_path: Path
) -> None:
    pen = started(8192, rounds=1)
    lie(pen)
    with pytest.raises(problem, match=words):
        seen(pen, tmp_path)


# --- the archive: written before a cosignature, rejected when it is corrupt -------------------


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


def spoil(file: Path) -> None:
    flip(file, file.read_bytes().index(b'"frontier"') + 30)


def shorten(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("harm", "words"),
    [(Path.unlink, "it is gone"), (spoil, "damaged"), (shorten, "it is damaged")],
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
    assert (parse_note(seen.checkpoint).text, seen.time) == (text, NOW)
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
