"""Frames through noise: whole ones arrive, damage is named and counted, nothing grows or raises."""

import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.enums import FrameKind
from firmware_protocol.errors import BadFrame
from firmware_protocol.framing import (
    Cause,
    Damage,
    Deframer,
    Frame,
    Heard,
    cobs_decode,
    cobs_encode,
    crc32c,
    read_frame,
)
from firmware_protocol.limits import MAX_DECODED, MAX_ENCODED
from firmware_protocol.messages_frames import PAYLOAD_SIZES


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    kind = draw(st.sampled_from(FrameKind))
    size = draw(st.sampled_from(PAYLOAD_SIZES[kind]))
    return Frame(
        kind,
        0 if kind is FrameKind.ALERT else draw(st.integers(1, 0xFFFF)),
        draw(st.integers(0, 0xFFFFFFFF)) if kind is FrameKind.DATA else 0,
        draw(st.binary(min_size=size, max_size=size)),
    )


GOOD = Frame(FrameKind.HS1, 7, 0, bytes(range(48)))
CHUNKS = st.lists(st.integers(1, 300), max_size=30)


def in_chunks(stream: bytes, sizes: list[int]) -> list[bytes]:
    out, at = [], 0
    for size in sizes:
        out.append(stream[at : at + size])
        at += size
    return [*out, stream[at:]]


