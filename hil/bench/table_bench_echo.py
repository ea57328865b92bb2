"""A bare pty with another process behind it: what comes is sent back, and nothing else is done.

python -m hil.bench.table_bench_echo TERMINAL      # until it is killed
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SIZE: Final = 100
"""About the bytes of a card's record on the wire; as many come back."""
_READ: Final = 4096


class Echo:
    """Our end of it."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._data = bytes(range(1, SIZE + 1))

    def once(self) -> None:
        """There and back, all bytes."""
        os.write(self._master, self._data)
        left = SIZE
        while left:
            left -= len(os.read(self._master, left))

    def timed(self, count: int) -> list[float]:
        """Seconds of each."""
        times = []
        for _ in range(count):
            begun = time.monotonic_ns()
            self.once()
            times.append((time.monotonic_ns() - begun) / 1e9)
        return times


@contextmanager
def echo() -> Iterator[Echo]:
    """Another process stands behind it meanwhile."""
    master, slave = os.openpty()
    try:
        tty.setraw(slave)
        command = [sys.executable, "-m", "hil.bench.table_bench_echo", os.ttyname(slave)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            ours = Echo(master)
            ours.once()  # it has begun to listen
            yield ours
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(slave)
        os.close(master)


def main(terminal: str) -> None:
    port = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
    while data := os.read(port, _READ):
        os.write(port, data)


if __name__ == "__main__":
    main(*sys.argv[1:])
