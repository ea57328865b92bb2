"""Records of version 1 and 2 in one record, and vocabularies that are not known yet."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.audit.verify import INCOMPLETE, INVALID, VALID, verify
from tests.support.audit.tools.by_page import Pen, Signer, b64, closed, commitment, opening
from tests.support.audit.verifying import accepted, read_independently, whats


def later(number: int = 2) -> Pen:
    """A record whose boot has a vocabulary of this number."""
    pen = Pen(65536)
    pen.certify(pen.open(vocabulary=number))
    pen.checkpoint()
    pen.play()
    return pen


def named(pen: Pen, folder: Path) -> tuple[int, str, str]:
    """The exit code, and what each of the verifiers has not checked."""
    place = pen.end(folder)
    ours, theirs = verify(place, replay=False), read_independently(place)
    assert ours.findings == ()
    assert theirs["wrong"] is None
    left = [one for one in theirs["not_checked"] if "not settled again" not in one]
    return INCOMPLETE if left else VALID, "; ".join(ours.unchecked), "; ".join(left)


@pytest.mark.parametrize("segments", [False, True], ids=["the same segment", "the next segment"])
def test_a_boot_of_version_2_continues_version_1(segments: bool, tmp_path: Path) -> None:
    pen = Pen(1 << 16, version=1)
    pen.start()
    pen.play(2)
    drawn = pen.hole(card=9, kind="ErrorCardDrawn")
    pen.close()
    pen.version = 2
    if segments:  # the snapshot of the next boot, before its opened, has that of version 1
        pen.boots += 1
        pen.boot = f"{pen.boots:016x}"
        pen.sync()
        pen.next_segment()
        pen.boots -= 1
    pen.certify(pen.open(last=pen.seq - segments))
    pen.checkpoint()
    pen.lock()
    pen.decide({"type": "HoleDealt", "commitment": drawn})
    pen.reveal(card=9)
    pen.next_segment()
    pen.play(2)
    place = pen.end(tmp_path)
    report = verify(place, replay=False)
    assert (report.findings, report.unchecked, report.opened) == ((), (), 5)
    assert accepted(read_independently(place))


def test_what_a_later_vocabulary_has_is_named(tmp_path: Path) -> None:
    pen = later()
    pen.write("tray", {"count": 7, "chips": [{"value": 500}]}, cursor=pen.cursor("TR-1"))
    pen.write("note", {"text": "x", "place": "tray"}, tilt=3)
    pen.write("refusal", {"event": {"type": "Hit"}, "id": "a", "why": "b", "more": 1})
    code, ours, theirs = named(pen, tmp_path)
    assert code == INCOMPLETE
    for name in ("kind tray", "note.place", "record.tilt"):
        assert name in ours
    for name in ("kind tray", "data of note: field place", "the record: field tilt"):
        assert name in theirs
    assert "data of refusal: field more" in theirs


def test_an_opened_of_a_later_vocabulary_is_read(tmp_path: Path) -> None:
    pen = Pen(65536)
    pen.certify(pen.open(vocabulary=2, floor="second"))
    pen.checkpoint()
    pen.next_segment()
    code, ours, theirs = named(pen, tmp_path)
    assert code == INCOMPLETE
    assert "opened.floor" in ours
    assert "data of opened: field floor" in theirs


def test_a_later_vocabulary_alone_is_checked(tmp_path: Path) -> None:
    assert named(later(), tmp_path) == (VALID, "", "")


@pytest.mark.parametrize(
    ("kind", "data", "more"),
    [
        ("tray", {"count": 7}, {}),
        ("note", {"text": "x", "place": "tray"}, {}),
        ("note", {"text": "x"}, {"tilt": 3}),
    ],
)
def test_under_a_known_vocabulary_it_is_wrong(
    kind: str, data: dict[str, Any], more: dict[str, Any], tmp_path: Path
) -> None:
    pen = later(1)
    pen.write(kind, data, **more)
    place = pen.end(tmp_path)
    assert "unknown in the vocabulary of its boot" in whats(verify(place, replay=False))[0]
    theirs = read_independently(place)
    assert theirs["exit"] == INVALID
    assert "the page does not know" in theirs["wrong"]["what"]


def test_a_later_vocabulary_excuses_nothing_else(tmp_path: Path) -> None:
    pen = later()
    pen.write("tray", {"count": 7}, cursor={**pen.cursor("SHOE-1"), "seq": 77})
    place = pen.end(tmp_path)
    assert verify(place, replay=False).code == INVALID
    assert read_independently(place)["exit"] == INVALID


@pytest.mark.parametrize(("last", "code"), [("2026-01-02", VALID), ("2026-01-01", INVALID)])
def test_a_gaming_day_may_be_left_out(last: str, code: int, tmp_path: Path) -> None:
    """Where gaming days start late, some records name the day and others do not."""
    pen = closed(rounds=1)
    hours = 3_600_000_000
    pen.utc, pen.mono = pen.utc + 22 * hours, pen.mono + 22 * hours * 1000
    pen.start()
    pen.utc, pen.mono = pen.utc + 3 * hours, pen.mono + 3 * hours * 1000
    pen.write("note", {"text": "after midnight"}, day="2026-01-01")
    pen.utc, pen.mono = pen.utc + hours, pen.mono + hours * 1000
    pen.write("note", {"text": "of the next day"})
    pen.write("note", {"text": "of the same"}, day=last)
    place = pen.end(tmp_path)
    assert accepted(read_independently(place)) == (code == VALID)
    assert len(verify(place, replay=False).findings) == code


def test_a_card_is_bound_to_the_table_of_the_origin(tmp_path: Path) -> None:
    """The table's name is not in records of version 2: it is in the origin."""
    pen = closed(rounds=1)
    pen.start()
    pen.lock()
    cursor = pen.cursor()
    digest = commitment(cursor, opening(4))
    pen.decide(
        {"type": "HoleDealt", "commitment": digest}, cursor=cursor, sealed=b64(bytes(range(104)))
    )
    pen.reveal(card=4)
    assert named(pen, tmp_path) == (VALID, "", "")


