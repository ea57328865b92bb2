"""What can be wrong with a record, and that nobody who looks at it changes anything."""

import os
from contextlib import closing, suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from msgspec.structs import replace

from controller.audit.errors import InUse
from controller.audit.format.merkle import leaf_hash
from controller.audit.format.records import RecordActor, RecordEntry
from controller.audit.format.segments import HEADER_SIZE, chained, pack, segment_file
from controller.audit.keys import load_hole_key, load_table_private
from controller.audit.log import RecordOpening
from controller.audit.read.reader import read_segment, record_of
from controller.audit.simulate import Recorder, RecorderKeys
from controller.config import load_table
from controller.games import DEALER, game_of_table
from controller.procedure.engine import Procedure
from controller.procedure.model.events import WagerPlaced
from tests.support.daemon.doctor_house import (
    LOCKING,
    NAME,
    NOON,
    House,
    child,
    clock,
    fill_keys,
    tree,
)

SECOND = 1_000_000
SIGNED = ("certificate", "checkpoint")
POINT = bytes([9, *bytes(31)])


def last_segment(made: House) -> Path:
    return segment_file(made.record, 1)


def behind(made: House, data: bytes, skip: int = 0) -> None:
    """Bytes after the last record."""
    segment = read_segment(made.record, 1)
    with last_segment(made).open("r+b") as file:
        file.seek(segment.end + skip)
        file.write(data)


# --- it opens ---------------------------------------------------------------------------------


def test_none_yet(made: House) -> None:
    for name in ("record", "record's key", "round", "time"):
        found = made.check(name)
        assert (found.verdict, found.note) == ("ok", "none yet: the first start creates it")
    assert not made.record.exists()


def test_one_that_was_closed(made: House) -> None:
    made.recorded()
    assert made.check("record").note.startswith("6 records, the last at 2027-01-15 08:00:00")
    assert made.check("record's key").verdict == made.check("time").verdict == "ok"
    assert made.check("round").note == "round 0, at closed"


@pytest.mark.parametrize("folder", ["record", "record/segments"])
def test_a_directory_of_something_else(made: House, folder: str) -> None:
    place = made.run / folder
    place.mkdir(parents=True, mode=0o750)
    (place / "letters.txt").write_text("Dear Bo")
    made.expect("record", exactly=f"{place} contains no record, but letters.txt", mend="[record]")


def test_a_link_that_leads_nowhere(made: House) -> None:
    made.record.symlink_to(made.place / "disk" / "record")
    made.expect(
        "record's place",
        exactly=f"{made.record} is a link to {made.place}/disk/record, which does not exist",
    )
    made.mend("record's place")
    made.recorded()
    assert made.check("record").verdict == "ok"


def test_the_record_of_another_table(made: House) -> None:
    made.recorded()
    made.edit('name = "house-1"', 'name = "house-2"')
    made.expect(
        "record",
        exactly=f"{made.record} is the record of table house-1, not of house-2",
        mend=str(made.file),
    )


def test_a_record_that_was_begun_with_other_keys(made: House) -> None:
    made.recorded()
    fill_keys(made.run / "others", made.place / "elsewhere")
    made.edit('"run/keys"', '"run/others"')
    assert "a different table key" in made.problem("record's key").what
    made.edit('"run/others"', '"run/keys"')
    assert made.check("record's key").verdict == "ok"


def test_a_record_that_is_damaged(made: House) -> None:
    made.recorded()
    with last_segment(made).open("r+b") as file:
        file.seek(HEADER_SIZE + 60)
        file.write(b"?")
    made.expect(
        "record",
        what="its first record is not whole",
        commands=(f"{made.machine.holecard} audit verify {made.record}",),
    )
    _not_looked_at(made)


def _not_looked_at(made: House) -> None:
    for name in ("record's key", "round", "time"):
        found = made.check(name)
        assert (found.verdict, found.note) == ("skipped", "not checked: first record")


def test_a_segment_that_is_missing(made: House) -> None:
    made.recorded()
    segments = made.record / "segments"
    for number in (2, 4):
        (segments / f"{number:08d}.seg").write_bytes(last_segment(made).read_bytes())
    assert "00000003.seg: is missing" in made.problem("record").what


def test_a_write_that_was_cut_off(made: House) -> None:
    made.recorded()
    behind(made, b"\x40\x01")
    made.expect("record", grade="warning", what="was cut off")


def test_bytes_that_nothing_explains_are_accepted(made: House) -> None:
    made.recorded()
    behind(made, b"a letter to Bo", skip=2000)
    assert "that no cut-off write explains" in made.problem("record").what
    _not_looked_at(made)
    made.mend("record", " --by Ann --second Bo --yes")


def test_a_record_that_a_witness_has_seen_more_of(made: House) -> None:
    made.recorded()
    (made.record / "cosigned").mkdir(mode=0o750)
    (made.record / "cosigned" / "21.note").write_text("as a witness wrote it")
    assert "a witness has cosigned 21" in made.problem("record").what
    _not_looked_at(made)


