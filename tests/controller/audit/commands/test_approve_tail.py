"""`holecard audit accept-tail`: what nothing explains is set aside when two people accept it."""

import json
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import current_thread, main_thread

import pytest

from controller.audit.errors import RecordDamaged, RecordsMissing, UnexplainedTail
from controller.audit.files import Disk
from controller.audit.format.segments import HEAD_SIZE, numbers, segment_file
from controller.audit.keys import create_key
from controller.audit.log import RecordOpening
from controller.audit.read.follow import DurableRecords, Follower, check_end
from controller.audit.read.lookup import of_seqs
from controller.audit.read.reader import read_segment, records, segments
from controller.audit.verify import INCOMPLETE, VALID, verify
from tests.support.audit.record.table import begun, note, written
from tests.support.audit.tools.audit_command import LEFT_OPEN, Ran, Runs, refused, rounds
from tests.support.audit.tools.outside import files_in, flip, overwrite
from tests.support.audit.verifying import read_independently
from tests.support.paths import ROOT
from tests.support.terminal import terminal

GARBAGE = b"somebody was here " * 20
ANN_AND_BO = ("--by", "Ann", "--second", "Bo", "--yes")


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path, capsys, *rounds(3))


def spoil(record: Path, garbage: bytes = GARBAGE) -> int:
    """Something behind the last record; where it begins."""
    *_, last = segments(record)
    overwrite(last.file, last.end, garbage)
    return last.end


def accept(runs: Runs, *options: str) -> Ran:
    return runs("accept-tail", "--keys", str(runs.keys), *options)


def rejected(runs: Runs, code: int, words: str, *options: str) -> None:
    """Nothing is accepted, and nothing of the record is changed."""
    before = files_in(runs.record)
    ran = accept(runs, *options)
    assert (ran.code, ran.out, words in ran.err) == (code, "", True), ran
    assert files_in(runs.record) == before


def test_two_people_accept_what_nothing_explains(runs: Runs) -> None:
    at = spoil(runs.record)
    before = [record for _, record in records(runs.record)]
    with pytest.raises(UnexplainedTail, match="accept-tail"):
        RecordOpening.at(runs.record, table="scripts")
    assert runs("verify").code == 1
    code, out, err = accept(runs, *ANN_AND_BO)
    assert code == 0
    for words in (
        f"there are {len(GARBAGE)} bytes after the last record",
        f"segment 00000001, offset {at}",
        "they begin with 73 6f 6d 65",
    ):
        assert words in err
    assert out.startswith(f"{len(GARBAGE)} bytes are in tails/, accepted by Ann and Bo; the record")
    now = [record for _, record in records(runs.record)]
    assert now[: len(before)] == before
    assert [record.kind for record in now[len(before) :]] == [
        "opened",
        "tail",
        "certificate",
        "checkpoint",
        "closed",
        "checkpoint",
    ]
    (kept,) = (runs.record / "tails").glob("*.json")
    assert json.loads(kept.read_text())["two"] == ["Ann", "Bo"]
    report = verify(runs.record)
    assert (report.code, report.findings, report.boots) == (VALID, (), 2)
    assert read_independently(runs.record)["exit"] == VALID
    RecordOpening.at(runs.record, table="scripts").close()
    runs.make(*rounds(1))
    assert verify(runs.record).code == VALID


def test_an_open_round_is_still_open_afterwards(runs: Runs) -> None:
    """The table goes on where it stood: the boot in between has decided nothing."""
    runs.make(LEFT_OPEN)
    (only,) = segments(runs.record)
    end = max(frame.end for frame in only.frames if b'"HoleDealt"' in frame.data)
    segment_file(runs.record, 1).write_bytes(only.buffer[:end].ljust(len(only.buffer), b"\0"))
    spoil(runs.record)
    assert accept(runs, *ANN_AND_BO)[0] == 0
    assert verify(runs.record).findings == ()
    runs.make(*rounds(1))  # voids what was left open
    report = verify(runs.record)
    assert (report.code, report.findings) == (VALID, ())
    assert runs("open", "--round", "4", "--keys", str(runs.keys)).code == 0


@pytest.mark.parametrize("garbage", [b"", b"\x40"])
def test_what_needs_nobody_is_not_accepted(runs: Runs, garbage: bytes) -> None:
    """Nothing there, or what a write that was cut off may have left."""
    spoil(runs.record, garbage)
    rejected(runs, 1, "nobody has to accept anything", *ANN_AND_BO)


