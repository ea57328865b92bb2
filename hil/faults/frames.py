"""What a line has no room for is dropped by whole frames, so that the next one is whole again."""

from __future__ import annotations


def whole_frames(data: bytes, room: int) -> bytes:
    """As much of the data as there is room for, up to the end of a frame: its 0x00."""
    if len(data) <= room:
        return data
    return data[: data.rfind(0, 0, max(room, 0)) + 1]


def frame_remainder(data: bytes, at: int) -> bytes:
    """What is left of the frame that is cut at `at`; nothing if a frame begins there."""
    if not at or data[at - 1] == 0:
        return b""
    end = data.find(0, at) + 1
    return data[at : end or len(data)]
