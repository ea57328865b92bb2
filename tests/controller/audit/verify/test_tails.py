"""Tails, as the verifier reads them: writes that were cut off, bytes that were set aside."""

import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.format.segments import SIZE
from controller.audit.read.reader import segments
from controller.audit.verify import VALID, verify
from tests.support.audit.record.table import begun, everything
from tests.support.audit.tools.asked import whats
from tests.support.audit.tools.by_page import Json, Pen, b64, closed, sha
from tests.support.audit.verifying import read, told

SECTOR = 512


def cut_off(after: int, seed: int, texts: int) -> Pen:
    """A record whose last `after` frames were not yet on the disk: some sectors never came."""
    dice = random.Random(seed)
    pen = Pen(65536)
    pen.start()
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
    found, report = read(folder), verify(folder)
    assert (found["exit"], found["wrong"]) == (0, None)
    whole = found["last_seq"]
    assert (report.code, report.last) == (VALID, whole), report.findings
    assert pen.seq - after <= whole <= pen.seq
    torn = any("cut off at offset" in words for words in found["remarks"])
    assert torn == any("a write after seq" in words for words in report.remarks)
    assert torn == (len(bytes(pen.files[1]).rstrip(b"\0")) > pen.frames[whole - 1][2])


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
    pen = Pen()
    pen.start()
    pen.sync()
    pen.put(record, **wrong)
    _, at, _ = pen.frames[-1]
    pen.files[1][at + 5] ^= 1
    if sector is not None:
        start = max(at, (at // SECTOR + sector) * SECTOR)
        stop = (at // SECTOR + sector + 1) * SECTOR
        pen.files[1][start:stop] = bytes(stop - start)
    found = told(capsys, pen.save(tmp_path))
    assert found["exit"] == (0 if explained else 1)
    if not explained:
        assert found["wrong"]["what"].endswith("the tail is unexplained")


def test_a_last_segment_without_a_record_yet_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed()
    pen.segment()
    assert told(capsys, pen.save(tmp_path))["exit"] == 0


def aside(folder: Path, **wrong: Any) -> Pen:
    """A record that goes on after a tail was set aside."""
    pen = Pen()
    pen.start()
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
    pen.close()
    pen.save(folder)
    return pen


@pytest.mark.parametrize("more", [{}, {"verdict": "accepted", "two": ["Ann", "Bo"]}])
def test_a_quarantine_file_must_match_its_record(more: Json, tmp_path: Path) -> None:
    aside(tmp_path, **more)
    assert (read(tmp_path)["exit"], verify(tmp_path).findings) == (0, ())
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
        assert theirs in read(tmp_path)["wrong"]["what"]
        (what,) = whats(verify(tmp_path))
        assert what.startswith(f"tails/1.json: {ours}")
    path.unlink()
    found = read(tmp_path)
    assert (found["exit"], found["not_checked"]) == (1, {})
    assert "tails/1.json is gone" in found["wrong"]["what"]
    assert whats(verify(tmp_path, replay=False)) == ["tails/1.json: what was set aside is gone"]
    (tmp_path / "tails" / "2.json").write_text(whole)
    assert "tails/2.json: was set aside, and no record tells of it" in verify(tmp_path).remarks


def test_all_that_stood_behind_the_last_record_may_be_set_aside(tmp_path: Path) -> None:
    """However much that was: both verifiers read it."""
    place = tmp_path / "record"
    begun(place, size=SIZE).close()
    (last,) = segments(place)
    data = bytearray(last.buffer)
    data[last.end :] = (b"scribbled over " * SIZE)[: SIZE - last.end]
    last.file.write_bytes(data)
    begun(place, accept=("Ann", "Bo")).close()
    (tail,) = [record for record in everything(place) if record.kind == "tail"]
    assert f'"size":{SIZE - last.end}'.encode() in bytes(tail.data)
    assert verify(place, replay=False).findings == ()
    assert read(place)["exit"] == 0
    (kept,) = (place / "tails").glob("*.json")
    kept.write_bytes(b" " * (2 << 20) + kept.read_bytes())  # more than there can be of it
    assert read(place)["exit"] == 1
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
    found = told(capsys, tmp_path)
    assert found["exit"] == 1
    assert words in found["wrong"]["what"]


def test_a_tail_record_is_right_where_its_opened_is_not_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = Pen(8192)
    pen.start()
    pen.sync()
    opened = pen.open(torn=9)
    pen.sync()
    pen.segment()
    pen.snapshot()
    lost = bytes(9)
    tail = {"segment": 1, "offset": pen.frames[opened - 2][2], "size": 9, "verdict": "torn"}
    tail["sha256"] = sha256(lost).hexdigest()
    pen.write("tail", {**tail, "file": "tails/x"})
    pen.certify(opened)
    pen.play()
    pen.close()
    for name, first, code in (("all", 1, 0), ("part", 2, 3)):
        place = pen.save(tmp_path / name, first)
        (place / "tails").mkdir()
        (place / "tails" / "x").write_text(json.dumps({**tail, "bytes": b64(lost)}))
        found = told(capsys, place)
        assert (found["exit"], found["wrong"]) == (code, None)
