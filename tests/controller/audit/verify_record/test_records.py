"""Records that are right, look odd, or are damaged: what both verifiers say of them."""

import ast
import json
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from controller.audit import verify_record
from controller.audit.format.records import DeviceCursor, Moment, RecordActor, RecordEntry
from controller.audit.format.segments import segment_file
from controller.audit.verify import verify
from tests.support.audit.record.table import (
    FakeClock,
    FaultyDisk,
    begun,
    device_report,
    kinds_of,
    note,
    written,
)
from tests.support.audit.tools.by_page import (
    HEADER,
    ORIGIN,
    TABLE,
    WITNESS,
    Json,
    Pen,
    Signer,
    b64,
    closed,
    commitment,
    frame,
    opening,
    sha,
    started,
)
from tests.support.audit.verifying import accepted, json_report, read_independently, right
from tests.support.terminal import terminal


def test_a_log_that_two_people_have_adopted_begins_anew(place: Path) -> None:
    data = {"what": "adopted", "device": "SH-1", "two": ["Ann", "Bo"]}
    adopted = RecordEntry(
        "link", RecordActor("floor", "Ann"), data, cursor=DeviceCursor("SH-1", 7, 1, "0" * 16)
    )
    written(place, device_report("SH-1", 5), adopted, device_report("SH-1", 2))
    right(place)


def test_integers_of_data_may_be_as_large_and_as_small_as_64_bits_are(place: Path) -> None:
    shoe, ends = RecordActor("device", "SH-1"), [-(2**63), 2**63 - 1, -1, 0]
    written(
        place,
        RecordEntry("device", shoe, {"what": "ends", "all": ends}),
        RecordEntry("fault", shoe, {"what": "ends", "detail": ends}),
    )
    right(place)


@pytest.mark.parametrize("seconds", [5, -5, -0.3])
def test_a_clock_that_is_set_right_before_a_signature(place: Path, seconds: float) -> None:
    clock = FakeClock()
    with closing(begun(place, clock=clock)) as log:
        log.write([note("before")])
        clock.set(seconds)
        log.sign()
        log.write([note("after")])
    assert kinds_of(place).count("clock") == 1
    right(place)


class SetAtTheEnd(FakeClock):
    """Set between the last record and the signature over it."""

    looks = 0

    def set_at(self, looks: int) -> None:
        self.looks = looks

    def __call__(self) -> Moment:
        self.looks -= 1
        if not self.looks:
            self.set(3)
        return super().__call__()


def test_a_clock_that_is_set_between_closed_and_its_signature(place: Path) -> None:
    clock = SetAtTheEnd()
    with closing(begun(place, clock=clock)):
        clock.set_at(2)
    assert kinds_of(place)[-3:] == ["closed", "clock", "checkpoint"]
    right(place)


def test_bytes_that_were_set_aside_twice(place: Path) -> None:
    """The power went between the file of what was set aside and the zeros in its place."""
    log = begun(place)
    log.write([note("kept")])
    log.release()
    file = segment_file(place, 1)
    whole = file.read_bytes()
    end = len(whole.rstrip(b"\0"))
    torn = whole[end - 400 : end - 300]
    head = (500).to_bytes(4, "little") + b"1234" + (6).to_bytes(8, "little") + bytes(8) + torn[:32]
    file.write_bytes(whole[:end] + head + whole[end + len(head) :])
    with pytest.raises(KeyboardInterrupt):
        begun(place, disk=FaultyDisk({"sync": KeyboardInterrupt()}))
    for one in list((place / "tails").glob("*.new")):  # as if it had got as far as its name
        one.rename(one.with_suffix(""))
    begun(place).close()
    assert kinds_of(place).count("tail") == 2
    right(place)