def test_records_that_are_missing_cannot_be_accepted(runs: Runs) -> None:
    (only,) = segments(runs.record)
    flip(only.file, only.frames[-4].offset + 60)
    rejected(runs, 1, "were acknowledged", *ANN_AND_BO)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--by", "Ann", "--second", "Bo"), "--yes: is missing: there is no terminal to ask at"),
        (("--by", "Ann", "--yes"), "--and: is missing: two people must approve"),
        (("--second", "Bo", "--yes"), "--by: is missing: two people must approve"),
        (("--by", "Ann", "--second", "ann ", "--yes"), "is the same person"),
        (("--by", "\t", "--second", "Bo", "--yes"), "is no name"),
    ],
)
def test_it_takes_two_people_who_say_so(runs: Runs, options: tuple[str, ...], words: str) -> None:
    spoil(runs.record)
    rejected(runs, 2, words, *options)


def test_it_takes_the_tables_key(runs: Runs, tmp_path: Path) -> None:
    spoil(runs.record)
    other = str(runs.another().keys)
    rejected(runs, 2, "begun with another table's key", "--keys", other, *ANN_AND_BO)
    nowhere = str(tmp_path / "nowhere")
    rejected(runs, 2, "there is no such directory", "--keys", nowhere, *ANN_AND_BO)


def at_a_terminal(runs: Runs, typed: str) -> tuple[int, str]:
    with terminal() as at:
        run = subprocess.Popen(
            [
                *(sys.executable, "-m", "controller.cli", "audit", "accept-tail"),
                *(str(runs.record), "--keys", str(runs.keys)),
            ],
            cwd=ROOT,
            stdin=at.far,
            stdout=subprocess.PIPE,
            stderr=at.far,
        )
        at.type(typed)
        code = run.wait(60)
        assert run.stdout is not None
        run.stdout.close()
        return code, at.shown()


def test_at_a_terminal_it_is_asked_for_once_it_was_shown(runs: Runs) -> None:
    spoil(runs.record)
    before = files_in(runs.record)
    code, shown = at_a_terminal(runs, "Ann\nBo\nno\n")
    assert code == 1
    assert "nothing was done" in shown
    assert files_in(runs.record) == before
    code, shown = at_a_terminal(runs, "Ann\nBo\nyes\n")
    assert code == 0
    asked = [shown.index(words) for words in ("Your name:", "no power loss", "Type yes:")]
    assert asked == sorted(asked)
    assert verify(runs.record).findings == ()


# --- hole cards of voided rounds --------------------------------------------------------------


def test_surveillance_opens_the_hole_card_of_a_voided_round(runs: Runs) -> None:
    runs.make(LEFT_OPEN)
    ran = runs("open", "--round", "4", "--keys", str(runs.keys), "--by", "Eve", "--reason", "4711")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("round 4: the hole card was the 10 of spades (TS), dealt at 20")
    (look,) = map(json.loads, Path(f"{runs.record}.looks.jsonl").read_text().splitlines())
    assert (look["what"], look["of"], look["who"], look["reason"]) == (
        "open hole card",
        "round 4",
        "Eve",
        "4711",
    )
    (found,) = runs("open", "--round", "4", "--keys", str(runs.keys), "--json").json
    assert (found["round"], found["card"]) == (4, "TS")


def test_no_other_hole_card_is_opened(runs: Runs, tmp_path: Path) -> None:
    runs.make(LEFT_OPEN)
    looks = Path(f"{runs.record}.looks.jsonl")
    keys = ("--keys", str(runs.keys))
    for options, code, words in (
        (("--round", "1", *keys), 1, "round 1 was not voided"),
        (("--round", "99", *keys), 1, "round 99 was not voided"),
        (("--round", "1-2", *keys), 2, "'1-2' is no round"),
        (("--round", "4", "--keys", str(tmp_path / "nowhere")), 2, "no such directory"),
    ):
        refused(runs("open", *options), words, code)
        assert not looks.exists()


def test_another_key_opens_nothing_and_the_look_is_written_all_the_same(
    runs: Runs, tmp_path: Path
) -> None:
    runs.make(LEFT_OPEN)
    ran = runs("open", "--round", "4", "--keys", str(runs.another().keys))
    refused(ran, "this key does not open it", 1)
    assert Path(f"{runs.record}.looks.jsonl").exists()


def test_a_copy_will_do_and_a_record_is_never_changed(runs: Runs, tmp_path: Path) -> None:
    runs.make(LEFT_OPEN)
    copy = shutil.copytree(runs.record, tmp_path / "copy")
    before = files_in(copy)
    assert runs("open", "--round", "4", "--keys", str(runs.keys), record=copy).code == 0
    assert runs("verify", record=copy).code == VALID != INCOMPLETE
    assert files_in(copy) == before


# --- records with damage after their last good record -----------------------------------------


