"""Cutting a byte stream at frame ends, for a line that drops what exceeds its capacity."""

from __future__ import annotations


def whole_frames(data: bytes, room: int) -> bytes:
    """The part of the data that fits, up to the end of a frame, its 0x00."""
    if len(data) <= room:
        return data
    return data[: data.rfind(0, 0, max(room, 0)) + 1]


def frame_remainder(data: bytes, at: int) -> bytes:
    """The rest of the frame that is cut at `at`; empty if a frame starts there."""
    if not at or data[at - 1] == 0:
        return b""
    end = data.find(0, at) + 1
    return data[at : end or len(data)]