def test_what_is_no_part_of_a_record_is_named_and_is_no_damage(place: Path) -> None:
    begun(place).close()
    known = (
        "index.db",
        "index.db-wal",
        "cosigned/5.note.new",
        "tails/1.json.new",
        "keys/table.key",
    )
    strange = ("a note.txt", "segments/00000001.seg.bak", "segments/1.seg", "cosigned/x.note")
    for name in (*known, *strange, "tails/x", "more/within"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(b"somebody put it there")
    named = ["a note.txt", "more", *sorted(strange[1:3]), "tails/x", "cosigned/x.note"]
    report = verify(place, replay=False)
    assert [one for one in report.remarks if "no part" in one] == [
        f"{name}: is no part of the record" for name in named
    ]
    assert report.code == 0
    theirs = read_independently(place)
    assert theirs["exit"] == 0
    assert [one for one in theirs["remarks"] if "no part" in one] == [
        f"{name} is no part of the record" for name in sorted(named)
    ]
    for number in range(30):
        (place / f"x{number}").touch()
    assert "16 more files that are no part of the record" in verify(place, replay=False).remarks


Told = pytest.CaptureFixture[str]
Damage = Callable[[Pen], object]


def wrong(folder: Path, capsys: Told) -> Json:
    assert verify_record.main([str(folder), "--json"]) == 1
    found: Json = json.loads(capsys.readouterr().out)["wrong"]
    return found


# --- by whoever has the files, and no more


def a_record() -> Pen:
    return closed(8192, rounds=6)


SECOND = [seq for seq, place in enumerate(a_record().frames, 1) if place[0] == 2]
FIRST, NEXT, *_ = SECOND
LAST = a_record().seq


def bit(seq: int, within: int) -> Damage:
    def flip(pen: Pen) -> None:
        number, at, _ = pen.frames[seq - 1]
        pen.files[number][at + within] ^= 4

    return flip


def only(seqs: list[int]) -> Damage:
    """Segment 2 with these records' frames, in this order."""

    def move(pen: Pen) -> None:
        places = [pen.frames[seq - 1] for seq in seqs]
        frames = b"".join(bytes(pen.files[number][at:end]) for number, at, end in places)
        pen.files[2][:] = (bytes(pen.files[2][:HEADER]) + frames).ljust(pen.size, b"\0")

    return move


def overwritten(offset: int, data: bytes) -> Damage:
    def write(pen: Pen) -> None:
        pen.files[2][offset : offset + len(data)] = data

    return write


def resized(size: int) -> Damage:
    def resize(pen: Pen) -> None:
        pen.files[2][:] = bytes(pen.files[2][:size]).ljust(size, b"\0")

    return resize


def swapped_segments(pen: Pen) -> None:
    pen.files[2], pen.files[3] = pen.files[3], pen.files[2]


def junk(seq: int, data: bytes) -> Damage:
    """Bytes behind this record, with a gap of three."""

    def write(pen: Pen) -> None:
        number, _, end = pen.frames[seq - 1]
        pen.files[number][end + 3 : end + 3 + len(data)] = data

    return write


def framed(which: int, record: Callable[[bytes], bytes] = bytes, **fields: object) -> Damage:
    """The frame anew, with its CRC, of other fields."""

    def write(pen: Pen) -> None:
        number, at, end = pen.frames[which - 1]
        old = bytes(pen.files[number][at:end])
        right: Json = {"seq": which, "durable": int.from_bytes(old[16:24], "little")}
        right |= {"chain": old[24:56], "record": record(old[56:]), **fields}
        pen.files[number][at:end] = frame(**right)

    return write


FILES: dict[str, tuple[Damage, int, str]] = {
    "a bit of a record": (bit(NEXT, 100), NEXT, "CRC is false"),
    "a bit of a seq": (bit(NEXT, 9), NEXT, "CRC is false"),
    "a bit of a CRC": (bit(NEXT, 5), NEXT, "CRC is false"),
    "a bit of a chain": (bit(NEXT, 40), NEXT, "CRC is false"),
    "a bit of a length": (bit(NEXT, 1), NEXT, "CRC is false"),
    "a length beyond the segment": (
        bit(NEXT, 2),
        NEXT,
        "the frame's length is 262686, not 1 to 262144",
    ),
    "a length far too great": (bit(NEXT, 3), NEXT, "length is 67109"),
    "a bit of what is signed": (
        bit(LAST - 4, 100),
        LAST - 4,
        "on the disk: records that were acknowledged cannot be read",
    ),
    "a bit of the last record": (bit(LAST, 80), LAST, "the tail is unexplained"),
    "a record cut out": (
        only([seq for seq in SECOND if seq != NEXT]),
        NEXT,
        f"the frame's seq is {NEXT + 1} where {NEXT} is due",
    ),
    "the first of a segment cut out": (
        only(SECOND[1:]),
        FIRST,
        f"the frame's seq is {NEXT} where {FIRST} is due",
    ),
    "a record twice": (
        only([*SECOND[:2], NEXT, *SECOND[2:-3]]),
        NEXT + 1,
        f"the frame's seq is {NEXT} where {NEXT + 1} is due",
    ),
    "records swapped": (
        only([FIRST, NEXT + 1, NEXT, *SECOND[3:]]),
        NEXT,
        f"the frame's seq is {NEXT + 1} where {NEXT} is due",
    ),
    "the end of a segment cut off": (
        only(SECOND[:-1]),
        SECOND[-1],
        f"the frame's seq is {SECOND[-1] + 1} where {SECOND[-1]} is due",
    ),
    "a segment taken away": (lambda pen: pen.files.pop(2), FIRST, "the segment is missing"),
    "segments swapped": (swapped_segments, FIRST, "header says that it is number 3"),
    "no magic": (overwritten(0, b"holecard log 2"), FIRST, "does not begin as one of a record"),
    "another number": (overwritten(16, b"\7"), FIRST, "header says that it is number 7"),
    "another size": (overwritten(20, b"\0\1"), FIRST, "has 8192 bytes, its header says 256"),
    "cut short": (resized(5000), FIRST, "has 5000 bytes, its header says 8192"),
    "made longer": (resized(8196), FIRST, "has 8196 bytes, its header says 8192"),
    "cut in the header": (resized(20), FIRST, "does not begin as one of a record"),
    "emptied": (overwritten(HEADER, bytes(8168)), FIRST, "the segment holds no record"),
    "junk behind a segment": (junk(SECOND[-1], b"!"), SECOND[-1] + 1, "length is 553648128"),
    "junk behind the end": (junk(LAST, b"junk"), LAST + 1, "the tail is unexplained"),
    "a record with its CRC": (
        framed(NEXT, lambda record: record.replace(b'"v":2', b'"v":1')),
        NEXT,
        "the chain does not go on from the record before",
    ),
    "a chain with its CRC": (
        framed(LAST, chain=bytes(32)),
        LAST,
        "the chain does not go on from the record before; no write that was cut off",
    ),
    "a durable before with its CRC": (
        framed(NEXT, durable=NEXT),
        NEXT,
        f"durable before is {NEXT}, not less than seq",
    ),
    "a durable before that goes back": (
        framed(LAST, durable=1),
        LAST,
        "durable before goes back",
    ),
    "a seq with its CRC": (framed(NEXT, seq=9999), NEXT, "the frame's seq is 9999 where"),
    "everything taken away": (lambda pen: pen.files.clear(), 1, "there is no record"),
}


@pytest.mark.parametrize("name", FILES)
def test_damage_to_the_files_is_found_at_its_place(name: str, tmp_path: Path, capsys: Told) -> None:
    damage, seq, words = FILES[name]
    pen = a_record()
    damage(pen)
    (tmp_path / "segments").mkdir()
    found = wrong(pen.save(tmp_path), capsys)
    assert words in found["what"]
    assert (found["seq"], found["last_good_seq"]) == (seq, seq - 1)
    if found["segment"] != f"{max(pen.files, default=0):08}.seg":
        assert "the tail" not in found["what"]
    if seq == 1:
        assert (found["segment"], found["last_good_utc"]) == (None, None)
        return
    before = json.loads(pen.records[seq - 2])
    assert found["round"] == before["round"]
    micros = f"{before['utc'] % 1_000_000:06}"
    assert re.fullmatch(rf"2026-01-01 00:00:00\.{micros} UTC", found["last_good_utc"])
    if seq in SECOND and name != "the end of a segment cut off":
        assert found["segment"] == "00000002.seg"
        assert found["offset"] in (0, HEADER, pen.frames[seq - 1][1], pen.frames[seq - 2][2])


# --- by whoever can count: records changed, all CRCs, chains and snapshots after them made anew


def told_anew(change: Callable[[int, Json], Json | None]) -> Pen:
    """The same record with other records in it, and with what was signed once."""
    old, pen = closed(8192, rounds=4), Pen(8192)
    for number, data in enumerate(old.records, 1):
        record = change(number, json.loads(data))
        if record is not None:
            record["seq"] = pen.seq + 1
            if "cause" in record:
                record["cause"] -= number - record["seq"]
            if record["kind"] == "snapshot":
                pen.segment()
                pen.sync()
                record["data"] |= pen.so_far()
            pen.put(pen.line(record))
    return pen


def other_card(_: int, record: Json) -> Json:
    if record["kind"] == "decision" and record["data"]["event"]["type"] == "CardDealt":
        record["data"]["event"]["card"] = 9
    return record


def but(seq: int) -> Callable[[int, Json], Json | None]:
    return lambda number, record: None if number == seq else record


@pytest.mark.parametrize(
    ("change", "seq", "words"),
    [
        (other_card, 10, "the first 9 records have another root: rewritten"),
        (but(6), 9, "the checkpoint is of 9 records, 8 stand before it"),
        (but(5), 5, "the record is of round 1, not of round 0"),
        (but(4), 9, "the checkpoint is of 9 records, 8 stand before it"),
        (but(3), 3, "a checkpoint stands before the certificate of its boot"),
        (but(2), 2, "a boot begins with certificate, not with opened"),
    ],
)
def test_what_was_told_anew_without_the_keys_is_found(
    change: Callable[[int, Json], Json | None], seq: int, words: str, tmp_path: Path, capsys: Told
) -> None:
    found = wrong(told_anew(change).save(tmp_path), capsys)
    assert words in found["what"]
    assert found["seq"] == seq


@pytest.mark.parametrize(("size", "boots"), [(16384, 1), (65536, 1), (8192, 3), (4096, 2)])
def test_a_record_in_good_order_is_right(
    size: int, boots: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed(size, rounds=7, boots=boots)
    found = json_report(capsys, pen.save(tmp_path), "--table-key", pen.table_key.vkey())
    assert accepted(found)
    assert found["segments"] == len(pen.files)
    assert (found["last_seq"], found["boots"], found["origin"]) == (pen.seq, boots, ORIGIN)
    assert found["signed_through"] >= pen.seq - 2
    assert found["table_key_proven"]
    assert not found["remarks"]


def test_a_key_that_only_the_record_names_is_said_to_be_no_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify_record.main([str(closed(rounds=0).save(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert "THE TABLE'S KEY IS NOT PROVEN" in out
    assert out.endswith("RIGHT\n")


def test_a_record_of_a_running_table_is_right_and_said_to_be_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json_report(capsys, started(rounds=1).save(tmp_path))
    assert accepted(found)
    assert any("does not end with closed" in words for words in found["remarks"])


def test_a_clock_record_lets_the_clock_be_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = started()
    was, pen.utc = pen.utc, pen.utc - 3_000_000
    pen.write("clock", {"utc_was": was, "mono": pen.mono})
    assert json_report(capsys, pen.end(tmp_path))["exit"] == 0


def test_the_clock_may_be_set_where_a_segment_begins_and_where_a_boot_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = started(4096)
    while pen.room(180):
        pen.write("note", {"text": ""})
    was, pen.utc = pen.utc, pen.utc + 3_000_000
    pen.write("clock", {"utc_was": was, "mono": pen.mono})
    assert pen.number == 2
    pen.close()
    pen.mono = 5  # the machine started anew
    pen.start()
    assert json_report(capsys, pen.end(tmp_path))["exit"] == 0


# --- a part of a record


def test_later_segments_alone_are_held_against_their_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed(8192)
    found = json_report(
        capsys, pen.save(tmp_path, 2), "--table-key", Signer(f"{ORIGIN}/table", "a stranger").vkey()
    )
    assert (found["exit"], found["wrong"]["seq"]) == (1, found["first_seq"])
    assert found["wrong"]["what"] == "the table's key is not the one given"


# --- the verifier as a command: what it says, what it needs, where it runs --------------------


SCRIPT = Path(verify_record.__file__)


def test_without_cryptography_it_says_loudly_that_signatures_were_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = closed().save(tmp_path)
    monkeypatch.setattr(verify_record, "ED25519", None)
    assert verify_record.main([str(folder)]) == 3
    out = capsys.readouterr().out
    assert "SIGNATURES WERE NOT CHECKED" in out
    assert out.endswith("RIGHT AS FAR AS IT COULD BE CHECKED\n")


def test_it_runs_by_itself_where_nothing_is_installed(tmp_path: Path) -> None:
    alone = tmp_path / "verify_record.py"
    alone.write_bytes(SCRIPT.read_bytes())
    folder = closed().save(tmp_path / "record")
    for first, code in ((1, 3), (9, 1)):
        if first == 9:
            (folder / "segments" / "00000001.seg").write_bytes(bytes(16384))
        run = subprocess.run(
            [sys.executable, "-I", "-S", str(alone), str(folder)],
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (run.returncode, run.stderr) == (code, b"")
        assert b"SIGNATURES WERE NOT CHECKED" in run.stdout


def test_it_is_written_for_python_3_9_and_needs_only_what_that_has() -> None:
    tree = ast.parse(SCRIPT.read_text("utf-8"), feature_version=(3, 9))
    names = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
        + [alias.name for alias in node.names if isinstance(node, ast.Import)]
    }
    assert names - {"cryptography"} <= sys.stdlib_module_names
    assert not {"controller", "drivers"} & names


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--witness-key", WITNESS.vkey()], "--checkpoint and --witness-key go together"),
        (["--checkpoint", "x"], "--checkpoint and --witness-key go together"),
        (["--checkpoint", "no such", "--witness-key", WITNESS.vkey()], "no such is no file"),
        (["--table-key", "name+0+AAAA"], "a verifier key is NAME+KEY ID+BASE64"),
        (["--table-key", "a b" + WITNESS.vkey()], "a verifier key is NAME+KEY ID+BASE64"),
        (["--table-key", "\udcff" + WITNESS.vkey()], "a verifier key is NAME+KEY ID+BASE64"),
        (["--table-key", "other." + WITNESS.vkey()], "the id of the key of other.witness"),
        (["--table-key", WITNESS.vkey(4)], "a verifier key is NAME+KEY ID+BASE64"),
    ],
)
def test_mistakes_in_the_command_are_said(
    more: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        verify_record.main([str(closed().save(tmp_path)), *more])
    assert left.value.code == 2
    assert words in capsys.readouterr().err


def test_a_folder_without_segments_is_no_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        verify_record.main([str(tmp_path)])
    assert left.value.code == 2
    assert "no record, for it has no folder segments" in capsys.readouterr().err


def test_progress_goes_to_a_terminal_only(tmp_path: Path) -> None:
    folder = closed(4096).save(tmp_path)
    with terminal() as at:
        run = subprocess.run(
            [sys.executable, str(SCRIPT), str(folder)],
            stdout=subprocess.PIPE,
            stderr=at.far,
            timeout=60,
            check=False,
        )
        shown = at.shown()
    assert "segment 2 of " in shown
    assert b"segment 2 of " not in run.stdout


def test_what_a_record_says_cannot_command_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = started()
    pen.write("\x1b[31mred\u202e", {})
    verify_record.main([str(pen.save(tmp_path))])
    assert "the page does not know kind \\x1b[31mred\\x202e" in capsys.readouterr().out


def test_memory_stays_flat(tmp_path: Path) -> None:
    def peak(rounds: int) -> int:
        pen = started(1 << 20)
        for _ in range(rounds):
            pen.write("note", {"text": "x" * 60_000})
        folder = pen.save(tmp_path / str(rounds))
        tracemalloc.start()
        found = read_independently(folder)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (found["exit"], found["segments"]) == (0, -(-rounds // 17))
        return most

    few, many = peak(20), peak(120)
    assert many < few + (1 << 19)


def test_the_commitment_is_the_one_of_the_page() -> None:
    cursor = {"device": "SHOE-1", "epoch": 3, "seq": 0x01020304}
    opened = opening(51)
    text = b"holecard-v1\0" + TABLE.encode() + b"\0SHOE-1\0\x03\0\0\0\x04\x03\x02\x01" + opened
    assert commitment(cursor, opened) == sha(text).hex()
    assert len(b64(opened)) == 76
