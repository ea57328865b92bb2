"""A pseudo terminal for a command to speak to, read to its end.

    with terminal() as at:
        subprocess.run(command, stderr=at.far, check=True)
        shown = at.shown()

What a command has written is not there at once when it has ended: only that nobody has the far end
any more says that all of it has come.
"""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.support.paths import ROOT

KILL_TIMEOUT: Final = 10.0
"""Seconds in which a command ends that was killed."""


class Terminal:
    """Both of its ends. `terminal` makes one."""

    def __init__(self) -> None:
        self.near, self.far = pty.openpty()

    def type(self, text: str) -> None:
        os.write(self.near, text.encode())

    def shown(self) -> str:
        """All that was written to it; whoever wrote has ended."""
        self._leave()
        return b"".join(self._pieces()).decode()

    def _pieces(self) -> Iterator[bytes]:
        try:
            while piece := os.read(self.near, 65536):
                yield piece
        except OSError as ended:
            if ended.errno != errno.EIO:
                raise

    def _leave(self) -> None:
        if self.far >= 0:
            os.close(self.far)
            self.far = -1

    def close(self) -> None:
        self._leave()
        os.close(self.near)


@contextmanager
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    try:
        yield made
    finally:
        made.close()


@contextmanager
def at_terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """`holecard ARGUMENTS` at a controlling terminal of its own, and our end of that."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "controller.cli", *arguments]
    child = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *command], cwd=ROOT, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)  # so that reading ends with an error, not never, when the command has ended
    try:
        yield child, master
    finally:
        child.kill()
        child.wait(KILL_TIMEOUT)
        os.close(master)


def until(master: int, words: bytes) -> bytes:
    """Read up to these words; returns all that was read."""
    seen = b""
    while words not in seen:
        seen += os.read(master, 1024)
    return seen


def answers(master: int, *said: tuple[bytes, str]) -> bytes:
    """Type each answer where its question has come; returns all that was read."""
    seen = b""
    for question, answer in said:
        seen += until(master, question)
        os.write(master, f"{answer}\n".encode())
    return seen


def shows(master: int) -> bool:
    """Return whether the terminal shows what is typed."""
    return bool(termios.tcgetattr(master)[3] & termios.ECHO)
