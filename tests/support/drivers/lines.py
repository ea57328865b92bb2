"""A serial line that is a pty, for tests of serial ports."""

from __future__ import annotations

import os
import pty
import tty


class Line:
    """A pty: the device holds the master, the port opens the path."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        self._slave: int | None = slave
        os.set_blocking(self.master, False)

    def send(self, data: bytes) -> None:
        assert os.write(self.master, data) == len(data)

    def read(self) -> bytes:
        try:
            return os.read(self.master, 1 << 16)
        except BlockingIOError:
            return b""

    def hang_up(self) -> None:
        """As when the cable is pulled."""
        self.release()
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def release(self) -> None:
        """Let go of our own end of what the port opens."""
        if self._slave is not None:
            os.close(self._slave)
            self._slave = None


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