def damage(record: Path, at: int, number: int = 1) -> None:
    """A byte of the frame at this place from the segment's first."""
    segment = read_segment(record, number)
    flip(segment.file, segment.frames[at].offset + HEAD_SIZE + 5)


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (("show", "--seq", "1-10", "--json"), 10),
        (("show", "--seq", "1-999", "--json"), 25),
        (("show", "--seq", "30", "--json"), 0),
        (("show", "--round", "3", "--json"), 0),
        (("show", "--kind", "opened", "--json"), 1),
        (("tail", "--lines", "7", "--json"), 7),
        (("export", "--format", "jsonl"), 25),
        (("export", "--format", "csv"), 26),
        (("export", "--format", "jsonl", "--round", "3"), 0),
        (("sql", "SELECT count(*) FROM records"), 2),
        (("rebuild-index",), 1),
    ],
)
def test_what_is_good_is_shown_and_what_is_missing_is_told(
    words: tuple[str, ...], lines: int, runs: Runs
) -> None:
    damage(runs.record, 25)
    told = runs("verify")
    assert "records after seq 25 cannot be read from there on; those up to seq " in told.out
    missing = told.out.partition("records after seq 25")[2].splitlines()[0]
    ran = runs(*words)
    assert (ran.code, len(ran.out.splitlines())) == (1, lines)
    assert f"records after seq 25{missing}" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("prove", "--seq", "5", "--json"), True),
        (("prove", "--since", "9", "--json"), True),
        (("prove", "--seq", "30", "--json"), False),
        (("prove", "--round", "3", "--json"), False),
        (("cosign", "--keys", "{keys}", "--archive", "{folder}/archive", "--json"), True),
        (("open", "--round", "1", "--keys", "{keys}", "--json"), True),
        (("open", "--round", "2", "--keys", "{keys}", "--json"), False),
        (("open", "--round", "77", "--keys", "{keys}", "--json"), False),
    ],
)
def test_who_looks_from_outside_is_told_what_is_missing(
    words: tuple[str, ...], found: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is good of it is proved, countersigned or opened all the same."""
    runs = Runs(tmp_path, capsys, LEFT_OPEN, *rounds(1), {**LEFT_OPEN, "id": "R-8"})
    create_key(runs.keys, "witness", "floor.example/archive")
    here = [one.format(keys=runs.keys, folder=tmp_path) for one in words]
    last = next(one.seq for _, one in records(runs.record) if one.round == 2)
    damage(runs.record, last)
    ran = runs(*here)
    assert (ran.code, bool(ran.out)) == (1, found), ran.err
    assert f"records after seq {last} cannot be read" in ran.line


def test_a_case_of_it_is_made_and_what_is_missing_is_told(runs: Runs) -> None:
    damage(runs.record, 25)
    ran = runs("export", "--all", "--out", str(runs.folder / "case"))
    assert ran.code == 1
    assert "records after seq 25 cannot be read" in ran.line
    assert runs("check-case", record=runs.folder / "case").code == 0
    ran = runs("export", "--round", "3", "--out", str(runs.folder / "other"))
    refused(ran, "records after seq 25 cannot be read", 1)


def test_an_index_that_has_seen_more_tells_what_is_missing(runs: Runs) -> None:
    assert runs("rebuild-index").code == 0
    damage(runs.record, 25)
    ran = runs("show", "--kind", "opened")
    assert ran.code == 1
    assert "records after seq 25 cannot be read" in ran.err


def test_a_record_that_ends_as_it_may_is_no_news(runs: Runs) -> None:
    for words in (("show",), ("tail",), ("export", "--format", "csv"), ("sql", "SELECT 1")):
        ran = runs(*words)
        assert (ran.code, ran.err) == (0, "")


def grown(place: Path, count: int) -> Path:
    written(place, *(note(str(at), 300) for at in range(count)))
    return place


def test_a_write_that_was_cut_off_is_no_wrong_end(tmp_path: Path) -> None:
    record = grown(tmp_path / "record", 8)
    segment = read_segment(record, 1)
    cut = (segment.frames[-1].offset + segment.end) // 2
    overwrite(segment.file, cut, bytes(segment.end - cut))
    check_end(record)


def test_bytes_that_nothing_explains_are_told(tmp_path: Path) -> None:
    record = grown(tmp_path / "record", 8)
    segment = read_segment(record, 1)
    overwrite(segment.file, segment.end, b"\x5a" * 600)
    with pytest.raises(
        UnexplainedTail, match=r"600 bytes after seq .* that no cut-off write explains"
    ):
        check_end(record)


def test_a_segment_that_another_follows_is_read_to_its_end(tmp_path: Path) -> None:
    record = grown(tmp_path / "record", 90)
    first, *_, last = numbers(record)
    assert first < last
    damage(record, 5, first)
    check_end(record)
    told: list[int] = []
    with pytest.raises(RecordDamaged, match="records after seq 5 cannot be read"):
        told.extend(one.place.seq for one in of_seqs(record, 1, 10**6))
    assert told == [1, 2, 3, 4, 5]


def test_what_has_gone_at_a_second_look_is_no_wrong_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = grown(tmp_path / "record", 8)
    file = segment_file(record, 1)
    whole = file.read_bytes()
    damage(record, 4)
    with pytest.raises(RecordsMissing, match="records after seq 4 cannot be read"):
        check_end(record)
    read = read_segment

    def written_meanwhile(place: Path, number: int) -> object:
        found = read(place, number)
        file.write_bytes(whole)
        return found

    monkeypatch.setattr("controller.audit.read.follow.read_segment", written_meanwhile)
    check_end(record)


def test_who_follows_is_told_when_it_stands_still(place: Path) -> None:
    with closing(begun(place)) as log:
        log.write([note("one", 300)])
        following = Follower(place)
        assert not list(following.more())
        following.check_end()
        first = following.where.seq
        for at in range(4):
            log.write([note(str(at), 300)])
    damage(place, first + 1)
    assert [told.place.seq for told in following.more()] == [first + 1]
    with pytest.raises(RecordsMissing, match=f"records after seq {first + 1} cannot be read"):
        following.check_end()


def test_who_follows_into_a_segment_that_does_not_go_on_is_told(tmp_path: Path) -> None:
    record = grown(tmp_path / "record", 8)
    following = Follower(record)
    here = following.where.seq
    grown(record, 90)
    assert numbers(record)[-1] > 2
    damage(record, here + 1)
    assert [told.place.seq for told in following.more()] == [here + 1]
    with pytest.raises(RecordDamaged, match=f"records after seq {here + 1} cannot be read"):
        following.check_end()


class Watched(Disk):
    """Before it syncs what it was given, somebody reads on."""

    def __init__(self, record: Path) -> None:
        self.record = record
        self.durable: DurableRecords | None = None
        self.shown: list[int] = []
        self.synced = 0
        self.early: list[int] = []

    def there(self) -> int:
        return read_segment(self.record, numbers(self.record)[-1]).after.seq

    def sync(self, fd: int) -> None:
        ours = self.durable is not None and current_thread() is main_thread()
        if ours and self.durable is not None:
            seqs = [told.place.seq for told in self.durable.more()]
            self.shown += seqs
            self.early += [seq for seq in seqs if seq > self.synced]
        super().sync(fd)
        if ours:
            self.synced = self.there()

    def sync_directory(self, directory: Path) -> None:
        super().sync_directory(directory)
        if self.durable is not None and current_thread() is main_thread():
            self.synced = self.there()  # a segment is whole before it has its name


def test_who_follows_is_shown_nothing_that_may_not_be_on_the_disk(place: Path) -> None:
    disk = Watched(place)
    with closing(begun(place, disk=disk)) as log:
        first = disk.synced = log.where.seq
        disk.durable = DurableRecords(Follower(place))
        for at in range(80):
            log.write([note(str(at), 300), note("with it")])
            if at % 9 == 0:
                log.sign()
        assert numbers(place)[-1] > 2
        assert (disk.early, disk.shown) == ([], list(range(first + 1, disk.shown[-1] + 1)))
        assert disk.shown[-1] >= log.where.seq - 3
        log.sign()
        here = log.where.seq
        assert disk.shown[-1] == here - 1
        assert list(disk.durable.more()) == []
        assert [told.place.seq for told in disk.durable.rest()] == [here]


def test_following_a_damaged_record_ends_with_it(runs: Runs) -> None:
    damage(runs.record, 25)
    ran = runs("tail", "--follow", "--lines", "3", "--json")
    assert (ran.code, len(ran.lines)) == (1, 3)
    assert "records after seq 25 cannot be read" in ran.line
    assert ran.err.count("\n") == 1


# --- an output that is closed -----------------------------------------------------------------

CLOSED = {"out": ">&-", "err": "2>&-"}


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("tail",),
        ("export", "--format", "csv"),
        ("prove", "--round", "1", "--json"),
        ("sql", "SELECT 1"),
    ],
)
def test_an_output_that_is_closed_is_no_news(
    words: tuple[str, ...], closed: str, runs: Runs
) -> None:
    name, *options = words
    code = "import sys; from controller.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "audit", name, str(runs.record), *options]
    redirected = CLOSED[closed]
    run = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirected}', "sh", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr, run.stdout == "") == (0, "", closed == "out")
