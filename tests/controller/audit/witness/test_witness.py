"""What a witness cosigns, the errors that it reports, and histories of both."""

import shutil
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.audit.errors import NoRecord, NothingSigned, RecordProblem, WitnessProblem
from controller.audit.format.merkle import Span
from controller.audit.format.notes import (
    Checkpoint,
    SigningKey,
    format_note,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from controller.audit.format.segments import SPARE, segment_file
from controller.audit.log import Log, RecordOpening
from controller.audit.log.checkpoints import CheckpointSigner
from controller.audit.read.reader import records, segments
from controller.audit.read.signatures import BadSignature, OtherKey
from controller.audit.witness.witness import (
    OtherRecord,
    OtherTableKey,
    RecordForked,
    RecordRewritten,
    RecordTruncated,
)
from tests.support.audit.record import table
from tests.support.audit.record.table import IDENTITY, SMALL, FakeClock, begun, note
from tests.support.audit.tools.by_page import tree_hash
from tests.support.audit.tools.outside import (
    WITNESS,
    files_in,
    flip,
    grow,
    leaves_of,
    origin_of,
    overwrite,
    play,
    played,
    root_of,
    table_key,
)
from tests.support.audit.witnessing import NOW, copied, cut, refused, seen_by, seen_in

# --- what is countersigned --------------------------------------------------------------------


def test_the_first_time_the_whole_record_is_read(whole: Path, tmp_path: Path) -> None:
    read: list[int] = []
    made = seen_by(whole, tmp_path / "archive", tell=read.append)
    assert (made.first, made.before, made.proven) == (True, 0, False)
    assert read == [one.number for one in segments(whole)]
    assert (made.root, made.table_key) == (root_of(whole, made.size), str(table_key(whole)))
    note_ = parse_note(made.note)
    (right,) = verify_note(note_, (WITNESS.cosigner,))
    assert right.seconds == NOW
    assert parse_checkpoint(note_.text).origin == made.origin == origin_of(whole)
    assert [one.name for one in note_.signatures] == [made.origin, WITNESS.name]


def test_the_archive_contains_what_was_cosigned(whole: Path, tmp_path: Path) -> None:
    made = seen_by(whole, tmp_path / "archive")
    kept = tmp_path / "archive" / made.origin.removeprefix("holecard/").replace("/", "-")
    assert (kept / "cosigned" / f"{made.size}.note").read_text("utf-8") == made.note
    seen = seen_in(tmp_path / "archive")
    assert (seen.size, seen.tree().root(), seen.time) == (made.size, made.root, NOW)
    assert seen.table_key == made.table_key
    assert WITNESS.name not in seen.checkpoint


def test_later_only_new_segments_are_read(record: Path, archive: Path) -> None:
    first = seen_by(record, archive)
    grow(record, count=80)
    read: list[int] = []
    second = seen_by(record, archive, NOW + 1, tell=read.append)
    assert (second.first, second.before) == (False, first.size)
    assert second.size > first.size
    assert second.root == root_of(record, second.size)
    assert read[0] == seen_before_in(record, first.size) > 1
    assert read[-1] == max(one.number for one in segments(record))


def seen_before_in(record: Path, seq: int) -> int:
    return next(one.number for one in segments(record) if one.after.seq >= seq)


def test_earlier_segments_are_not_needed(record: Path, archive: Path) -> None:
    first = seen_by(record, archive)
    start = seen_before_in(record, first.size)
    assert start > 2
    for number in range(1, start):
        segment_file(record, number).unlink()
    grow(record)
    assert seen_by(record, archive).before == first.size
    segment_file(record, start).unlink()
    refused(record, archive, RecordProblem, "there is no record|is needed|has not begun|gone")


@pytest.mark.parametrize("count", range(1, 40, 3))
def test_it_continues_from_any_position(count: int, place: Path, archive: Path) -> None:
    """Also at segment boundaries, with a checkpoint behind a segment's first place."""
    with closing(begun(place, size=8192)) as log:
        before = 0
        for at in range(5):
            for one in range(count):
                log.write([note(f"{at} {one}", 150)])
            log.sign()
            made = seen_by(place, archive)
            assert (made.before, made.root) == (before, root_of(place, made.size))
            before = made.size


def test_cosigning_again_keeps_the_first_note(whole: Path, archive: Path) -> None:
    first = seen_by(whole, archive)
    second = seen_by(whole, archive, NOW + 60)
    assert (second.size, second.before) == (first.size, first.size)
    (right,) = verify_note(parse_note(second.note), (WITNESS.cosigner,))
    assert right.seconds == NOW + 60
    (file,) = archive.glob("*/cosigned/*.note")
    assert file.read_text("utf-8") == first.note


def test_a_growing_record_is_cosigned_up_to_its_last_checkpoint(place: Path, archive: Path) -> None:
    with closing(begun(place)) as log:
        play(log, 1, 3)
        log.write([note("not signed yet")])
        made = seen_by(place, archive)
        assert made.size == log.where.seq - 2
        half = b"\x80\0\0\0half"  # of a write in progress
        overwrite(segment_file(place, 1), next(segments(place)).end, half)
        assert seen_by(place, archive).size == made.size


def test_a_clock_change_before_a_checkpoint_is_accepted(tmp_path: Path) -> None:
    """Another record is then between the checkpoint and the records that it covers."""
    record, clock = tmp_path / "record", FakeClock()
    with closing(begun(record, clock=clock)) as log:
        log.write([note("a")])
        clock.set(7)
        log.sign()
        made = seen_by(record, tmp_path / "archive")
        assert made.root == root_of(record, made.size)


def test_a_read_only_copy_is_accepted(whole: Path, tmp_path: Path) -> None:
    copy = copied(whole, tmp_path / "copy")
    for place in (*copy.rglob("*"), copy):
        place.chmod(0o555 if place.is_dir() else 0o444)
    before = files_in(copy)
    assert seen_by(copy, tmp_path / "archive").size
    assert files_in(copy) == before
    for place in (copy, *copy.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)


# --- what is refused --------------------------------------------------------------------------


def test_a_truncated_record_is_rejected(record: Path, archive: Path) -> None:
    made = seen_by(record, archive)
    last = max(one.number for one in segments(record))
    cut(record, last, 3)
    refused(record, archive, RecordTruncated, f"{made.size} records were seen signed")
    segment_file(record, last).unlink()
    refused(record, archive, RecordTruncated, "was cut off, or is an older copy")


def test_a_missing_last_checkpoint_is_rejected(record: Path, archive: Path) -> None:
    """All records that were seen exist, but no longer signed."""
    made = seen_by(record, archive)
    cut(record, max(one.number for one in segments(record)), 1)
    refused(record, archive, RecordTruncated, f"here are {made.size}, signed up to")


def test_an_older_copy_is_rejected(tmp_path: Path, record: Path, archive: Path) -> None:
    old = copied(record, tmp_path / "old")
    grow(record, count=90)
    seen_by(record, archive)
    refused(old, archive, RecordTruncated, "was cut off, or is an older copy")


def test_a_fork_is_rejected_and_its_signature_stored(
    tmp_path: Path, record: Path, archive: Path
) -> None:
    """The holder of the table's key continued an old copy."""
    other = copied(record, tmp_path / "other")
    grow(record, "as it was", 3)
    made = seen_by(record, archive)
    grow(other, "as it was not", 9)
    refused(other, archive, RecordForked, "rewritten by who holds the table's key")
    (evidence,) = archive.glob("*/refused/*.json")
    kept = msgspec.json.decode(evidence.read_bytes(), type=dict[str, str])
    said = parse_checkpoint(parse_note(kept["checkpoint"]).text)
    assert said.root == root_of(other, said.size)
    assert said.size >= made.size
    assert seen_by(record, archive).size == made.size


def test_a_shorter_fork_is_rejected(tmp_path: Path, record: Path, archive: Path) -> None:
    other = copied(record, tmp_path / "other")
    grow(record, "as it was", 9)
    seen_by(record, archive)
    grow(other, "as it was not", 1)
    refused(other, archive, RecordTruncated, "was cut off, or is an older copy")


def test_rewritten_unsigned_records_are_rejected(
    tmp_path: Path, place: Path, archive: Path
) -> None:
    """Frames, chain and CRC are valid; the last checkpoint is before what was seen."""
    with closing(begun(place)) as log:
        play(log, 1, 1)
    other = copied(place, tmp_path / "other")
    for where, words, signs in ((place, "as it was", True), (other, "as it was not", False)):
        log = begun(where)
        log.write([note(words)] * 4)
        if signs:
            log.close()
        else:
            log.write([note(words)] * 4)
    seen_by(place, archive)
    refused(other, archive, RecordRewritten, "it was rewritten: the first")
    log.close()


def test_another_record_of_the_table_is_rejected(
    tmp_path: Path, record: Path, archive: Path
) -> None:
    seen_by(record, archive)
    fresh = played(tmp_path / "fresh", 2)
    refused(fresh, archive, OtherRecord, f"the record of this table was {origin_of(record)}")
    assert seen_by(fresh, archive, begin=True).first
    assert seen_by(fresh, archive).before
    assert seen_by(record, archive).before


def test_another_record_at_the_same_path_is_rejected(
    tmp_path: Path, record: Path, archive: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    seen_by(record, archive)
    first = origin_of(record)
    other = RecordOpening.at(elsewhere, table="mega-2")
    identity = msgspec.structs.replace(IDENTITY, table="mega-2")
    Log.begin(other, identity, table.TABLE_KEY, clock=FakeClock(), size=SMALL).close()
    assert seen_by(elsewhere, archive).first
    shutil.move(record, tmp_path / "away")
    shutil.move(elsewhere, record)
    refused(record, archive, OtherRecord, f"the record here was {first}")
    assert not seen_by(record, archive, begin=True).first
    assert seen_by(record, archive).before


def test_another_table_key_is_rejected(
    monkeypatch: pytest.MonkeyPatch, record: Path, archive: Path
) -> None:
    seen_by(record, archive)
    monkeypatch.setattr(table, "TABLE_KEY", Ed25519PrivateKey.generate())
    with pytest.raises(OtherKey, match="as the table's key, not"):
        table.begun(record)
    table.begun(record, accept=("Ann", "Bo")).close()  # two people approved the key change
    refused(record, archive, OtherTableKey, "as the table's key, not")


def test_a_given_table_key_is_stored(record: Path, archive: Path) -> None:
    right = table_key(record)
    wrong = SigningKey(right.name, Ed25519PrivateKey.generate()).verifier
    foreign = SigningKey("holecard/x/0011223344556677/table", Ed25519PrivateKey.generate())
    with pytest.raises(OtherTableKey, match="as the table's key, not"):
        seen_by(record, archive, table_key=wrong)
    with pytest.raises(OtherTableKey, match="--table-key does not fit"):
        seen_by(record, archive, table_key=foreign.verifier)
    assert not list(archive.glob("*/seen.json"))
    assert seen_by(record, archive, table_key=right).proven
    with pytest.raises(OtherTableKey, match="this record was seen with"):
        seen_by(record, archive, table_key=wrong)


def test_a_record_without_a_checkpoint_is_rejected(tmp_path: Path) -> None:
    record = played(tmp_path / "record", 1)
    cut(record, 1, len(next(segments(record)).frames) - 3)
    with pytest.raises(NothingSigned, match="no checkpoint yet"):
        seen_by(record, tmp_path / "archive")


def test_a_forged_checkpoint_is_rejected(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signed by an unknown key, as in a copy with a different boot key."""
    with closing(begun(place)) as log:
        play(log, 1, 1)
        stranger = SigningKey(log.origin, Ed25519PrivateKey.generate())

        def forged(_: CheckpointSigner, tree: Span) -> str:
            text = Checkpoint(log.origin, tree.end, tree.root()).text()
            return format_note(text, stranger.sign(text))

        monkeypatch.setattr(CheckpointSigner, "checkpoint", forged)
    with pytest.raises(BadSignature, match="its checkpoint is none"):
        seen_by(place, tmp_path / "archive")


def test_a_record_without_its_first_segment_is_rejected(record: Path, archive: Path) -> None:
    segment_file(record, 1).unlink()
    with pytest.raises(WitnessProblem, match="segment 1 is needed, the first that is here is 2"):
        seen_by(record, archive)


@pytest.mark.parametrize("number", [1, 2])
def test_a_flipped_bit_is_never_cosigned(number: int, record: Path, archive: Path) -> None:
    file = segment_file(record, number)
    flip(file, file.stat().st_size // 2, 4)
    with pytest.raises(RecordProblem):
        seen_by(record, archive)
    assert not list(archive.glob("*/cosigned/*"))


def test_a_missing_record_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NoRecord, match="there is no record here"):
        seen_by(tmp_path / "nothing", tmp_path / "archive")
    (tmp_path / "empty" / "segments").mkdir(parents=True)
    with pytest.raises(NoRecord, match="has not begun"):
        seen_by(tmp_path / "empty", tmp_path / "archive")
    assert not (tmp_path / "archive").exists()


MAX_SAVED: Final = 3
_NAMES: Final = count()


class Done(NamedTuple):
    """A step of a history."""

    what: str
    number: int = 0
    words: str = ""


numbers = st.integers(0, 40)
grown = st.builds(Done, st.just("grow"), numbers, st.sampled_from("abc"))
honest = st.one_of(grown, st.just(Done("cosign")), st.just(Done("save")))
STEPS: Final = st.one_of(
    grown,
    st.just(Done("cosign")),
    st.just(Done("save")),
    st.builds(Done, st.just("restore"), st.integers(0, MAX_SAVED - 1)),
    st.builds(Done, st.just("cut"), st.integers(1, 9)),
    st.just(Done("cut segment")),
)


class World:
    """A record, old images of it, and a witness."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.live = place / "live"
        self.archive = place / "archive"
        self.saved: list[Path] = []
        self.signed: dict[int, bytes] = {}
        self.now = 1_800_000_000
        self.refused: list[str] = []
        begun(self.live, size=4096 * 2).close()

    def do(self, step: Done) -> None:
        getattr(self, step.what.replace(" ", "_"))(step)

    def grow(self, step: Done) -> None:
        with closing(begun(self.live, size=4096 * 2)) as log:
            for at in range(step.number):
                log.write([note(f"{step.words} {at}", 90)])
                if at % 7 == 6:
                    log.sign()

    def save(self, step: Done) -> None:
        image = self.place / f"image-{next(_NAMES)}"
        shutil.copytree(self.live, image)
        self.saved = [*self.saved, image][-MAX_SAVED:]

    def restore(self, step: Done) -> None:
        if step.number < len(self.saved):
            shutil.rmtree(self.live)
            shutil.copytree(self.saved[step.number], self.live)

    def cut(self, step: Done) -> None:
        """Zero the last records, without a trace."""
        last = list(segments(self.live))[-1]
        first = max(1, len(last.frames) - step.number)
        if first == len(last.frames):
            return
        start = last.frames[first].offset
        overwrite(last.file, start, bytes(last.end - start))

    def cut_segment(self, step: Done) -> None:
        numbers = [one.number for one in segments(self.live)]
        if len(numbers) > 1:
            segment_file(self.live, numbers[-1]).unlink()
            (self.live / "segments" / SPARE).unlink(missing_ok=True)

    def cosign(self, step: Done) -> None:
        self.now += 1
        right = self.continues()
        try:
            made = seen_by(self.live, self.archive, self.now)
        except RecordProblem as problem:
            if right:
                raise
            self.refused.append(type(problem).__name__)
            return
        assert right
        leaves = leaves_of(self.live)
        for size, root in {**self.signed, made.size: made.root}.items():
            assert size <= made.size
            assert tree_hash(leaves[:size]) == root
        self.signed[made.size] = made.root

    def continues(self) -> bool:
        """By definition: every cosigned tree is a prefix of the record, and signed."""
        leaves = leaves_of(self.live)
        checkpoints = [one.seq - 1 for _, one in records(self.live) if one.kind == "checkpoint"]
        last = max(self.signed, default=0)
        return max(checkpoints, default=0) >= max(last, 1) and all(
            tree_hash(leaves[:size]) == root for size, root in self.signed.items()
        )


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=2, max_size=14))
def test_cosigned_trees_extend_each_other(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Done]
) -> None:
    place = tmp_path_factory.mktemp("history")
    world = World(place)
    for step in (Done("cosign"), *steps, Done("cosign")):
        world.do(step)
    shutil.rmtree(place)


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(honest, min_size=1, max_size=10))
def test_a_growing_record_is_always_cosigned(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Done]
) -> None:
    place = tmp_path_factory.mktemp("history")
    world = World(place)
    for step in (*steps, Done("cosign")):
        world.do(step)
    assert not world.refused
    shutil.rmtree(place)


def test_a_history_with_every_kind_of_step(tmp_path: Path) -> None:
    """Contains every kind of step."""
    world = World(tmp_path)
    for step in (
        Done("cosign"),
        Done("grow", 12, "a"),
        Done("save"),
        Done("grow", 25, "a"),
        Done("cosign"),
        Done("cut", 2),
        Done("cosign"),
        Done("restore"),
        Done("cosign"),
        Done("grow", 80, "b"),
        Done("cosign"),
        Done("cut segment"),
        Done("cosign"),
    ):
        world.do(step)
    assert len(world.signed) == 2
    assert world.refused == ["RecordTruncated", "RecordTruncated", "RecordForked", "RecordForked"]
