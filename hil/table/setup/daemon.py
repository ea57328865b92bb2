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
import socket
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
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
        self._log_start = 0
        """Bytes of the log before the last start."""
        self._process: Process | None = None
        self._ready = asyncio.Event()

    async def __aenter__(self) -> Self:
        name = f"holecard-{os.getpid()}-{secrets.token_hex(8)}"
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._notify.bind(f"\0{name}")
        self._notify.setblocking(False)
        self._address = f"@{name}"
        asyncio.get_running_loop().add_reader(self._notify, self._read_notifications)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()
        asyncio.get_running_loop().remove_reader(self._notify)
        self._notify.close()

    # --- its life -------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the daemon and wait for READY=1. Raises DidNotServe."""
        assert not self.running, "it runs"
        self.notifications.clear()
        self._ready.clear()
        command = [sys.executable, "-m", "controller.cli", "serve", "--allow-root", str(self.file)]
        with self._log.open("ab") as log:
            self._log_start = log.tell()
            self._process = process = await asyncio.create_subprocess_exec(
                *command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "NOTIFY_SOCKET": self._address},
                process_group=0,
            )
        self.starts += 1
        waits = [asyncio.create_task(work) for work in (process.wait(), self._ready.wait())]
        try:
            done, _ = await asyncio.wait(
                waits, timeout=START_TIMEOUT, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for wait in waits:
                wait.cancel()
        if process.returncode is not None:
            raise DidNotServe(self._with_log("it ended before it was ready"), process.returncode)
        if not done:
            raise DidNotServe(self._with_log(f"not ready within {START_TIMEOUT:g} s"))

    async def screens(self) -> str | None:
        """Returns the URL of its pages, None without pages. Raises DidNotServe."""
        try:
            await until(lambda: self._ready_line() is not None, START_TIMEOUT)
        except TimeoutError:
            raise DidNotServe(self._with_log("it has not said where it is")) from None
        found = _SCREENS.search(self._ready_line() or "")
        return None if found is None else found[1].rstrip(",")

    def _ready_line(self) -> str | None:
        text = self._log.read_bytes()[self._log_start :].decode(errors="replace")
        whole = (line for line in text.splitlines(keepends=True) if line.endswith("\n"))
        return next((line.rstrip() for line in whole if line.startswith(_READY)), None)

    async def kill(self) -> None:
        """Kill it with SIGKILL if it runs, and wait for its end."""
        if self._process is not None and self.running:
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> int:
        """Shut it down with SIGTERM; returns its exit code. Raises DidNotServe on timeout."""
        process = self._process
        assert process is not None, "it does not run"
        if self.running:
            process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                return await process.wait()
        except TimeoutError:
            raise DidNotServe(self._with_log(f"did not stop within {STOP_TIMEOUT:g} s")) from None

    # --- notifications --------------------------------------------------------------------

    def _read_notifications(self) -> None:
        with suppress(BlockingIOError):
            while True:
                self.notifications += self._notify.recv(_MESSAGE_BYTES).decode().splitlines()
                if "READY=1" in self.notifications:
                    self._ready.set()

    def _with_log(self, what: str) -> str:
        """Returns `what` with the lines for users since the last start, else the last lines of
        the log."""
        every = self._log.read_bytes()[self._log_start :].decode(errors="replace").splitlines()
        lines = [line for line in every if line.startswith(_TO_PEOPLE)] or every[-_SHOWN:]
        return "\n".join((f"holecard serve {self.file}: {what}", *lines))


async def until(true: Callable[[], bool], within: float) -> None:
    """Wait until `true()` returns true. Raises TimeoutError after `within` seconds."""
    async with asyncio.timeout(within):
        while not true():
            await asyncio.sleep(0.001)
