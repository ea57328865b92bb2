"""Classification of the bytes after the last good frame."""

import io
import struct
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.audit import verify_record
from controller.audit.errors import RecordsMissing, UnexplainedTail
from controller.audit.format import tail as tails
from controller.audit.format.merkle import leaf_hash
from controller.audit.format.segments import (
    HEAD_SIZE,
    RecordFrame,
    chained,
    pack,
    segment_file,
    unpack,
)
from controller.audit.format.tail import Tail, TailVerdict, classify
from controller.audit.log import RecordOpening
from controller.audit.read.reader import read_segment
from tests.support.audit.record.table import TABLE, begun, everything, note, written

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


def by_the_verifier(buffer: bytes, at: int, last: int) -> TailVerdict:
    """The verdict of verify_record.py, which shares no code."""
    segment = verify_record.Segment(1, io.BytesIO(buffer), len(buffer))
    used = segment.used(at)
    words = "" if used == at else segment.tail(at, used, last)
    if words.endswith("the tail is unexplained"):
        return TailVerdict.UNEXPLAINED
    assert not words or words.endswith("records that were acknowledged cannot be read")
    return TailVerdict.MISSING if words else TailVerdict.CLEAN if used == at else TailVerdict.TORN


def test_zeros_are_clean() -> None:
    assert classify(segment(500, b""), 500, 9) == Tail(TailVerdict.CLEAN, 500, 0)
    assert classify(b"x" * SIZE, SIZE, 9).verdict is TailVerdict.CLEAN


@pytest.mark.parametrize("at", [100, 440, 500, 511, 512, 513, 1000])
def test_a_write_truncated_at_any_byte_is_torn(at: int) -> None:
    data = b"".join(frames(10, 9, "a" * 200, "b" * 400, "c" * 10))
    for cut in range(1, len(data)):
        left = data[:cut].rstrip(b"\0")
        tail = classify(segment(at, left), at, 9)
        ends = [len(frames(10, 9, "a" * 200)[0])]
        ends.append(ends[0] + len(frames(11, 9, "b" * 400)[0]))
        if cut in ends or not left:
            continue  # complete frames, which a reader accepts
        if cut < ends[0]:
            assert tail == Tail(TailVerdict.TORN, at, len(left))


