"""The cable of a simulated device: what noise does to frames, and when bytes arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.device import LineNoise
from hil.faults import CableDirection
from hil.faults.line import MAX_FRAME_BYTES, MAX_IN_FLIGHT

FRAMES = [bytes([1 + number % 250]) * (10 + number % 50) + b"\0" for number in range(400)]
ALL = LineNoise(flip=0.1, drop=0.1, double=0.1, splice=0.1, cut=0.1, seed=7)


@pytest.fixture
def strand() -> CableDirection:
    return CableDirection("to host")


def through(
    line: LineNoise, data: bytes, name: str = "to host", size: int = 4096
) -> tuple[bytes, CableDirection]:
    strand = CableDirection(name)
    strand.set(line, 0)
    for at in range(0, len(data), size):
        strand.put(data[at : at + size], 0)
    return strand.take(line.delay_ms * 1000), strand


def test_a_clean_line_holds_nothing_back(strand: CableDirection) -> None:
    strand.put(b"half a fra", 0)
    assert (strand.take(0), strand.due()) == (b"half a fra", None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (LineNoise(drop=1), b""),
        (LineNoise(double=1), b"ab\0ab\0cd\0cd\0"),
        (LineNoise(splice=1), b"abcd"),
        (LineNoise(double=1, splice=1), b"ababcdcd"),
        (LineNoise(drop=1, double=1), b""),
    ],
)
def test_noise_at_rate_1_changes_each_frame(line: LineNoise, expected: bytes) -> None:
    assert through(line, b"ab\0cd\0")[0] == expected


def test_a_flip_is_one_bit_of_one_frame() -> None:
    out, strand = through(LineNoise(flip=1), b"".join(FRAMES))
    sent = b"".join(FRAMES)
    assert len(out) == len(sent)
    bits = sum((a ^ b).bit_count() for a, b in zip(out, sent, strict=True))
    assert bits == strand.counts.flipped == len(FRAMES)


def test_a_cut_takes_a_run_out_and_leaves_the_end() -> None:
    for frame in FRAMES:
        out, _ = through(LineNoise(cut=1, seed=len(frame)), frame)
        assert len(out) < len(frame)
        assert out.endswith(b"\0")


def test_shares_are_shares_of_frames() -> None:
    counts = through(ALL, b"".join(FRAMES))[1].counts
    assert counts.frames == len(FRAMES)
    every = (counts.flipped, counts.dropped, counts.doubled, counts.spliced, counts.cut)
    assert 15 <= min(every) <= max(every) <= 70


@given(st.integers(1, 300))
def test_the_same_seed_strikes_the_same_however_it_is_cut_into_reads(size: int) -> None:
    data = b"".join(FRAMES[:60])
    assert through(ALL, data, size=size)[0] == through(ALL, data)[0]


def test_another_seed_or_direction_strikes_others() -> None:
    data = b"".join(FRAMES)
    first = through(ALL, data)[0]
    assert through(ALL, data, "to device")[0] != first
    assert through(LineNoise(flip=0.1, drop=0.1, seed=8), data)[0] != first


def test_another_share_strikes_the_same_frames_and_more() -> None:
    few, more = (
        through(LineNoise(drop=drop, seed=3), b"".join(FRAMES))[0].split(b"\0")
        for drop in (0.1, 0.3)
    )
    assert len(few) > len(more)
    assert set(more) <= set(few)


def test_empty_frames_are_no_frames() -> None:
    out, strand = through(LineNoise(drop=1), b"\0\0\0")
    assert (out, strand.counts.frames) == (b"\0\0\0", 0)


def test_a_stream_without_a_zero_is_struck_piece_by_piece() -> None:
    out, strand = through(LineNoise(double=1), b"x" * (3 * MAX_FRAME_BYTES))
    assert (out, strand.counts.frames) == (b"x" * (6 * MAX_FRAME_BYTES), 3)


def test_an_incomplete_frame_is_passed_on_when_the_noise_ends(strand: CableDirection) -> None:
    strand.set(LineNoise(drop=1), 0)
    strand.put(b"half", 0)
    assert strand.take(0) == b""
    strand.set(LineNoise(), 5)
    assert strand.take(5) == b"half"


def test_delay_is_in_the_time_that_is_passed_in_and_nothing_overtakes(
    strand: CableDirection,
) -> None:
    strand.set(LineNoise(delay_ms=10), 0)
    strand.put(b"a", 1_000)
    strand.put(b"b", 2_000)
    assert strand.due() == 11_000
    assert [strand.take(now) for now in (10_999, 11_000)] == [b"", b"a"]
    strand.set(LineNoise(), 11_500)
    strand.put(b"c", 11_500)
    assert [strand.take(11_999), strand.due(), strand.take(12_000)] == [b"", 12_000, b"bc"]


def test_a_pulled_cable_holds_nothing_and_a_long_one_not_everything(
    strand: CableDirection,
) -> None:
    strand.set(LineNoise(delay_ms=10, flip=0.5), 0)
    strand.put(b"a\0b", 0)
    strand.clear()
    assert strand.take(1_000_000) == b""
    strand.set(LineNoise(delay_ms=10), 0)
    for _ in range(3):
        strand.put(bytes(MAX_IN_FLIGHT // 2), 0)
    assert strand.lost == MAX_IN_FLIGHT // 2
    assert len(strand.take(10_000)) == MAX_IN_FLIGHT
    strand.put(b"room again", 10_000)
    assert strand.take(20_000) == b"room again"
