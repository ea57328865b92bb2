"""A stalled disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from controller.audit.files import RealDisk
from controller.audit.log import LogWriter
from tests.support.audit.record.table import begun, handed_in, note

WAITING: Final = 200


class _Stalling(RealDisk):
    def __init__(self) -> None:
        self.seconds = 0.0

    def sync(self, fd: int) -> None:
        seconds, self.seconds = self.seconds, 0.0
        time.sleep(seconds)
        super().sync(fd)


def stalled(record: Path, seconds: float) -> int:
    """The number of acknowledged entries of those queued; all must be recorded."""
    disk = _Stalling()
    book = LogWriter(begun(record, disk=disk, size=1024 * 1024))
    disk.seconds = seconds
    waiting = [book.submit(note(f"{at}")) for at in range(WAITING)]
    answered = [one.result(seconds + 60)[0].seq for one in waiting]
    book.close_now()
    found = {seq for seq, _ in handed_in(record)}
    assert set(answered) <= found
    return len(answered)
