"""What explains the bytes past the last good frame, and what does not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.frames import HEAD_SIZE, chained, pack
from controller.audit.opening import Opening
from controller.audit.problems import Missing, Unexplained
from controller.audit.reading import read_segment
from controller.audit.segments import segment_file
from controller.audit.tails import Tail, Verdict, classify
from controller.audit.tree import leaf_hash
from tests.audit.table import TABLE, begun, everything, note

SIZE = 8192
CHAIN = bytes(32)


def frames(first: int, before: int, *texts: str) -> list[bytes]:
    chain, made = CHAIN, []
    for seq, text in enumerate(texts, first):
        data = b'{"text":"' + text.encode() + b'"}'
        chain = chained(chain, leaf_hash(data))
        made.append(pack(seq, before, chain, data))
    return made


def segment(at: int, data: bytes) -> bytes:
    return (b"x" * at + data).ljust(SIZE, b"\0")


def test_zeros_are_clean() -> None:
    assert classify(segment(500, b""), 500, 9) == Tail(Verdict.CLEAN, 500, 0)
    assert classify(b"x" * SIZE, SIZE, 9).verdict is Verdict.CLEAN


@pytest.mark.parametrize("at", [100, 440, 500, 511, 512, 513, 1000])
def test_a_write_cut_at_every_byte_is_torn(at: int) -> None:
    data = b"".join(frames(10, 9, "a" * 200, "b" * 400, "c" * 10))
    for cut in range(1, len(data)):
        left = data[:cut].rstrip(b"\0")
        tail = classify(segment(at, left), at, 9)
        ends = [len(frames(10, 9, "a" * 200)[0])]
        ends.append(ends[0] + len(frames(11, 9, "b" * 400)[0]))
        if cut in ends or not left:
            continue  # whole frames: a reader takes them for what they are
        if cut < ends[0]:
            assert tail == Tail(Verdict.TORN, at, len(left))


@given(at=st.integers(0, 1500), kept=st.lists(st.booleans(), min_size=12, max_size=12))
def test_sectors_that_were_not_written_are_torn(at: int, kept: list[bool]) -> None:
    data = b"".join(frames(10, 9, "a" * 200, "b" * 900, "c" * 2000, "d" * 30))
    buffer = bytearray(segment(at, data))
    for sector, stays in enumerate(kept):
        start = max(at, (at // 512 + sector) * 512)
        end = min((at // 512 + sector + 1) * 512, at + len(data))
        if not stays and start < end:
            buffer[start:end] = bytes(end - start)
    first_end = at + len(frames(10, 9, "a" * 200)[0])
    whole = buffer[at:first_end] == data[: first_end - at]
    if not whole and buffer[at:].strip(b"\0"):
        assert classify(bytes(buffer), at, 9).verdict is Verdict.TORN


def test_a_later_frame_that_knew_of_more_says_what_is_missing() -> None:
    first, second = frames(10, 9, "a" * 600)[0], frames(11, 10, "b" * 50)[0]
    hole = bytes(len(first)) + second
    tail = classify(segment(100, hole), 100, 9)
    assert (tail.verdict, tail.needed) == (Verdict.MISSING, 10)
    changed = first.replace(b"aaaa", b"aaba", 1) + second
    assert classify(segment(100, changed), 100, 9).verdict is Verdict.MISSING


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        bytes(3000) + b"\x80",
        frames(10, 9, "a" * 30)[0],  # whole, with a chain that is not this record's
        frames(11, 9, "a" * 30)[0],  # whole, and not the next one
        frames(10, 9, "a" * 30)[0].replace(b"aaa", b"aab", 1),
        frames(10, 9, "a" * 900)[0].replace(b"aaa", b"aab", 1),
    ],
    ids=["garbage", "far off", "chain", "seq", "bit", "bit in several sectors"],
)
def test_what_is_neither_is_unexplained(data: bytes) -> None:
    tail = classify(segment(3 * 512 - 60, data), 3 * 512 - 60, 9)
    assert tail.verdict is Verdict.UNEXPLAINED


def test_every_flipped_bit_of_the_last_frame_is_found(tmp_path: Path) -> None:
    """None of them makes it look like a write that was cut off, or like nothing."""
    place = tmp_path / "record"
    log = begun(place)
    log.write([note("the last one")])
    log.close()
    found = read_segment(place, 1)
    last = next(frame for frame in found.frames if b"the last one" in frame.data)
    unclosed = bytearray(found.buffer)
    unclosed[last.end :] = bytes(len(unclosed) - last.end)
    verdicts = {}
    for bit in range(8 * (HEAD_SIZE + len(last.data))):
        flipped = bytearray(unclosed)
        flipped[last.offset + bit // 8] ^= 1 << bit % 8
        verdicts[bit] = classify(bytes(flipped), last.offset, last.seq - 1).verdict
    assert set(verdicts.values()) == {Verdict.UNEXPLAINED}


def broken(place: Path, change: bytes, to: bytes) -> None:
    file = segment_file(place, 1)
    data = file.read_bytes()
    assert data.count(change) == 1
    file.write_bytes(data.replace(change, to))


def test_damage_before_a_signature_is_missing_records(tmp_path: Path) -> None:
    place = tmp_path / "record"
    log = begun(place)
    log.write([note("paid 500")])
    log.sign()
    log.close()
    broken(place, b"paid 500", b"paid 900")
    with pytest.raises(Missing, match="records after seq 4 are missing; at least"):
        Opening.at(place, table=TABLE)


def test_two_people_accept_what_nothing_explains(tmp_path: Path) -> None:
    place = tmp_path / "record"
    begun(place).close()
    file = segment_file(place, 1)
    data = file.read_bytes()
    file.write_bytes(data[:9000] + b"scribbled" + data[9009:])
    with pytest.raises(Unexplained, match="that no cut-off write explains"):
        Opening.at(place, table=TABLE)
    assert file.read_bytes()[9000:9009] == b"scribbled"
    log = begun(place, accept=("Ann", "Bo"))
    log.close()
    tail = next(one for one in everything(place) if one.kind == "tail")
    assert b'"verdict":"accepted"' in bytes(tail.data)
    assert b'"two":["Ann","Bo"]' in bytes(tail.data)
    assert file.read_bytes()[9000:9009] == bytes(9)
