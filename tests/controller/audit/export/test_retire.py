"""Old gaming days go into a case, and the record is as right as before."""

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.audit.errors import CannotProve, RecordDamaged, WitnessProblem
from controller.audit.export import check_case, export_case
from controller.audit.export.retire import InvalidRecord, NothingToRetire
from controller.audit.files import LOCK
from controller.audit.format.notes import SigningKey, parse_checkpoint, parse_note, table_name
from controller.audit.format.segments import numbers, segment_file
from controller.audit.index import Index, RecordQuery, find
from controller.audit.keys import witness_text
from controller.audit.proofs import last_signed, make_proof, seqs_of_round
from controller.audit.read.access_log import access_log_file
from controller.audit.read.lookup import NoMatch, Selection, first_head
from controller.audit.read.reader import records
from controller.audit.read.retirements import Retirement, retirement_files, written
from controller.audit.simulate import record_par
from controller.audit.verify import seen_by_witness, verify
from controller.games import unburned_game
from tests.support.audit.record.dealing import keyring
from tests.support.audit.record.retiring import (
    DAYS,
    NOW,
    Aged,
    aged,
    by_others,
    ends_of,
    made,
    old,
    report_of,
    retired,
    right,
    wrong,
)
from tests.support.audit.record.table import TABLE_KEY
from tests.support.audit.tools.audit_command import Runs
from tests.support.audit.tools.outside import (
    WITNESS,
    bytes_of,
    files_in,
    grow,
    root_of,
    table_key,
    unpack,
)
from tests.support.audit.witnessing import seen_by

__all__ = ["made", "old"]


@pytest.fixture
def note(old: Aged, tmp_path: Path) -> Path:
    """The note of a retirement of the first two days."""
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    (file,) = (old.record / "retired").iterdir()
    return file


