"""Frames through noise: whole ones arrive, damage is named and counted, nothing grows or raises."""

import struct
import sys
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.messages import MAX_DECODED, MAX_ENCODED, VERSION, BadFrame, FrameKind
from firmware_protocol.tablelink import (
    Cause,
    Deframer,
    Frame,
    FrameDamage,
    FrameOrDamage,
    cobs_decode,
    cobs_encode,
    crc32c,
)
from firmware_protocol.tablelink.framing import read_frame
from tests.support.firmware_protocol.framing import PIECES, frames, plain_cobs, plain_crc

GOOD = Frame(FrameKind.HS1, 7, 0, bytes(range(48)))
CHUNKS = st.lists(st.integers(1, 300), max_size=30)


def in_chunks(stream: bytes, sizes: list[int]) -> list[bytes]:
    out, at = [], 0
    for size in sizes:
        out.append(stream[at : at + size])
        at += size
    return [*out, stream[at:]]


SIZES = {
    0: (32,),
    1: (96,),
    2: (48,),
    3: (48,),
    4: (48,),
    5: (96,),
    6: (64,),
    8: (72, 136, 242),
    15: (8,),
}
"""Of the payload of each kind, as PROTOCOL.md's table has them."""


def plain_read(encoded: bytes, spoken: tuple[int, ...]) -> Frame | Cause:  # noqa: PLR0911 - a row each
    """Decode the bytes between two 0x00 by the table of causes in PROTOCOL.md alone."""
    if len(encoded) > 255:
        return Cause.OVERSIZE
    decoded, rest = bytearray(), bytearray(encoded)
    while rest:
        code = rest.pop(0)
        if not code or code - 1 > len(rest) or 0 in rest[: code - 1]:
            return Cause.COBS
        decoded += rest[: code - 1] + b"\0"
        del rest[: code - 1]
    del decoded[-1:]
    if len(decoded) < 12:
        return Cause.GARBAGE
    if plain_crc(bytes(decoded[:-4])) != int.from_bytes(decoded[-4:], "little"):
        return Cause.CRC
    version, kind = divmod(decoded[0], 16)
    if version not in ((1,) if kind in (0, 1, 15) else spoken):
        return Cause.VERSION
    if kind not in SIZES:
        return Cause.KIND
    if decoded[1] != len(decoded) - 12 or decoded[1] not in SIZES[kind]:
        return Cause.LENGTH
    session, counter = struct.unpack_from("<HI", decoded, 2)
    if (session == 0) != (kind == 15) or (counter and kind != 8):
        return Cause.HEADER
    return Frame(FrameKind(kind), session, counter, bytes(decoded[8:-4]), version)


@given(st.binary(max_size=MAX_DECODED) | st.lists(st.sampled_from([0, 1])).map(bytes))
def test_cobs_round_trip(data: bytes) -> None:
    data = data[:MAX_DECODED]
    encoded = cobs_encode(data)
    assert encoded == plain_cobs(data)
    assert 0 not in encoded
    assert (len(encoded), cobs_decode(encoded)) == (len(data) + 1, data)


@given(st.binary(max_size=MAX_ENCODED))
def test_what_decodes_from_cobs_was_encoded_so(data: bytes) -> None:
    decoded = cobs_decode(data)
    if decoded is not None and data:
        assert cobs_encode(decoded) == data


@given(frames())
def test_frame_round_trip(frame: Frame) -> None:
    wire = frame.encode()
    assert (wire.index(0), len(wire)) == (len(wire) - 1, len(frame.payload) + 14)
    assert Deframer().feed(wire) == [frame]


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


@given(st.lists(PIECES, max_size=8).map(b"".join), CHUNKS)
def test_how_a_stream_is_cut_changes_nothing(stream: bytes, sizes: list[int]) -> None:
    whole, cut, single = Deframer(), Deframer(), Deframer()
    expected = whole.feed(stream)
    heard: list[FrameOrDamage] = []
    for chunk in in_chunks(stream, sizes):
        heard += cut.feed(chunk)
        assert cut.buffered <= MAX_ENCODED
    assert heard == expected
    assert [one for byte in stream for one in single.feed(bytes([byte]))] == expected


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
        assert isinstance(one, FrameDamage)


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
    size = min(len(encoded), MAX_ENCODED + 1)
    assert Deframer().feed(encoded + b"\0" + GOOD.encode()) == [FrameDamage(cause, size), GOOD]