# --- what FORMAT.md leaves open, and both verifiers accept --------------------------------------


def checkpoint_before(pen: Pen) -> None:
    pen.checkpoint(pen.note(5))
    pen.checkpoint(pen.note(5))


def epoch_falls(pen: Pen) -> None:
    pen.write("device", {"what": "x"}, cursor=pen.cursor("ST-9", epoch=9, seq=4))
    pen.write("link", {"what": "adopted", "device": "ST-9", "two": ["Ann", "Bo"]})
    pen.write("device", {"what": "x"}, cursor=pen.cursor("ST-9", epoch=2, seq=90))
    pen.write("device", {"what": "x"}, cursor=pen.cursor("ST-9", epoch=2, seq=91))


def largest_cursor(pen: Pen) -> None:
    most, long = 2**32 - 1, 2**63 - 1
    cursor = pen.cursor("ST-9", epoch=most, seq=most, boot=long, t_us=long)
    pen.write("device", {"what": "x"}, cursor=cursor)


def foreign_signature(pen: Pen) -> None:
    note = pen.note()
    pen.checkpoint(note + Signer("stranger").line(note.rpartition("\n\n")[0]))


@pytest.mark.parametrize(
    "write", [checkpoint_before, epoch_falls, largest_cursor, foreign_signature]
)
def test_it_is_accepted_by_both(write: Callable[[Pen], None], tmp_path: Path) -> None:
    pen = Pen(65536)
    pen.start()
    pen.play()
    write(pen)
    assert named(pen, tmp_path) == (VALID, "", "")


@pytest.mark.parametrize("lock", [b"", b"holecard/other/0011223344556677", b"\xff"])
def test_a_verifier_does_not_read_the_lock(lock: bytes, tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(lock)
    pen = Pen(65536)
    pen.start()
    assert named(pen, tmp_path) == (VALID, "", "")


def test_last_is_before_the_snapshot_of_the_boot(tmp_path: Path) -> None:
    """The record before the first one of the boot, also if a snapshot precedes opened."""
    for last, right in ((0, True), (1, False)):
        pen = Pen(65536)
        pen.certify(pen.open(last=last))
        pen.checkpoint()
        place = pen.end(tmp_path / str(last))
        assert (verify(place, replay=False).findings == ()) == right
        assert accepted(read_independently(place)) == right
