"""What somebody does to a record afterwards is found: without the keys by the record itself, with
all of them in hand by whoever has seen it before."""

import json
import random
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.audit import verify_record
from controller.audit.format.notes import NoteProblem, format_note, parse_note
from controller.audit.format.segments import SIZE, segment_file
from controller.audit.log import SystemClock
from controller.audit.read.reader import load, segments
from controller.audit.verify import (
    INVALID,
    VALID,
    seen_by_witness,
    segment,
    verify,
)
from tests.support.audit.record.forging import TAMPERINGS, Original, forged, original, read
from tests.support.audit.record.table import begun, everything, note
from tests.support.audit.tools.by_page import Json, Pen, b64, closed, sha, started
from tests.support.audit.tools.outside import WITNESS, grow, played
from tests.support.audit.tools.signers import SECONDS
from tests.support.audit.verifying import (
    accepted,
    cosigned_end,
    json_report,
    read_independently,
    right,
    whats,
)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return original(tmp_path_factory.mktemp("original"))


def independently(place: Path, note: bytes, folder: Path) -> int:
    """The exit code of the verifier that shares no code with ours."""
    file = folder / "seen.note"
    file.write_bytes(note)
    return verify_record.main(
        [str(place), "--checkpoint", str(file), "--witness-key", str(WITNESS.cosigner), "--json"]
    )


def test_the_original_is_right(first: Original, tmp_path: Path) -> None:
    report = verify(
        first.place, witness=seen_by_witness(cosigned_end(first.place), WITNESS.cosigner)
    )
    assert (report.code, report.findings, report.unchecked) == (VALID, (), ())
    assert (report.witnessed, report.witnessed_at) == (report.last - 1, SECONDS)
    assert (report.again, report.opened) == (report.kinds["decision"], 3)
    same = forged(first.place, tmp_path / "same", lambda records: None, first.keys)
    assert read(same) == read(first.place)