@given(at=st.integers(0, 1500), kept=st.lists(st.booleans(), min_size=12, max_size=12))
def test_lost_sectors_are_torn(at: int, kept: list[bool]) -> None:
    data = b"".join(frames(10, 9, "a" * 200, "b" * 900, "c" * 2000, "d" * 30))
    buffer = bytearray(segment(at, data))
    for sector, stays in enumerate(kept):
        start = max(at, (at // 512 + sector) * 512)
        end = min((at // 512 + sector + 1) * 512, at + len(data))
        if not stays and start < end:
            buffer[start:end] = bytes(end - start)
    first_end = at + len(frames(10, 9, "a" * 200)[0])
    if buffer[at:first_end] != data[: first_end - at] and buffer[at:].strip(b"\0"):
        assert classify(bytes(buffer), at, 9).verdict is TailVerdict.TORN


def test_a_later_frame_shows_which_records_are_missing() -> None:
    first, second = frames(10, 9, "a" * 600)[0], frames(11, 10, "b" * 50)[0]
    tail = classify(segment(100, bytes(len(first)) + second), 100, 9)
    assert (tail.verdict, tail.needed) == (TailVerdict.MISSING, 10)
    changed = first.replace(b"aaaa", b"aaba", 1) + second
    assert classify(segment(100, changed), 100, 9).verdict is TailVerdict.MISSING


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        bytes(3000) + b"\x80",
        frames(10, 9, "a" * 30)[0],  # complete, but its chain is of another record
        frames(11, 9, "a" * 30)[0],  # complete, but not the next one
        frames(10, 9, "a" * 30)[0].replace(b"aaa", b"aab", 1),
        frames(10, 9, "a" * 900)[0].replace(b"aaa", b"aab", 1),
    ],
    ids=["garbage", "far off", "chain", "seq", "bit", "bit in several sectors"],
)
def test_other_bytes_are_unexplained(data: bytes) -> None:
    assert classify(segment(3 * 512 - 60, data), 3 * 512 - 60, 9).verdict is TailVerdict.UNEXPLAINED


def test_every_flipped_bit_of_the_last_frame_is_detected(place: Path) -> None:
    """A flipped bit never looks like an incomplete write or an empty tail."""
    written(place, note("the last one"))
    found = read_segment(place, 1)
    last = next(frame for frame in found.frames if b"the last one" in frame.data)
    unclosed = bytearray(found.buffer)
    unclosed[last.end :] = bytes(len(unclosed) - last.end)
    verdicts = {}
    for bit in range(8 * (HEAD_SIZE + len(last.data))):
        flipped = bytearray(unclosed)
        flipped[last.offset + bit // 8] ^= 1 << bit % 8
        verdicts[bit] = classify(bytes(flipped), last.offset, last.seq - 1).verdict
    assert set(verdicts.values()) == {TailVerdict.UNEXPLAINED}


# --- both verifiers say the same, and neither is slow


def cut_off(dice: Random, at: int) -> bytes:
    """An incomplete write at `at`, optionally altered."""
    texts = ["a" * dice.randrange(1, dice.choice([20, 600, 1500])) for _ in range(4)]
    made = frames(10, 9, *texts[:2]) + frames(12, dice.choice([9, 9, 9, 9, 8, 10]), *texts[2:])
    data = bytearray(segment(at, b"".join(made)))
    end = len(data.rstrip(b"\0"))
    if dice.random() < 0.4:
        data[dice.randrange(at, end) :] = b""
        data = data.ljust(SIZE, b"\0")
    for sector in range(at // 512 * 512, end, 512):
        if dice.random() < 0.4:
            start = max(sector, at)
            data[start : sector + 512] = bytes(sector + 512 - start)
    for _ in range(dice.choice([0, 0, 0, 1, 2])):
        place = dice.choice([at + dice.randrange(64), dice.randrange(at, end)])
        size = dice.choice([1, 1, 8, 39, 40, 41, 60])
        if dice.random() < 0.5:
            data[place] ^= 1 << dice.randrange(8)
        else:
            data[place : place + size] = bytes(size)
    return bytes(data[:SIZE])


@settings(max_examples=500)
@given(
    dice=st.randoms(use_true_random=False),
    at=st.sampled_from([0, 100, 448, 449, 455, 456, 457, 460, 464, 500, 508, 511, 512, 513]),
)
def test_both_verifiers_classify_a_tail_alike(dice: Random, at: int) -> None:
    buffer = cut_off(dice, at)
    assert classify(buffer, at, 9).verdict is by_the_verifier(buffer, at, 9)


def knew_of(buffer: bytes, at: int, stop: int, last: int) -> int:
    """The reference: any complete frame, at any offset."""
    needed, most = 0, last + 1 + (stop - at) // HEAD_SIZE
    while at < stop:
        frame = unpack(buffer, at)
        if frame is not None and last < frame.before < frame.seq <= most:
            needed, at = max(needed, frame.before), frame.end
        else:
            at += 1
    return needed


@given(
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from([bytes(1), bytes(3), bytes(500), b"\1\0\0\0"]),
            st.builds(
                lambda seq, before, size: pack(seq, before, CHAIN, b"x" * size),
                st.integers(8, 200),
                st.integers(7, 60),
                st.sampled_from([1, 3, 255, 256, 300, 65536]),
            ),
        ),
        max_size=8,
    ),
    at=st.integers(0, 600),
)
def test_a_later_frame_is_found_at_any_offset(pieces: list[bytes], at: int) -> None:
    data = b"x" * at + b"".join(pieces)
    buffer = data.ljust(-(-len(data) // 512) * 512, b"\0")
    stop = len(buffer.rstrip(b"\0"))
    needed = knew_of(buffer, at, stop, 9) if stop > at else 0
    found = classify(buffer, at, 9)
    assert (found.needed, found.verdict is TailVerdict.MISSING) == (needed, needed > 0)


def slope(size: int) -> bytes:
    """The header of a long frame every eight bytes."""
    most = 9 + size // HEAD_SIZE
    return (struct.pack(f"<{most - 9}Q", *range(most, 9, -1)) * 8)[:size]


def test_adversarial_bytes_are_unexplained_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def counted(buffer: bytes, at: int) -> RecordFrame | None:
        tried.append(HEAD_SIZE + int.from_bytes(buffer[at : at + 4], "little"))
        return unpack(buffer, at)

    monkeypatch.setattr(tails, "unpack", counted)
    size = 2 << 20
    buffer = b"x" * 512 + slope(size)
    assert classify(buffer, 512, 9).verdict is TailVerdict.UNEXPLAINED
    assert 64 << 20 < sum(tried) <= (64 << 20) + 8 * size
    assert by_the_verifier(buffer, 512, 9) is TailVerdict.UNEXPLAINED


def test_each_incomplete_frame_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every other sector is lost: no body is read to the end of the buffer."""
    read: list[int] = []
    begins = tails.begins_with_object

    def counted(body: bytes) -> bool:
        read.append(len(body))
        return begins(body)

    monkeypatch.setattr(tails, "begins_with_object", counted)
    body = b"{" + b"y" * (1024 - HEAD_SIZE - 1)
    seqs = range(10, 10 + 512)
    made = bytes(512).join(pack(seq, 9, CHAIN, body)[:512] for seq in seqs)
    assert classify(b"x" * 512 + made, 512, 9).size == len(made)
    assert len(read) > 500
    assert sum(read) <= len(made)


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 8, 12, 16, 30, 55])
def test_a_frame_beyond_the_segments_end_is_unexplained(cut: int) -> None:
    at = SIZE - 150
    head = struct.pack("<IIQQ", 100, 0x11223344, 10, 9).ljust(HEAD_SIZE, b"c")
    assert classify(segment(at, b"\x50" + head[1:cut]), at, 9).verdict is TailVerdict.TORN
    assert classify(segment(at, b"\x5f" + head[1:cut]), at, 9).verdict is TailVerdict.UNEXPLAINED


def test_an_incomplete_frame_with_a_later_durable_seq_is_unexplained() -> None:
    """The records that it states to be durable were acknowledged and are missing."""
    lost, half = bytes(912), frames(11, 10, "b" * 3000)[0][:1000]
    first = frames(10, 9, "a" * 900)[0]
    assert (
        classify(segment(0, first[:400] + lost[400:] + half), 0, 9).verdict is not TailVerdict.TORN
    )
    knew_no_more = frames(11, 9, "b" * 3000)[0][:1000]
    torn = first[:512] + bytes(len(first) - 512) + knew_no_more
    assert (
        classify(segment(0, torn), 0, 9).verdict is TailVerdict.UNEXPLAINED
    )  # no sector boundary there
    at = 1024 - len(first)
    torn = (first[: 512 - at] + bytes(512)) + knew_no_more
    assert classify(segment(at, torn), at, 9).verdict is TailVerdict.TORN
    half_way = (first[: 512 - at] + bytes(512)) + half
    assert classify(segment(at, half_way), at, 9).verdict is TailVerdict.UNEXPLAINED


def broken(place: Path, change: bytes, to: bytes) -> None:
    file = segment_file(place, 1)
    data = file.read_bytes()
    assert data.count(change) == 1
    file.write_bytes(data.replace(change, to))


def test_corruption_before_a_checkpoint_is_missing_records(place: Path) -> None:
    with closing(begun(place)) as log:
        log.write([note("paid 500")])
        log.sign()
    broken(place, b"paid 500", b"paid 900")
    with pytest.raises(
        RecordsMissing, match=r"after seq 4 cannot be read from there on; .* seq \d+ at least"
    ):
        RecordOpening.at(place, table=TABLE)


def test_two_people_approve_an_unexplained_tail(place: Path) -> None:
    begun(place).close()
    file = segment_file(place, 1)
    data = file.read_bytes()
    file.write_bytes(data[:9000] + b"scribbled" + data[9009:])
    with pytest.raises(UnexplainedTail, match="that no cut-off write explains"):
        RecordOpening.at(place, table=TABLE)
    assert file.read_bytes()[9000:9009] == b"scribbled"
    begun(place, accept=("Ann", "Bo")).close()
    tail = next(one for one in everything(place) if one.kind == "tail")
    assert b'"verdict":"accepted"' in bytes(tail.data)
    assert b'"two":["Ann","Bo"]' in bytes(tail.data)
    assert file.read_bytes()[9000:9009] == bytes(9)