@st.composite
def senders_faults(draw: st.DrawFn) -> bytes:
    """With a right CRC: every header, in and out of what the table allows."""
    kind = draw(st.integers(0, 15))
    size = draw(st.sampled_from(SIZES.get(kind, (48,)))) + draw(st.sampled_from((0, 0, 0, 1, -1)))
    said = size + draw(st.sampled_from((0, 0, 0, 1)))
    version = draw(st.sampled_from((1, 1, 1, 0, 2, 15)))
    session = draw(st.sampled_from((0, 1, 0xFFFF)))
    counter = draw(st.sampled_from((0, 0, 1, 0xFFFFFFFF)))
    header = struct.pack("<BBHI", version << 4 | kind, said, session, counter)
    return wrapped((header + draw(st.binary(min_size=size, max_size=size)))[: MAX_DECODED - 4])


TINY = st.lists(st.integers(0, 4), max_size=13).map(bytes)


@given(senders_faults() | TINY | st.binary(max_size=300), st.sampled_from((1, 2, 3)))
def test_what_is_read_is_what_the_page_says(encoded: bytes, newest: int) -> None:
    spoken = tuple(range(1, newest + 1))
    assert read_frame(encoded, range(1, newest + 1)) == plain_read(encoded, spoken)
    if newest == VERSION and encoded and 0 not in encoded:
        (heard,) = Deframer().feed(encoded[: MAX_ENCODED + 1] + b"\0")
        read = plain_read(encoded, spoken)
        assert heard == (
            read if isinstance(read, Frame) else FrameDamage(read, min(len(encoded), 256))
        )


@given(senders_faults())
def test_only_what_would_be_read_is_sent(encoded: bytes) -> None:
    decoded = cobs_decode(encoded)
    assert decoded is not None
    kind, version = decoded[0] & 15, decoded[0] >> 4
    if kind not in SIZES or decoded[1] != len(decoded) - 12:
        return
    session, counter = struct.unpack_from("<HI", decoded, 2)
    frame = Frame(FrameKind(kind), session, counter, decoded[8:-4], version)
    if isinstance(plain_read(encoded, tuple(range(1, 16))), Frame):
        assert frame.encode() == encoded + b"\0"
    else:
        with pytest.raises(BadFrame):
            frame.encode()


def test_a_later_version_is_read_where_it_is_spoken() -> None:
    later = Frame(FrameKind.DATA, 1, 0, bytes(72), 2)
    assert Deframer(range(1, 3)).feed(later.encode()) == [later]


def test_oversize_is_reported_before_its_end_comes() -> None:
    deframer = Deframer()
    assert deframer.feed(b"\x01" * MAX_ENCODED) == []
    assert deframer.feed(b"\x01") == [FrameDamage(Cause.OVERSIZE, 256)]
    assert deframer.feed(b"\x01" * 1000) == []
    assert deframer.buffered == 0
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


FLOODS = {
    "nothing but zeros": (b"\0", 0.01),
    "no zero": (b"\x55", 0.01),
    "the shortest damage": (b"\x01\0", 6),
    "the shortest that is no COBS": (b"\x02\0", 6),
    "the longest damage": (b"\x01" * MAX_ENCODED + b"\0", 0.1),
    "one too many": (b"\x55" * (MAX_ENCODED + 1) + b"\0", 0.1),
    "a wrong CRC": (cobs_encode(bytes(range(12))) + b"\0", 2),
    "whole frames": (GOOD.encode(), 0.5),
}
"""What is sent over and over, and how many calls a byte of it may cost where it comes at once."""


def flood(piece: bytes, size: int) -> bytes:
    return (piece * (size // len(piece) + 1))[:size]


@pytest.mark.parametrize(("piece", "most"), FLOODS.values(), ids=FLOODS)
@pytest.mark.parametrize("cut", [1, 1 << 20], ids=["byte by byte", "at once"])
def test_each_byte_costs_no_more_than_a_few_calls(piece: bytes, most: float, cut: int) -> None:
    data, calls, deframer = flood(piece, 1 << 14), 0, Deframer()
    chunks = [data[at : at + cut] for at in range(0, len(data), cut)]

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for chunk in chunks:
            deframer.feed(chunk)
    finally:
        sys.setprofile(before)
    assert calls <= (most if cut > 1 else 12) * len(data)


@pytest.mark.parametrize("piece", [piece for piece, _ in FLOODS.values()], ids=FLOODS)
def test_a_flood_costs_as_much_as_it_has_bytes(piece: bytes) -> None:
    def seconds(size: int) -> float:
        data, deframer = flood(piece, size), Deframer()
        begun = time.process_time()
        deframer.feed(data)
        return time.process_time() - begun

    least = min(seconds(1 << 14) for _ in range(3))
    # 64 times the bytes; what grew with their square would take 4,096 times as long.
    assert seconds(1 << 20) < 256 * max(least, 0.001)