@pytest.mark.parametrize("name", TAMPERINGS)
def test_who_has_the_keys_is_found_out_by_a_witness(
    name: str, first: Original, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, tells = TAMPERINGS[name]
    place = forged(first.place, tmp_path / "forged", change, first.keys)
    alone = verify(place)
    assert (alone.code == INVALID) == tells, alone.findings
    found = verify(
        place, witness=seen_by_witness(cosigned_end(first.place), WITNESS.cosigner)
    ).findings
    assert any("other records" in one.what or "cut off" in one.what for one in found)
    assert independently(place, cosigned_end(first.place), tmp_path) == INVALID


@pytest.mark.parametrize("name", TAMPERINGS)
def test_who_has_no_keys_is_found_out_by_the_record_alone(
    name: str, first: Original, tmp_path: Path
) -> None:
    place = forged(first.place, tmp_path / "forged", TAMPERINGS[name].change, None)
    for replay in (True, False):
        assert verify(place, replay=replay).code == INVALID
    assert read_independently(place)["exit"] == INVALID


# --- old images -------------------------------------------------------------------------------


def test_an_older_image_of_the_whole_record_is_right_but_for_who_has_seen_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = played(tmp_path / "record")
    image = shutil.copytree(record, tmp_path / "image")
    grow(record)
    note = cosigned_end(record)
    assert verify(image).code == VALID
    (found,) = verify(image, witness=seen_by_witness(note, WITNESS.cosigner)).findings
    assert found.what.startswith("cut off: archive.example/floor-2 has seen ")
    assert found.seq == seen_by_witness(note, WITNESS.cosigner).checkpoint.size
    assert independently(image, note, tmp_path) == INVALID


def test_an_older_image_of_one_segment_does_not_fit_into_the_record(tmp_path: Path) -> None:
    record = played(tmp_path / "record", rounds=4)
    last = max((record / "segments").glob("0*.seg"))
    older = last.read_bytes()
    grow(record, count=200)
    number = int(last.stem)
    segment_file(record, number).write_bytes(older)
    found = verify(record).findings[0]
    assert (found.segment, found.offset) == (number + 1, 24)
    assert found.what == "its snapshot has another seq than the segment before it ends with"
    assert read_independently(record)["exit"] == INVALID


def test_a_segment_of_another_record_does_not_fit_in(tmp_path: Path) -> None:
    record, other = played(tmp_path / "record"), played(tmp_path / "other")
    segment_file(record, 2).write_bytes(segment_file(other, 2).read_bytes())
    report = verify(record)
    assert {found.segment for found in report.findings} == {2, 3}
    assert report.findings[0].what.startswith("it is a segment of holecard/mega-1/")
    assert read_independently(record)["exit"] == INVALID


# --- what a record alone cannot tell ----------------------------------------------------------


def cut_after(place: Path, folder: Path) -> Iterator[tuple[int, Path]]:
    """The record cut off behind each of its records, with zeros in the place of the rest."""
    (only,) = segments(place)
    for frame in only.frames:
        copy = shutil.copytree(place, folder / str(frame.seq))
        segment_file(copy, 1).write_bytes(only.buffer[: frame.end].ljust(len(only.buffer), b"\0"))
        yield frame.seq, copy


def test_where_an_unclosed_record_was_cut_off_only_a_witness_can_tell(
    first: Original, tmp_path: Path
) -> None:
    """The bound: cut off behind any record it looks like that of a controller that was stopped
    there. It is said that it was not closed and what has no signature; and who has seen a record
    of so many misses each that is gone of those, and none that came later."""
    (only,) = segments(first.place)
    checkpoints = [
        (frame.seq, json.loads(frame.data)["data"]["note"])
        for frame in only.frames
        if json.loads(frame.data)["kind"] == "checkpoint"
    ]
    closing = len(only.frames) - 2
    for last, place in cut_after(first.place, tmp_path):
        report = verify(place, replay=False)
        assert (report.findings, report.last) == ((), last)
        assert any("has not closed it" in one for one in report.remarks) == (last <= closing)
        unsigned = any("have no signature" in one for one in report.remarks)
        assert unsigned == (last not in dict(checkpoints))
        for _, text in checkpoints:
            note = parse_note(text)
            size = int(note.text.split("\n")[1])
            mine = format_note(note.text, *note.signatures, WITNESS.cosign(note.text, SECONDS))
            found = verify(
                place, witness=seen_by_witness(mine.encode(), WITNESS.cosigner), replay=False
            ).findings
            assert bool(found) == (size > last)


# --- the witness's own word -------------------------------------------------------------------


def test_no_bit_of_what_a_witness_says_can_be_another(first: Original) -> None:
    note = cosigned_end(first.place)
    assert verify(first.place, witness=seen_by_witness(note, WITNESS.cosigner)).code == VALID
    refused = found = 0
    for at in range(len(note)):
        for bit in range(8):
            changed = bytearray(note)
            changed[at] ^= 1 << bit
            try:
                witness = seen_by_witness(bytes(changed), WITNESS.cosigner)
            except NoteProblem:
                refused += 1
                continue
            report = verify(first.place, witness=witness, replay=False)
            assert report.code == INVALID, (at, bit, bytes(changed))
            found += 1
    assert refused + found == 8 * len(note)
    assert found > 100  # the table's own signature below it is held against the record's keys


# --- tails: incomplete writes, quarantined bytes ----------------------------------------------


SECTOR = 512


def cut_off(after: int, seed: int, texts: int) -> Pen:
    """A record whose last `after` frames were not yet on the disk: some sectors never came."""
    dice = random.Random(seed)
    pen = started(65536)
    pen.sync()
    durable = pen.frames[-1][2]
    for _ in range(after):
        pen.write("note", {"text": "x" * dice.randrange(texts)})
    last, file = pen.frames[-1][2], pen.files[1]
    if dice.random() < 0.3:  # not even all of the bytes were handed over
        last = dice.randrange(durable, last)
        file[last:] = bytes(len(file) - last)
    for sector in range(durable // SECTOR * SECTOR, last, SECTOR):
        if dice.random() < 0.5:  # it stayed as it was
            start = max(sector, durable)
            file[start : sector + SECTOR] = bytes(sector + SECTOR - start)
    return pen


@given(after=st.integers(1, 9), seed=st.integers(0, 2**32), texts=st.sampled_from([1, 300, 2000]))
def test_whatever_sectors_a_write_that_was_cut_off_left_it_is_explained(
    after: int, seed: int, texts: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pen = cut_off(after, seed, texts)
    folder = pen.save(tmp_path_factory.mktemp("record"))
    found, report = read_independently(folder), verify(folder)
    assert (found["exit"], found["wrong"]) == (0, None)
    whole = found["last_seq"]
    assert (report.code, report.last) == (VALID, whole), report.findings
    assert pen.seq - after <= whole <= pen.seq
    torn = any("cut off at offset" in words for words in found["remarks"])
    assert torn == any("a write after seq" in words for words in report.remarks)
    assert torn == (len(bytes(pen.files[1]).rstrip(b"\0")) > pen.frames[whole - 1][2])


@pytest.mark.parametrize("segment", [False, True])
def test_no_bit_behind_a_closed_record_can_be_set(segment: bool, tmp_path: Path) -> None:
    """Whether `closed` and its checkpoint are in one segment or in two."""
    pen = started(8192, rounds=1)
    pen.write("closed", {})
    if segment:
        pen.segment()
        pen.snapshot()
    pen.checkpoint()
    right(pen.save(tmp_path))
    number, end = len(pen.files), pen.frames[-1][2]
    file = segment_file(tmp_path, number)
    for at in (*range(end, end + 80), *range(end + 80, 8192, 97)):
        for bit in (at % 8, (at + 3) % 8):
            changed = bytearray(pen.files[number])
            changed[at] |= 1 << bit
            file.write_bytes(changed)
            assert verify(tmp_path).code == INVALID, (at, bit)
            assert read_independently(tmp_path)["exit"] == INVALID, (at, bit)


def test_the_first_write_of_another_boot_may_be_cut_off_behind_a_closed_record(
    tmp_path: Path,
) -> None:
    pen = closed(8192, rounds=1)
    end = pen.frames[-1][2]
    pen.open()
    whole = bytes(pen.files[1])
    first, last = end + SECTOR - end % SECTOR, pen.frames[-1][2] - 1
    places = sorted({end + 16, end + 57, end + 90, end + 150, first, first + 9, last})
    pen.save(tmp_path)
    for cut in places:
        segment_file(tmp_path, 1).write_bytes(whole[:cut] + bytes(len(whole) - cut))
        found, report = read_independently(tmp_path), verify(tmp_path)
        assert (accepted(found), report.findings) == (True, ()), (cut, found)
        assert any("a write after seq" in words for words in report.remarks)


@pytest.mark.parametrize(
    ("record", "wrong", "sector", "explained"),
    [
        (b'{"v":1,' + b"x" * 2000, {}, 2, True),
        (b'{"v":1,' + b"x" * 2000, {"seq": 9}, 2, False),
        (b'{"v":1,' + b"x" * 2000, {"seq": 9}, 0, True),  # its seq cannot be seen
        (b'{"v":1,' + b"x" * 2000, {"durable": 5}, 2, False),
        (b'{"v":1,' + b"x" * 1500 + b"\1" * 500, {}, 2, False),
        (b'{"v":1,' + b"x" * 2000, {}, None, False),
        (b'{"v":1,"a":1}' + b"x" * 2000, {}, 2, False),
    ],
)
def test_a_write_that_was_cut_off_is_told_from_damage(
    record: bytes,
    wrong: Json,
    sector: int | None,
    explained: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A frame that is not whole: its CRC is false, and this sector of it is lost."""
    pen = started()
    pen.sync()
    pen.put(record, **wrong)
    _, at, _ = pen.frames[-1]
    pen.files[1][at + 5] ^= 1
    if sector is not None:
        start = max(at, (at // SECTOR + sector) * SECTOR)
        stop = (at // SECTOR + sector + 1) * SECTOR
        pen.files[1][start:stop] = bytes(stop - start)
    found = json_report(capsys, pen.save(tmp_path))
    assert found["exit"] == (0 if explained else 1)
    if not explained:
        assert found["wrong"]["what"].endswith("the tail is unexplained")


def test_a_last_segment_without_a_record_yet_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed()
    pen.segment()
    assert accepted(json_report(capsys, pen.save(tmp_path)))


def aside(folder: Path, **wrong: Any) -> None:
    """A record that goes on after a tail was set aside."""
    pen = started()
    lost = b"torn bytes " * 40
    data: Json = {
        "segment": 1,
        "offset": pen.frames[-1][2],
        "size": len(lost),
        "sha256": sha(lost).hex(),
        "file": "tails/1.json",
        "verdict": "torn",
        **wrong,
    }
    kept = {name: value for name, value in data.items() if name != "file"}
    (folder / "tails").mkdir()
    (folder / "tails" / "1.json").write_text(json.dumps({**kept, "bytes": b64(lost)}))
    opened = pen.open(torn=len(lost))
    if data["file"]:
        pen.write("tail", data)
    pen.certify(opened)
    pen.play()
    pen.end(folder)


@pytest.mark.parametrize("more", [{}, {"verdict": "accepted", "two": ["Ann", "Bo"]}])
def test_a_quarantine_file_must_match_its_record(more: Json, tmp_path: Path) -> None:
    aside(tmp_path, **more)
    assert (accepted(read_independently(tmp_path)), verify(tmp_path).findings) == (True, ())
    path = tmp_path / "tails" / "1.json"
    whole = path.read_text()
    kept = json.loads(whole)
    unreadable = "cannot be read as what was set aside"
    other = "says something else than"
    for spoilt, theirs, ours in (
        ({**kept, "bytes": b64(b"something else")}, *2 * ("does not hold what was set aside",)),
        ({**kept, "offset": 1}, f"{other} the tail record", f"{other} its record"),
        ({**kept, "verdict": "accepted", "two": ["Zoe", "Bo"]}, other, other),
        ({**kept, "bytes": 1}, "bytes is not of the type string", unreadable),
        ([], "is no object", unreadable),
        ("{", "is not JSON", unreadable),
        ("[" * 100_000, "", unreadable),
    ):
        path.write_text(spoilt if isinstance(spoilt, str) else json.dumps(spoilt))
        assert theirs in read_independently(tmp_path)["wrong"]["what"]
        (what,) = whats(verify(tmp_path))
        assert what.startswith(f"tails/1.json: {ours}")
    path.unlink()
    found = read_independently(tmp_path)
    assert found["exit"] == 1
    assert "tails/1.json is gone" in found["wrong"]["what"]
    assert whats(verify(tmp_path, replay=False)) == ["tails/1.json: what was set aside is gone"]
    (tmp_path / "tails" / "2.json").write_text(whole)
    assert "tails/2.json: was set aside, and no record tells of it" in verify(tmp_path).remarks


def test_all_that_stood_behind_the_last_record_may_be_set_aside(place: Path) -> None:
    """However much that was: both verifiers read it."""
    begun(place, size=SIZE).close()
    (last,) = segments(place)
    data = bytearray(last.buffer)
    data[last.end :] = (b"scribbled over " * SIZE)[: SIZE - last.end]
    last.file.write_bytes(data)
    begun(place, accept=("Ann", "Bo")).close()
    (tail,) = [record for record in everything(place) if record.kind == "tail"]
    assert f'"size":{SIZE - last.end}'.encode() in bytes(tail.data)
    assert (verify(place, replay=False).findings, read_independently(place)["exit"]) == ((), 0)
    (kept,) = (place / "tails").glob("*.json")
    kept.write_bytes(b" " * (2 << 20) + kept.read_bytes())  # more than there can be of it
    assert read_independently(place)["exit"] == 1
    (finding,) = verify(place, replay=False).findings
    assert "cannot be read as what was set aside" in finding.what


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"size": 500}, "the tail record is of 500 bytes, opened of 440"),
        ({"size": 3}, "does not hold what was set aside"),
        ({"offset": 100}, "the tail record is of (1, 100), the records before end at"),
        ({"segment": 3}, "the tail record is of (3, "),
        ({"two": ["Ann", "Bo"]}, "two people are named where they accept"),
        ({"verdict": "accepted"}, "two people are named where they accept"),
        ({"verdict": "accepted", "two": ["Ann"]}, "two is not of the type two"),
        ({"verdict": "accepted", "two": ["Ann", "Ann"]}, "two is not of the type two"),
        ({"file": "../lock"}, "the tail's file is none in tails"),
        ({"file": ""}, "no tail record says what became"),
    ],
)
def test_a_tail_record_that_does_not_fit_is_found(
    wrong: Json, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aside(tmp_path, **wrong)
    found = json_report(capsys, tmp_path)
    assert found["exit"] == 1
    assert words in found["wrong"]["what"]


def test_a_tail_record_is_right_where_its_opened_is_not_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = started(8192)
    pen.sync()
    opened = pen.open(torn=9)
    pen.sync()
    pen.next_segment()
    lost = bytes(9)
    tail = {"segment": 1, "offset": pen.frames[opened - 2][2], "size": 9, "verdict": "torn"}
    tail["sha256"] = sha256(lost).hexdigest()
    pen.write("tail", {**tail, "file": "tails/x"})
    pen.certify(opened)
    pen.play()
    pen.close()
    for name, first in (("all", 1), ("part", 2)):
        place = pen.save(tmp_path / name, first)
        (place / "tails").mkdir()
        (place / "tails" / "x").write_text(json.dumps({**tail, "bytes": b64(lost)}))
        found = json_report(capsys, place)
        assert found["wrong"] is None
        assert accepted(found) == (first == 1)


# --- A record is verified while somebody writes it --------------------------------------------


def test_a_record_is_right_at_any_instant_while_it_is_written(place: Path) -> None:
    log = begun(place, clock=SystemClock())  # type: ignore[arg-type]
    begun_to_write = Event()

    def write() -> None:
        for at in range(300):
            log.write([note(f"{at}", 37 * at % 900) for _ in range(at % 5 + 1)])
            if at % 9 == 0:
                log.sign()
            begun_to_write.set()
        log.close()

    writer = Thread(target=write)
    writer.start()
    begun_to_write.wait()
    found = [verify(place)]
    while writer.is_alive():
        found.append(verify(place))
    writer.join()
    assert [whats(report) for report in found] == [[]] * len(found)
    lasts = [report.last for report in found]
    assert lasts == sorted(lasts)
    assert lasts[0] < lasts[-1]
    assert len(found) > 3
    assert verify(place).code == VALID


def test_what_came_while_it_was_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page with one record was read before it was written, the next one after."""
    pen = started()
    before = bytes(pen.files[1])
    hole = pen.write("note", {"text": "x" * 5000})
    pen.sync()
    pen.write("note", {"text": "on the disk is the one before"})
    place = pen.save(tmp_path)
    _, start, end = pen.frames[hole - 1]
    half = before[:end] + bytes(pen.files[1][end:])
    assert not any(half[start:end])
    readings: list[int] = []

    def reads(file: Path, number: int) -> bytes:
        readings.append(number)
        return half if len(readings) == 1 else load(file, number)

    monkeypatch.setattr(segment, "load", reads)
    report = verify(place)
    assert (report.code, report.last, len(readings)) == (VALID, pen.seq, 2)


def test_what_stays_amiss_is_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pen = started()
    for number in range(20):
        pen.write("note", {"text": f"{number}"})
    place = pen.save(tmp_path)
    readings: list[int] = []

    def reads(file: Path, number: int) -> bytes:
        """Each time a little more of it, and never whole."""
        readings.append(number)
        return bytes(pen.files[1][: (pen.frames[3 + len(readings)][2] - 5)]).ljust(pen.size, b"\1")

    monkeypatch.setattr(segment, "load", reads)
    report = verify(place)
    assert len(readings) == 1 + segment.MAX_READINGS
    assert report.findings


def test_what_stays_as_it_is_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pen = started()
    pen.files[1][100] ^= 1
    place = pen.save(tmp_path)
    readings: list[int] = []

    def reads(file: Path, number: int) -> bytes:
        readings.append(number)
        return load(file, number)

    monkeypatch.setattr(segment, "load", reads)
    assert verify(place).findings
    assert len(readings) == 2
