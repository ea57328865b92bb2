"""What was damaged, cut out, moved or told anew is found, at its place, in words."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.audit.verify_record import main
from tests.support.audit.tools.by_page import HEADER, Json, Pen, closed, frame

Told = pytest.CaptureFixture[str]
Damage = Callable[[Pen], object]


def wrong(folder: Path, capsys: Told) -> Json:
    assert main([str(folder), "--json"]) == 1
    found: Json = json.loads(capsys.readouterr().out)["wrong"]
    return found


# --- by whoever has the files, and no more


def a_record() -> Pen:
    return closed(8192, rounds=6)


def of_segment(pen: Pen, number: int) -> list[int]:
    return [seq for seq, place in enumerate(pen.frames, 1) if place[0] == number]


SECOND = of_segment(a_record(), 2)
FIRST = SECOND[0]
NEXT = SECOND[1]
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
        data = bytes(pen.files[2][:HEADER]) + frames
        pen.files[2][:] = data.ljust(pen.size, b"\0")

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
        "the frame's length is 262651, not 1 to 262144",
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
        framed(NEXT, lambda record: record.replace(b'"v":1', b'"v":2')),
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
        (but(5), 9, "the checkpoint is of 9 records, 8 stand before it"),
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