@pytest.fixture
def runs(old: Aged, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    runs = Runs(tmp_path, capsys)
    runs.record = old.record
    return runs


def test_whole_segments_of_older_days_go_and_no_others(old: Aged, tmp_path: Path) -> None:
    before, last = bytes_of(old.record), ends_of(old.record)[DAYS[1]]
    data = files_in(old.record / "segments")
    found = retired(old.record, DAYS[2], tmp_path / "old.zip")
    assert (found.retirement.segments, found.retirement.days) == ((1, last), (DAYS[0], DAYS[1]))
    assert numbers(old.record)[0] == last + 1
    left = bytes_of(old.record)
    assert (before[-len(left) :], found.retirement.records) == (left, (1, len(before) - len(left)))
    assert DAYS[2] in {one.day for _, one in records(old.record)}
    assert files_in(old.record / "segments") == {
        name: one for name, one in data.items() if name > f"{last:08d}.seg"
    }
    first, *more = right(old.record)
    assert more == []
    seq, case = found.retirement.records[1], sha256((tmp_path / "old.zip").read_bytes()).hexdigest()
    assert first.startswith(f"records 1 to {seq} were retired on 2027-02-14 08:00:00 UTC by Ann ")
    assert first.endswith(f"and Bo, root {found.retirement.root}; case sha256 {case}")


def test_the_root_that_stays_is_that_of_the_definition(old: Aged, tmp_path: Path) -> None:
    whole = shutil.copytree(old.record, tmp_path / "whole")
    said = retired(old.record, DAYS[2], tmp_path / "old.zip").retirement
    assert said.root == root_of(whole, said.records[1]).hex()
    over = parse_checkpoint(parse_note(said.checkpoint).text)
    assert over.size >= said.records[1]
    assert over.root == root_of(whole, over.size)


def test_the_case_holds_them_and_checks(old: Aged, tmp_path: Path) -> None:
    data = files_in(old.record / "segments")
    found = retired(old.record, DAYS[2], tmp_path / "old.zip")
    checked = check_case(tmp_path / "old.zip")
    assert (checked.right, checked.seal) == (True, found.retirement.seal)
    assert (checked.manifest.exported.what, checked.manifest.remarks) == ("retired", ())
    case = unpack(tmp_path / "old.zip", tmp_path / "case")
    for name, one in files_in(case / "record" / "segments").items():
        assert data[name] == one
    other = by_others(case / "record")
    assert (other["exit"], other["last_seq"]) == (0, found.retirement.records[1])
    lines = map(json.loads, access_log_file(old.record).read_text("utf-8").splitlines())
    assert [(one["what"], one["who"], one.get("seal")) for one in lines] == [
        ("export", "Ann and Bo", None),
        ("exported", "Ann and Bo", found.retirement.seal),
        ("retire", "Ann and Bo", found.retirement.seal),
    ]


def test_a_case_that_is_brought_back_makes_the_record_whole(old: Aged, tmp_path: Path) -> None:
    whole = bytes_of(old.record)
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    for file in (unpack(tmp_path / "old.zip", tmp_path / "case") / "record" / "segments").iterdir():
        shutil.copy(file, old.record / "segments")
    assert (bytes_of(old.record), len(right(old.record))) == (whole, 1)
    assert retired(old.record, DAYS[2], tmp_path / "old.zip").ended  # and out again
    assert len(right(old.record)) == 1


def test_one_retirement_follows_on_another(old: Aged, tmp_path: Path) -> None:
    first = retired(old.record, DAYS[1], tmp_path / "1.zip").retirement
    second = retired(old.record, DAYS[3], tmp_path / "2.zip").retirement
    assert (second.segments[0], second.records[0]) == (first.segments[1] + 1, first.records[1] + 1)
    assert [words.split(" were ")[0] for words in right(old.record)] == [
        f"records 1 to {first.records[1]}",
        f"records {second.records[0]} to {second.records[1]}",
    ]
    case = unpack(tmp_path / "2.zip", tmp_path / "case")
    assert len(right(case / "record")) == 1  # it has the note of the first with it
    with pytest.raises(NothingToRetire, match=f"only gaming days before {DAYS[3]}"):
        retired(old.record, DAYS[3], tmp_path / "3.zip")


def test_the_record_goes_on(old: Aged, tmp_path: Path) -> None:
    retired(old.record, "2027-02-01", tmp_path / "old.zip")
    assert len(numbers(old.record)) <= 2
    for at in range(3):
        grow(old.record, f"boot {at}", 40)
    assert len(right(old.record)) == 1
    assert (old.record / LOCK).read_text() == first_head(old.record).snapshot.origin


def test_a_table_deals_on(dealt: Path, tmp_path: Path) -> None:
    record = shutil.copytree(dealt, tmp_path / "par")
    retired(record, "2999-01-01", tmp_path / "old.zip")
    last = max(one.round for _, one in records(record))
    record_par(record, unburned_game("classic", {}, "a test"), 4, keyring, seed=5)
    assert max(one.round for _, one in records(record)) == last + 4
    assert len(right(record)) == 1
    report = verify(record)
    assert (report.code, report.again > 0) == (0, True)


# --- cards that lie face down -----------------------------------------------------------------


def test_a_card_dealt_in_what_was_retired_is_held_when_it_is_turned_over(
    dealt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a segment ends in a round, as it does at a table."""
    cut = 0
    for last in numbers(dealt)[:-1:3]:
        record = shutil.copytree(dealt, tmp_path / f"{last}")
        monkeypatch.setattr(
            "controller.audit.export.retire._RetireRun.last_retirable", lambda self, day, n=last: n
        )
        said = retired(record, "2999-01-01", tmp_path / f"{last}.zip").retirement
        right(record)
        head = first_head(record)
        rounds = [one.round for _, one in records(record) if b"HoleRevealed" in bytes(one.data)]
        cut += said.hole is not None and said.hole.round == head.record.round == rounds[0]
        shutil.rmtree(record)
    assert cut


def cut_in_a_round(
    dealt: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Retirement]:
    """A record that begins with a card face down that is turned over later."""
    for last in numbers(dealt)[:-1]:
        record = shutil.copytree(dealt, folder / f"{last}")
        monkeypatch.setattr(
            "controller.audit.export.retire._RetireRun.last_retirable", lambda self, day, n=last: n
        )
        said = retired(record, "2999-01-01", folder / f"{last}.zip").retirement
        reveals = [one.round for _, one in records(record) if b"HoleRevealed" in bytes(one.data)]
        if said.hole is not None and said.hole.round in reveals:
            return record, said
    raise AssertionError("no segment ends in a round")


def test_another_card_than_was_dealt_is_found_behind_a_retirement(
    dealt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the note is signed anew by who holds the table's key."""
    record, said = cut_in_a_round(dealt, tmp_path, monkeypatch)
    assert said.hole is not None
    other = replace(said, hole=replace(said.hole, commitment="ab" * 32))
    origin = first_head(record).snapshot.origin
    key = SigningKey(table_name(origin), TABLE_KEY)
    (file,) = (record / "retired").iterdir()
    file.write_bytes(written(other, origin, key))
    assert "the hole card is not the one that was dealt" in wrong(record)


# --- what a witness saw -----------------------------------------------------------------------


def test_what_a_witness_saw_before_is_still_held(old: Aged, tmp_path: Path) -> None:
    said = retired(old.record, DAYS[2], tmp_path / "old.zip").retirement
    key = tmp_path / "witness.pub"
    key.write_bytes(witness_text(WITNESS.cosigner))
    for at, seen_note in enumerate(old.notes):
        seen = seen_by_witness(seen_note, WITNESS.cosigner)
        assert (seen.checkpoint.size < said.records[1]) == (at < 1)
        report = report_of(old.record, witness=seen, table_key=table_key(old.record))
        assert (report.code, report.witnessed) == (0, seen.checkpoint.size)
        file = tmp_path / f"{at}.note"
        file.write_bytes(seen_note)
        told = by_others(old.record, "--checkpoint", str(file), "--witness-key", str(key))
        assert (told["exit"], told["wrong"], told["not_checked"]) == (0, None, {})
        assert told["held_by_witness_at"] is not None


def test_a_witness_goes_on_and_a_new_one_begins(old: Aged, tmp_path: Path) -> None:
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    grow(old.record)
    seen = seen_by(old.record, old.archive, NOW)
    assert seen.before > 0
    assert seen_by(old.record, tmp_path / "another", NOW).size == seen.size


def test_a_witness_that_has_not_looked_for_long_is_held_against_the_root_that_stays(
    made: Aged, old: Aged, tmp_path: Path
) -> None:
    late = tmp_path / "late"
    day = seen_by_witness(made.notes[0], WITNESS.cosigner).checkpoint.size
    copy = shutil.copytree(made.record, tmp_path / "first day")
    for number in [one for one in numbers(copy) if one > ends_of(copy)[DAYS[0]] + 1]:
        (copy / "segments" / f"{number:08d}.seg").unlink()
    assert seen_by(copy, late).size >= day
    retired(old.record, "2027-02-01", tmp_path / "old.zip")
    with pytest.raises(WitnessProblem, match="no root of"):
        seen_by(old.record, late)
    assert seen_by(old.record, old.archive, NOW).before


def test_a_note_that_says_something_else_is_no_beginning_for_a_witness(
    old: Aged, note: Path, tmp_path: Path
) -> None:
    note.write_bytes(note.read_bytes().replace(b'"Bo"', b'"Al"'))
    with pytest.raises(RecordDamaged, match="not what the table's key has signed"):
        seen_by(old.record, tmp_path / "another", NOW)


# --- what was asked for and was retired -------------------------------------------------------


def test_what_was_retired_is_told_where_it_is_asked_for(
    old: Aged, tmp_path: Path, runs: Runs
) -> None:
    said = retired(old.record, DAYS[2], tmp_path / "old.zip").retirement
    told = f"was retired on 2027-02-14 08:00:00 UTC, case sha256 {said.case}"
    for what, words in (
        ("round 2", ("show", "--round", "2")),
        ("round 2", ("export", "--round", "2", "--out", str(tmp_path / "r2.zip"))),
        ("round 2", ("export", "--round", "2", "--format", "csv")),
        ("round 2", ("prove", "--round", "2", "--out", str(tmp_path / "r2.json"))),
        ("record 7", ("show", "--seq", "7")),
        ("record 7", ("prove", "--seq", "7")),
        (f"gaming day {DAYS[0]}", ("export", "--day", DAYS[0], "--out", str(tmp_path / "d.zip"))),
    ):
        ran = runs(*words)
        assert (ran.code, f"{what} {told}" in ran.line) == (1, True), (words, ran)
    assert "nothing was found in the record" in runs("show", "--round", "99").line


def test_what_stays_is_shown_proven_indexed_and_exported(
    old: Aged, tmp_path: Path, runs: Runs
) -> None:
    with Index.open_or_rebuild(old.record) as index:
        index.catch_up()
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    for words in (
        ("show", "--round", "16"),
        ("show", "--kind", "note"),
        ("tail",),
        ("sql", "SELECT count(*) FROM records"),
        ("prove", "--round", "16", "--out", str(tmp_path / "r.json")),
        ("export", "--round", "16", "--out", str(tmp_path / "r16.zip")),
        ("export", "--out", str(tmp_path / "all.zip")),
        ("verify", "--json"),
    ):
        assert runs(*words).code == 0, words
    with Index.open_or_rebuild(old.record) as index:
        index.catch_up()
        first = find(index.db, RecordQuery(kind="note")).rows[0].seq
    assert first > retirement_files(old.record)[0].said.records[1]  # type: ignore[union-attr]
    assert len(right(unpack(tmp_path / "all.zip", tmp_path / "all") / "record")) == 1
    signed = last_signed(old.record)
    assert make_proof(old.record, seqs_of_round(old.record, 16, signed)[0], signed).records
    with pytest.raises(CannotProve, match="round 1 was retired"):
        seqs_of_round(old.record, 1, signed)
    with pytest.raises(NoMatch, match="rounds 1 to 2 were retired"):
        export_case(old.record, tmp_path / "none", Selection(1, 2))


# --- retirement notes that were changed, moved or removed -------------------------------------


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ('"two":\\["Ann","Bo"', '"two":["Ann","Cy"'),
        ('"case":"..', '"case":"00'),
        ('"root":"..', '"root":"00'),
        ('"utc":18', '"utc":17'),
        ('"days":\\["2027-01-15"', '"days":["2027-01-14"'),
        ('"hole":null', '"hole":{"round":1,"commitment":"%s","cursor":null}' % ("0" * 64)),
        ('"segments":\\[1', '"segments":[2'),
        ("holecard retired 1", "holecard retired 2"),
        ('{"segments"', '{"more":1,"segments"'),
        ('{"segments"', '{"segments'),
        ("/table ", "/tabel "),
    ],
)
def test_a_changed_note_is_found(was: str, becomes: str, old: Aged, note: Path) -> None:
    text, count = re.subn(was, becomes, note.read_text("utf-8"), count=1)
    assert count == 1
    note.write_text(text, encoding="utf-8")
    assert "retired/" in wrong(old.record)