def plain_crc(data: bytes) -> int:
    """CRC-32C bit by bit, as PROTOCOL.md describes it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def plain_cobs(data: bytes) -> bytes:
    """COBS byte by byte, for any length."""
    out, code_at, code = bytearray(b"\0"), 0, 1
    for byte in data:
        if code == 0xFF:
            out[code_at] = code
            code_at, code = len(out), 1
            out.append(0)
        if byte:
            out.append(byte)
            code += 1
        else:
            out[code_at] = code
            code_at, code = len(out), 1
            out.append(0)
    out[code_at] = code
    return bytes(out)


@given(st.binary(max_size=MAX_DECODED) | st.lists(st.sampled_from([0, 1])).map(bytes))
def test_cobs_there_and_back(data: bytes) -> None:
    data = data[:MAX_DECODED]
    encoded = cobs_encode(data)
    assert encoded == plain_cobs(data)
    assert 0 not in encoded
    assert len(encoded) == len(data) + 1
    assert cobs_decode(encoded) == data


@given(st.binary(max_size=MAX_ENCODED))
def test_what_decodes_from_cobs_was_encoded_so(data: bytes) -> None:
    decoded = cobs_decode(data)
    if decoded is not None and data:
        assert cobs_encode(decoded) == data


@given(st.binary(max_size=300))
def test_crc_is_castagnoli(data: bytes) -> None:
    assert crc32c(data) == plain_crc(data)
    assert crc32c(b"123456789") == 0xE3069283


@given(frames())
def test_a_frame_survives_the_wire(frame: Frame) -> None:
    wire = frame.encode()
    assert wire.index(0) == len(wire) - 1
    assert len(wire) == len(frame.payload) + 14
    assert Deframer().feed(wire) == [frame]


def test_a_frame_by_hand() -> None:
    """Built from the page alone: struct, bit-by-bit CRC and byte-by-byte COBS."""
    payload = bytes(72)
    raw = struct.pack("<BBHI", 1 << 4 | 8, 72, 0xBEEF, 5) + payload
    raw += struct.pack("<I", plain_crc(raw))
    wire = plain_cobs(raw) + b"\0"
    assert Frame(FrameKind.DATA, 0xBEEF, 5, payload).encode() == wire
    assert len(wire) == 86


@pytest.mark.parametrize(
    "frame",
    [
        Frame(FrameKind.HS1, 1, 0, bytes(47)),
        Frame(FrameKind.DATA, 1, 0, bytes(243)),
        Frame(FrameKind.DATA, 1, 0, bytes(73)),
        Frame(FrameKind.DATA, 0x10000, 0, bytes(72)),
        Frame(FrameKind.DATA, 1, -1, bytes(72)),
        Frame(FrameKind.DATA, 1, 0, bytes(72), 16),
        Frame(FrameKind.DATA, 1, 0, bytes(72), 0),
        Frame(FrameKind.DATA, 0, 0, bytes(72)),
        Frame(FrameKind.HS1, 1, 1, bytes(48)),
        Frame(FrameKind.ALERT, 0, 0, bytes(8), 2),
        Frame(FrameKind.ALERT, 1, 0, bytes(8)),
    ],
)
def test_a_frame_that_is_none_is_not_sent(frame: Frame) -> None:
    with pytest.raises(BadFrame):
        frame.encode()


# --- what may come in -----------------------------------------------------------------------

PIECES = st.one_of(
    st.binary(max_size=40),
    st.binary(min_size=200, max_size=600),
    frames().map(Frame.encode),
    st.just(bytes(5)),
    st.tuples(frames().map(Frame.encode), st.integers(0, 90), st.integers(1, 255)).map(
        lambda one: one[0][: one[1]] + bytes([one[2]]) + one[0][one[1] + 1 :]
    ),
)


@given(st.lists(PIECES, max_size=8).map(b"".join), CHUNKS)
def test_how_a_stream_is_cut_changes_nothing(stream: bytes, sizes: list[int]) -> None:
    whole, cut, single = Deframer(), Deframer(), Deframer()
    expected = whole.feed(stream)
    heard: list[Heard] = []
    for chunk in in_chunks(stream, sizes):
        heard += cut.feed(chunk)
        assert cut.held <= MAX_ENCODED
    assert heard == expected
    assert [one for byte in stream for one in single.feed(bytes([byte]))] == expected
    assert whole.counts == cut.counts == single.counts
    assert whole.counts.bytes == len(stream)
    assert whole.counts.frames == sum(isinstance(one, Frame) for one in expected)
    assert whole.counts.damaged == sum(whole.counts.causes.values())
    assert whole.counts.damaged == sum(isinstance(one, Damage) for one in expected)


@given(st.lists(PIECES, max_size=8).map(b"".join), frames())
def test_after_any_bytes_the_next_frame_arrives(stream: bytes, frame: Frame) -> None:
    deframer = Deframer()
    deframer.feed(stream + b"\0")
    assert deframer.feed(frame.encode()) == [frame]


@given(frames(), st.data())
def test_a_flipped_bit_is_never_a_frame(frame: Frame, data: Any) -> None:
    wire = bytearray(frame.encode())
    wire[data.draw(st.integers(0, len(wire) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    for one in Deframer().feed(bytes(wire) + b"\0"):
        assert isinstance(one, Damage)


def wrapped(raw: bytes) -> bytes:
    return cobs_encode(raw + crc32c(raw).to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("encoded", "cause"),
    [
        (bytes([1]) * 256, Cause.OVERSIZE),
        (b"\x05\x01", Cause.COBS),
        (cobs_encode(bytes(11)), Cause.GARBAGE),
        (cobs_encode(bytes(12)), Cause.CRC),
        (wrapped(b"\x28" + GOOD.decoded()[1:]), Cause.VERSION),
        (wrapped(b"\x08" + GOOD.decoded()[1:]), Cause.VERSION),
        (wrapped(b"\x20" + GOOD.decoded()[1:]), Cause.VERSION),  # HELLO is version 1 for ever
        (wrapped(b"\x17" + GOOD.decoded()[1:]), Cause.KIND),
        (wrapped(b"\x18" + GOOD.decoded()[1:]), Cause.LENGTH),
        (wrapped(GOOD.decoded()[:-1]), Cause.LENGTH),
        (wrapped(GOOD.decoded() + b"\0"), Cause.LENGTH),
        (wrapped(GOOD.decoded()[:2] + bytes(2) + GOOD.decoded()[4:]), Cause.HEADER),
        (wrapped(GOOD.decoded()[:7] + b"\x01" + GOOD.decoded()[8:]), Cause.HEADER),
    ],
)
def test_damage_has_a_cause(encoded: bytes, cause: Cause) -> None:
    assert read_frame(encoded) == cause
    deframer = Deframer()
    size = min(len(encoded), MAX_ENCODED + 1)
    assert deframer.feed(encoded + b"\0" + GOOD.encode()) == [Damage(cause, size), GOOD]
    assert deframer.counts.causes[cause] == 1
    assert deframer.counts.damaged_bytes == len(encoded)


def test_a_later_version_is_read_where_it_is_spoken() -> None:
    later = Frame(FrameKind.DATA, 1, 0, bytes(72), 2)
    assert Deframer(range(1, 3)).feed(later.encode()) == [later]


def test_oversize_is_told_before_its_end_comes() -> None:
    deframer = Deframer()
    assert deframer.feed(b"\x01" * MAX_ENCODED) == []
    assert deframer.feed(b"\x01") == [Damage(Cause.OVERSIZE, 256)]
    assert deframer.feed(b"\x01" * 1000) == []
    assert deframer.held == 0
    assert deframer.counts.damaged_bytes == 1256
    assert deframer.feed(b"\0" + GOOD.encode()) == [GOOD]


def test_a_reset_forgets_what_waits() -> None:
    deframer = Deframer()
    deframer.feed(b"\x01" * 300)
    deframer.reset()
    assert deframer.feed(GOOD.encode()[:9]) == []
    deframer.reset()
    assert deframer.feed(GOOD.encode()) == [GOOD]


def test_memory_is_bounded() -> None:
    """Bytes without a zero, and nothing but zeros, leave nothing behind."""
    deframer = Deframer()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for chunk in (b"\x55" * 1000, bytes(1000)):
            for _ in range(100):
                deframer.feed(chunk)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 20_000
    assert deframer.counts.bytes == 200_000
