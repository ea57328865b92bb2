"""Frames and other bytes for a line, and plain versions of CRC-32C and COBS."""

from hypothesis import strategies as st

from firmware_protocol.messages import PAYLOAD_SIZES, FrameKind
from firmware_protocol.tablelink import Frame


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


PIECES = st.one_of(
    st.binary(max_size=40),
    st.binary(min_size=200, max_size=600),
    frames().map(Frame.encode),
    st.just(bytes(5)),
    st.tuples(frames().map(Frame.encode), st.integers(0, 90), st.integers(1, 255)).map(
        lambda one: one[0][: one[1]] + bytes([one[2]]) + one[0][one[1] + 1 :]
    ),
)