def test_any_flipped_bit_of_a_note_is_found(old: Aged, note: Path) -> None:
    data = note.read_bytes()
    for at in range(0, len(data), 211):
        note.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        wrong(old.record)


def lacks_before(record: Path, number: int) -> None:
    """Both verifiers say that what stands before this segment is not here."""
    report = report_of(record)
    assert (report.code, by_others(record)["exit"]) == (3, 3)
    assert f"what stands before segment {number} is not here" in report.unchecked


def test_without_its_note_a_record_is_not_whole(old: Aged, note: Path, tmp_path: Path) -> None:
    note.unlink()
    lacks_before(old.record, numbers(old.record)[0])
    with pytest.raises(InvalidRecord, match="is not here"):
        retired(old.record, DAYS[3], tmp_path / "2.zip")
    assert not (tmp_path / "2.zip").exists()


def test_the_note_of_another_retirement_does_not_do(old: Aged, note: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = aged(tmp_path / "other").record
    retired(other, DAYS[2], tmp_path / "other.zip")
    (its,) = (other / "retired").iterdir()
    assert note.name == its.name
    shutil.copy(its, note)
    assert "retired/" in wrong(old.record)


def test_more_than_was_retired_is_not_taken_for_it(old: Aged, note: Path) -> None:
    first = numbers(old.record)[0]
    segment_file(old.record, first).unlink()
    lacks_before(old.record, first + 1)
    note.write_bytes(note.read_bytes().replace(b'"Bo"', b'"Al"'))
    assert "not what the table's key has signed" in wrong(old.record)


def test_a_note_shows_that_a_record_was_cut_off(old: Aged, tmp_path: Path) -> None:
    shutil.rmtree(old.record / "cosigned")
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    case = unpack(tmp_path / "old.zip", tmp_path / "case")
    shutil.copytree(old.record / "retired", case / "record" / "retired")
    assert len(right(case / "record")) == 1
    (case / "record" / "segments" / f"{numbers(case / 'record')[-1]:08d}.seg").unlink()
    assert wrong(case / "record").startswith("cut off: ")