def test_a_record_that_ends_before_events_that_a_device_was_told_are_stored(made: House) -> None:
    """Reported until two people have taken its log up."""
    held = {"what": "Held", "device": "SH-1", "verdict": "behind", "acked_seq": 57}
    for entry, behind in (
        ({**held, "verdict": "new_epoch"}, False),
        (held, True),
        ({**held, "what": "adopted"}, False),
    ):
        with closing(made.begin()) as log:
            log.write([RecordEntry("link", RecordActor("device", "shoe"), entry)])
        said = [one.what for one in made.check("record").problems]
        older = "ends before events that the shoe SH-1 was told are stored: an older copy?"
        assert said == ([f"{made.record} {older}"] if behind else [])


def test_a_record_that_nobody_has_signed(made: House) -> None:
    """Written anew with right hashes, its signatures left out."""
    made.recorded()
    segment = read_segment(made.record, 1)
    kept = [one for one in segment.frames if record_of(segment.file, one).kind not in SIGNED]
    seq, chain, data = segment.before.seq, segment.before.chain, b""
    for frame in kept:
        seq += 1
        text = frame.data.replace(b'"seq":%d,' % frame.seq, b'"seq":%d,' % seq)
        chain = chained(chain, leaf_hash(text))
        data += pack(seq, seq - 1, chain, text)
    whole = segment.buffer[:HEADER_SIZE] + data
    segment.file.write_bytes(whole.ljust(len(segment.buffer), b"\0"))
    assert "before it had signed anything" in made.problem("record's key").what


# --- the round --------------------------------------------------------------------------------


class _Died(Exception):
    """The controller, before the table is closed."""


def wagered(made: House) -> None:
    """A controller that has died with a wager on the felt."""
    keys = made.keys

    def keyring(opening: RecordOpening) -> RecorderKeys:
        return RecorderKeys(
            load_table_private(keys), load_hole_key(keys), X25519PublicKey.from_public_bytes(POINT)
        )

    procedure = Procedure(game_of_table(load_table(made.file)))
    with (
        suppress(_Died),
        Recorder(made.record, NAME, keyring, clock=made.machine.clock) as recorder,
    ):
        recorder.begin(procedure)
        recorder.fresh_shoe()
        recorder.must(WagerPlaced(DEALER, 1, "main", 1000))
        raise _Died


def test_an_open_round_goes_on_where_it_was(made: House) -> None:
    made.edit("decks = 8", "decks = 8\nburn.on_shuffle = 0\nburn.on_dealer = 0")
    wagered(made)
    assert (made.check("round").note, made.check("round").verdict) == ("round 0, at wagering", "ok")


def test_a_round_that_other_rules_deal_is_not_taken_over(made: House) -> None:
    made.edit("decks = 8", "decks = 8\nburn.on_shuffle = 0\nburn.on_dealer = 0")
    wagered(made)
    made.edit("decks = 8", "decks = 6")
    made.expect(
        "round",
        grade="wrong",
        what="a round may be open there, dealt by another game or jurisdiction",
        mend="end the round or void it",
    )
    made.edit("decks = 6", "decks = 8")
    assert made.check("round").verdict == "ok"


def test_other_rules_take_over_a_table_at_rest(made: House) -> None:
    made.recorded()
    made.edit("decks = 8", "decks = 6")
    found = made.check("round")
    assert found.verdict == "ok"
    assert "the rules have changed" in found.note


# --- the clock --------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "grade"), [(61, "wrong"), (59, "warning"), (3600, "wrong")])
def test_a_clock_before_the_last_record(made: House, seconds: int, grade: str) -> None:
    made.recorded()
    made.machine = replace(made.machine, clock=clock(NOON - seconds * SECOND))
    problem = made.expect("time", grade=grade, what="the record ends at 2027-01-15 08:00:00")
    assert problem.commands[0].endswith("apt-get install chrony")
    assert (grade == "wrong") == ("--believe-clock" in problem.mend)
    made.machine = replace(made.machine, clock=clock(NOON))
    assert made.check("time").verdict == "ok"


# --- beside a table that is served ------------------------------------------------------------


def test_a_record_that_is_written_now(made: House) -> None:
    with closing(made.begin()):
        behind(made, b"\x40\x01")  # a write that is on its way
        found = made.check("record")
        assert found.verdict == "ok"
        assert f"the table is being served by process {os.getpid()} (" in found.note
        assert made.check("round").note == "the table is being served"
        assert made.check("record's key").verdict == made.check("time").verdict == "ok"
        behind(made, b"\0\0")


def test_a_lock_that_another_process_has(made: House) -> None:
    made.recorded()
    with child(LOCKING, made.record / "lock") as other:
        assert f"the table is being served by process {other.pid} (" in made.check("record").note
        with pytest.raises(InUse):
            RecordOpening.at(made.record, table=NAME)


def test_a_lock_whose_holder_is_not_shown(made: House) -> None:
    made.recorded()
    made.elsewhere()
    with child(LOCKING, made.record / "lock"):
        assert made.check("record").note.endswith("; the table is being served")
    assert not made.check("record").note.endswith("served")
    RecordOpening.at(made.record, table=NAME).close()


@pytest.mark.parametrize("begun", [False, True])
def test_nothing_is_changed(made: House, begun: bool) -> None:
    if begun:
        made.recorded()
    before = tree(made.place)
    every = made.all()
    assert tree(made.place) == before
    assert {name for name, found in every.items() if found.verdict == "wrong"} == set()
