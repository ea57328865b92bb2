"""`holecard serve` as a child process that can be started, stopped and killed repeatedly.

    async with Daemon(file, log) as daemon:
        await daemon.start()            # returns after READY=1
        await daemon.kill()
        await daemon.start()
        assert await daemon.stop() == 0

It reports its state to NOTIFY_SOCKET, as with systemd. It runs in a separate process group, so that
Ctrl-C at the terminal does not stop it; the context manager stops it on exit.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

START_TIMEOUT: Final = 60.0
"""Timeout in seconds for READY=1, also on a busy machine."""
STOP_TIMEOUT: Final = 30.0
_MESSAGE_BYTES: Final = 4096
"""Bytes of a message to the notify socket."""
_READY: Final = "ready: "
_TO_PEOPLE: Final = "holecard: "
_SCREENS: Final = re.compile(r"\bscreens (https?://\S+)")
_SHOWN: Final = 20
"""Lines of the log that are shown if the daemon has ended unexpectedly."""


class DidNotServe(Exception):
    """The daemon did not start, ended unexpectedly, or did not stop; the text is from its log."""

    def __init__(self, words: str, code: int = 0) -> None:
        """`code`: its exit code before it was ready."""
        super().__init__(words)
        self.code = code


class Daemon:
    """A daemon of one table file. `log` gets its stdout and stderr."""

    def __init__(self, file: Path, log: Path) -> None:
        self.file = file
        self.notifications: list[str] = []
        """Messages to the notify socket since the last start."""
        self.starts = 0
        self._log = log
        self._begun_at = 0
        """Bytes of the log before the last start."""
        self._process: subprocess.Popen[bytes] | None = None
        self._code = 0
        """The last exit code."""
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()
        self._pidfd = -1

    async def __aenter__(self) -> Self:
        name = f"\0holecard-{os.getpid()}-{secrets.token_hex(8)}"
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._notify.bind(name)
        self._notify.setblocking(False)
        self._name = f"@{name[1:]}"
        asyncio.get_running_loop().add_reader(self._notify, self._read_notifications)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()  # a process that was killed is gone at once
            self._reap()
        asyncio.get_running_loop().remove_reader(self._notify)
        self._notify.close()

    # --- its life -------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the daemon and wait for READY=1. Raises DidNotServe."""
        assert self._process is None, "it runs"
        self.notifications.clear()
        self._changed.clear()
        self._ended.clear()
        command = [sys.executable, "-m", "controller.cli", "serve", str(self.file)]
        with self._log.open("ab") as log:
            self._begun_at = log.tell()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "NOTIFY_SOCKET": self._name},
                process_group=0,
            )
        self.starts += 1
        self._pidfd = os.pidfd_open(self._process.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                while "READY=1" not in self.notifications and not self._ended.is_set():
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            raise DidNotServe(self._words(f"not ready within {START_TIMEOUT:g} s")) from None
        if self._ended.is_set():
            raise DidNotServe(self._words("it ended before it was ready"), self._code)

    async def screens(self) -> str | None:
        """Returns the URL of its pages, None without pages. Raises DidNotServe."""
        try:
            await until(lambda: self._ready_line() is not None, START_TIMEOUT)
        except TimeoutError:
            raise DidNotServe(self._words("it has not said where it is")) from None
        found = _SCREENS.search(self._ready_line() or "")
        return None if found is None else found[1].rstrip(",")

    def _ready_line(self) -> str | None:
        said = self._log.read_bytes()[self._begun_at :].decode(errors="replace")
        whole = (line for line in said.splitlines(keepends=True) if line.endswith("\n"))
        return next((line.rstrip() for line in whole if line.startswith(_READY)), None)

    async def kill(self) -> None:
        """Kill it with SIGKILL, and wait for its end."""
        self.send_kill()
        await self._ended.wait()

    def send_kill(self) -> None:
        """Kill it with SIGKILL; tasks that wait in `ended` are resumed."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)

    async def stop(self) -> int:
        """Shut it down with SIGTERM; returns its exit code. Raises DidNotServe on timeout."""
        process = self._process
        assert process is not None, "it does not run"
        process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await self._ended.wait()
        except TimeoutError:
            raise DidNotServe(self._words(f"did not stop within {STOP_TIMEOUT:g} s")) from None
        return process.wait()

    async def ended(self) -> None:
        """Returns when it runs no more."""
        await self._ended.wait()

    # --- notifications --------------------------------------------------------------------

    def _read_notifications(self) -> None:
        with suppress(BlockingIOError):
            while True:
                self.notifications += self._notify.recv(_MESSAGE_BYTES).decode().splitlines()
                self._changed.set()

    def _reap(self) -> None:
        if self._process is None:
            return
        self._code = self._process.wait()  # the pidfd says that it has ended
        self._process = None
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._ended.set()
        self._changed.set()

    def _words(self, what: str) -> str:
        """Returns `what` with the lines for users since the last start, else the last lines of
        the log."""
        every = self._log.read_bytes()[self._begun_at :].decode(errors="replace").splitlines()
        said = [line for line in every if line.startswith(_TO_PEOPLE)] or every[-_SHOWN:]
        return "\n".join((f"holecard serve {self.file}: {what}", *said))


async def until(true: Callable[[], bool], within: float) -> None:
    """Wait until `true()` returns true. Raises TimeoutError after `within` seconds."""
    async with asyncio.timeout(within):
        while not true():
            await asyncio.sleep(0.001)
